"""Write a report: one HTML page with everything inside, figures, tables as CSV and all numbers as Markdown."""

import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from regretless.experiments.extension import REPORT
from regretless.experiments.report import content, panels
from regretless.experiments.report.content import Card, CellView, Chart, Note, Page, Section, Table, Value, row
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Study
from regretless.extras import require
from regretless.files import write_text
from regretless.formatting import count_text, format_number, join_words
from regretless.plots import HeatMap, draw, plotly_chart, save_figure

MAX_SENTENCES = 8
"""Sentences about lowest means on a page; further cells are counted."""


class ReportExtension(Protocol):
    """What a package can add to the report; an entry point of ``regretless.report``. Every part is optional."""

    panels: Mapping[str, panels.PanelFunction]
    """Kinds of panels by name."""

    def sections(self, page: Page) -> Sequence[Section]:
        """Return sections that follow the studies; none if the page has nothing to do with the package.

        Parameters
        ----------
        page : Page
            Everything that the report shows.
        """

    def summary(self, page: Page) -> "Sequence[Sentence]":
        """Return sentences for the top of the page.

        Parameters
        ----------
        page : Page
            Everything that the report shows.
        """

    def write(self, page: Page, folder: Path) -> Sequence[str]:
        """Write the figures and tables of ``report --paper``; return messages for the terminal.

        Parameters
        ----------
        page : Page
            Everything that the report shows.
        folder : Path
            Where to write; may not exist yet.
        """


Sentence = Sequence[Value]
"""Parts of a sentence; each may link to a section."""


def write_report(store: ResultStore, folder: Path) -> Page:
    """Write a report about everything in a store.

    Parameters
    ----------
    store : ResultStore
        A folder of results.
    folder : Path
        Receives ``report.html``, ``report.md``, ``figures/`` (PDF and PNG) and ``tables/`` (CSV).

    Returns
    -------
    Page
        What was shown.

    Raises
    ------
    SettingsError
        If the store has no campaign.
    MissingExtraError
        If Jinja2, matplotlib or plotly is not installed: ``pip install 'regretless[report]'``.
    """
    page = content.read_page(store)
    sections = make_sections(page)
    for subfolder in ("tables", "figures"):
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
    write_text(folder / "report.html", render_page(page, sections))
    write_text(folder / "report.md", render_markdown(page, sections))
    write_text(folder / "tables" / "cells.csv", results_table(page).to_csv())
    for block in (block for section in sections for block in section.blocks()):
        if isinstance(block, Table):
            write_text(folder / "tables" / f"{block.name}.csv", block.to_csv())
        elif isinstance(block, Chart) and (isinstance(block.plot, HeatMap) or block.plot.lines):
            figure = draw(block.plot, block.title)
            for suffix in (".pdf", ".png"):
                save_figure(figure, folder / "figures" / f"{block.id.removeprefix('chart-')}{suffix}")
    return page


def make_sections(page: Page) -> list[Section]:
    """Return the sections of a page: studies, and what packages add.

    Parameters
    ----------
    page : Page
        The studies with their results.
    """
    places = page.places()
    sections = [study_section(page, study, places[study.name]) for study in page.studies]
    return [*sections, *_from_extensions("sections", page)]


def _from_extensions(method: str, page: Page) -> list[Any]:
    """Return the parts that packages add to this page."""
    parts = [part for part in REPORT.usable().values() if hasattr(part, method)]
    return [added for part in parts for added in getattr(part, method)(page)]


