"""Every table and figure of the paper as data: which cells it needs and how it is shown.

Cells are shared: the convergence curves are those of the main table, the feedback figure reuses both tables, and degree 8 is
the main table again. What this build does not have (a benchmark, a policy, a model) is left out and named.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from regretless import benchmarks, models, policies, surrogates
from regretless.registry import require_known
from regretless.studies.cells import AnyCell, Arm, Cell, TheoryCell

BENCHMARKS = ("topk", "shortest_path", "pricing", "energy")
BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0", "linear_thompson")
SEMI_BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg", "dfhpg_0", "linear_thompson")
FULL = ("dfhpg", "dfhpg_0", "linear_thompson")
MODELS = ("gaussian_linear", "gaussian_nn", "flow", "diffusion")
MODEL_HORIZON = 15_000
TURNED = Arm(label="published orientation", policy="dfhpg", overrides={"orientation": "published"})
"""The authors' generative runs hand costs to surrogates that maximise; shown once, on the first benchmark."""

DEGREES = (2, 4, 6, 8, 10)
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
SURROGATES = (
    "spo_plus", "mse_spo_plus", "dbb", "imle", "aimle", "nid", "pfyl", "dpo", "pg", "nce", "nce_c", "contrastive_map", "map_c",
    "pointwise_ltr", "pairwise_diff", "pairwise_ltr", "listwise_ltr", "spo_caching",
)  # fmt: skip
SURROGATES_PER_CELL = 6
ZOOM = 600
"""The paper's convergence figures show the first 600 rounds of the synthetic benchmarks."""

LONGEST = {"energy": 395}
"""Rounds of the benchmarks that are read from data."""

QUICK_SEEDS, QUICK_HORIZON = 3, 200

Kind = Literal["table", "curves", "models", "heatmap", "alpha", "degree", "feedback", "theory"]


class Panel(NamedTuple):
    """One table or chart: cells by label, and cells whose linear_thompson is drawn beside them."""

    benchmark: str
    cells: tuple[tuple[str, AnyCell], ...]
    beside: tuple[AnyCell, ...] = ()
    zoom: int | None = None


class Study(NamedTuple):
    """A table or figure of the paper."""

    name: str
    kind: Kind
    title: str
    about: str
    panels: tuple[Panel, ...]
    missing: tuple[str, ...]  # what this build does not have

    def cells(self) -> Iterator[AnyCell]:
        """Every cell, those beside included; the same one may come several times."""
        for panel in self.panels:
            yield from (cell for _, cell in panel.cells)
            yield from panel.beside


class Scale(NamedTuple):
    """How much of everything: replications, where their seeds start, and rounds (None: the paper's)."""

    seeds: int = 30
    first_seed: int = 0
    horizon: int | None = None

    def cell(
        self,
        benchmark: str,
        arms: Sequence[Arm],
        feedback: str = "bandit",
        degree: int | None = None,
        model: str = MODELS[0],
        horizon: int | None = None,
    ) -> Cell:
        """A cell at this scale."""
        rounds = self.horizon or horizon
        if rounds is not None and benchmark in LONGEST:
            rounds = min(rounds, LONGEST[benchmark])
        return Cell(
            benchmark=benchmark,
            arms=tuple(arms),
            feedback=feedback,
            degree=degree,
            model=model,
            seeds=self.seeds,
            first_seed=self.first_seed,
            horizon=rounds,
        )


QUICK = Scale(QUICK_SEEDS, 0, QUICK_HORIZON)


def arms(names: Sequence[str]) -> list[Arm]:
    """The policies among ``names`` that exist, as they are."""
    return [Arm(label=name, policy=name) for name in names if name in policies.REGISTRY]


def present(names: Sequence[str] = BENCHMARKS) -> list[str]:
    """The benchmarks that exist."""
    return [name for name in names if name in benchmarks.REGISTRY]


def bandit(scale: Scale, benchmark: str) -> Cell:
    """A column of the main table."""
    return scale.cell(benchmark, arms(BANDIT))


def main(scale: Scale) -> list[Panel]:
    """All policies with bandit feedback."""
    return [Panel(name, (("", bandit(scale, name)),)) for name in present()]


def semi_bandit_cell(scale: Scale, benchmark: str) -> Cell:
    """A column of the semi-bandit table."""
    return scale.cell(benchmark, arms(SEMI_BANDIT), "semi_bandit")


def semi_bandit(scale: Scale) -> list[Panel]:
    """The semi-bandit table."""
    return [Panel(name, (("", semi_bandit_cell(scale, name)),)) for name in present()]


def convergence(scale: Scale) -> list[Panel]:
    """The main table's runs, round by round."""
    return [Panel(name, (("", bandit(scale, name)),), zoom=None if name == "energy" else ZOOM) for name in present()]


def model_comparison(scale: Scale) -> list[Panel]:
    """DFHPG with each model of the cost at the long horizon."""
    panels = []
    for name in present():
        horizon = None if name == "energy" else MODEL_HORIZON
        cells = []
        for model in MODELS:
            if model in models.REGISTRY:
                played = arms(("dfhpg", "linear_thompson") if model == MODELS[0] else ("dfhpg",))
                if name == BENCHMARKS[0] and model in ("flow", "diffusion"):
                    played.append(TURNED)
                cells.append((model, scale.cell(name, played, model=model, horizon=horizon)))
        panels.append(Panel(name, tuple(cells)))
    return panels


