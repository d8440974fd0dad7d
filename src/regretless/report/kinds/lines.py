"""Lines: the final regret of every policy across the cells of a panel, whose labels are the x axis."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from regretless.report.gather import Panel, Study
from regretless.report.html import Markup
from regretless.report.kinds.base import Kind, chart_card, note
from regretless.report.series import ArmSummary
from regretless.report.tables import markdown_grid
from regretless.report.words import markdown_text
from regretless.show.charts import Charts, spec
from regretless.show.plots import Axis, Line, Plot, beyond_words, fitted
from regretless.show.words import distinct


def numbers(labels: Sequence[str]) -> list[float] | None:
    """The labels as distinct finite numbers; None if they are words.

    >>> numbers(["2", "4e1"]), numbers(["2", "full"])
    ([2.0, 40.0], None)
    """
    try:
        found = [float(label) for label in labels]
    except ValueError:
        return None
    return found if len(set(found)) == len(found) and all(map(math.isfinite, found)) else None


def _words(labels: Iterable[str]) -> list[str]:
    found: list[str] = []
    for label in labels:
        found.append(distinct(label, found))
    return found


def plot(study: Study, panel: Panel) -> Plot | None:
    """A line per policy and per reference; None if nothing is finite."""
    labels = [cell.label for cell in panel.cells]
    values = numbers(labels)
    order = np.argsort(values) if values is not None else np.arange(len(labels))
    cells = [panel.cells[index] for index in order]
    x: list[float] | list[str] = _words(labels) if values is None else [values[index] for index in order]
    lines = []
    for label in dict.fromkeys(label for cell in panel.cells for label in cell.arms):
        arms = [cell.arms.get(label) for cell in cells]
        line = Line(label, x, _means(arms), _errors(arms), panel.palette[label])
        if np.isfinite(line.y).any():
            lines.append(line)
    if not lines:
        return None
    levels = [{line.name: line.mean for line in cell.references()} for cell in cells]
    references = []
    for name in dict.fromkeys(name for level in levels for name in level):
        means = np.array([np.nan if level.get(name) is None else level[name] for level in levels], float)
        if np.isfinite(means).any():
            references.append(Line(name, x, means))
    log = all(np.nanmin(line.y) > 0 for line in lines)
    edges = [line.y for line in lines] + [line.low(log) for line in lines if line.error is not None]
    edges += [line.high() for line in lines if line.error is not None]
    axis, near, far = fitted("final regret", edges, log, references)
    return Plot("points", lines, near, Axis(study.axis, words=values is None), axis, far)


def _means(arms: Sequence[ArmSummary | None]) -> np.ndarray:
    return np.array([np.nan if arm is None else arm.mean for arm in arms])


def _errors(arms: Sequence[ArmSummary | None]) -> np.ndarray | None:
    errors = np.array([np.nan if arm is None else arm.error for arm in arms])
    return np.nan_to_num(errors, nan=0.0) if np.isfinite(errors).any() else None


def lines_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The chart, and what it leaves out."""
    found = plot(study, panel)
    if found is None:
        return chart_card(study, panel, None, charts)
    return chart_card(study, panel, spec(found), charts, [note(beyond_words(found))])


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """A table per panel: policies by cell."""
    lines = []
    for panel in panels:
        title = ", by ".join(markdown_text(word) for word in (panel.name or study.title, study.axis) if word)
        columns = dict(
            zip(_words(cell.label for cell in panel.cells), (cell.arms for cell in panel.cells), strict=True)
        )
        lines += [f"### {title}", "", *markdown_grid("policy", columns)]
    return lines


KIND = Kind(card=lines_card, markdown=markdown, plot=plot)
