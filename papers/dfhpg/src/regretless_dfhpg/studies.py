"""Every table and figure of the paper as a study; registered as ``regretless.studies``.

Studies share results: the convergence curves show the runs of the main table, the feedback figure uses both tables, and
an arm that is played in several studies is computed once, because it has one address.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regretless.experiments import Arm, Cell, Experiment, Panel, Scale, Study, address_of
from regretless.results import Result

Progress = Callable[[str, int, int], None]
COLLECTION = "dfhpg"
BENCHMARKS = ("topk", "shortest_path", "pricing", "energy")
BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0", "linear_thompson")
SEMI_BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg", "dfhpg_0", "linear_thompson")
FULL = ("dfhpg", "dfhpg_0", "linear_thompson")
MODELS = ("gaussian_linear", "gaussian_nn", "flow", "diffusion")
MODEL_HORIZON = 15_000
PUBLISHED_ORIENTATION = Arm("published orientation", "dfhpg", {"generative.orientation": "published"})
"""The authors' generative runs pass costs to surrogates that maximise."""

VARIANTS = {
    "flow": (PUBLISHED_ORIENTATION, Arm("plug-in variant", "dfhpg", {"variant": "plug_in"})),
    "diffusion": (PUBLISHED_ORIENTATION, Arm("unweighted regulariser", "dfhpg", {"model.regulariser": "unweighted"})),
}
"""Arms in addition to the preset of a generative model; only the flow has the density of the plug-in variant."""

DEGREES = (2, 4, 6, 8, 10)
PUBLISHED_DEGREE = 8
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
SURROGATES = (
    "spo_plus",
    "mse_spo_plus",
    "dbb",
    "imle",
    "aimle",
    "nid",
    "pfyl",
    "dpo",
    "pg",
    "nce",
    "nce_c",
    "contrastive_map",
    "map_c",
    "pointwise_ltr",
    "pairwise_diff",
    "pairwise_ltr",
    "listwise_ltr",
    "spo_caching",
)
ZOOM = 600
"""The paper's convergence figures show the first 600 rounds of the synthetic benchmarks."""

ENERGY_ROUNDS = 395
REPLICATIONS = 30
SECOND_SEEDS = 1000
"""First seed of the second range, which decides about cells that differ from their published value on the first."""


def _experiment(
    scale: Scale, benchmark: str, policies: Sequence[str | Arm], horizon: int | None = None, **options: Any
) -> Experiment:
    """Return an experiment at this scale, with ``horizon`` rounds unless the scale sets them."""
    horizon = scale.horizon or horizon
    if horizon is not None and benchmark == "energy":
        horizon = min(horizon, ENERGY_ROUNDS)
    return Experiment(benchmark, tuple(policies), seeds=scale.seeds_or(REPLICATIONS), horizon=horizon, **options)


def _bandit(scale: Scale, benchmark: str) -> Cell:
    """Return a column of the main table."""
    return Cell("", _experiment(scale, benchmark, BANDIT))


def _semi_bandit(scale: Scale, benchmark: str) -> Cell:
    """Return a column of the semi-bandit table."""
    return Cell("", _experiment(scale, benchmark, SEMI_BANDIT, feedback="semi_bandit"))


def main(scale: Scale) -> Study:
    """Return the main table: all policies with bandit feedback."""
    return Study(
        "main",
        tuple(Panel(name, (_bandit(scale, name),)) for name in BENCHMARKS),
        title="Main table: bandit feedback",
        about="Final regret; only the total cost of the decision is observed.",
        collection=COLLECTION,
        order=0,
        second_seeds=SECOND_SEEDS,
    )


def semi_bandit(scale: Scale) -> Study:
    """Return the semi-bandit table."""
    return Study(
        "semi_bandit",
        tuple(Panel(name, (_semi_bandit(scale, name),)) for name in BENCHMARKS),
        title="Semi-bandit table",
        about="Final regret; the cost of each chosen part is observed.",
        collection=COLLECTION,
        order=1,
        second_seeds=SECOND_SEEDS,
    )


