"""A plot on matplotlib's axes: the same lines, colours and dashes in print, in a run's picture and in a notebook."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from regretless.show.plots import NOTHING, Line, Plot, extent, log_ticks
from regretless.show.style import QUIET, dashes
from regretless.show.words import policy, shortened

MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "star": "*", "pentagon": "p",
}  # fmt: skip
SIZES = {
    "circle": 4.0,
    "square": 3.6,
    "diamond": 3.6,
    "star": 7.0,
    "triangle-up": 4.8,
    "triangle-down": 4.8,
    "pentagon": 5.0,
}
"""Points across a marker, so that all look equally large."""

LINES: dict[str, Any] = {
    "solid": "-", "dot": (0, (1, 1.6)), "dash": (0, (4, 1.8)), "dashdot": (0, (4, 1.6, 1, 1.6)), "longdash": (0, (8, 2.4)),
    "longdashdot": (0, (8, 1.8, 1, 1.8)), "dashdotdot": (0, (4, 1.5, 1, 1.5, 1, 1.5)),
}  # fmt: skip
NAMES = {
    "gaussian_linear": "Gaussian linear", "gaussian_nn": "Gaussian NN", "flow": "CNF", "diffusion": "DDPM",
    "semi_bandit": "semi-bandit", "full": "full information", "best_fixed": "best fixed", "market_forecast": "market forecast",
    "least_squares": "least squares",
}  # fmt: skip
"""Models of the cost, kinds of feedback and reference lines as the paper writes them."""


def named(label: str) -> str:
    """A policy, a model of the cost or a reference line as the paper writes it; any other label as it is.

    >>> named("dfhpg_0"), named("flow, plug-in variant"), named("random (b)"), named("mine")
    ('DFHPG-0', 'CNF, plug-in variant', 'random (b)', 'mine')
    """
    name, comma, rest = label.partition(", ")
    return NAMES[name] + comma + rest if name in NAMES else policy(label)


def printed(label: str, length: int = 40) -> str:
    """A label that matplotlib shows as it is: it takes dollars for mathematics, and hides labels that begin with ``_``."""
    words = shortened(label, length).replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


def power_text(value: float) -> str:
    r"""A tick in print: plain where that is short, otherwise with a power of ten.

    >>> power_text(500.0), power_text(20000.0), power_text(1e-5)
    ('500', '$2{\\times}10^{4}$', '$10^{-5}$')
    """
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    factor = "" if float(mantissa) == 1.0 else rf"{float(mantissa):g}{{\times}}"
    return f"${factor}10^{{{int(exponent)}}}$"


def draw_on(axes: Axes, plot: Plot) -> None:
    """Draws everything but title and legend."""
    {"curves": _curves, "points": _points, "bars": _bars}[plot.form](axes, plot)
    styles = dashes(line.label for line in [*plot.references, *plot.beyond])
    for line in plot.references:
        axes.plot(
            _positions(line, plot), line.y, label=printed(named(line.label)), color=QUIET, linewidth=0.9,
            linestyle=LINES[styles[line.label]], zorder=1.5,
        )  # fmt: skip
    _set_axes(axes, plot)
    if not plot.lines:
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center", wrap=True)


def _look(line: Line) -> dict[str, Any]:
    """What tells a curve from the others, in colour and in grey."""
    assert line.style is not None
    return {
        "label": printed(named(line.label)), "color": line.style.colour, "linestyle": LINES[line.style.dash],
        "marker": MARKERS[line.style.marker], "markersize": SIZES[line.style.marker],
        "markeredgecolor": "white", "markeredgewidth": 0.3, "linewidth": 1.1,
    }  # fmt: skip


def _curves(axes: Axes, plot: Plot) -> None:
    for index, line in enumerate(plot.lines):
        assert line.style is not None
        axes.plot(line.x, line.y, markevery=_marked(line, plot, index), **_look(line))
        if line.error is not None:
            low, high = line.low(plot.y.log), line.high()
            axes.fill_between(line.x, low, high, color=line.style.colour, alpha=0.13, linewidth=0)


def _marked(line: Line, plot: Plot, index: int) -> list[int]:
    """Where a curve has its markers: five along the shown rounds, at other places than its neighbours' ones."""
    first, last = plot.x.range or (float(line.x[0]), float(line.x[-1]))
    start = 0.04 + 0.16 * ((index * 3) % 7) / 7
    wanted = first + (last - first) * np.arange(start, 1.0, 0.2)
    return sorted({int(np.abs(np.asarray(line.x, float) - each).argmin()) for each in wanted})


def _points(axes: Axes, plot: Plot) -> None:
    spans = [_positions(line, plot) for line in plot.lines]
    ends = [float(place) for span in spans for place in span]
    step = 0.012 * (max(ends, default=0.0) - min(ends, default=0.0))
    for index, (line, span) in enumerate(zip(plot.lines, spans, strict=True)):
        beside = step * (index - (len(plot.lines) - 1) / 2)  # error bars stand side by side
        axes.errorbar(
            [place + beside for place in span], line.y, _error_bars(line, plot), capsize=1.5, elinewidth=0.7, **_look(line)
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
    elif plot.form == "curves":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    elif plot.lines and len(plot.lines[0].x) <= 8:
        axes.set_xticks([float(place) for place in plot.lines[0].x])
    if plot.x.log:
        axes.set_xscale("log")
    if plot.x.range is not None:
        axes.set_xlim(*plot.x.range)
    if plot.y.range is not None:
        axes.set_ylim(*plot.y.range)
    if plot.y.log:
        axes.set_yscale("log")
        set_log_ticks(axes, log_ticks(*(plot.y.range or extent(plot))))
    else:
        _share_exponent(axes, printed(plot.y.title))


def set_log_ticks(axes: Axes, ticks: list[float]) -> None:
    """These ticks and no others on the logarithmic y axis, each with its decade."""
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([power_text(tick) for tick in ticks]))
    axes.yaxis.set_minor_locator(NullLocator())


def _share_exponent(axes: Axes, title: str) -> None:
    """Large and small numbers of a linear axis share one power of ten, which stands in its title."""
    largest = max(map(abs, axes.get_ylim()))
    exponent = math.floor(math.log10(largest)) if largest > 0 and math.isfinite(largest) else 0
    if -3 < exponent < 4:
        exponent = 0
    else:
        axes.set_ylabel(rf"{title} ($\times 10^{{{exponent}}}$)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 10.0**exponent:.6g}")


def _set_words(axes: Axes, words: list[Any]) -> None:
    """Words below the axis, aslant where they would touch."""
    names = [printed(named(str(word)), 20) for word in words]
    axes.set_xticks(range(len(words)), names)
    inches = axes.get_window_extent().width / axes.figure.dpi if axes.figure is not None else 3.0
    if sum(len(name) + 2 for name in names) > 20 * inches:
        axes.tick_params(axis="x", labelrotation=30)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
