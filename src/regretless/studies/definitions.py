"""Every table and figure of the paper as data: which cells it needs and how it is shown.

Cells are shared: the convergence curves are those of the main table, the feedback figure reuses both tables, and degree 8 is
the main table again. The heat maps and the mixing weights borrow from the main table the arms that it has.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from regretless.registry import require_known
from regretless.studies.borrowing import borrowing
from regretless.studies.cells import TheoryCell
from regretless.studies.experiment import PUBLISHED_DEGREE, Arm, Experiment
from regretless.studies.study import QUICK as QUICK
from regretless.studies.study import Kind, Panel, Scale, Study

BENCHMARKS = ("topk", "shortest_path", "pricing", "energy")
BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0", "linear_thompson")
SEMI_BANDIT = ("greedy", "epsilon_greedy", "thompson", "dfhpg", "dfhpg_0", "linear_thompson")
FULL = ("dfhpg", "dfhpg_0", "linear_thompson")
MODELS = ("gaussian_linear", "gaussian_nn", "flow", "diffusion")
MODEL_HORIZON = 15_000
TURNED = Arm(label="published orientation", policy="dfhpg", settings={"generative.orientation": "published"})
"""The authors' generative runs hand costs to surrogates that maximise."""

VARIANTS = {
    "flow": (TURNED, Arm(label="plug-in variant", policy="dfhpg", settings={"variant": "plug_in"})),
    "diffusion": (
        TURNED,
        Arm(label="unweighted regulariser", policy="dfhpg", settings={"model.regulariser": "unweighted"}),
    ),
}
"""What is played beside DFHPG's own preset with a generative model; only the flow has the density of the plug-in variant."""

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

REPLICATIONS = 30


def cell(
    scale: Scale,
    benchmark: str,
    arms: Sequence[Arm],
    feedback: str = "bandit",
    degree: int | None = None,
    model: str = MODELS[0],
    horizon: int | None = None,
) -> Experiment:
    """A cell at this scale."""
    rounds = scale.horizon or horizon
    if rounds is not None and benchmark in LONGEST:
        rounds = min(rounds, LONGEST[benchmark])
    return Experiment(
        benchmark=benchmark,
        arms=tuple(arms),
        feedback=feedback,
        degree=degree,
        model=model,
        seeds=scale.seeds_or(REPLICATIONS),
        horizon=rounds,
    )


def arms(names: Sequence[str]) -> list[Arm]:
    """These policies as they are."""
    return [Arm(label=name, policy=name) for name in names]


def bandit(scale: Scale, benchmark: str) -> Experiment:
    """A column of the main table."""
    return cell(scale, benchmark, arms(BANDIT))


def main(scale: Scale) -> list[Panel]:
    """All policies with bandit feedback."""
    return [Panel(name, (("", bandit(scale, name)),)) for name in BENCHMARKS]


def semi_bandit_cell(scale: Scale, benchmark: str) -> Experiment:
    """A column of the semi-bandit table."""
    return cell(scale, benchmark, arms(SEMI_BANDIT), "semi_bandit")


def semi_bandit(scale: Scale) -> list[Panel]:
    """The semi-bandit table."""
    return [Panel(name, (("", semi_bandit_cell(scale, name)),)) for name in BENCHMARKS]


def convergence(scale: Scale) -> list[Panel]:
    """The main table's runs, round by round."""
    return [Panel(name, (("", bandit(scale, name)),), zoom=None if name == "energy" else ZOOM) for name in BENCHMARKS]


def model_comparison(scale: Scale) -> list[Panel]:
    """DFHPG with each model of the cost at the long horizon, the generative ones with their variants."""
    panels = []
    for name in BENCHMARKS:
        horizon = None if name == "energy" else MODEL_HORIZON
        cells = []
        for model in MODELS:
            played = arms(("dfhpg", "linear_thompson") if model == MODELS[0] else ("dfhpg",))
            played += VARIANTS.get(model, ())
            cells.append((model, cell(scale, name, played, model=model, horizon=horizon)))
        panels.append(Panel(name, tuple(cells)))
    return panels


