"""Several charts on one sheet, at the width of a column or of the text, with one legend for all of them."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regretless.report.figures import add_legend, draw, draw_panel, labels_of
from regretless.show.plots import HeatMap, Plot

WIDTHS = {"column": 3.25, "text": 6.75}
"""Inches that a figure may take in two columns and across the page."""

Drawing = Plot | HeatMap


def sheet(drawings: Sequence[tuple[str, Drawing]], width: float) -> Figure:
    """The charts with their titles from left to right and top to bottom; a chart alone has its names beside the curves."""
    if len(drawings) == 1 and isinstance(drawings[0][1], Plot):
        title, plot = drawings[0]
        return draw(plot, title, (width, 2.3 if width < 5 else 2.7))
    across = _across(drawings, width)
    down = -(-len(drawings) // across)
    height = _height(drawings, width, across)
    figure = Figure(figsize=(width, down * height), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(down, across)
    every = [figure.add_subplot(grid[index // across, index % across]) for index in range(len(drawings))]
    for axes, (title, shown) in zip(every, drawings, strict=True):
        draw_panel(axes, shown, title, (width / across, height))
    _share_titles(every, across)
    plots = [shown for _, shown in drawings if isinstance(shown, Plot)]
    drawn = [axes for axes, (_, shown) in zip(every, drawings, strict=True) if isinstance(shown, Plot)]
    add_legend(figure, drawn, labels_of(plots))
    return figure


def _across(drawings: Sequence[tuple[str, Drawing]], width: float) -> int:
    """How many charts stand side by side."""
    if all(isinstance(shown, HeatMap) for _, shown in drawings):
        return min(len(drawings), 2)
    if width < 5:
        return 1
    return 3 if len(drawings) in (3, 5, 6) or len(drawings) > 8 else 2


def _height(drawings: Sequence[tuple[str, Drawing]], width: float, across: int) -> float:
    """Inches of a row of charts."""
    rows = [len(shown.rows) for _, shown in drawings if isinstance(shown, HeatMap)]
    slant = 0.3 if any(isinstance(shown, Plot) and shown.x.words for _, shown in drawings) else 0.0
    return max([1.65 + slant if width < 5 or across == 3 else 1.9 + slant, *(0.125 * count + 0.5 for count in rows)])


def _share_titles(every: Sequence[Axes], across: int) -> None:
    """Where all axes have the same titles, only those at the left and at the bottom keep them."""
    same_x = len({axes.get_xlabel() for axes in every}) == 1
    same_y = len({axes.get_ylabel() for axes in every}) == 1
    for index, axes in enumerate(every):
        if same_y and index % across:
            axes.set_ylabel("")
        if same_x and index + across < len(every):
            axes.set_xlabel("")
