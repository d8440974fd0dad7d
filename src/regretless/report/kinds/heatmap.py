"""Heat maps: final regret by row and column, from arms that are labelled ``row/column``."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regretless.report.gather import SIMPLE, Panel, Study
from regretless.report.html import Markup, tag, text
from regretless.report.kinds.base import Kind, chart_card
from regretless.report.series import ArmSummary
from regretless.report.tables import markdown_grid
from regretless.show import charts
from regretless.show.charts import Charts
from regretless.show.plots import HeatMap
from regretless.show.words import number


class Grid(NamedTuple):
    """Arms by column and row; rows with the lowest regret in the first column come first."""

    columns: dict[str, dict[str, ArmSummary]]
    rows: list[str]

    def means(self) -> np.ndarray:
        """Mean final regrets, ``[rows, columns]``; nan where there is none."""
        found = [[arms[name].mean if name in arms else np.nan for arms in self.columns.values()] for name in self.rows]
        return np.array(found, float).reshape(len(self.rows), len(self.columns))

    def shades(self) -> np.ndarray:
        """What the colours follow: the order of magnitude, or the number itself where some are not positive."""
        means = self.means()
        return np.log10(means) if np.all(means[np.isfinite(means)] > 0) else means


def grid(panel: Panel) -> Grid:
    """The arms of all cells; a label without a slash is a row, its cell's label the column."""
    columns: dict[str, dict[str, ArmSummary]] = {}
    for cell in panel.cells:
        for label, arm in cell.arms.items():
            row, slash, column = label.partition("/")
            columns.setdefault(column if slash else cell.label, {})[row] = arm
    first = next(iter(columns.values()))
    rows = list(dict.fromkeys(row for arms in columns.values() for row in arms))
    mean = {row: first[row].mean if row in first else np.inf for row in rows}
    return Grid(columns, sorted(rows, key=lambda row: mean[row] if np.isfinite(mean[row]) else np.inf))


def heat_card(study: Study, panel: Panel, drawn: Charts) -> Markup:
    """The map, with the reference lines and the simple baseline in words."""
    found = grid(panel)
    lines = [(line.name, line.mean) for line in panel.references()]
    simple = panel.simple_baseline()
    if simple is not None:
        lines.append((SIMPLE, simple.mean))
    told = " · ".join(f"{text(name)} <b>{text(number(mean))}</b>" for name, mean in lines)
    beneath = [tag("p", "For comparison: ", told, class_="note")] if told else []
    spec = charts.heat_map(found.rows, list(found.columns), found.means(), found.shades())
    return chart_card(study, panel, spec if np.isfinite(found.means()).any() else None, drawn, beneath)


def plot(study: Study, panel: Panel) -> HeatMap | None:
    """The map for print."""
    found = grid(panel)
    return HeatMap(found.rows, list(found.columns), found.means(), found.shades())


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """All maps in one table."""
    columns = {
        ", ".join(filter(None, (panel.name, column))): arms
        for panel in panels
        for column, arms in grid(panel).columns.items()
    }
    return markdown_grid(study.axis, columns)


KIND = Kind(card=heat_card, markdown=markdown, plot=plot)
