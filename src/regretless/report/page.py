"""One self-contained HTML page: everything inside, nothing fetched, readable on a phone, in the dark and on paper."""

import time
from importlib import resources

from regretless.report import claims_section, deviations, overview, presets_section, sections, summary, tuning_section
from regretless.report.gather import Page
from regretless.report.html import Markup, embedded_json, tag, text
from regretless.report.kinds.base import chart, note
from regretless.report.words import duration
from regretless.show.charts import Charts

TITLE = "regretless: the paper's tables and figures, reproduced"
HEADING = "Every table and figure, run again"
LEAD = "Regret of on-policy decision-focused learning with partial feedback, measured anew."
READING = (
    "Lower is better everywhere; bands, whiskers and ± are one standard error; every policy of a chart met the same contexts "
    "and costs unless its label names another world."
)
CREDIT = "Decision-Focused On-Policy Learning for Contextual Linear Optimization with Partial Feedback"


def asset(name: str) -> str:
    """A file of this package's own."""
    return (resources.files("regretless.experiments.report") / "assets" / name).read_text(encoding="utf-8")


def render(page: Page) -> str:
    """The whole page."""
    from plotly.offline import get_plotlyjs

    charts: Charts = {}
    titled = page.paper or len(page.studies) > 1
    parts = [at_a_glance(page, charts), *(sections.section(study, charts, titled) for study in page.studies)]
    parts += [tuning_section.section(tuning, charts) for tuning in page.tunings]
    parts += [claims_section.section(page.claims)] if page.claims else []
    parts += [presets_section.section(), deviations.section()] if page.paper else []
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en" data-theme="light"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            tag("title", text(TITLE if page.paper else page.titles)),
            f"<style>{asset('page.css')}</style></head><body>",
            header(page),
            nav(page),
            tag("main", *parts, environment(page)),
            footer(page),
            f'<script type="application/json" id="chart-data">{embedded_json(charts)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{asset('page.js')}</script>",
            "</body></html>\n",
        ]
    )


def header(page: Page) -> Markup:
    """What this is, in sentences, and the figures that matter."""
    reproduced, compared = overview.tally(page)
    cells = page.shown()
    seconds = sum(cell.record["wall_seconds"] for cell in cells.values())
    figures = [figure(str(len(cells)), "cell computed" if len(cells) == 1 else "cells computed")]
    figures.append(figure(duration(seconds), "of computing"))
    if compared:
        figures.insert(0, figure(f"{reproduced} of {compared}", "published cells reproduced (|z| ≤ 3)"))
    lead = tag("p", text(LEAD), class_="lead") if page.paper else ""
    told = (summary.summary(page), tag("div", *figures, class_="figures"), note(READING))
    title = tag("h1", text(HEADING if page.paper else page.titles))
    return tag("header", title, lead, *told, id="summary", class_="top")


def figure(value: str, words: str) -> Markup:
    """A large value with a word below it."""
    return tag("div", tag("b", text(value)), tag("span", text(words)))


def nav(page: Page) -> Markup:
    """Links to the sections, and the switch between light and dark."""
    names = [("summary", "Summary"), *((study.place, study.title.split(":")[0]) for study in page.studies)]
    names += [(tuning_section.anchor(page.tunings[0]), "Tuning")] if page.tunings else []
    names += [("claims", "Claims")] if page.claims else []
    names += [("configurations", "Configurations"), ("deviations", "Deviations")] if page.paper else []
    names.append(("environment", "Environment"))
    links = [tag("a", text(title), href=f"#{name}") for name, title in names]
    switch = tag("button", text("light / dark"), id="theme", type="button")
    return tag("nav", tag("div", tag("div", *links, class_="links"), switch))


def at_a_glance(page: Page, charts: Charts) -> Markup:
    """All z-scores in one chart."""
    spec = overview.z_scores(page)
    if spec is None:
        return ""
    drawn = chart("chart-overview", spec, charts, "z-scores of all published cells")
    words = "How far every cell is from its published value. The shaded band is |z| ≤ 3; marks to the left are lower regret."
    body = (tag("h2", text("At a glance")), tag("p", text(words)), tag("div", drawn, class_="card"))
    return tag("section", *body, id="overview")


def environment(page: Page) -> Markup:
    """What computed the numbers."""
    seen: dict[str, list[str]] = {}
    for cell in page.shown().values():
        about = cell.record["environment"]
        packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
        for key, value in (
            ("python", about["python"]),
            ("platform", about["platform"]),
            ("packages", packages),
            ("devices", ", ".join(cell.devices)),
            ("code", cell.record["code"]),
        ):
            if value not in seen.setdefault(key, []):
                seen[key].append(value)
    seen["commands"] = list(dict.fromkeys(study.command for study in page.studies))
    pairs = "".join(tag("dt", text(key)) + tag("dd", text(" · ".join(values))) for key, values in seen.items())
    listed = sections.cell_list(page)
    return tag(
        "section", tag("h2", text("Environment")), tag("div", tag("dl", pairs), listed, class_="card"), id="environment"
    )


def footer(page: Page) -> Markup:
    """When, from what."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(page.written))
    credit = f" The method and the published values: {CREDIT}." if page.paper else ""
    return tag("footer", text(f"Written {when} by regretless from stored traces.{credit}"))