def convergence(scale: Scale) -> Study:
    """Return the runs of the main table, round by round."""
    return Study(
        "convergence",
        tuple(Panel(name, (_bandit(scale, name),), zoom=None if name == "energy" else ZOOM) for name in BENCHMARKS),
        title="Convergence",
        about="Average regret per round with ±1 standard-error bands, bandit feedback.",
        kind="curves",
        collection=COLLECTION,
        order=2,
    )


def models(scale: Scale) -> Study:
    """Return DFHPG with each model of the cost over a long horizon, the generative ones with their variants."""
    panels = []
    for name in BENCHMARKS:
        cells = []
        for model in MODELS:
            policies = ("dfhpg", "linear_thompson") if model == MODELS[0] else ("dfhpg", *VARIANTS.get(model, ()))
            settings = {} if model == MODELS[0] else {"model": model}
            horizon = None if name == "energy" else MODEL_HORIZON
            cells.append(Cell(model, _experiment(scale, name, policies, settings=settings, horizon=horizon)))
        panels.append(Panel(name, tuple(cells)))
    return Study(
        "models",
        tuple(panels),
        title="Models of the cost",
        about="DFHPG with linear, neural, flow and diffusion models over a long horizon.",
        kind="models",
        axis="model of the cost",
        collection=COLLECTION,
        order=3,
    )


def surrogates(scale: Scale) -> Study:
    """Return DFHPG and DFHPG-0 with each surrogate and otherwise the settings of the preset."""
    arms = [
        Arm(f"{name}/{policy}", policy, {"surrogate": name}) for name in SURROGATES for policy in ("dfhpg", "dfhpg_0")
    ]
    panels = [Panel(name, (Cell("", _experiment(scale, name, arms)),), (_bandit(scale, name),)) for name in BENCHMARKS]
    return Study(
        "surrogates",
        tuple(panels),
        title="Surrogate losses",
        about="Final regret with each surrogate in the decision-focused branch.",
        kind="heatmap",
        axis="surrogate",
        collection=COLLECTION,
        order=4,
    )


def alpha(scale: Scale) -> Study:
    """Return fixed mixing weights and the schedule, with the baseline of the preset."""
    fixed = [Arm(f"α = {value:g}", "dfhpg", {"alpha.max": value, "alpha.min": value}) for value in ALPHAS]
    arms = (Arm("schedule", "dfhpg"), *fixed)
    panels = [Panel(name, (Cell("", _experiment(scale, name, arms)),), (_bandit(scale, name),)) for name in BENCHMARKS]
    return Study(
        "alpha",
        tuple(panels),
        title="Mixing weight",
        about="Fixed α between the plug-in term (0) and the score term (1), compared with the schedule.",
        kind="bars",
        axis="mixing weight",
        collection=COLLECTION,
        order=5,
    )


def degree(scale: Scale) -> Study:
    """Return all policies as the costs become less linear; the published degree is the main table."""
    panels = []
    for name in BENCHMARKS[:3]:
        changes = {value: {} if value == PUBLISHED_DEGREE else {"benchmark.degree": value} for value in DEGREES}
        cells = [Cell(str(value), _experiment(scale, name, BANDIT, settings=each)) for value, each in changes.items()]
        panels.append(Panel(name, tuple(cells)))
    return Study(
        "degree",
        tuple(panels),
        title="Difficulty",
        about="Final regret as the degree of the costs grows.",
        kind="lines",
        axis="degree",
        collection=COLLECTION,
        order=6,
    )


def feedback(scale: Scale) -> Study:
    """Return DFHPG and DFHPG-0 as feedback becomes richer."""
    panels = [
        Panel(
            name,
            (
                dataclasses.replace(_bandit(scale, name), label="bandit"),
                dataclasses.replace(_semi_bandit(scale, name), label="semi_bandit"),
                Cell("full", _experiment(scale, name, FULL, feedback="full")),
            ),
        )
        for name in BENCHMARKS
    ]
    return Study(
        "feedback",
        tuple(panels),
        title="Feedback modes",
        about="Final regret with bandit, semi-bandit and full feedback.",
        kind="lines",
        axis="feedback",
        collection=COLLECTION,
        order=7,
    )


