"""Interactive charts as plotly specifications: plain dictionaries of numbers; colours of the page come from its script."""

import html
from collections.abc import Iterable
from typing import Any

import numpy as np

from regretless.show.plots import Axis, Line, Plot, extent, log_ticks
from regretless.show.style import dash, translucent
from regretless.show.words import distinct, number, shortened, tick_text

Spec = dict[str, Any]
Charts = dict[str, Spec]
"""Charts by the id of the element that they are drawn into."""

CROWD = 3
"""Where so many bands lie upon each other, whiskers take their place: the bands would be one grey."""

HEAT = [[0.0, "#f6f1dc"], [0.3, "#b9d9c0"], [0.65, "#4f9d9a"], [1.0, "#123f52"]]


def short(values: Iterable[float]) -> list[float | None]:
    """Numbers to five digits, enough for any screen; None for what is not finite."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]


def plain(label: str, length: int = 60) -> str:
    """A label that plotly shows as it is: it takes tags in labels for markup."""
    return html.escape(shortened(label, length), quote=False)


def labels(words: Iterable[str]) -> list[str]:
    """Short labels for the ticks of an axis, as distinct as the words are."""
    found: list[str] = []
    for word in words:
        found.append(distinct(plain(word, 24), found))
    return found


def spec(plot: Plot) -> Spec:
    """A plot for the page."""
    crowded = plot.form == "curves" and band_depth(plot) >= CROWD
    draw = {"curves": _whiskered if crowded else _banded, "points": _points, "bars": _bar}[plot.form]
    data = [trace for line in plot.lines for trace in draw(line, plot)]
    data += [_reference(line, plot) for line in plot.references]
    y = _axis(plot.y)
    if plot.y.log:
        y |= log_axis(*(plot.y.range or extent(plot)), beyond=extent(plot))
    return {"data": data, "layout": {"xaxis": _axis(plot.x), "yaxis": y}, "kind": plot.form}


def log_axis(low: float, high: float, beyond: tuple[float, float] = (0.0, 0.0)) -> Spec:
    """A logarithmic axis whose ticks are written out, so that each says its decade; coarser ones as far as ``beyond``."""
    ticks = log_ticks(low, high)
    ticks = sorted([*ticks, *(tick for tick in log_ticks(*beyond) if not low <= tick <= high)])
    return {"type": "log", "tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}


def band_depth(plot: Plot) -> float:
    """How many bands lie upon each other: the most at each of some rounds, and of these the median."""
    banded = [line for line in plot.lines if line.error is not None and len(line.x) > 1]
    last = plot.x.range[1] if plot.x.range else max((float(line.x[-1]) for line in banded), default=0.0)
    if len(banded) < 2:
        return float(len(banded))
    at = np.linspace(last / 20, last, 40)
    low = np.stack([np.interp(at, np.asarray(line.x, float), line.low(plot.y.log)) for line in banded])
    high = np.stack([np.interp(at, np.asarray(line.x, float), line.high()) for line in banded])
    covered = (low[:, None] <= low[None]) & (low[None] <= high[:, None])  # [band, lower edge of another, round]
    return float(np.median(covered.sum(axis=0).max(axis=0)))


def _axis(axis: Axis) -> Spec:
    found: Spec = {"title": {"text": plain(axis.title)}}
    if axis.words:
        found["type"] = "category"
    elif axis.log:
        found["type"] = "log"
    if axis.range is not None:
        found["range"] = short(np.log10(axis.range) if axis.log else axis.range)
    return found


def _line(line: Line, plot: Plot, mode: str) -> Spec:
    assert line.style is not None
    return {
        "type": "scatter", "mode": mode, "name": plain(line.label), "legendgroup": line.label, "x": _places(line, plot),
        "y": short(line.y), "line": {"color": line.style.colour, "width": 2},
    }  # fmt: skip


def _places(line: Line, plot: Plot) -> list[Any]:
    if not plot.x.words:
        return list(line.x)
    words = [str(word) for word in plot.words()]
    shown = dict(zip(words, labels(words), strict=True))
    return [shown[str(word)] for word in line.x]


def _curve(line: Line, plot: Plot) -> Spec:
    """A curve; a click on the legend hides it with its band or whiskers."""
    assert line.style is not None
    curve = _line(line, plot, "lines" if len(line.x) > 1 else "markers")
    curve |= {"hovertemplate": "%{x:,} rounds: %{y:.4g}<extra>%{fullData.name}</extra>", "marker": {"size": 7}}
    curve["marker"]["color"] = line.style.colour
    return curve


def _banded(line: Line, plot: Plot) -> list[Spec]:
    """A curve and its band."""
    if line.error is None:
        return [_curve(line, plot)]
    assert line.style is not None
    band = {
        "type": "scatter", "mode": "lines", "legendgroup": line.label, "showlegend": False, "hoverinfo": "skip",
        "x": [*line.x, *line.x[::-1]], "y": short(line.high()) + short(line.low(plot.y.log)[::-1]), "fill": "toself",
        "fillcolor": translucent(line.style.colour), "line": {"width": 0},
    }  # fmt: skip
    return [band, _curve(line, plot)]


def _whiskered(line: Line, plot: Plot) -> list[Spec]:
    """A curve with its marker and whiskers at some rounds, which are others for each curve."""
    if line.error is None or len(line.x) < 2:
        return [_curve(line, plot)]
    assert line.style is not None
    index = next(index for index, each in enumerate(plot.lines) if each is line)
    last = plot.x.range[1] if plot.x.range else float(line.x[-1])
    places = last * (np.arange(5) + (index + 1) / (len(plot.lines) + 1)) / 5
    at = np.unique([int(np.abs(np.asarray(line.x, float) - place).argmin()) for place in places])
    some = Line(line.label, [line.x[i] for i in at], line.y[at], line.error[at], line.style)
    whiskers = {
        "type": "scatter", "mode": "markers", "legendgroup": line.label, "showlegend": False, "hoverinfo": "skip",
        "x": some.x, "y": short(some.y), "marker": {"color": line.style.colour, "symbol": line.style.marker, "size": 6},
        "error_y": {**_error_bars(some, plot), "thickness": 1.1, "width": 3, "color": line.style.colour},
    }  # fmt: skip
    return [_curve(line, plot), whiskers]


def _points(line: Line, plot: Plot) -> list[Spec]:
    """Points with error bars, joined by a line."""
    assert line.style is not None
    found = _line(line, plot, "lines+markers")
    found["marker"] = {"color": line.style.colour, "symbol": line.style.marker, "size": 8}
    found["hovertemplate"] = "%{x}: %{y:.4g}<extra>%{fullData.name}</extra>"
    if line.error is not None:
        found["error_y"] = {**_error_bars(line, plot), "thickness": 1.2, "width": 3, "color": line.style.colour}
    return [found]


def _bar(line: Line, plot: Plot) -> list[Spec]:
    """One bar with its error bar."""
    assert line.style is not None
    found: Spec = {
        "type": "bar", "name": plain(line.label), "x": _places(line, plot), "y": short(line.y), "showlegend": False,
        "marker": {"color": line.style.colour}, "hovertemplate": "%{x}: %{y:.4g}<extra></extra>",
    }  # fmt: skip
    if line.error is not None:
        found["error_y"] = {**_error_bars(line, plot), "thickness": 1.4, "width": 4, "color": "#444c59"}
    return [found]


def _error_bars(line: Line, plot: Plot) -> Spec:
    assert line.error is not None
    down = line.y - line.low(plot.y.log)
    known = lambda values: short(np.nan_to_num(values, nan=0.0))  # noqa: E731
    return {"type": "data", "array": known(line.error), "arrayminus": known(down), "symmetric": False}


def _reference(line: Line, plot: Plot) -> Spec:
    """A reference line, in the colour of quiet text."""
    return {
        "type": "scatter", "mode": "lines", "name": plain(line.label), "x": _places(line, plot), "y": short(line.y),
        "meta": "reference", "line": {"dash": dash(line.label.split(" (")[0]), "width": 1.3},
        "hovertemplate": "%{y:.4g}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def heat_map(rows: list[str], columns: list[str], grid: np.ndarray, shades: np.ndarray) -> Spec:
    """Numbers by row (the first one on top) and column; ``shades`` are what the colours follow."""
    trace = {
        "type": "heatmap", "x": labels(columns), "y": labels(rows), "z": [short(row) for row in shades],
        "text": [[number(value) for value in row] for row in grid], "texttemplate": "%{text}", "colorscale": HEAT,
        "showscale": False, "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>", "xgap": 2, "ygap": 2,
    }  # fmt: skip
    layout = {
        "xaxis": {"side": "top", "type": "category"},
        "yaxis": {"automargin": True, "type": "category", "autorange": "reversed"},
        "height": 26 * len(rows) + 48,
    }
    return {"data": [trace], "layout": layout, "kind": "heatmap"}
