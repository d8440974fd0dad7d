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
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from regretless.files import beside
from regretless.report.plots import NOTHING, Line, Plot, extent, log_ticks
from regretless.report.style import QUIET, dash
from regretless.report.words import number, shortened, tick_text

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
MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "star": "*", "pentagon": "p",
}  # fmt: skip
LINES: dict[str, Any] = {
    "dot": (0, (1, 2)), "dash": (0, (4, 2)), "dashdot": (0, (4, 2, 1, 2)), "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 2, 1, 2)),
}  # fmt: skip


def printed(label: str, length: int = 40) -> str:
    """A label that matplotlib shows as it is: it takes dollars for mathematics, and hides labels that begin with ``_``."""
    words = shortened(label, length).replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


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
    {"curves": _curves, "points": _points, "bars": _bars}[plot.form](axes, plot)
    for line in plot.references:
        style = LINES[dash(line.label.split(" (")[0])]
        axes.plot(
            _positions(line, plot),
            line.y,
            label=printed(line.label),
            color=QUIET,
            linewidth=0.8,
            linestyle=style,
            zorder=1.5,
        )
    _set_axes(axes, plot)
    if not plot.lines:
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center")
    axes.set_title(printed(title, 60), fontsize="large")
    _add_legend(figure, axes, plot)
    return figure


def _curves(axes: Axes, plot: Plot) -> None:
    for index, line in enumerate(plot.lines):
        assert line.style is not None
        every = (0.04 + 0.02 * (index % 5), 0.2) if len(line.x) > 1 else 1
        axes.plot(
            line.x, line.y, label=printed(line.label), color=line.style.colour, linewidth=1.2,
            marker=MARKERS[line.style.marker], markersize=3.5, markevery=every,
        )  # fmt: skip
        if line.error is not None:
            low, high = line.low(plot.y.log), line.high()
            axes.fill_between(line.x, low, high, color=line.style.colour, alpha=0.13, linewidth=0)


def _points(axes: Axes, plot: Plot) -> None:
    for line in plot.lines:
        assert line.style is not None
        axes.errorbar(
            _positions(line, plot), line.y, _error_bars(line, plot), label=printed(line.label), color=line.style.colour,
            marker=MARKERS[line.style.marker], markersize=3.5, linewidth=1.1, capsize=2,
        )  # fmt: skip


def _bars(axes: Axes, plot: Plot) -> None:
    for line in plot.lines:
        assert line.style is not None
        place, error = _positions(line, plot), _error_bars(line, plot)
        axes.bar(place, line.y, yerr=error, color=line.style.colour, width=0.7, capsize=2, error_kw={"linewidth": 0.8})
    axes.grid(False, axis="x")


def _positions(line: Line, plot: Plot) -> list[Any]:
    """Where the points of a line stand: words take their places from left to right."""
    return [plot.words().index(word) for word in line.x] if plot.x.words else list(line.x)


def _error_bars(line: Line, plot: Plot) -> np.ndarray | None:
    if line.error is None:
        return None
    both = np.stack([line.y - line.low(plot.y.log), line.error])
    return np.maximum(np.nan_to_num(both, nan=0.0), 0.0)


def _set_axes(axes: Axes, plot: Plot) -> None:
    axes.set(xlabel=printed(plot.x.title), ylabel=printed(plot.y.title))
    if plot.x.words:
        _set_words(axes, plot.words())
    if plot.x.log:
        axes.set_xscale("log")
    if plot.x.range is not None:
        axes.set_xlim(*plot.x.range)
    if plot.y.log:
        axes.set_yscale("log")
        ticks = log_ticks(*(plot.y.range or extent(plot)))
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_major_formatter(FixedFormatter([tick_text(tick) for tick in ticks]))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_formatter(lambda value, _: tick_text(value))
    if plot.y.range is not None:
        axes.set_ylim(*plot.y.range)


def _set_words(axes: Axes, words: list[Any]) -> None:
    """Words below the axis, aslant where they would touch."""
    axes.set_xticks(range(len(words)), [printed(str(word), 20) for word in words])
    if sum(len(str(word)) + 3 for word in words) > 55:
        axes.tick_params(axis="x", labelrotation=30)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")


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
