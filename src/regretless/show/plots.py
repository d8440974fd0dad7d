"""What a chart shows, before anyone draws it: the page and the figures draw the same lines on the same axes."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from regretless.show.style import Style
from regretless.show.words import number

NOTHING = "Every replication of every policy diverged: there is nothing to draw."
REACH = 3.0
"""A reference line that is at most this factor outside the range of the curves still widens it."""


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


def curves(
    title: str, lines: list[Line], levels: Sequence[tuple[str, float]], horizon: int, last: int, log: bool | None = None
) -> Plot:
    """Curves over rounds up to ``last``, and reference levels by name; ``log`` None: where all of them end above zero."""
    early = last // 20  # what happens before sets no range
    settled = [line.y[(np.asarray(line.x) >= early) & (np.asarray(line.x) <= last)] for line in lines]
    final = [each[-1] for each in settled if each.size]
    across: list[float] = [1, horizon] if horizon > 1 else [0.5, 1.5]
    drawn = [Line(name, across, np.full(2, level)) for name, level in levels]
    axis, near, far = fitted(title, settled, all(value > 0 for value in final) if log is None else log, drawn)
    return Plot("curves", lines, near, Axis("round", range=(1, last) if last > 1 else (0.5, 1.5)), axis, far)


def fitted(
    title: str, values: Sequence[np.ndarray], log: bool, references: Sequence[Line]
) -> tuple[Axis, list[Line], list[Line]]:
    """An axis that the values fill, the reference lines that are near enough to be drawn, and those that are not."""
    every = np.concatenate([np.ravel(each) for each in values]) if values else np.zeros(0)
    every = every[np.isfinite(every) & ((every > 0) | (not log))]
    if not every.size:
        return Axis(title), [], list(references)
    low, high = float(every.min()), float(every.max())
    reach = (low / REACH, high * REACH) if log else (low - (high - low), high + (high - low))
    near = [line for line in references if reach[0] <= np.nanmin(line.y) and np.nanmax(line.y) <= reach[1]]
    low, high = min([low, *(np.nanmin(line.y) for line in near)]), max([high, *(np.nanmax(line.y) for line in near)])
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    ends = (low / 1.2, high * 1.2) if log else (low - margin, high + margin)
    taken = [line.label for line in near]
    return Axis(title, log, ends), near, [line for line in references if line.label not in taken]


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