CLAIM_SEEDS = {
    "topk": {"bandit": 400, "semi_bandit": 200, "full": 100, "alpha": 150, "degree": 120},
    "shortest_path": {"bandit": 300, "semi_bandit": 200, "full": 100, "alpha": 150, "degree": 120},
    "pricing": {"bandit": 600, "semi_bandit": 400, "full": 200, "alpha": 240, "degree": 200, "surrogates": 60},
    "energy": {"bandit": 240, "semi_bandit": 240, "full": 120, "alpha": 120},
}
"""Replications with which claims are decided, by benchmark and kind of cell. They come from the half widths at 30
replications: what brings most intervals below the margin of equivalence, or below the distance to the claim's limit."""


def cell_with_more_seeds(study: str, cell: str) -> str:
    """Return the label in the study ``claims`` of a cell of another study.

    Parameters
    ----------
    study, cell : str
        Name of the study and label of its cell.
    """
    if study in ("main", "convergence"):
        return "bandit"
    if study in ("semi_bandit", "alpha", "surrogates"):
        return study
    if study == "degree":
        return "bandit" if cell == str(PUBLISHED_DEGREE) else f"degree {cell}"
    return cell if study == "feedback" else ""


def claims(scale: Scale) -> Study:
    """Return arms of the other studies with the replications that claims about them need."""
    sources = [study(Scale()) for study in (main, semi_bandit, surrogates, alpha, degree, feedback)]
    panels = []
    for name in BENCHMARKS:
        cells = {}
        for study in sources:
            for panel in study.panels:
                for cell in panel.cells if panel.title == name else ():
                    label = cell_with_more_seeds(study.name, cell.label)
                    count = CLAIM_SEEDS[name].get(label.partition(" ")[0])
                    if count is not None and label not in cells and isinstance(cell.work, Experiment):
                        cells[label] = Cell(label, scale.apply(cell.work.replace(seeds=range(count))))
        panels.append(Panel(name, tuple(cells.values())))
    return Study(
        "claims",
        tuple(panels),
        title="Claims: more replications",
        about="Arms of the other studies with as many replications as the claims about them need.",
        collection=COLLECTION,
        order=9,
    )


def as_printed(scale: Scale) -> Study:
    """Return DFHPG with the published settings, and with those of the text: each alone, and together."""
    from regretless_dfhpg.as_printed import build_study  # imports the report

    return build_study(scale)


SHORT_THEORY: dict[str, Any] = {"replications": 32, "samples": 2**17, "horizons": (512, 1024, 2048)}
"""A check of the theorems that takes a minute and gives no verdicts."""


@dataclasses.dataclass(frozen=True)
class TheoryTask:
    """The check of the convergence theorems.

    Parameters
    ----------
    seed : int, default 0
        First seed.
    short : bool, default False
        Whether to take few samples over short horizons, without verdicts.
    """

    seed: int = 0
    short: bool = False

    @property
    def name(self) -> str:
        """The name for progress and error messages."""
        return "convergence theorems" + (", short" if self.short else "")

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything that the result depends on apart from the code."""
        return {"kind": "theory", "seed": self.seed, "short": self.short}

    @property
    def address(self) -> str:
        """The address of the result."""
        return address_of(self.configuration, ("regretless_dfhpg.theory",))

    def compute(self, progress: Progress) -> Result:
        """Measure every statement; the result holds a document and no regret."""
        from regretless_dfhpg.theory import check

        size = SHORT_THEORY if self.short else {}
        document = check.run(progress=progress, seed=self.seed, **size).to_dict()
        empty = np.zeros((0, 0))
        return Result("theory", empty, np.zeros(0, np.int32), (), self.configuration, extra={"document": document})


def theory(scale: Scale) -> Study:
    """Return the check of the convergence theorems; anything but the paper's horizon makes it a short one."""
    task = TheoryTask(scale.first_seed, scale.horizon is not None)
    return Study(
        "theory",
        (Panel("", (Cell("", task),)),),
        title="Convergence theorems",
        about="The setting of the theorems, measured.",
        kind="theory",
        collection=COLLECTION,
        order=8,
    )


STUDIES: dict[str, Callable[[Scale], Study]] = {
    study.__name__: study
    for study in (
        main,
        semi_bandit,
        convergence,
        models,
        surrogates,
        alpha,
        degree,
        feedback,
        theory,
        claims,
        as_printed,
    )
}
"""All studies in the order of the report."""
