"""Figures for print, drawn with matplotlib in the paper's style; the legend stands below, where it covers nothing."""

import contextlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regretless.files import beside
from regretless.show.figures import draw_on, printed
from regretless.show.plots import Plot
from regretless.show.words import number

PAPER: dict[Any, Any] = {
    "font.family": "serif",
    "font.size": 8,
    "mathtext.fontset": "cm",
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "regretless",
}
SIZE = (3.4, 2.5)


@contextlib.contextmanager
def paper_style() -> Iterator[None]:
    """The style of all figures; letters that a font lacks become boxes, without a word."""
    with matplotlib.rc_context(PAPER), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save(figure: Figure, path: Path) -> None:
    """Writes a figure as PDF or PNG, by the suffix of ``path``; the same figure gives the same bytes."""
    form = path.suffix[1:]
    metadata: dict[str, Any] = {"CreationDate": None} if form == "pdf" else {"Software": None}
    with beside(path) as place:
        figure.savefig(place, format=form, dpi=200, metadata=metadata)


def draw(plot: Plot, title: str, size: tuple[float, float] = SIZE) -> Figure:
    """A plot as a figure of this size, to which the height of the legend is added."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    draw_on(axes, plot)
    axes.set_title(printed(title, 60), fontsize="large")
    _add_legend(figure, axes, plot)
    return figure


def _add_legend(figure: Figure, axes: Axes, plot: Plot) -> None:
    """A legend below the chart with as many columns as fit; the figure grows by its height."""
    known = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    labels = [label for line in [*plot.lines, *plot.references] if (label := printed(line.label)) in known]
    handles = [known[label] for label in labels]
    if not handles:
        return
    FigureCanvasAgg(figure)
    width, height = figure.get_size_inches()
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles,
            labels,
            loc="outside lower center",
            frameon=False,
            ncols=columns,
            columnspacing=1.4,
            handlelength=2.4,
        )
        box = legend.get_window_extent()
        if box.width <= 0.98 * width * figure.dpi or columns == 1:
            figure.set_size_inches(width, height + box.height / figure.dpi)
            return
        legend.remove()


def heat_map(rows: list[str], columns: list[str], grid: np.ndarray, shades: np.ndarray, title: str) -> Figure:
    """Numbers by row and column; ``shades`` are what the colours follow."""
    figure = Figure(figsize=(1.6 + 0.7 * len(columns), 0.19 * len(rows) + 0.5), layout="constrained")
    axes = figure.add_subplot()
    finite = shades[np.isfinite(shades)]
    middle = float(finite.mean()) if finite.size else 0.0
    if finite.size:
        axes.imshow(shades, aspect="auto", cmap="YlGnBu")
    else:
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    for i, j in np.ndindex(*grid.shape):
        ink = "white" if math.isfinite(shades[i, j]) and shades[i, j] > middle else "black"
        axes.text(j, i, number(float(grid[i, j])), ha="center", va="center", fontsize=6, color=ink)
    axes.set_xticks(range(len(columns)), [printed(name, 20) for name in columns])
    axes.set_yticks(range(len(rows)), [printed(name) for name in rows], fontsize=6.5)
    axes.grid(False)
    axes.set_title(printed(title, 60), fontsize="large")
    return figure
