"""Tables of the paper in LaTeX: escaped text, aligned numbers with one power of ten per column."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from regretless.experiments.report import CellView
from regretless.formatting import display_name, one_line

Number = tuple[float | None, float | None]
"""A mean with its standard error."""

MIN_REPLICATIONS = 10
SEPARATED = (
    "the lowest mean, where its difference from the second lowest, paired by seed over at least "
    f"{MIN_REPLICATIONS} seeds, is more than two standard errors"
)
"""The means that a table sets in bold."""

DECIMALS = 2
TEXT_INCHES = 6.75
LETTER_INCHES, GAP_INCHES = 0.051, 0.09
"""Widths of a letter of ``\\scriptsize`` and between columns."""

COMMANDS = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\ne$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "→": r"$\to$",
    "∇": r"$\nabla$",
    "‖": r"$\|$",
    "°": r"$^{\circ}$",
    "²": "$^2$",
    "³": "$^3$",
    "µ": r"$\mu$",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "ø": r"\o{}",
    "ł": r"\l{}",
} | {char: "\\" + char for char in "{}$&#_%"}
ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0307\u0308\u030a\u030b\u030c\u0327\u0306", "`'^~=.\"rHvcu", strict=True)
)
GREEK_NAMES = """
alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi psi
omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega
"""
GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", GREEK_NAMES.split(), strict=True))


def latex_text(value: str) -> str:
    r"""Return text as LaTeX in plain ASCII, with a question mark for letters without a command.

    >>> print(latex_text("50 % of dfhpg_0, ε ± é"))
    50 \% of dfhpg\_0, $\varepsilon$ $\pm$ \'{e}
    """
    return "".join(_latex_letter(char) for char in one_line(value))


def _latex_letter(char: str) -> str:
    if char in COMMANDS:
        return COMMANDS[char]
    if char.isascii():
        return char
    if char in GREEK:
        return rf"$\{GREEK[char]}$"
    base, *marks = list(unicodedata.normalize("NFKD", char))
    if not base.isascii() or not all(mark in ACCENTS or mark.isascii() for mark in marks):
        return "?"
    letter = COMMANDS.get(base, base)
    for mark in marks:
        letter = f"\\{ACCENTS[mark]}{{{letter}}}" if mark in ACCENTS else letter + COMMANDS.get(mark, mark)
    return letter


class NumberColumn(NamedTuple):
    """How the numbers of a column are written: power of ten, decimals, and characters before the point."""

    exponent: int
    decimals: int
    mean_width: int
    error_width: int

    def cell(self, number: Number, bold: bool = False) -> str:
        r"""Return a mean with its standard error in mathematics.

        >>> print(NumberColumn(5, 2, 2, 1).cell((168_000.0, 14_700.0)))
        $\phantom{0}1.68 \pm 0.15$
        """
        mean, error = number
        if mean is None or not math.isfinite(mean):
            return "--"
        text = self._padded(mean, self.mean_width)
        if error is not None and math.isfinite(error):
            text += rf" \pm {self._padded(error, self.error_width)}"
        elif self.error_width:
            text += rf" \phantom{{{{}}\pm {'0' * self.error_width}.{'0' * self.decimals}}}"
        return rf"$\mathbf{{{text}}}$" if bold else f"${text}$"

    def _padded(self, value: float, width: int) -> str:
        text = self.text(value)
        missing = width - len(text.partition(".")[0])
        return (rf"\phantom{{{'0' * missing}}}" if missing > 0 else "") + text

    def text(self, value: float) -> str:
        """Return the number without its power of ten; one that would be rounded to zero becomes an upper bound."""
        scaled = value / 10.0**self.exponent
        if scaled and abs(scaled) < 0.5 * 10.0**-self.decimals:
            return rf"{{<}}{10.0**-self.decimals:.{self.decimals}f}" if self.decimals else r"{<}1"
        return f"{scaled:.{self.decimals}f}"


def number_column(numbers: Iterable[Number], aligned: Iterable[Number] = ()) -> NumberColumn:
    """Return the format of a column; ``aligned`` numbers affect its widths only, not its power of ten."""
    known = list(numbers)
    means = [abs(mean) for mean, _ in known if mean is not None and math.isfinite(mean) and mean != 0]
    errors = [error for _, error in known if error is not None and math.isfinite(error) and error > 0]
    size = math.floor(math.log10(np.median(means))) if means else 0
    exponent = 0 if -2 < size < 3 else size
    error_size = math.floor(math.log10(np.median(errors))) if errors else -1
    draft = NumberColumn(exponent, DECIMALS if exponent else min(max(1 - error_size, 0), 3), 0, 0)

    def width(values: Sequence[float | None]) -> int:
        texts = [draft.text(value) for value in values if value is not None and math.isfinite(value)]
        return max((len(text.partition(".")[0].replace("{<}", "")) for text in texts), default=0)

    every = [*known, *aligned]
    return draft._replace(
        mean_width=width([mean for mean, _ in every]), error_width=width([error for _, error in every])
    )


class TableBlock(NamedTuple):
    """Rows below a heading: the cells of some panels by title, all policies or some of them."""

    heading: str
    panels: Mapping[str, CellView]
    only: Sequence[str] = ()
    references: bool = True

    def labels(self, title: str) -> list[str]:
        """Return the policies of one panel."""
        view = self.panels.get(title)
        return [label for label in (view.results if view else ()) if not self.only or label in self.only]


class _PanelColumn(NamedTuple):
    title: str
    numbers: NumberColumn
    published: bool  # whether a second column has the published values

    @property
    def columns(self) -> int:
        return 2 if self.published else 1

    @property
    def inches(self) -> float:
        letters = self.numbers.mean_width + self.numbers.error_width + 2 * self.numbers.decimals + 5
        return self.columns * (max(letters, 6) * LETTER_INCHES + GAP_INCHES)


def result_table(blocks: Sequence[TableBlock], names: Mapping[str, str]) -> str:
    """Return a table of final regrets with a column per panel; several tables if one is wider than the text.

    Parameters
    ----------
    blocks : sequence of TableBlock
        Rows by heading.
    names : mapping of str to str
        Printed names of the panels.
    """
    titles = list(dict.fromkeys(title for block in blocks for title in block.panels))
    columns = [_panel_column(title, blocks) for title in titles]
    labels = [display_name(label) for block in blocks for title in titles for label in block.labels(title)]
    room = TEXT_INCHES - max(map(len, labels), default=0) * LETTER_INCHES - GAP_INCHES
    groups: list[list[_PanelColumn]] = [[]]
    for column in columns:
        if groups[-1] and sum(each.inches for each in groups[-1]) + column.inches > room:
            groups.append([])
        groups[-1].append(column)
    tables = "\n\\par\\medskip\n".join(_tabular(blocks, group, names) for group in groups)
    return f"% Needs booktabs. Mean and standard error over replications; bold: {SEPARATED}.\n{tables}"


def _panel_column(title: str, blocks: Sequence[TableBlock]) -> _PanelColumn:
    views = [(block, block.panels[title]) for block in blocks if title in block.panels]
    ours = [_ours(view, label) for block, view in views for label in block.labels(title)]
    published = [_published(view, label) for block, view in views for label in block.labels(title)]
    shown = [number for number in published if number != (None, None)]
    levels = [(line.mean, line.standard_error) for _, view in views for line in view.results.references]
    return _PanelColumn(title, number_column([*ours, *shown], levels), bool(shown))


def _ours(view: CellView, label: str) -> Number:
    return view.results[label].mean(), view.results[label].standard_error()


def _published(view: CellView, label: str) -> Number:
    comparison = view.published.get(label)
    return (None, None) if comparison is None else (comparison.published.mean, comparison.published.standard_error)


def is_separated(view: CellView, label: str) -> bool:
    """Return whether an arm is the best by more than two standard errors of the paired difference to the second."""
    means = {name: result.mean() for name, result in view.results.items() if math.isfinite(result.mean())}
    others = sorted((mean, name) for name, mean in means.items() if name != label)
    if not others or label not in means or means[label] > others[0][0]:
        return False
    best, second = view.results[label], view.results[others[0][1]]
    if best.diverged or second.diverged or best.seeds != second.seeds or len(best.seeds) < MIN_REPLICATIONS:
        return False
    difference = second.compare(best)
    return difference.mean > 2.0 * difference.standard_error


def _tabular(blocks: Sequence[TableBlock], columns: Sequence[_PanelColumn], names: Mapping[str, str]) -> str:
    width = 1 + sum(column.columns for column in columns)
    lines = [rf"\begin{{tabular}}{{l{'c' * (width - 1)}}}", r"\toprule", *_head(columns, names)]
    for block in blocks:
        labels = dict.fromkeys(label for column in columns for label in block.labels(column.title))
        if not labels:
            continue
        lines.append(r"\midrule")
        if block.heading:
            lines += [rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_text(block.heading)}}}}} \\", r"\midrule"]
        lines += [_row(label, block, columns) for label in labels]
        views = [block.panels[column.title] for column in columns if column.title in block.panels]
        levels = dict.fromkeys(line.name for view in views for line in view.results.references)
        if levels and block.references:
            lines += [r"\midrule", *(_reference(name, block, columns) for name in levels)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _head(columns: Sequence[_PanelColumn], names: Mapping[str, str]) -> list[str]:
    """Return the names of the panels with their powers of ten, and which column is published."""
    first, second, rules, place = ["Method"], [""], [], 2
    for column in columns:
        exponent = rf"($\times 10^{{{column.numbers.exponent}}}$)" if column.numbers.exponent else ""
        name = " ".join(filter(None, (latex_text(names.get(column.title, column.title)), exponent)))
        first.append(rf"\multicolumn{{2}}{{c}}{{{name}}}" if column.published else name)
        second += ["ours", "published"] if column.published else [""]
        rules += [rf"\cmidrule(lr){{{place}-{place + 1}}}"] if column.published else []
        place += column.columns
    lines = [" & ".join(first) + r" \\"]
    return [*lines, "".join(rules), " & ".join(second) + r" \\"] if rules else lines


def _row(label: str, block: TableBlock, columns: Sequence[_PanelColumn]) -> str:
    cells = []
    for column in columns:
        view = block.panels.get(column.title)
        if view is None or label not in block.labels(column.title):
            cells += ["--"] * column.columns
            continue
        mark = "$^{*}$" if view.results[label].diverged else ""
        cells.append(column.numbers.cell(_ours(view, label), is_separated(view, label)) + mark)
        cells += [column.numbers.cell(_published(view, label))] if column.published else []
    return rf"{latex_text(display_name(label))} & {' & '.join(cells)} \\"


def _reference(name: str, block: TableBlock, columns: Sequence[_PanelColumn]) -> str:
    cells = []
    for column in columns:
        view = block.panels.get(column.title)
        levels = {line.name: (line.mean, line.standard_error) for line in view.results.references} if view else {}
        cells += [column.numbers.cell(levels.get(name, (None, None))), *[""] * column.published]
    return rf"\textit{{{latex_text(display_name(name))}}} & {' & '.join(cells)} \\"
