"""The arms that a cell shows, as a plan says: its own ones, and between them those that other cells have played."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from regretless.errors import DamagedError
from regretless.studies.cell_files import CellResult
from regretless.studies.forms import BorrowedPlan, PanelPlan


class Source(NamedTuple):
    """Where the arms of a cell are stored: under its own key, and one by one those that it borrows."""

    key: str
    borrowed: tuple[BorrowedPlan, ...] = ()


def sources(panel: PanelPlan) -> list[tuple[str, Source]]:
    """The cells of a panel by label."""
    return [
        (label, Source(key, tuple(each for each in panel.borrowed if each.into == label))) for label, key in panel.cells
    ]


def joined(source: Source, load: Callable[[str], CellResult]) -> CellResult:
    """A cell's result with all arms that it shows, in their order; an arm that its lender does not have is left out.

    Fails as ``load`` does where the cell itself has no result.
    """
    own = load(source.key)
    read = functools.cache(load)
    order, found = list(own.traces), dict(own.traces)
    for each in source.borrowed:
        order.insert(each.place, each.label)
        try:
            lent = read(each.key).traces
        except (FileNotFoundError, DamagedError):
            continue
        found |= {each.label: lent[each.arm]} if each.arm in lent else {}
    return CellResult({label: found[label] for label in order if label in found}, own.record)
