"""A study as data: panels of cells with their labels, and how they are shown."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from regretless.studies.cells import AnyCell
from regretless.studies.experiment import Experiment

Kind = Literal["table", "curves", "models", "heatmap", "lines", "bars", "theory", "arena"]
KINDS: tuple[Kind, ...] = get_args(Kind)

QUICK_SEEDS, QUICK_HORIZON = 3, 200


class Borrowed(NamedTuple):
    """An arm of a panel that a cell of another panel plays already."""

    into: str  # label of the panel's cell that shows it
    place: int  # among all arms that this cell shows
    label: str
    cell: AnyCell  # the one that plays it
    arm: str  # its label there


class Panel(NamedTuple):
    """One table or chart: cells by label, cells whose linear_thompson is drawn beside them, and arms of other cells."""

    title: str
    cells: tuple[tuple[str, AnyCell], ...]
    beside: tuple[AnyCell, ...] = ()
    zoom: int | None = None
    kind: Kind | None = None  # another one than the study's
    borrowed: tuple[Borrowed, ...] = ()


class Study(NamedTuple):
    """A table or figure: of the paper, or one of your own."""

    name: str
    kind: Kind
    title: str
    about: str
    panels: tuple[Panel, ...]
    axis: str | None = None  # what the labels of the cells are values of
    paper: bool = False

    def cells(self) -> Iterator[AnyCell]:
        """Every cell, those beside and those that lend arms included; the same one may come several times."""
        for panel in self.panels:
            yield from (cell for _, cell in panel.cells)
            yield from panel.beside
            yield from (each.cell for each in panel.borrowed)


class Scale(NamedTuple):
    """How much of everything: replications, where their seeds start, and rounds (None: as the study says)."""

    seeds: int | None = None
    first_seed: int = 0
    horizon: int | None = None

    def seeds_or(self, count: int) -> range:
        """The seeds, ``count`` of them where nothing else is said."""
        return range(self.first_seed, self.first_seed + (self.seeds or count))

    def applied(self, experiment: Experiment) -> Experiment:
        """An experiment of an own study at this scale."""
        changes: dict[str, object] = {}
        if self.seeds is not None or self.first_seed:
            changes["seeds"] = self.seeds_or(len(experiment.seeds))
        if self.horizon is not None:
            changes["horizon"] = min(self.horizon, experiment.horizon or self.horizon)
        return experiment.changed(**changes) if changes else experiment


QUICK = Scale(QUICK_SEEDS, 0, QUICK_HORIZON)