def study_section(page: Page, study: Study, place: str) -> Section:
    """Return the section of a study: a card or several for every panel with results."""
    names = content.file_names((panel.title for panel in study.panels), place)
    shown = [(panel, name, page.views(panel)) for panel, name in zip(study.panels, names, strict=True)]
    cards: list[Card] = []
    for panel, name, views in shown:
        if views:
            context = panels.PanelContext(page, study, panel, views, name if name == place else f"{place}_{name}")
            cards += panels.panel_function(context.kind)(context)
    notes: tuple[Note, ...] = ()
    if missing := page.missing(study):
        empty = [panel.title for panel, _, views in shown if panel.title and not views]
        which = f" ({join_words([panels.BENCHMARK_NAMES.get(title, title) for title in empty])})" if empty else ""
        text = f"{count_text(len(missing), 'result')} not computed yet{which}; resume with:"
        notes = (Note(text, page.campaigns[study.name].command),)
    about = " ".join(filter(None, (study.about, scale_text([view for _, _, views in shown for view in views]))))
    return Section(place, study.title or study.name, about, tuple(cards), page.campaigns[study.name].command, notes)


def scale_text(views: Sequence[CellView]) -> str:
    """Return the numbers of replications and rounds as a sentence.

    Parameters
    ----------
    views : sequence of CellView
        Cells with results; without rounds the sentence is empty.
    """
    played = [view for view in views if view.rounds and view.seeds]
    if not played:
        return ""
    seeds = sorted({seed for view in played for seed in view.seeds})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    replications = _span_text([view.replications for view in played], "replication")
    return f"{replications} ({which}) of {_span_text([view.rounds for view in played], 'round')}."


def _span_text(counts: Sequence[int], noun: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} to {high:,} {noun}s" if low < high else count_text(low, noun)


def render_page(page: Page, sections: Sequence[Section]) -> str:
    """Return the HTML page: self-contained, readable on a phone, in the dark and on paper.

    Parameters
    ----------
    page : Page
        The studies with their results.
    sections : sequence of Section
        The content, from ``make_sections``.

    Raises
    ------
    MissingExtraError
        If Jinja2 or plotly is not installed.
    """
    jinja2 = require("jinja2", extra="report")
    assets = resources.files("regretless.experiments.report") / "assets"
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((assets / "page.html.jinja").read_text(encoding="utf-8"))
    blocks = [block for section in sections for block in section.blocks() if isinstance(block, Chart)]
    charts = {block.id: plotly_chart(block.plot) for block in blocks if not isinstance(block.plot, HeatMap)}
    titles = " · ".join(dict.fromkeys(study.title or study.name for study in page.studies))
    return template.render(
        title="All tables and figures" if len(page.studies) > 3 else titles,
        css=(assets / "page.css").read_text(encoding="utf-8"),
        js=(assets / "page.js").read_text(encoding="utf-8"),
        plotly=require("plotly.offline", extra="report").get_plotlyjs(),
        charts=charts,
        format_number=format_number,
        summary=summarise(page),
        tally=page.tally(),
        seconds=[sum(result.seconds.values()) for result in page.shown().values()],
        sections=sections,
        environment=describe_environment(page),
        results=results_table(page),
        written=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(page.written)),
    )


def render_markdown(page: Page, sections: Sequence[Section]) -> str:
    """Return all numbers as Markdown."""
    titles = " · ".join(dict.fromkeys(study.title or study.name for study in page.studies))
    lines = [f"# {content.escape_markdown(titles)}", ""]
    lines += [f"- {content.escape_markdown(''.join(part.text for part in sentence))}" for sentence in summarise(page)]
    for section in sections:
        lines += ["", *content.to_markdown(section)]
    lines += ["", "## Environment", ""]
    lines += [f"- {name}: {' · '.join(values)}" for name, values in describe_environment(page)]
    return "\n".join([*lines, ""])