def surrogate_heat_maps(scale: Scale) -> list[Panel]:
    """DFHPG and DFHPG-0 with each surrogate, everything else as the preset says."""
    known = [name for name in SURROGATES if name in surrogates.REGISTRY]
    panels = []
    for name in present():
        cells = []
        for start in range(0, len(known), SURROGATES_PER_CELL):
            some = known[start : start + SURROGATES_PER_CELL]
            both = [
                Arm(label=f"{surrogate}/{policy}", policy=policy, overrides={"surrogate": surrogate})
                for surrogate in some
                for policy in ("dfhpg", "dfhpg_0")
            ]
            cells.append((f"{some[0]} to {some[-1]}", scale.cell(name, both)))
        panels.append(Panel(name, tuple(cells), (bandit(scale, name),)))
    return panels


def alpha(scale: Scale) -> list[Panel]:
    """Fixed mixing weights against the schedule, with the preset's baseline."""
    fixed = [
        Arm(label=f"α = {value:g}", policy="dfhpg", overrides={"alpha_max": f"{value:g}", "alpha_min": f"{value:g}"})
        for value in ALPHAS
    ]
    mixing = [Arm(label="schedule", policy="dfhpg"), *fixed]
    return [Panel(name, (("", scale.cell(name, mixing)),), (bandit(scale, name),)) for name in present()]


def degree(scale: Scale) -> list[Panel]:
    """All policies as the costs become less linear; the published degree is the main table's cell."""
    panels = []
    for name in present(BENCHMARKS[:3]):
        default = benchmarks.options_of(name)["degree"]
        cells = [
            (str(value), scale.cell(name, arms(BANDIT), degree=None if value == default else value))
            for value in DEGREES
        ]
        panels.append(Panel(name, tuple(cells)))
    return panels


def feedback(scale: Scale) -> list[Panel]:
    """DFHPG and DFHPG-0 as feedback becomes richer."""
    return [
        Panel(
            name,
            (
                ("bandit", bandit(scale, name)),
                ("semi_bandit", semi_bandit_cell(scale, name)),
                ("full", scale.cell(name, arms(FULL), "full")),
            ),
        )
        for name in present()
    ]


def theory(scale: Scale) -> list[Panel]:
    """The convergence theorems' setting; anything but the paper's horizon makes it a short one."""
    return [Panel("", (("", TheoryCell(seed=scale.first_seed, short=scale.horizon is not None)),))]


class _Entry(NamedTuple):
    kind: Kind
    title: str
    about: str
    panels: Callable[[Scale], list[Panel]]
    benchmarks: Sequence[str] = BENCHMARKS
    policies: Sequence[str] = ()
    models: Sequence[str] = ()


REGISTRY: dict[str, _Entry] = {
    "main": _Entry(
        "table", "Main table: bandit feedback", "Final regret; only the total cost of the decision is seen.", main,
        policies=BANDIT,
    ),
    "semi_bandit": _Entry(
        "table", "Semi-bandit table", "Final regret; the cost of each chosen part is seen.", semi_bandit,
        policies=SEMI_BANDIT,
    ),
    "convergence": _Entry(
        "curves", "Convergence", "Average regret per round with ±1 standard-error bands, bandit feedback.", convergence,
        policies=BANDIT,
    ),
    "models": _Entry(
        "models", "Models of the cost", "DFHPG with linear, neural, flow and diffusion models over a long horizon.",
        model_comparison, models=MODELS,
    ),
    "surrogates": _Entry(
        "heatmap", "Surrogate losses", "Final regret with each surrogate in the decision-focused branch.",
        surrogate_heat_maps,
    ),
    "alpha": _Entry(
        "alpha", "Mixing weight", "Fixed α between the plug-in term (0) and the score term (1), against the schedule.", alpha,
    ),
    "degree": _Entry(
        "degree", "Difficulty", "Final regret as the degree of the costs grows.", degree, benchmarks=BENCHMARKS[:3],
        policies=BANDIT,
    ),
    "feedback": _Entry(
        "feedback", "Feedback modes", "Final regret with bandit, semi-bandit and full feedback.", feedback,
    ),
    "theory": _Entry("theory", "Convergence theorems", "The theorems' setting, measured.", theory, benchmarks=()),
}  # fmt: skip
"""The studies, in the order in which they are shown."""


def study(name: str, scale: Scale) -> Study:
    """The study called ``name`` at this scale.

    >>> [panel.benchmark for panel in study("main", QUICK).panels][:2]
    ['topk', 'shortest_path']
    """
    require_known("study", name, REGISTRY)
    entry = REGISTRY[name]
    missing = [f"benchmark {each}" for each in entry.benchmarks if each not in benchmarks.REGISTRY]
    missing += [f"policy {each}" for each in entry.policies if each not in policies.REGISTRY]
    missing += [f"model {each}" for each in entry.models if each not in models.REGISTRY]
    return Study(name, entry.kind, entry.title, entry.about, tuple(entry.panels(scale)), tuple(missing))
