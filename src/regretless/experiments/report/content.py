"""What a report shows: the newest results of a store, and sections of cards with tables, charts and notes as data."""

import contextlib
import csv
import dataclasses
import io
import itertools
import math
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from regretless.errors import DamagedError, SettingsError
from regretless.experiments.campaign import Z_LIMIT
from regretless.experiments.extension import Published, find_published_of
from regretless.experiments.store import Campaign, ResultStore
from regretless.experiments.study import Cell, Panel, Study
from regretless.formatting import format_mean, format_number, one_line, printable, unique_name
from regretless.plots import HeatMap, Palette, Plot
from regretless.results import Result, Results

SIMPLE_BASELINE = "linear_thompson"
"""The strong simple policy that charts show in addition to their own arms."""
MIN_REPLICATIONS = 10
"""Replications from which on the lowest mean of a table is marked."""


# --- Tables, charts and notes ---


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
        Smaller text after it.
    chip : {"", "good", "warn", "bad"}, optional
        Shows the text as a coloured label.
    code : bool, optional
        Whether the text is code.
    link : str, optional
        Id of a section to link to.
    swatch : str, optional
        Colour of a dot before the text.
    """

    text: str
    exact: tuple[Any, ...] = ()
    detail: str = ""
    chip: str = ""
    code: bool = False
    link: str = ""
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
        names = [re.split(" ± | to ", title) for title in self.head]
        writer.writerow(itertools.chain(*names))
        for row in self.rows:
            entries = [cell.exact or ("" if cell.text == "–" else cell.text,) for cell in row.cells]
            padded = [(*entry, *[""] * len(name))[: len(name)] for entry, name in zip(entries, names, strict=True)]
            writer.writerow(itertools.chain(*padded))
        return printable(text.getvalue())

    def to_markdown(self) -> list[str]:
        """Return the lines of the table in Markdown."""
        lines = [f"| {' | '.join(map(escape_markdown, self.head))} |", f"| {' | '.join('---' for _ in self.head)} |"]
        for row in self.rows:
            cells = [_markdown_cell(cell) for cell in row.cells]
            if row.style == "reference":
                cells[0] = f"*{cells[0]}*"
            if row.style == "best":
                cells[:2] = [f"**{cell}**" for cell in cells[:2]]
            lines.append(f"| {' | '.join(cells)} |")
        return [*lines, ""]


def _markdown_cell(cell: Value) -> str:
    text = f"`{one_line(cell.text)}`" if cell.code else escape_markdown(cell.text)
    text = f"**{text}**" if cell.chip == "good" and cell.exact else text  # a number that is the best
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
        A command after it.
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


# --- The results of a store ---


class PublishedComparison(NamedTuple):
    """An arm compared with its published value.

    Parameters
    ----------
    published : Published
        The published mean and standard error.
    z : float
        Standard errors of the difference.
    second : tuple of float, optional
        Mean and standard error on a second range of seeds, where the first is too far away.
    second_z : float, optional
        Standard errors of the difference on the second range.
    """

    published: Published
    z: float
    second: tuple[float, float] | None = None  # mean and standard error
    second_z: float | None = None

    @property
    def reproduced(self) -> bool:
        """Whether one of the ranges is within three standard errors of the difference."""
        return abs(self.z) <= Z_LIMIT or (self.second_z is not None and abs(self.second_z) <= Z_LIMIT)

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if abs(self.z) <= Z_LIMIT:
            return "reproduced"
        if self.second_z is None:
            return "second range of seeds missing"
        return "reproduced on the second range" if self.reproduced else "not reproduced"


@dataclasses.dataclass(frozen=True)
class CellView:
    """A cell of a panel with its stored results.

    Parameters
    ----------
    label : str
        Its name in the panel.
    results : Results
        The results that are there, by arm.
    published : dict of str to PublishedComparison
        Arms with a published value for exactly this configuration.
    addresses : dict of str to str
        Where the results are stored.
    """

    label: str
    results: Results
    published: dict[str, PublishedComparison]
    addresses: dict[str, str]

    @property
    def rounds(self) -> int:
        """Rounds of its longest run."""
        return max((result.regret.shape[1] for result in self.results.values()), default=0)

    @property
    def replications(self) -> int:
        """The largest number of replications of an arm."""
        return max((len(result.seeds) for result in self.results.values()), default=0)

    @property
    def seeds(self) -> list[int]:
        """All seeds."""
        return sorted({seed for result in self.results.values() for seed in result.seeds})

    def best(self) -> str | None:
        """Return the arm with the lowest mean; None if there are no finite means."""
        means = {label: result.mean() for label, result in self.results.items() if math.isfinite(result.mean())}
        return min(means, key=means.__getitem__) if means else None


@dataclasses.dataclass
class Page:
    """Everything that a report shows.

    Parameters
    ----------
    store : ResultStore
        Where the results are.
    campaigns : dict of str to Campaign
        The campaign that is shown for every study, by the study's name.
    studies : list of Study
        The studies, those of a publication first.
    written : float, optional
        When the page was made, in seconds since 1970; by default now.
    palette : Palette, optional
        The colours of further policies, the same on the whole page.
    """

    store: ResultStore
    campaigns: dict[str, Campaign]
    studies: list[Study]
    written: float = dataclasses.field(default_factory=time.time)
    palette: Palette = dataclasses.field(default_factory=Palette)
    _known: dict[str, Result | None] = dataclasses.field(default_factory=dict)

    def load(self, address: str) -> Result | None:
        """Return a stored result; None if it is missing or damaged.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        if address not in self._known:
            self._known[address] = None
            with contextlib.suppress(FileNotFoundError, DamagedError):
                self._known[address] = self.store.load(address)
        return self._known[address]

    def view(self, cell: Cell) -> CellView | None:
        """Return a cell with the results that are there; None if there are none.

        Parameters
        ----------
        cell : Cell
            A cell of a study.
        """
        results = {label: result for label, address in cell.arms if (result := self.load(address)) is not None}
        if not results:
            return None
        second = {label: result for label, address in cell.second if (result := self.load(address)) is not None}
        compared = {label: _compare_published(result, second.get(label)) for label, result in results.items()}
        labelled = Results([dataclasses.replace(result, label=label) for label, result in results.items()])
        published = {label: comparison for label, comparison in compared.items() if comparison is not None}
        addresses = {label: address for label, address in cell.arms if label in results}
        return CellView(cell.label, labelled, published, addresses)

    def views(self, panel: Panel) -> list[CellView]:
        """Return the cells of a panel that have results.

        Parameters
        ----------
        panel : Panel
            A panel of a study.
        """
        return [view for cell in panel.cells if (view := self.view(cell)) is not None]

    def all_views(self) -> Iterator[tuple[Study, Panel, CellView]]:
        """Iterate over all cells with results."""
        for study in self.studies:
            for panel in study.panels:
                for view in self.views(panel):
                    yield study, panel, view

    def shown(self) -> dict[str, Result]:
        """Return every result that is shown, by address."""
        addresses = dict.fromkeys(a for study in self.studies for cell in study.cells() for _, a in cell.arms)
        return {address: result for address in addresses if (result := self.load(address)) is not None}

    def missing(self, study: Study) -> list[str]:
        """Return the names of results of a study that are not there.

        Parameters
        ----------
        study : Study
            A study of the page.
        """
        names = self.campaigns[study.name].names
        addresses = dict.fromkeys(address for cell in study.cells() for _, address in cell.arms)
        return [names.get(address, address[:12]) for address in addresses if self.load(address) is None]

    def places(self) -> dict[str, str]:
        """Return a name of every study that is safe in file names and addresses."""
        names = [study.name for study in self.studies]
        return dict(zip(names, file_names(names, "study"), strict=True))

    def tally(self) -> tuple[int, int]:
        """Return how many published values are reproduced, and how many were compared."""
        compared = {view.addresses[label]: c for _, _, view in self.all_views() for label, c in view.published.items()}
        return sum(comparison.reproduced for comparison in compared.values()), len(compared)


