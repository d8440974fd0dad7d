"""The rows of the result tables, the same for the page, CSV, LaTeX and Markdown."""

import math
from typing import Any, NamedTuple

from regretless.report.gather import Page, Panel, Shown, Study
from regretless.report.series import Arm
from regretless.studies.verdicts import Verdict


class Row(NamedTuple):
    """One policy of a table."""

    study: str
    benchmark: str
    feedback: str
    arm: Arm
    verdict: Verdict | None
    second: dict[str, Any] | None  # mean and standard error on the second range of seeds
    best: bool  # the lowest mean of its table


def rows(study: Study, panel: Panel) -> list[Row]:
    """The rows of one benchmark's table."""
    found = []
    for cell in panel.cells:
        lowest = min((arm.mean for arm in cell.arms.values() if math.isfinite(arm.mean)), default=None)
        found += [_row(study, panel, cell, arm, arm.mean == lowest) for arm in cell.arms.values()]
    return found


def _row(study: Study, panel: Panel, cell: Shown, arm: Arm, best: bool) -> Row:
    found = cell.verdict(arm.label)
    needed = found is not None and found.second_z is not None and cell.second is not None
    second = cell.second["arms"][arm.label] if needed and cell.second is not None else None
    return Row(study.name, panel.benchmark, cell.record["cell"]["feedback"], arm, found, second, best)


def verdicts(page: Page) -> list[Row]:
    """Every row of every table that has a published value beside it."""
    return [
        row
        for study in page.studies
        if study.kind == "table"
        for panel in study.panels
        for row in rows(study, panel)
        if row.verdict is not None
    ]


def tally(page: Page) -> tuple[int, int]:
    """How many published cells are reproduced, and how many were compared."""
    found = verdicts(page)
    return sum(row.verdict is not None and row.verdict.reproduced for row in found), len(found)
