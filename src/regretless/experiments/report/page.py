"""Write a report: one HTML page with everything inside, figures, tables as CSV and all numbers as Markdown."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from regretless.experiments.extension import REPORT
from regretless.experiments.report.content import (
    Card,
    Chart,
    Note,
    Section,
    Table,
    Value,
    count_text,
    escape_markdown,
    file_names,
    format_duration,
    join_words,
    row,
    to_markdown,
)
from regretless.experiments.report.gather import MIN_REPLICATIONS, CellView, Page, read_page
from regretless.experiments.report.panels import (
    BENCHMARK_NAMES,
    PanelContext,
    PanelFunction,
    arena_scores,
    arena_totals,
    panel_function,
)
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Study
from regretless.extras import require
from regretless.files import write_text
from regretless.formatting import format_mean, format_number
from regretless.plots import POLICY_STYLES, Axis, HeatMap, Line, Plot, draw, fit_axis, plotly_chart, save_figure

MAX_SENTENCES = 8
"""Sentences about lowest means on a page; further cells are counted."""


class ReportExtension(Protocol):
    """What a package can add to the report; an entry point of ``regretless.report``. Every part is optional."""

    panels: Mapping[str, PanelFunction]
    """Kinds of panels by name."""

    def sections(self, page: Page) -> Sequence[Section]:
        """Return sections that follow the studies; none if the page has nothing to do with the package."""

    def summary(self, page: Page) -> "Sequence[Sequence[SummaryPart]]":
        """Return sentences for the top of the page."""

    def write(self, page: Page, folder: Path) -> Sequence[str]:
        """Write the figures and tables of ``report --paper``; return messages for the terminal."""


class SummaryPart(NamedTuple):
    """A part of a sentence.

    Parameters
    ----------
    text : str
        The words.
    link : str, optional
        Id of the section that they link to.
    """

    text: str
    link: str = ""


Sentence = Sequence[SummaryPart]


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
    page = read_page(store)
    sections = make_sections(page)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    write_text(folder / "report.html", render_page(page, sections))
    write_text(folder / "report.md", render_markdown(page, sections))
    for section in sections:
        for block in section.blocks():
            if isinstance(block, Table):
                write_text(folder / "tables" / f"{block.name}.csv", block.to_csv())
            elif isinstance(block, Chart) and (isinstance(block.plot, HeatMap) or block.plot.lines):
                figure = draw(block.plot, block.title)
                for suffix in (".pdf", ".png"):
                    save_figure(figure, folder / "figures" / f"{block.id.removeprefix('chart-')}{suffix}")
    write_text(folder / "tables" / "cells.csv", results_table(page).to_csv())
    return page


def make_sections(page: Page) -> list[Section]:
    """Return the sections of a page: studies, tunings, and what packages add.

    Parameters
    ----------
    page : Page
        The studies with their results.
    """
    places = page.places()
    sections = [study_section(page, study, places[study.name]) for study in page.studies]
    sections += [tuning_section(record) for record in page.tunings()]
    for added in _from_extensions("sections", page):
        sections += added
    return sections


def _from_extensions(method: str, page: Page) -> list[Any]:
    """Return what packages answer for this page."""
    functions: list[Callable[[Page], Any]] = [
        getattr(part, method) for part in REPORT.usable().values() if hasattr(part, method)
    ]
    return [function(page) for function in functions]


def study_section(page: Page, study: Study, place: str) -> Section:
    """Return the section of a study: a card or several for every panel with results."""
    names = file_names((panel.title for panel in study.panels), place)
    cards: list[Card] = []
    empty: list[str] = []
    for panel, name in zip(study.panels, names, strict=True):
        views = page.views(panel)
        if views:
            name = place if name == place else f"{place}_{name}"
            context = PanelContext(page, study, panel, views, name)
            cards += panel_function(context.kind)(context)
        elif panel.title:
            empty.append(BENCHMARK_NAMES.get(panel.title, panel.title))
    missing = page.missing(study)
    notes: tuple[Note, ...] = ()
    if missing:
        which = f" ({join_words(empty)})" if empty else ""
        words = f"{count_text(len(missing), 'result')} not computed yet{which}; resume with:"
        notes = (Note(words, page.campaigns[study.name].command),)
    about = " ".join(filter(None, (study.about, scale_text([v for p in study.panels for v in page.views(p)]))))
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
    counts = sorted({view.replications for view in played})
    rounds = sorted({view.rounds for view in played})
    seeds = sorted({seed for view in played for seed in view.seeds})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    number = count_text(counts[0], "replication") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} replications"
    length = count_text(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]:,} to {rounds[-1]:,} rounds"
    return f"{number} ({which}) of {length}."


def tuning_section(record: Mapping[str, Any]) -> Section:
    """Return the section of a tuning: what every trial reached, and which settings mattered."""
    about = [str(record.get(name, "")) for name in ("benchmark", "model", "feedback")]
    place = "-".join(["tuning", *file_names(about, "other")])
    trials = sorted((t["number"], t["value"]) for t in record["trials"] if t["value"] is not None)
    numbers, values = [float(n) for n, _ in trials], np.array([value for _, value in trials], float)
    best = format_number(record["best"]["value"])
    words = (
        f"{len(record['trials'])} random configurations of {record.get('policy', 'a policy')} with {about[1]}, "
        f"{about[2]} feedback, {record.get('seeds')} validation seeds; the best reaches {best} "
        f"(trial {record['best']['number']})."
    )
    cards = []
    if len(trials):
        lowest = np.minimum.accumulate(values)
        log = bool(np.all(values > 0))
        axis, _, _ = fit_axis("mean final regret", [values], log, [])
        lines = [
            Line("trial", numbers, values, None, POLICY_STYLES["dfhpg_1"]),
            Line("lowest so far", numbers, lowest, None, POLICY_STYLES["dfhpg"]),
        ]
        cards.append(
            Card("Trials", (Chart(f"{place}-history", "Trials", Plot("points", lines, [], Axis("trial"), axis, [])),))
        )
    importances = sorted((record.get("importances") or {}).items(), key=lambda pair: -pair[1])
    if importances:
        style = POLICY_STYLES["dfhpg_0"]
        bars = [Line(name, [name], np.array([share]), None, style) for name, share in importances]
        plot = Plot("bars", bars, [], Axis("", categories=True), Axis("importance (sums to 1)"), [])
        chart = Chart(f"{place}-importance", "Importance of the settings", plot)
        cards.append(Card("Importance of the settings", (chart,)))
    title = f"Tuning: {BENCHMARK_NAMES.get(about[0], about[0])}"
    return Section(place, title, words, tuple(cards))


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
    markup = require("markupsafe", extra="report").Markup
    assets = resources.files("regretless.experiments.report") / "assets"
    texts = {name: (assets / name).read_text(encoding="utf-8") for name in ("page.html.jinja", "page.css", "page.js")}
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        texts["page.html.jinja"]
    )
    blocks = [block for section in sections for block in section.blocks() if isinstance(block, Chart)]
    charts = {block.id: plotly_chart(block.plot) for block in blocks}
    embedded = json.dumps(charts, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    titles = " · ".join(dict.fromkeys(study.title or study.name for study in page.studies))
    return str(
        template.render(
            title="All tables and figures" if len(page.studies) > 3 else titles,
            css=markup(texts["page.css"]),
            js=markup(texts["page.js"]),
            plotly=markup(require("plotly.offline", extra="report").get_plotlyjs()),
            charts=markup(embedded),
            heights={name: chart["layout"].get("height", 0) for name, chart in charts.items()},
            summary=summarise(page),
            figures=headline_numbers(page),
            sections=sections,
            environment=describe_environment(page),
            results=results_table(page),
            written=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(page.written)),
        )
    )


def render_markdown(page: Page, sections: Sequence[Section]) -> str:
    """Return all numbers as Markdown."""
    titles = " · ".join(dict.fromkeys(study.title or study.name for study in page.studies))
    lines = [f"# {escape_markdown(titles)}", ""]
    lines += [f"- {escape_markdown(''.join(part.text for part in sentence))}" for sentence in summarise(page)]
    for section in sections:
        lines += ["", *to_markdown(section)]
    lines += ["", "## Environment", ""]
    lines += [f"- {name}: {' · '.join(values)}" for name, values in describe_environment(page)]
    return "\n".join([*lines, ""])


def headline_numbers(page: Page) -> list[tuple[str, str]]:
    """Return the large numbers at the top of the page with their captions."""
    shown = page.shown()
    reproduced, compared = page.tally()
    seconds = sum(sum(result.seconds.values()) for result in shown.values())
    numbers = [
        (str(len(shown)), "result" if len(shown) == 1 else "results"),
        (format_duration(seconds), "of computing"),
    ]
    return [(f"{reproduced} of {compared}", "published values reproduced (|z| ≤ 3)"), *numbers] if compared else numbers


def summarise(page: Page) -> list[Sentence]:
    """Return the sentences at the top of the page."""
    shown = page.shown()
    missing = {name for study in page.studies for name in page.missing(study)}
    count = f"{len(shown)} of {len(shown) + len(missing)} results" if missing else count_text(len(shown), "result")
    studies = count_text(len(page.studies), "study", "studies")
    scale = scale_text([view for _, _, view in page.all_views()]).removesuffix(".")
    environment = dict(describe_environment(page))
    by = f"on {join_words(environment.get('devices', []))} with code {join_words(environment.get('code', []))}"
    sentences: list[Sentence] = [[SummaryPart(f"{', '.join(filter(None, (studies, count, scale)))}; computed {by}.")]]
    reproduced, compared = page.tally()
    if compared:
        words = f"{reproduced} of {count_text(compared, 'published value')} are within three standard errors."
        sentences.append([SummaryPart(words)])
    elif any(study.collection for study in page.studies):
        sentences.append([SummaryPart("These runs are not comparable with published values, which are left out.")])
    for added in _from_extensions("summary", page):
        sentences += added
    lowest = [sentence for study in page.studies if not study.collection for sentence in _lowest_means(page, study)]
    sentences += lowest[:MAX_SENTENCES]
    if len(lowest) > MAX_SENTENCES:
        sentences.append([SummaryPart(f"{count_text(len(lowest) - MAX_SENTENCES, 'more cell')} below.")])
    places = page.places()
    unfinished = [study for study in page.studies if page.missing(study)]
    if unfinished:
        parts = [SummaryPart("Not computed yet: ")]
        for study in unfinished:
            words = f"{(study.title or study.name).split(':')[0]} ({count_text(len(page.missing(study)), 'result')})"
            parts += [SummaryPart(words, places[study.name]), SummaryPart(". " if study is unfinished[-1] else ", ")]
        sentences.append(parts)
    return sentences


def _lowest_means(page: Page, study: Study) -> list[Sentence]:
    """Return a sentence per cell of a study about its lowest mean, or one about the arena."""
    place = page.places()[study.name]
    sentences: list[Sentence] = []
    arena = arena_scores(
        v for panel in study.panels if (panel.kind or study.kind) == "arena" for v in page.views(panel)
    )
    if arena:
        best, *others = sorted(arena_totals(arena), key=lambda each: each.relative)
        interval = f"95 % interval {format_number(best.interval[0])} to {format_number(best.interval[1])}"
        then = f"; then {join_words([f'{o.policy} {format_number(o.relative)}' for o in others])}" if others else ""
        where = f"of random's regret over {count_text(len(arena), 'world')}"
        words = f" has the lowest regret: {format_number(best.relative)} {where}, {interval}{then}."
        return [[SummaryPart(best.policy, place), SummaryPart(words)]]
    seen: set[tuple[str, ...]] = set()
    for panel in study.panels:
        for view in page.views(panel):
            ranked = sorted((r.mean(), label) for label, r in view.results.items() if math.isfinite(r.mean()))
            if len(ranked) < 2 or tuple(view.addresses.values()) in seen:
                continue
            seen.add(tuple(view.addresses.values()))
            first, second = (view.results[label] for _, label in ranked[:2])
            where = ", ".join(filter(None, (study.title or study.name, panel.title, view.label)))
            few = (
                ""
                if view.replications >= MIN_REPLICATIONS
                else f", from {count_text(view.replications, 'replication')} only"
            )
            lowest, second_lowest = (format_mean(r.mean(), r.standard_error()) for r in (first, second))
            words = (
                f": {first.label} has the lowest mean final regret, {lowest}, before {second.label} with "
                f"{second_lowest}{few}."
            )
            sentences.append([SummaryPart(where, place), SummaryPart(words)])
    return sentences


def describe_environment(page: Page) -> list[tuple[str, list[str]]]:
    """Return what computed the results: interpreter, platform, packages, devices, code and commands."""
    values: dict[str, list[str]] = {}
    for result in page.shown().values():
        about = result.environment
        code = result.extra.get("code") or {}
        packages = about.get("packages") or {}
        facts = {
            "python": [about.get("python", "")],
            "platform": [about.get("platform", "")],
            "packages": [", ".join(f"{name} {version}" for name, version in packages.items())],
            "devices": [" ".join(dict.fromkeys(str(device).split())) for device in about.get("devices", [])],
            "code": [str(code.get("regretless", ""))],
        }
        for name, found in facts.items():
            values.setdefault(name, []).extend(value for value in found if value and value not in values.get(name, []))
    values["commands"] = list(dict.fromkeys(campaign.command for campaign in page.campaigns.values()))
    return [(name, list(dict.fromkeys(found))) for name, found in values.items() if found]


def results_table(page: Page) -> Table:
    """Return a table of all results: how much was played, how long it took, and where it is stored."""
    head = ("result", "mean ± s.e.", "median", "replications", "rounds", "seconds", "of these compiling", "address")
    rows = []
    for address, result in page.shown().items():
        seconds = result.seconds
        numbers = (result.mean(), result.standard_error()) if result.regret.size else (None, None)
        rows.append(
            row(
                str(result.extra.get("name") or result.label),
                Value(format_mean(*numbers) if result.regret.size else "–", numbers),
                Value(format_number(result.median()) if result.regret.size else "–"),
                str(len(result.seeds) or "–"),
                f"{result.regret.shape[1]:,}" if result.regret.size else "–",
                Value(f"{sum(seconds.values()):.1f}", (round(sum(seconds.values()), 3),)),
                f"{seconds.get('compile', 0.0):.1f}",
                Value(address[:12], (address,), code=True),
            )
        )
    return Table("results", head, tuple(rows), folded=f"All {len(rows)} results")
