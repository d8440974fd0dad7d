"""Which arms of a panel another cell plays already: they are taken from there, and nothing is played twice."""

from typing import Any

from regretless.studies.experiment import Experiment
from regretless.studies.settling import Settled, settle
from regretless.studies.study import Borrowed, Panel


def borrowing(panel: Panel, lender: Experiment) -> Panel:
    """The panel, whose cells leave out every arm that ``lender`` plays with the same settings, seeds and rounds.

    A cell that would have no arm left stays as it is.
    """
    lent = {_identity(each): each.arm.label for each in settle(lender) if _by_name(each)}
    cells, borrowed = [], list(panel.borrowed)
    for label, cell in panel.cells:
        own, others = cell, []
        if isinstance(cell, Experiment) and _conditions(cell) == _conditions(lender):
            same = {each.arm.label: lent.get(_identity(each)) for each in settle(cell) if _by_name(each)}
            kept = tuple(arm for arm in cell.arms if same.get(arm.label) is None)
            if kept:
                own = cell.changed(arms=kept)
                others = [
                    Borrowed(label, place, arm.label, lender, found)
                    for place, arm in enumerate(cell.arms)
                    if (found := same.get(arm.label)) is not None
                ]
        cells.append((label, own))
        borrowed += others
    return panel._replace(cells=tuple(cells), borrowed=tuple(borrowed))


def _by_name(each: Settled) -> bool:
    """Whether an arm's policy and world are names with settings: objects are never taken for the same."""
    return each.settings is not None and each.world.settings is not None


def _identity(each: Settled) -> tuple[Any, ...]:
    """What an arm's numbers depend on, apart from what its cell says for all arms."""
    return each.arm.policy, each.world, each.settings, each.scaling


def _conditions(cell: Experiment) -> tuple[Any, ...]:
    """What a cell says for all of its arms and their settings do not tell."""
    return cell.seeds, cell.horizon, cell.delay, cell.missing
