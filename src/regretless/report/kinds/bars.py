"""Bars: the final regrets of the arms of a panel side by side, with the reference lines that are near."""

from collections.abc import Sequence

import numpy as np

from regretless.report.gather import Panel, Study
from regretless.report.html import Markup
from regretless.report.kinds.base import Kind, chart_card, note, paired
from regretless.report.tables import markdown_grid
from regretless.show.charts import Charts, spec
from regretless.show.plots import Axis, Line, Plot, beyond_words


def plot(panel: Panel) -> Plot:
    """A bar per arm from zero; a reference line is drawn where the bars or twice their height reach."""
    arms = dict(panel.arms())
    simple = panel.simple_baseline()
    if simple is not None:
        arms.setdefault(simple.label, simple)
    finished = {label: arm for label, arm in arms.items() if np.isfinite(arm.mean)}
    lines = [
        Line(label, [label], np.array([arm.mean]), _error(arm.error), panel.palette[label])
        for label, arm in finished.items()
    ]
    tips = [0.0, *(float(line.y[0]) for line in lines)]
    low, high = 2 * min(tips), 2 * max(tips)
    words = list(finished)
    levels = [
        Line(line.name, words, np.full(len(words), line.mean)) for line in panel.references() if line.mean is not None
    ]
    near = [line for line in levels if words and low <= line.y[0] <= high]
    beyond = [line for line in levels if words and not low <= line.y[0] <= high]
    return Plot("bars", lines, near, Axis("", words=True), Axis("final regret"), beyond)


def _error(error: float) -> np.ndarray | None:
    return np.array([error]) if np.isfinite(error) else None


def bars_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The chart, what it leaves out, and the paired differences."""
    found = plot(panel)
    notes = (note(beyond_words(found)), paired(study, panel))
    return chart_card(study, panel, spec(found) if found.lines else None, charts, notes)


def printed_plot(study: Study, panel: Panel) -> Plot | None:
    """The bars for print."""
    found = plot(panel)
    return found if found.lines else None


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """The final regrets of all panels in one table."""
    return markdown_grid(study.axis, {panel.name: panel.arms() for panel in panels})


KIND = Kind(card=bars_card, markdown=markdown, plot=printed_plot)
