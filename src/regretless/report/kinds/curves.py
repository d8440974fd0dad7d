"""Regret curves: average regret per round with ±1 standard-error bands; with several cells, one set of curves for all."""

from collections.abc import Sequence

from regretless.report.gather import Panel, Study
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.kinds.base import Kind, chart_card, note, table_name, value
from regretless.report.panel_plots import panel_curves
from regretless.report.tables import markdown_grid
from regretless.show.charts import Charts, spec
from regretless.show.plots import Plot, beyond_words


def curves_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The chart, and what it leaves out."""
    return _card(study, panel, charts, "")


def card_with_table(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The chart, and a table of the final regrets folded away below it."""
    body = [row(text(label), value(arm.mean, arm.error)) for label, arm in panel.arms().items()]
    folded = tag(
        "details",
        tag("summary", text("Final regrets")),
        table(("policy", "mean ± s.e."), body, table_name(study, panel)),
    )
    return _card(study, panel, charts, folded)


def _card(study: Study, panel: Panel, charts: Charts, below: Markup) -> Markup:
    found = panel_curves(panel)
    horizon = panel.cells[0].record["horizon"]
    zoomed = panel.zoom is not None and panel.zoom < horizon
    words = f"The first {panel.zoom} rounds; a double click shows all {horizon:,}." if zoomed else ""
    notes = (note(beyond_words(found)), note(words), below)
    return chart_card(study, panel, spec(found) if found.lines else None, charts, notes)


def plot(study: Study, panel: Panel) -> Plot | None:
    """The curves for print."""
    found = panel_curves(panel)
    return found if found.lines else None


def nothing(study: Study, panels: Sequence[Panel]) -> list[str]:
    """No lines: the table of the same runs has the numbers."""
    return []


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """The final regrets of all panels in one table."""
    return markdown_grid("", {panel.name: panel.arms() for panel in panels})


KIND = Kind(card=curves_card, markdown=nothing, plot=plot)
WITH_TABLE = Kind(card=card_with_table, markdown=markdown, plot=plot)
