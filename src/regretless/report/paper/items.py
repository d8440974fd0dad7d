"""Every figure and table of the paper as data: its number, what it shows, and which panels of which study it is made of."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from regretless.report.gather import Page, Panel, Study
from regretless.report.words import BENCHMARKS

ALL = tuple(BENCHMARKS)
ZOOM = 600
"""The paper's convergence figures show the first rounds of the synthetic benchmarks; energy is shown whole."""

CURVES = "Average regret per round, with bands of $\\pm 1$ standard error across replications."
FINAL = "Mean final regret; lower is better."


class Item(NamedTuple):
    """A figure or table of the paper; of several studies the first that was computed is taken."""

    number: int
    form: Literal["figure", "table"]
    name: str
    about: str  # LaTeX
    studies: tuple[str, ...]
    panels: tuple[str, ...] = ALL
    curves: bool = False  # regret curves, whatever the study's own kind
    zoom: bool = False

    @property
    def title(self) -> str:
        """As the paper calls it."""
        return f"{self.form.title()} {self.number}"

    @property
    def stem(self) -> str:
        """The beginning of its files' names."""
        return f"{self.form}{self.number}_{self.studies[0]}"


REST = ("shortest_path", "pricing", "energy")
RUNS = ("convergence", "main")
ITEMS = (
    Item(1, "table", "Final regret across benchmarks", "", ("main", "convergence")),
    Item(1, "figure", "Convergence on top-k selection", CURVES, RUNS, ("topk",), True, True),
    Item(2, "figure", "Models of the cost on pricing", CURVES, ("models",), ("pricing",), True),
    Item(3, "figure", "Convergence on the other benchmarks", CURVES, RUNS, REST, True, True),
    Item(
        4, "figure", "Models of the cost on the other benchmarks", CURVES, ("models",),
        ("topk", "shortest_path", "energy"), True,
    ),
    Item(
        5, "figure", "Surrogate losses", f"{FINAL} Rows are sorted by the first column.", ("surrogates",),
        ("pricing", "shortest_path", "topk", "energy"),
    ),
    Item(6, "figure", "Mixing weight: the schedule against fixed values", CURVES, ("alpha",), ALL, True),
    Item(
        7, "figure", "Difficulty: the degree of the costs", f"{FINAL} Bars are standard errors.", ("degree",),
        ("pricing", "shortest_path", "topk"),
    ),
    Item(2, "table", "Final regret under semi-bandit feedback", "", ("semi_bandit",)),
    Item(
        8, "figure", "Kinds of feedback", f"{FINAL} Bars are standard errors.", ("feedback",),
        ("pricing", "shortest_path", "topk", "energy"),
    ),
)  # fmt: skip
"""In the paper's order; its tables of configurations, 3 and 4, need no results."""


class Found(NamedTuple):
    """An item with the panels that the store has results for."""

    item: Item
    study: Study | None
    panels: list[Panel]
    missing: list[str]  # panels without any result
    partial: int  # cells that the shown panels still lack


def find(page: Page, item: Item) -> Found:
    """The panels of the first study of an item that has any."""
    for name in item.studies:
        study = next((each for each in page.studies if each.name == name and each.paper), None)
        panels = [] if study is None else _panels(study, item)
        if panels:
            there = [panel.title for panel in panels]
            missing = [title for title in item.panels if title not in there]
            return Found(item, study, panels, missing, sum(len(panel.absent) for panel in panels))
    return Found(item, None, [], list(item.panels), 0)


def _panels(study: Study, item: Item) -> list[Panel]:
    """The computed panels in the item's order; zoomed, synthetic ones show the first rounds."""
    known = {panel.title: panel for panel in study.panels if panel.cells}
    chosen = [known[title] for title in item.panels if title in known]
    if item.zoom:
        chosen = [panel if panel.title == "energy" else panel._replace(zoom=ZOOM) for panel in chosen]
    return chosen


def further(page: Page) -> list[Study]:
    """Studies that are no figure or table of the paper, or that it splits: each is shown as a whole."""
    split = {name for item in ITEMS for name in item.studies if len(item.panels) < 3}
    alone = {name for item in ITEMS for name in item.studies} - split
    return [study for study in page.studies if not (study.paper and study.name in alone)]


def told_missing(found: Sequence[Found]) -> list[str]:
    """What is not computed yet, a line for each item and the command that computes it."""
    lines = []
    for each in found:
        command = f"regretless reproduce {each.item.studies[0]}"
        if not each.panels:
            lines.append(f"{each.item.title} ({each.item.name}) is not computed yet: {command}")
        elif each.missing or each.partial:
            lacks = [f"panels {', '.join(each.missing)}"] * bool(each.missing)
            lacks += [f"{each.partial} cell{'' if each.partial == 1 else 's'} of the panels shown"] * bool(each.partial)
            lines.append(f"{each.item.title} ({each.item.name}) lacks {' and '.join(lacks)}: {command}")
    return lines