def summarise(page: Page) -> list[Sentence]:
    """Return the sentences at the top of the page."""
    shown, places = page.shown(), page.places()
    missing = {study.name: page.missing(study) for study in page.studies}
    absent = {name for names in missing.values() for name in names}
    count = f"{len(shown)} of {len(shown) + len(absent)} results" if absent else count_text(len(shown), "result")
    scale = scale_text([view for _, _, view in page.all_views()]).removesuffix(".")
    environment = dict(describe_environment(page))
    by = f"on {join_words(environment.get('devices', []))} with code {join_words(environment.get('code', []))}"
    about = ", ".join(filter(None, (count_text(len(page.studies), "study", "studies"), count, scale)))
    sentences: list[Sentence] = [[Value(f"{about}; computed {by}.")]]
    reproduced, compared = page.tally()
    if compared:
        values = count_text(compared, "published value")
        sentences.append([Value(f"{reproduced} of {values} are within three standard errors.")])
    elif any(study.collection for study in page.studies):
        sentences.append([Value("These runs are not comparable with published values, which are left out.")])
    sentences += _from_extensions("summary", page)
    lowest = [sentence for study in page.studies if not study.collection for sentence in _conclude(page, study)]
    sentences += lowest[:MAX_SENTENCES]
    if len(lowest) > MAX_SENTENCES:
        sentences.append([Value(f"{count_text(len(lowest) - MAX_SENTENCES, 'more cell')} below.")])
    parts: list[Value] = []
    for study in (study for study in page.studies if missing[study.name]):
        text = f"{(study.title or study.name).split(':')[0]} ({count_text(len(missing[study.name]), 'result')})"
        parts += [Value(", " if parts else "Not computed yet: "), Value(text, link=places[study.name])]
    return [*sentences, [*parts, Value(". ")]] if parts else sentences


def _conclude(page: Page, study: Study) -> list[Sentence]:
    """Return a sentence about the lowest mean of each cell of a study."""
    place = page.places()[study.name]
    sentences: dict[tuple[str, ...], Sentence] = {}
    for panel in study.panels:
        for view in page.views(panel):
            conclusion, where = view.results.conclude(), (study.title or study.name, panel.title, view.label)
            if conclusion and (panel.kind or study.kind) != "arena":  # whose table has the totals
                sentence = [Value(", ".join(filter(None, where)), link=place), Value(f": {conclusion}")]
                sentences.setdefault(tuple(view.addresses.values()), sentence)
    return list(sentences.values())


def describe_environment(page: Page) -> list[tuple[str, list[str]]]:
    """Return what computed the results: interpreter, platform, packages, devices, code and commands."""
    values: dict[str, list[str]] = {}
    for result in page.shown().values():
        about = result.environment
        facts = {
            "python": [about.get("python", "")],
            "platform": [about.get("platform", "")],
            "packages": [", ".join(map(" ".join, (about.get("packages") or {}).items()))],
            "devices": [" ".join(dict.fromkeys(str(device).split())) for device in about.get("devices", [])],
            "code": [str((result.extra.get("code") or {}).get("regretless", ""))],
        }
        for name, texts in facts.items():
            values.setdefault(name, []).extend(filter(None, texts))
    values["commands"] = [campaign.command for campaign in page.campaigns.values()]
    return [(name, list(dict.fromkeys(texts))) for name, texts in values.items() if texts]


def results_table(page: Page) -> Table:
    """Return a table of all results: how much was played, how long it took, and where it is stored."""
    head = ("result", "mean ± s.e.", "median", "replications", "rounds", "seconds", "of these compiling", "address")
    rows = []
    for address, result in page.shown().items():
        total, compiling = sum(result.seconds.values()), result.seconds.get("compile", 0.0)
        numbers: list[Value | str] = [Value("–", (None, None)), "–", "–", "–"]
        if result.regret.size:
            numbers = [panels.result_value(result), content.number_value(result.median())]
            numbers += [str(len(result.seeds)), Value(f"{result.regret.shape[1]:,}", (result.regret.shape[1],))]
        seconds = Value(f"{total:.1f}", (round(total, 3),))
        place = Value(address[:12], (address,), code=True)
        name = str(result.extra.get("name") or result.label)
        rows.append(row(name, *numbers, seconds, f"{compiling:.1f}", place))
    return Table("results", head, tuple(rows), folded=f"All {len(rows)} results")
