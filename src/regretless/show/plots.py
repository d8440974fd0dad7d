"""What a chart shows, before anyone draws it: the page and the figures draw the same lines on the same axes."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from regretless.show.style import Style
from regretless.show.words import number

NOTHING = "Every replication of every policy diverged: there is nothing to draw."
ROOM = 0.6
"""Reference lines may widen the range of the curves by this share of it on each side; those further away are told in words."""


class Line(NamedTuple):
    """A curve, some points, or a bar, with its band or error bars."""

    label: str
    x: list[float] | list[str]
    y: np.ndarray
    error: np.ndarray | None = None
    style: Style | None = None  # None: a reference line

    def low(self, log: bool) -> np.ndarray:
        """The lower edge of the band; on a logarithmic axis it stays above zero."""
        assert self.error is not None
        return np.maximum(self.y - self.error, 0.02 * self.y) if log else self.y - self.error

    def high(self) -> np.ndarray:
        """The upper edge of the band."""
        assert self.error is not None
        return np.asarray(self.y + self.error)


class Axis(NamedTuple):
    """An axis; without a range it shows everything."""

    title: str
    log: bool = False
    range: tuple[float, float] | None = None
    words: bool = False  # categories instead of numbers


class Plot(NamedTuple):
    """A chart: ``beyond`` holds the reference lines that lie outside of it."""

    form: Literal["curves", "points", "bars"]
    lines: list[Line]
    references: list[Line]
    x: Axis
    y: Axis
    beyond: list[Line]

    def words(self) -> list[float | str]:
        """The categories of the x axis, from left to right."""
        return list(dict.fromkeys(each for line in [*self.lines, *self.references] for each in line.x))


class HeatMap(NamedTuple):
    """Numbers by row (the first one on top) and column; ``shades`` are what the colours follow."""

    rows: list[str]
    columns: list[str]
    grid: np.ndarray
    shades: np.ndarray


def curves(
    title: str, lines: list[Line], levels: Sequence[tuple[str, float]], horizon: int, last: int, log: bool | None = None
) -> Plot:
    """Curves over rounds up to ``last``, and reference levels by name; ``log`` None: where all of them end above zero."""
    settled = _between(lines, last // 10, last)  # what happens before sets no range
    final = [each[-1] for each in settled if each.size]
    across: list[float] = [1, horizon] if horizon > 1 else [0.5, 1.5]
    drawn = [Line(name, across, np.full(2, level)) for name, level in levels]
    log = all(value > 0 for value in final) if log is None else log
    axis, near, far = fitted(title, settled, log, drawn, _between(lines, last // 2, last))
    return Plot("curves", lines, near, Axis("round", range=(1, last) if last > 1 else (0.5, 1.5)), axis, far)


def _between(lines: Sequence[Line], first: int, last: int) -> list[np.ndarray]:
    """What the curves show in these rounds."""
    return [line.y[(np.asarray(line.x) >= first) & (np.asarray(line.x) <= last)] for line in lines]


def fitted(
    title: str,
    values: Sequence[np.ndarray],
    log: bool,
    references: Sequence[Line],
    core: Sequence[np.ndarray] | None = None,
) -> tuple[Axis, list[Line], list[Line]]:
    """An axis that the values fill, the reference lines that are near enough to be drawn, and those that are not.

    How near is measured by the range of ``core``, where that is given, else of all values.
    """
    found = _range(values, log)
    if found is None:
        return Axis(title), [], list(references)
    low, high = found
    least = 0.1 if log else 0.1 * abs(high) or 1.0
    first, last = (_range(core, log) if core is not None else None) or found
    room = ROOM * max(last - first, least)
    first, last = min(low, first - room), max(high, last + room)
    near: list[Line] = []
    far: list[Line] = []
    for line in references:
        level = _along(line.y, log)
        inside = first <= np.nanmin(level) and np.nanmax(level) <= last
        (near if inside else far).append(line)
    for line in near:
        level = _along(line.y, log)
        low, high = min(low, float(np.nanmin(level))), max(high, float(np.nanmax(level)))
    margin = 0.06 * (high - low) or 0.5 * least
    low, high = low - margin, high + margin
    return Axis(title, log, (10.0**low, 10.0**high) if log else (low, high)), near, far


def _range(values: Sequence[np.ndarray], log: bool) -> tuple[float, float] | None:
    """The ends of what an axis can show of the values, as places along it."""
    every = _along(np.concatenate([np.ravel(each) for each in values]) if values else np.zeros(0), log)
    every = every[np.isfinite(every)]
    return (float(every.min()), float(every.max())) if every.size else None


def _along(values: np.ndarray, log: bool) -> np.ndarray:
    """Places along an axis: the logarithm, -inf for what a logarithmic axis cannot show, or the values themselves."""
    if not log:
        return np.asarray(values, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values <= 0, -np.inf, np.log10(values))


STEPS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
MOST_TICKS = 9


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: decades; where there are less than three, round numbers between; else evenly spaced ones.

    >>> log_ticks(90.0, 600.0), log_ticks(1010.0, 1035.0)
    ([100.0, 200.0, 500.0], [1010.0, 1020.0, 1030.0])
    """
    if not 0 < low <= high < math.inf:
        return []
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in STEPS:
        round_numbers = (float(f"{step:g}e{decade}") for decade in decades for step in steps)
        ticks = [value for value in round_numbers if low <= value <= high]
        if len(ticks) >= 3:
            return ticks[:: math.ceil(len(ticks) / MOST_TICKS)]
    return _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """Three to nine multiples of a round step."""
    size = 10.0 ** math.floor(math.log10(high - low)) if high > low else 0.0
    for step in (2 * size, size, size / 2, size / 5):
        first, last = (math.ceil(low / step), math.floor(high / step)) if step else (0, 0)
        if 3 <= last - first + 1 <= MOST_TICKS:
            return [float(f"{index * step:.12g}") for index in range(first, last + 1)]
    return [low, high] if low < high else [low]


def extent(plot: Plot) -> tuple[float, float]:
    """The lowest and highest positive value of all lines and of the range."""
    values = np.concatenate([*(line.y for line in [*plot.lines, *plot.references]), np.asarray(plot.y.range or ())])
    positive = values[np.isfinite(values) & (values > 0)]
    return (float(positive.min()), float(positive.max())) if positive.size else (0.0, 0.0)


def beyond_words(plot: Plot) -> str:
    """The reference lines that the chart leaves out, with their values; empty if there are none."""
    told = []
    for line in plot.beyond:
        low, high = number(float(np.nanmin(line.y))), number(float(np.nanmax(line.y)))
        told.append(f"{line.label} {low}" if low == high else f"{line.label} {low} to {high}")
    return f"Outside the chart: {', '.join(told)}." if told else ""


def beyond_edges(plot: Plot) -> tuple[list[Line], list[Line]]:
    """The reference lines that lie above the chart, and those below it."""
    middle = np.nanmean(plot.y.range or np.concatenate([line.y for line in plot.lines] or [np.zeros(1)]))
    above = [line for line in plot.beyond if np.nanmean(line.y) > middle]
    return above, [line for line in plot.beyond if np.nanmean(line.y) <= middle]
