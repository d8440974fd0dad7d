"""Sections of cards with tables, charts and notes as data, rendered as HTML, Markdown and CSV."""

import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from regretless.formatting import format_mean, format_number, one_line, printable, unique_name
from regretless.plots import HeatMap, Plot


@dataclasses.dataclass(frozen=True)
class Value:
    """A table cell.

    Parameters
    ----------
    text : str
        What is shown.
    exact : sequence of float, str or None, optional
        What the CSV file holds instead of the text: one entry per column of the CSV file.
    detail : str, optional
        Smaller text behind it.
    chip : {"", "good", "warn", "bad"}, optional
        Shows the text as a coloured label.
    code : bool, optional
        Whether the text is code.
    link : str, optional
        Id of a section to link to.
    id : str, optional
        Id that links can lead to.
    swatch : str, optional
        Colour of a dot before the text.
    """

    text: str
    exact: tuple[Any, ...] = ()
    detail: str = ""
    chip: str = ""
    code: bool = False
    link: str = ""
    id: str = ""
    swatch: str = ""


def mean_value(mean: float | None, error: float | None, detail: str = "") -> Value:
    """Return a mean with its standard error as a table cell with two exact numbers."""
    return Value(format_mean(mean, error), (mean, error), detail)


def number_value(value: float | None) -> Value:
    """Return a number as a table cell."""
    return Value(format_number(value), (value,))


@dataclasses.dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Parameters
    ----------
    cells : tuple of Value
        One cell per column.
    style : {"", "best", "reference"}
        How the row is emphasised.
    """

    cells: tuple[Value, ...]
    style: str = ""


def row(*cells: Value | str, style: str = "") -> TableRow:
    """Return a row; strings become cells."""
    return TableRow(tuple(cell if isinstance(cell, Value) else Value(cell) for cell in cells), style)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Parameters
    ----------
    name : str
        Name of its CSV file, without suffix.
    head : sequence of str
        Titles of the columns. A title such as ``"mean ± s.e."`` or ``"low to high"`` names two columns of the CSV file.
    rows : sequence of TableRow
        Its rows.
    prose : bool, default False
        Whether the cells are sentences.
    folded : str, optional
        Title of a fold that hides the table until it is opened.
    """

    name: str
    head: tuple[str, ...]
    rows: tuple[TableRow, ...]
    prose: bool = False
    folded: str = ""

    def to_csv(self) -> str:
        """Return the table as CSV, with all digits."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        parts = [re.split(" ± | to ", title) for title in self.head]
        widths = [max((len(row.cells[i].exact) for row in self.rows), default=1) for i in range(len(parts))]
        writer.writerow(
            [
                name
                for title, names, width in zip(self.head, parts, widths, strict=True)
                for name in (
                    names if len(names) == width else [title, *[f"{title}, {n + 2}" for n in range(width - 1)]]
                )
            ]
        )
        for row in self.rows:
            cells: list[Any] = []
            for cell, width in zip(row.cells, widths, strict=True):
                width = max(width, 1)
                entries = list(cell.exact or ("" if cell.text == "–" else cell.text,))
                cells += ["" if entry is None else entry for entry in entries] + [""] * (width - len(entries))
            writer.writerow(cells)
        return printable(text.getvalue())

    def to_markdown(self) -> list[str]:
        """Return the lines of the table in Markdown."""
        lines = [f"| {' | '.join(map(escape_markdown, self.head))} |", f"| {' | '.join('---' for _ in self.head)} |"]
        for each in self.rows:
            cells = [_markdown_cell(cell) for cell in each.cells]
            if each.style == "reference":
                cells[0] = f"*{cells[0]}*"
            if each.style == "best":
                cells[:2] = [f"**{cell}**" for cell in cells[:2]]
            lines.append(f"| {' | '.join(cells)} |")
        return [*lines, ""]


def _markdown_cell(cell: Value) -> str:
    text = f"`{one_line(cell.text)}`" if cell.code else escape_markdown(cell.text)
    return " ".join(filter(None, (text, escape_markdown(cell.detail))))


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart.

    Parameters
    ----------
    id : str
        Its id on the page, and the name of its files without the prefix ``chart-``.
    title : str
        A description for screen readers, and the title in print.
    plot : Plot or HeatMap
        What is drawn.
    """

    id: str
    title: str
    plot: Plot | HeatMap


