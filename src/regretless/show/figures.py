"""A plot on matplotlib's axes: the same lines, colours and dashes in print, in a run's picture and in a notebook."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from regretless.show.plots import NOTHING, Line, Plot, extent, log_ticks
from regretless.show.style import QUIET, dash
from regretless.show.words import shortened, tick_text

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


def draw_on(axes: Axes, plot: Plot) -> None:
    """Draws everything but title and legend."""
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
