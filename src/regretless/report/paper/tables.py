"""Tables of final regrets in LaTeX: a row per policy, ours beside the published value, cut where the page is too narrow."""

from collections.abc import Sequence
from typing import NamedTuple

from regretless.report.gather import Panel
from regretless.report.paper.columns import Column, Value, column
from regretless.report.tables import SEPARATED, Row, references, rows
from regretless.report.words import latex_text
from regretless.show.figures import named

TEXT_INCHES = 6.75
LETTER, GAP = 0.051, 0.09
"""Inches of a letter of \\scriptsize, and between two columns."""

NEEDS = "% Needs booktabs. Mean and standard error over replications; bold: "


class Block(NamedTuple):
    """Rows below a heading: the panels of one study, all policies or some of them."""

    heading: str
    panels: Sequence[Panel]
    only: Sequence[str] = ()
    references: bool = True


class _Panel(NamedTuple):
    """A panel's column, or its two: ours and the published one."""

    name: str
    blocks: list[dict[str, Row]]  # by block and policy
    levels: list[dict[str, Value]]  # reference lines by block and name
    numbers: Column
    published: bool

    @property
    def columns(self) -> int:
        return 2 if self.published else 1

    @property
    def inches(self) -> float:
        letters = self.numbers.mean_digits + self.numbers.error_digits + 2 * self.numbers.decimals + 5
        return self.columns * (max(letters, 6) * LETTER + GAP)


def result_table(blocks: Sequence[Block]) -> str:
    """A column per panel with a power of ten of its own; several tables where one would be wider than the text."""
    titles = dict.fromkeys(panel.title for block in blocks for panel in block.panels)
    panels = [_panel(title, blocks) for title in titles]
    names = [_shown(row.name) for panel in panels for block in panel.blocks for row in block.values()]
    first = max((len(name) for name in names), default=0) * LETTER + GAP
    parts = [_tabular(blocks, some) for some in _cut(panels, TEXT_INCHES - first)]
    return f"{NEEDS}{SEPARATED}.\n" + "\n\\par\\medskip\n".join(parts)


def _panel(title: str, blocks: Sequence[Block]) -> _Panel:
    found = [next((panel for panel in block.panels if panel.title == title), None) for block in blocks]
    mine: list[dict[str, Row]] = []
    levels: list[dict[str, Value]] = []
    for block, panel in zip(blocks, found, strict=True):
        chosen = [] if panel is None else [row for row in rows(panel) if not block.only or row.arm.label in block.only]
        mine.append({row.name: row for row in chosen})
        lines = references(panel) if panel is not None and block.references else []
        levels.append({line.name: (line.mean, line.error) for line in lines})
    every = [row for block in mine for row in block.values()]
    beside = [_published(row) for row in every]
    values = [(row.arm.mean, row.arm.error) for row in every] + [each for each in beside if each != (None, None)]
    numbers = column(values, (value for level in levels for value in level.values()))
    name = next((panel.name for panel in found if panel is not None), title)
    return _Panel(name, mine, levels, numbers, any(each != (None, None) for each in beside))


def _published(row: Row) -> Value:
    return (None, None) if row.verdict is None else (row.verdict.published.mean, row.verdict.published.standard_error)


def _cut(panels: Sequence[_Panel], inches: float) -> list[list[_Panel]]:
    """The panels in groups that are not wider than this."""
    groups: list[list[_Panel]] = [[]]
    for panel in panels:
        if groups[-1] and sum(each.inches for each in groups[-1]) + panel.inches > inches:
            groups.append([])
        groups[-1].append(panel)
    return groups


def _tabular(blocks: Sequence[Block], panels: Sequence[_Panel]) -> str:
    count = 1 + sum(panel.columns for panel in panels)
    lines = [rf"\begin{{tabular}}{{l{'c' * (count - 1)}}}", r"\toprule", *_head(panels)]
    for index, block in enumerate(blocks):
        labels = dict.fromkeys(label for panel in panels for label in panel.blocks[index])
        if not labels:
            continue
        lines.append(r"\midrule")
        if block.heading:
            lines += [rf"\multicolumn{{{count}}}{{l}}{{\textit{{{latex_text(block.heading)}}}}} \\", r"\midrule"]
        lines += [_row(label, index, panels) for label in labels]
        names = dict.fromkeys(name for panel in panels for name in panel.levels[index])
        lines += [r"\midrule"] * bool(names) + [_reference(name, index, panels) for name in names]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _head(panels: Sequence[_Panel]) -> list[str]:
    """The panels' names with their powers of ten; where something is published, a second line says which column is whose."""
    first, second, rules, place = ["Method"], [""], [], 2
    for panel in panels:
        name = " ".join(
            filter(None, (latex_text(panel.name), f"({panel.numbers.head()})" if panel.numbers.exponent else ""))
        )
        first.append(rf"\multicolumn{{2}}{{c}}{{{name}}}" if panel.published else name)
        second += ["ours", "published"] if panel.published else [""]
        if panel.published:
            rules.append(rf"\cmidrule(lr){{{place}-{place + 1}}}")
        place += panel.columns
    lines = [" & ".join(first) + r" \\"]
    return [*lines, "".join(rules), " & ".join(second) + r" \\"] if rules else lines


def _row(label: str, index: int, panels: Sequence[_Panel]) -> str:
    cells, name = [], ""
    for panel in panels:
        row = panel.blocks[index].get(label)
        if row is None:
            cells += ["--"] * panel.columns
            continue
        name = _shown(row.name)
        mark = "$^{*}$" if row.arm.diverged else ""
        cells.append(panel.numbers.cell((row.arm.mean, row.arm.error), row.separated) + mark)
        if panel.published:
            cells.append(panel.numbers.cell(_published(row)))
    return rf"{latex_text(name)} & {' & '.join(cells)} \\"


def _shown(name: str) -> str:
    """The name of a row as the paper writes it, behind the label of its cell where there are several."""
    cell, colon, label = name.rpartition(": ")
    return named(cell) + colon + named(label)


def _reference(name: str, index: int, panels: Sequence[_Panel]) -> str:
    cells = []
    for panel in panels:
        cells.append(panel.numbers.cell(panel.levels[index].get(name, (None, None))))
        cells += [""] * panel.published
    return rf"\textit{{{latex_text(_shown(name))}}} & {' & '.join(cells)} \\"