@dataclasses.dataclass(frozen=True)
class Note:
    """A remark in small letters.

    Parameters
    ----------
    text : str
        The remark.
    code : str, optional
        A command behind it.
    """

    text: str
    code: str = ""


Block = Table | Chart | Note


@dataclasses.dataclass(frozen=True)
class Card:
    """A frame with a title around tables, charts and notes.

    Parameters
    ----------
    title : str
        Its title; may be empty.
    blocks : tuple of Table, Chart or Note
        Its content.
    wide : bool, default False
        Whether it takes the full width of the page.
    """

    title: str
    blocks: tuple[Block, ...]
    wide: bool = False


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page with a heading, an introduction and cards.

    Parameters
    ----------
    id : str
        Where links lead to; letters, digits, underscores and dashes.
    title, about : str
        Heading, and sentences below it.
    cards : sequence of Card
        Its content.
    command : str, optional
        The command that computed it.
    notes : sequence of Note, optional
        What is missing.
    """

    id: str
    title: str
    about: str
    cards: tuple[Card, ...]
    command: str = ""
    notes: tuple[Note, ...] = ()

    def blocks(self) -> list[Block]:
        """Return the blocks of all cards."""
        return [block for card in self.cards for block in card.blocks]


LOCATION_OPTIONS = re.compile(r" --(store|out|jobs|device|engine|address)[= ]('[^']*'|\S+)")
"""Options of a command that say where results were computed and kept, not which."""


def to_markdown(section: Section) -> list[str]:
    """Return the lines of a section in Markdown: headings and tables, no charts.

    Parameters
    ----------
    section : Section
        What to render.
    """
    command = f"Command: `{LOCATION_OPTIONS.sub('', one_line(section.command))}`." if section.command else ""
    about = " ".join(filter(None, (escape_markdown(section.about), command)))
    lines = [f"## {escape_markdown(section.title)}", "", *([about, ""] if about else [])]
    for card in section.cards:
        tables = [block for block in card.blocks if isinstance(block, Table)]
        if tables and card.title:
            lines += [f"### {escape_markdown(card.title)}", ""]
        for table in tables:
            lines += [f"{escape_markdown(table.folded)}:", ""] if table.folded and len(tables) > 1 else []
            lines += table.to_markdown()
    return lines


def escape_markdown(value: str) -> str:
    r"""Escape text for Markdown, also inside a table; an underscore within a word needs no escape.

    >>> print(escape_markdown("a|b* dfhpg_0"))
    a\|b\* dfhpg_0
    """
    escaped = re.sub(r"[\\`*|\[\]{}#!]", lambda match: "\\" + match[0], one_line(value))
    escaped = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def file_names(titles: Iterable[str], default: str) -> list[str]:
    """Return distinct names for titles that are safe in file names and addresses.

    Parameters
    ----------
    titles : iterable of str
        Any text.
    default : str
        The name of a title without letters and digits.

    Examples
    --------
    >>> file_names(["topk", "../Top k", "Top k", ""], "panel")
    ['topk', 'Top_k', 'Top_k_2', 'panel']
    """
    names: list[str] = []
    for title in titles:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", title).strip("_")[:60] or default
        names.append(unique_name(plain, names, "_{}"))
    return names


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Parameters
    ----------
    count : int
        The number.
    noun, plural : str
        The noun; the plural form is only needed if it is irregular.

    Examples
    --------
    >>> count_text(1, "study", "studies"), count_text(2000, "round")
    ('1 study', '2,000 rounds')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def join_words(words: Sequence[str]) -> str:
    """Join words for a sentence.

    Parameters
    ----------
    words : sequence of str
        Parts of an enumeration.

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def format_duration(seconds: float) -> str:
    """Format seconds.

    >>> format_duration(75), format_duration(600), format_duration(9000)
    ('75 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
