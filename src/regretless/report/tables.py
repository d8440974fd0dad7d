"""The rows of the result tables, the same for the page, LaTeX and Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from regretless.report.gather import Panel, Reference, Shown
from regretless.report.series import ArmSummary
from regretless.report.words import latex_spread, latex_text, markdown_text
from regretless.show.words import spread
from regretless.studies.verdicts import Verdict


class Row(NamedTuple):
    """One policy of a table."""

    name: str
    arm: ArmSummary
    verdict: Verdict | None
    second: dict[str, Any] | None  # mean and standard error on the second range of seeds
    best: bool  # the lowest mean of its cell
    feedback: str


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
    return Row(prefix + arm.label, arm, verdict, second, best, cell.record["cell"].get("feedback", ""))


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


def latex_table(panels: Sequence[Panel]) -> str:
    """A table in the form of the paper's: a row per policy, a column per panel, the best of a column in bold."""
    columns = [{row.name: row for row in rows(panel)} for panel in panels]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    heads = " & ".join(latex_text(panel.name) for panel in panels)
    lines = [rf"\begin{{tabular}}{{l{'c' * len(panels)}}}", r"\toprule", rf"Method & {heads} \\", r"\midrule"]
    for label in labels:
        cells = [_latex_cell(column.get(label)) for column in columns]
        lines.append(rf"\texttt{{{latex_text(label)}}} & {' & '.join(cells)} \\")
    lines.append(r"\midrule")
    levels = [{line.name: line for line in references(panel)} for panel in panels]
    for name in dict.fromkeys(name for level in levels for name in level):
        found = [level.get(name) for level in levels]
        cells = ["--" if line is None else latex_spread(line.mean, line.error) for line in found]
        lines.append(rf"\textit{{{latex_text(name.replace('_', ' '))}}} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(row: Row | None) -> str:
    if row is None:
        return "--"
    value = latex_spread(row.arm.mean, row.arm.error)
    return rf"$\boldsymbol{{{value.strip('$')}}}$" if row.best else value
