"""Words at the edge of a chart: the names of curves at their right ends, and the reference lines that lie off the chart."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import offset_copy

from regretless.show.figures import named, power_text, printed
from regretless.show.plots import Line, Plot, beyond_edges
from regretless.show.style import QUIET

SIZE = 6.5
LONGEST = 22
"""Letters of a name that still stands beside its curve; longer ones go into a legend."""
LINE = 7.6
"""Points that a row of words takes at the edge of a chart."""
LETTERS = 24
"""Small letters that fit on an inch."""
LEAD = 9.0
"""Points between the chart and the names beside it."""


class _End(NamedTuple):
    words: str
    height: float  # share of the axis
    colour: str


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in the order of ``wanted``, ``gap`` apart and within the ends, with the least sum of squared moves.

    >>> apart([0.5, 0.5, 0.9], 0.25, 0.0, 1.0)
    [0.375, 0.625, 0.9]
    """
    blocks: list[list[float]] = []  # free places of neighbours that touch, as their sum and their number
    for index, each in enumerate(wanted):
        blocks.append([each - index * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    last = max(high - (len(wanted) - 1) * gap, low)
    free = [min(max(total / count, low), last) for total, count in blocks for _ in range(int(count))]
    return [round(place + index * gap, 12) for index, place in enumerate(free)]


def fits_beside(plot: Plot, inches: float) -> bool:
    """Whether all lines reach the right end of a chart of this height, and their names fit beside it."""
    lines = [*plot.lines, *plot.references]
    names = [named(line.label) for line in lines]
    whole = all(np.isfinite(line.y[-1]) and len(line.x) == len(lines[0].x) for line in plot.lines)
    room = inches * 72.0 / (1.25 * SIZE)
    return plot.form != "bars" and whole and len(names) <= room and all(len(name) <= LONGEST for name in names)


def name_curves(figure: Figure, axes: Axes, plot: Plot) -> None:
    """Writes every curve's name at its right end, joined to it by a thin line; names that would touch move apart."""
    ends = [end for line in [*plot.lines, *plot.references] if (end := _end(axes, plot, line)) is not None]
    ends.sort(key=lambda end: end.height)
    drawn = [_annotate(axes, figure, end) for end in ends]
    for _ in range(2):  # the names narrow the chart; its height settles
        figure.draw_without_rendering()
        gap = 1.18 * SIZE * figure.dpi / 72.0 / axes.get_window_extent().height
        for note, place in zip(drawn, apart([end.height for end in ends], gap, 0.0, 1.0), strict=True):
            note.xyann = (1.0, place)


def _end(axes: Axes, plot: Plot, line: Line) -> _End | None:
    """A curve's name and height where the chart ends; None if nothing of it is finite."""
    right = math.inf if plot.x.words or plot.x.range is None else plot.x.range[1]
    places = [0.0] * len(line.x) if plot.x.words else [float(x) for x in line.x]
    shown = [float(y) for x, y in zip(places, line.y, strict=True) if x <= right and np.isfinite(y)]
    if not shown:
        return None
    _, height = axes.transAxes.inverted().transform(axes.transData.transform((1.0, shown[-1])))
    colour = QUIET if line.style is None else line.style.colour
    return _End(printed(named(line.label)), float(np.clip(np.nan_to_num(height), 0.0, 1.0)), colour)


def _annotate(axes: Axes, figure: Figure, end: _End) -> Annotation:
    beside: Any = offset_copy(axes.transAxes, figure, x=LEAD, units="points")
    thin = {"arrowstyle": "-", "linewidth": 0.5, "color": end.colour, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
    return axes.annotate(
        end.words, (1.0, end.height), xycoords="axes fraction", xytext=(1.0, end.height), textcoords=beside,
        fontsize=SIZE, color=_dark(end.colour), va="center", ha="left", arrowprops=thin, annotation_clip=False,
    )  # fmt: skip


def _dark(colour: str, share: float = 0.72) -> str:
    """The colour dark enough for small letters on white."""
    return "#" + "".join(f"{int(share * int(colour[i : i + 2], 16)):02x}" for i in (1, 3, 5))


def tell_beyond(axes: Axes, plot: Plot, width: float, height: float) -> None:
    """States the reference lines that are off the chart at the edge they lie behind, in a strip that the axis grows by.

    ``width`` and ``height`` are the chart's, in inches.
    """
    above, below = beyond_edges(plot)
    for lines, arrow, edge in ((above, r"$\uparrow$", 1.0), (below, r"$\downarrow$", 0.0)):
        if not lines:
            continue
        rows = _rows(lines, int(LETTERS * width))
        _grow(axes, min((LINE * len(rows) + 3.0) / (72.0 * height), 0.4), edge)
        words = "\n".join(", ".join(map(_level, row)) for row in rows)
        axes.annotate(
            f"{arrow} off the chart: {words}", (1.0, edge), (-3, 2 if edge == 0.0 else -2), xycoords="axes fraction",
            textcoords="offset points", fontsize=SIZE - 0.5, color=_dark(QUIET), ha="right", linespacing=1.05,
            va="bottom" if edge == 0.0 else "top", bbox={"facecolor": "white", "alpha": 0.75, "pad": 0.8, "linewidth": 0},
        )  # fmt: skip


def _level(line: Line) -> str:
    """A reference line with its value, or the range of its values."""
    ends = dict.fromkeys(power_text(float(f"{end:.3g}")) for end in (np.nanmin(line.y), np.nanmax(line.y)))
    return f"{printed(named(line.label))} {' to '.join(ends)}"


def _rows(lines: list[Line], letters: int) -> list[list[Line]]:
    """The lines in rows of at most so many letters, where that is possible."""
    rows: list[list[Line]] = [[]]
    left = letters - 16  # for the words before the first
    for line in lines:
        left -= len(named(line.label)) + 8
        if left < 0 and rows[-1]:
            rows.append([])
            left = letters - len(named(line.label)) - 8
        rows[-1].append(line)
    return rows


def _grow(axes: Axes, share: float, edge: float) -> None:
    """Makes the axis longer at one edge, by a share of its length."""
    forward = axes.yaxis.get_transform()
    low, high = forward.transform(np.array(axes.get_ylim(), float))
    more = share * (high - low) / (1.0 - share)
    ends = (low, high + more) if edge == 1.0 else (low - more, high)
    axes.set_ylim(*forward.inverted().transform(np.array(ends, float)))
