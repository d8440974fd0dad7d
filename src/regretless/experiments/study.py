"""A study as data: panels of cells, each cell an experiment or another computation, and how they are shown."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from regretless.experiments.extension import Task
    from regretless.studies.experiment import Experiment

QUICK_SEEDS, QUICK_HORIZON = 3, 200


class Scale(NamedTuple):
    """How much to compute: replications, the seed of the first one, and rounds; None leaves it to the study.

    >>> Scale(first_seed=5).seeds_or(3)
    range(5, 8)
    """

    seeds: int | None = None
    first_seed: int = 0
    horizon: int | None = None

    def seeds_or(self, count: int) -> range:
        """Return the seeds to use, ``count`` of them unless the scale has a number of its own."""
        return range(self.first_seed, self.first_seed + (self.seeds or count))

    def apply(self, experiment: "Experiment") -> "Experiment":
        """Return the experiment with the seeds and at most the rounds of this scale."""
        changes: dict[str, object] = {}
        if self.seeds is not None or self.first_seed:
            changes["seeds"] = self.seeds_or(len(experiment.seeds))
        if self.horizon is not None:
            changes["horizon"] = min(self.horizon, experiment.horizon or self.horizon)
        return experiment.changed(**changes) if changes else experiment


QUICK = Scale(QUICK_SEEDS, 0, QUICK_HORIZON)
"""Few replications of few rounds: ``reproduce --quick``."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One experiment, or another task, of a panel.

    Parameters
    ----------
    label : str
        Its name in the panel, such as a value on the axis of the study; may be empty if the panel has one cell.
    work : Experiment or Task, optional
        What is computed. None in a study that was read from a store.
    arms : sequence of (label, address), optional
        Where the results of its arms are stored; filled in when a campaign is planned.
    second : sequence of (label, address), optional
        The arms that are played again on a second range of seeds, see ``Study.second_seeds``.
    """

    label: str
    work: "Experiment | Task | None" = None
    arms: tuple[tuple[str, str], ...] = ()
    second: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Panel:
    """One table or chart.

    Parameters
    ----------
    title : str
        Its title; the name of a benchmark is shown as the benchmark is called in print.
    cells : tuple of Cell
        What it shows.
    companions : tuple of Cell, optional
        Cells whose simple baseline is drawn as well.
    zoom : int, optional
        How many rounds a curve shows.
    kind : str, optional
        How it is shown if not as its study.
    """

    title: str
    cells: tuple[Cell, ...]
    companions: tuple[Cell, ...] = ()
    zoom: int | None = None
    kind: str | None = None


@dataclasses.dataclass(frozen=True)
class Study:
    """A table or figure: panels of cells.

    Parameters
    ----------
    name : str
        Letters, digits and underscores.
    panels : tuple of Panel
        Its tables or charts.
    title, about : str
        Heading and one or two sentences below it.
    kind : str, default "table"
        How panels are shown: table, curves, lines, bars, arena, or a kind that a package adds to the report.
    axis : str, optional
        What the labels of the cells are values of.
    collection : str, optional
        The publication that it belongs to; empty for a study of your own.
    order : int, optional
        Its place among the studies of its collection.
    second_seeds : int, optional
        First seed of a second range. An arm that differs from its published value by more than three standard errors is
        played again with these seeds.

    Examples
    --------
    >>> from regretless.studies.experiment import Experiment
    >>> experiment = Experiment(benchmark="topk", policies=("greedy", "dfhpg"), seeds=2, horizon=20)
    >>> study = Study("mine", (Panel("topk", (Cell("", experiment),)),), title="Two policies")
    >>> [cell.work.horizon for cell in study.cells()]
    [20]
    """

    name: str
    panels: tuple[Panel, ...]
    title: str = ""
    about: str = ""
    kind: str = "table"
    axis: str | None = None
    collection: str = ""
    order: int = 0
    second_seeds: int | None = None

    def cells(self) -> Iterator[Cell]:
        """Iterate over the cells of all panels, companions included."""
        for panel in self.panels:
            yield from panel.cells
            yield from panel.companions