def surrogate_heat_maps(scale: Scale) -> list[Panel]:
    """DFHPG and DFHPG-0 with each surrogate, everything else as the preset says."""
    panels = []
    for name in BENCHMARKS:
        cells = []
        for start in range(0, len(SURROGATES), SURROGATES_PER_CELL):
            some = SURROGATES[start : start + SURROGATES_PER_CELL]
            both = [
                Arm(label=f"{surrogate}/{policy}", policy=policy, settings={"surrogate": surrogate})
                for surrogate in some
                for policy in ("dfhpg", "dfhpg_0")
            ]
            cells.append((f"{some[0]} to {some[-1]}", cell(scale, name, both)))
        lender = bandit(scale, name)
        panels.append(borrowing(Panel(name, tuple(cells), (lender,)), lender))
    return panels


def alpha(scale: Scale) -> list[Panel]:
    """Fixed mixing weights against the schedule, with the preset's baseline."""
    fixed = [
        Arm(label=f"α = {value:g}", policy="dfhpg", settings={"alpha.max": value, "alpha.min": value})
        for value in ALPHAS
    ]
    mixing = [Arm(label="schedule", policy="dfhpg"), *fixed]
    lenders = {name: bandit(scale, name) for name in BENCHMARKS}
    return [
        borrowing(Panel(name, (("", cell(scale, name, mixing)),), (lender,)), lender)
        for name, lender in lenders.items()
    ]


def degree(scale: Scale) -> list[Panel]:
    """All policies as the costs become less linear; the published degree is the main table's cell."""
    panels = []
    for name in BENCHMARKS[:3]:
        default = PUBLISHED_DEGREE
        cells = [
            (str(value), cell(scale, name, arms(BANDIT), degree=None if value == default else value))
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
                ("full", cell(scale, name, arms(FULL), "full")),
            ),
        )
        for name in BENCHMARKS
    ]


def theory(scale: Scale) -> list[Panel]:
    """The convergence theorems' setting; anything but the paper's horizon makes it a short one."""
    return [Panel("", (("", TheoryCell(seed=scale.first_seed, short=scale.horizon is not None)),))]


class Definition(NamedTuple):
    """A study of the paper before its scale is known."""

    kind: Kind
    title: str
    about: str
    panels: Callable[[Scale], list[Panel]]
    axis: str | None = None


REGISTRY: dict[str, Definition] = {
    "main": Definition(
        "table", "Main table: bandit feedback", "Final regret; only the total cost of the decision is seen.", main
    ),
    "semi_bandit": Definition(
        "table", "Semi-bandit table", "Final regret; the cost of each chosen part is seen.", semi_bandit
    ),
    "convergence": Definition(
        "curves", "Convergence", "Average regret per round with ±1 standard-error bands, bandit feedback.", convergence
    ),
    "models": Definition(
        "models", "Models of the cost", "DFHPG with linear, neural, flow and diffusion models over a long horizon.",
        model_comparison, "model of the cost",
    ),
    "surrogates": Definition(
        "heatmap", "Surrogate losses", "Final regret with each surrogate in the decision-focused branch.",
        surrogate_heat_maps, "surrogate",
    ),
    "alpha": Definition(
        "bars", "Mixing weight", "Fixed α between the plug-in term (0) and the score term (1), against the schedule.", alpha,
        "mixing weight",
    ),
    "degree": Definition("lines", "Difficulty", "Final regret as the degree of the costs grows.", degree, "degree"),
    "feedback": Definition(
        "lines", "Feedback modes", "Final regret with bandit, semi-bandit and full feedback.", feedback, "feedback"
    ),
    "theory": Definition("theory", "Convergence theorems", "The theorems' setting, measured.", theory),
}  # fmt: skip
"""The studies, in the order in which they are shown."""


def study(name: str, scale: Scale) -> Study:
    """The study of the paper called ``name`` at this scale.

    >>> [panel.title for panel in study("main", QUICK).panels][:2]
    ['topk', 'shortest_path']
    """
    require_known("study", name, REGISTRY)
    entry = REGISTRY[name]
    return Study(name, entry.kind, entry.title, entry.about, tuple(entry.panels(scale)), entry.axis, paper=True)
