"""The rows of the result tables, the same for the page, LaTeX and Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from regretless.report.gather import ENOUGH, Panel, Reference, Shown
from regretless.report.series import ArmSummary
from regretless.report.words import markdown_text
from regretless.show.words import spread
from regretless.studies.verdicts import Verdict

SEPARATED = (
    f"the lowest mean, where its difference from the second lowest, paired by seed over at least {ENOUGH} seeds, is more "
    "than two standard errors"
)
"""When a table for print sets a mean in bold."""


class Row(NamedTuple):
    """One policy of a table."""

    name: str
    arm: ArmSummary
    verdict: Verdict | None
    second: dict[str, Any] | None  # mean and standard error on the second range of seeds
    best: bool  # the lowest mean of its cell
    feedback: str
    separated: bool  # the best of its cell, clearly: see ``SEPARATED``


def rows(panel: Panel) -> list[Row]:
    """The rows of one panel; where it has several cells, names say which."""
    found = []
    for cell in panel.cells:
        lowest = min((arm.mean for arm in cell.arms.values() if math.isfinite(arm.mean)), default=None)
        prefix = f"{cell.label}: " if cell.label and len(panel.cells) > 1 else ""
        found += [_row(cell, arm, prefix, arm.mean == lowest) for arm in cell.arms.values()]
    return found


def _row(cell: Shown, arm: ArmSummary, prefix: str, best: bool) -> Row:
    verdict = cell.verdicts.get(arm.label)
    needed = verdict is not None and verdict.second_z is not None and cell.second is not None
    second = cell.second["arms"][arm.label] if needed and cell.second is not None else None
    feedback = cell.record["cell"].get("feedback", "")
    return Row(prefix + arm.label, arm, verdict, second, best, feedback, best and _separated(cell, arm))


def _separated(cell: Shown, best: ArmSummary) -> bool:
    """Whether the best arm is below every other by more than two standard errors of the paired difference to the second."""
    others = [arm for arm in cell.arms.values() if arm.label != best.label and math.isfinite(arm.mean)]
    if not others or not best.anchor or best.diverged:
        return False
    second = min(others, key=lambda arm: arm.mean)
    if second.diverged or len(second.final) != len(best.final) or len(best.final) < ENOUGH:
        return False
    apart = second.final - best.final
    return bool(apart.mean() > 2.0 * apart.std(ddof=1) / len(apart) ** 0.5)


def references(panel: Panel) -> list[Reference]:
    """The reference lines of all cells; where there are several cells, names say which."""
    if len(panel.cells) <= 1:
        return panel.references()
    return [
        line._replace(name=f"{cell.label}: {line.name}" if cell.label else line.name)
        for cell in panel.cells
        for line in cell.references()
    ]


def markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return [*lines, *(f"| {' | '.join(line)} |" for line in body), ""]


def markdown_grid(corner: str, columns: Mapping[str, Mapping[str, ArmSummary]]) -> list[str]:
    """A mean with its standard error for every row that some column has."""
    labels = dict.fromkeys(label for arms in columns.values() for label in arms)
    body = [[markdown_text(label), *(arm_text(arms.get(label)) for arms in columns.values())] for label in labels]
    return markdown_table(list(map(markdown_text, (corner, *columns))), body)


def arm_text(arm: ArmSummary | None) -> str:
    """An arm's final regret, with how many replications diverged."""
    if arm is None:
        return "–"
    return spread(arm.mean, arm.error) + (f" ({arm.diverged} diverged)" if arm.diverged else "")