def _compare_published(result: Result, second: Result | None) -> PublishedComparison | None:
    """Return the comparison with a published value of exactly this configuration; None without one."""
    known = find_published_of(result)
    mean, error = result.mean(), result.standard_error()
    if known is None or not math.isfinite(mean) or not math.isfinite(error):
        return None
    comparison = PublishedComparison(known, known.z(mean, error))
    if second is None or abs(comparison.z) <= Z_LIMIT:
        return comparison
    again = second.mean(), second.standard_error()
    return comparison._replace(second=again, second_z=known.z(*again))


def read_page(store: ResultStore) -> Page:
    """Read a store.

    Parameters
    ----------
    store : ResultStore
        A folder of results.

    Returns
    -------
    Page
        All studies of its campaigns; of a study in several campaigns the newest code, then full runs rather than short
        ones, then the latest.

    Raises
    ------
    SettingsError
        If the store has no campaign.
    """
    pairs = [(campaign, study) for campaign in store.read_campaigns() for study in campaign.studies]
    latest = {study.name: campaign.code for campaign, study in pairs}

    def rank(pair: tuple[Campaign, Study]) -> tuple[bool, bool, float]:
        campaign, study = pair
        return campaign.code == latest[study.name], campaign.scale.horizon is None, campaign.written

    chosen = {study.name: (campaign, study) for campaign, study in sorted(pairs, key=rank) if study.panels}
    if not chosen:
        raise SettingsError(
            f"no results to report in {store.folder}: run 'regretless reproduce' first, or 'regretless run --out DIR' "
            "and give DIR as --store; campaigns of other versions are not read, the same command writes them again"
        )
    ordered = sorted(chosen.values(), key=lambda pair: (not pair[1].collection, pair[1].order, pair[0].written))
    return Page(store, {study.name: campaign for campaign, study in ordered}, [study for _, study in ordered])
