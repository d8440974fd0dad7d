"""A table of final regrets, with the published values beside ours where there are any."""

from collections.abc import Sequence

from regretless.report.gather import ENOUGH, Panel, Study
from regretless.report.html import Markup, exact, row, table, tag, text
from regretless.report.kinds.base import (
    Kind,
    best_words,
    card,
    chart,
    chart_id,
    note,
    paired,
    precise,
    table_name,
    value,
)
from regretless.report.panel_plots import panel_curves
from regretless.report.paper.tables import Block
from regretless.report.paper.tables import result_table as latex_result_table
from regretless.report.tables import Row, arm_text, markdown_table, references, rows
from regretless.report.words import markdown_text
from regretless.show.charts import Charts, spec
from regretless.show.plots import beyond_words
from regretless.show.words import number, spread
from regretless.studies.verdicts import LIMIT, SECOND_RANGE

HEAD = ("policy", "mean ± s.e.", "median", "published", "z", "verdict")
AGAIN = f"seeds from {SECOND_RANGE}"


def shown_columns(found: Sequence[Row]) -> int:
    """How many columns of ``HEAD`` have something in them."""
    return len(HEAD) if any(each.verdict is not None for each in found) else 3


def table_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The table with the paired differences folded away; beside it the curves, if nothing else on the page draws them."""
    marked = note(best_words(any(cell.marks_best for cell in panel.cells)))
    return card(panel, result_table(study, panel), marked, paired(study, panel)) + _curves(study, panel, charts)


def _curves(study: Study, panel: Panel, charts: Charts) -> Markup:
    """A card with the regret of the table's runs, round by round."""
    plot = panel_curves(panel) if panel.undrawn and all("horizon" in cell.record for cell in panel.cells) else None
    if plot is None or not plot.lines:
        return ""
    title = f"{panel.name}: regret per round" if panel.title else "Regret per round"
    drawn = chart(chart_id(study, panel), spec(plot), charts, title)
    return tag("div", tag("h3", text(title)), drawn, note(beyond_words(plot)), class_="card")


def result_table(study: Study, panel: Panel) -> Markup:
    """Final regret, ours beside the published one where there is one, with the reference lines below."""
    found = rows(panel)
    shown = shown_columns(found)
    body = [row(*_cells(each, panel)[:shown], class_="best" if _marked(each) else "") for each in found]
    blank = [""] * (shown - 2)
    body += [
        row(text(line.name), value(line.mean, line.error), *blank, class_="reference") for line in references(panel)
    ]
    return table(HEAD[:shown], body, table_name(study, panel))


def _marked(each: Row) -> bool:
    """Whether a row is the best of enough replications."""
    return each.best and each.arm.replications >= ENOUGH


def _cells(each: Row, panel: Panel) -> list[Markup]:
    """One policy of the table."""
    arm, found = each.arm, each.verdict
    dot = tag("span", class_="swatch", style=f"background:{panel.palette[each.name].colour}")
    name = dot + text(each.name)
    if arm.diverged:
        name += " " + tag("span", text(f"{arm.diverged} diverged"), class_="chip warn")
    ours = value(arm.mean, arm.error)
    published, z, chip = "–", "–", ""
    if found is not None:
        published = value(found.published.mean, found.published.standard_error)
        z = exact(text(f"{found.z:+.2f}"), found.z)
        kind = "" if abs(found.z) <= LIMIT else " warn" if found.reproduced or found.second_z is None else " bad"
        word = "✓" if abs(found.z) <= LIMIT else found.word
        chip = tag("span", exact(text(word), found.word), class_="chip" + kind, title=found.word)
        if each.second is not None and found.second_z is not None:
            again = spread(each.second["mean"], each.second["standard_error"])
            ours += tag("i", text(f"{AGAIN}: {again}"), class_="again")
            z += tag("i", text(f"then {found.second_z:+.2f}"), class_="again")
    return [name, ours, precise(arm.median), published, z, chip]


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """A table per panel."""
    return [line for panel in panels for line in _panel_markdown(study, panel)]


def _panel_markdown(study: Study, panel: Panel) -> list[str]:
    found = rows(panel)
    shown = shown_columns(found)
    body = [_markdown_cells(each)[:shown] for each in found]
    blank = [""] * (shown - 2)
    body += [[f"*{markdown_text(line.name)}*", spread(line.mean, line.error), *blank] for line in references(panel)]
    horizons = sorted({cell.record["horizon"] for cell in panel.cells})
    replications = max(cell.replications for cell in panel.cells)
    about = f"{replications} replications, {' or '.join(map(str, horizons))} rounds"
    title = f"### {markdown_text(panel.name)} ({about})" if panel.title else f"### {about}"
    return [title, "", *markdown_table(HEAD[:shown], body)]


def _markdown_cells(each: Row) -> list[str]:
    ours, z, published, word = arm_text(each.arm), "–", "–", "–"
    if each.verdict is not None:
        published, z, word = spread(*each.verdict.published), f"{each.verdict.z:+.2f}", each.verdict.word
        if each.second is not None and each.verdict.second_z is not None:
            ours += f"; {AGAIN}: {spread(each.second['mean'], each.second['standard_error'])}"
            z += f", then {each.verdict.second_z:+.2f}"
    return [markdown_text(each.name), ours, number(each.arm.median), published, z, word]


def latex(panels: Sequence[Panel]) -> str:
    """All panels in one table."""
    return latex_result_table([Block("", panels)])


KIND = Kind(card=table_card, markdown=markdown, rows=rows, latex=latex)
