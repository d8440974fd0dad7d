"""Charts of results: a chart is described once as a ``Plot`` and drawn with matplotlib or plotly.

Both libraries belong to the extra ``plots`` and are imported when something is drawn.
"""

import contextlib
import html
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from regretless.errors import SettingsError
from regretless.extras import require
from regretless.files import replacing
from regretless.formatting import display_name, format_number, shorten, unique_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Backend = Literal["matplotlib", "plotly"]
BACKENDS = ("matplotlib", "plotly")
QUANTITIES = {"average": "average regret per round", "cumulative": "cumulative regret"}
EMPTY = "Every replication of every policy diverged: there is nothing to draw."
MAX_POINTS = 240
"""Points of a drawn regret curve."""
MAX_TICKS = 9
MAX_REFERENCE_GAP = 0.6
"""Reference lines may widen the axis by this share of the curves' range on each side; others are listed as text."""
QUIET_COLOUR = "#667085"
BAND_OPACITY = 0.13


# --- Styles: curves stay distinguishable in greyscale because each has its own marker and dashes --------------------


class Style(NamedTuple):
    """Colour (``#rrggbb``), marker and dashes of a curve."""

    colour: str
    marker: str
    dash: str = "solid"


MARKERS = {
    "circle": ("o", 4.0),
    "square": ("s", 3.6),
    "diamond": ("D", 3.6),
    "triangle-up": ("^", 4.8),
    "triangle-down": ("v", 4.8),
    "star": ("*", 7.0),
    "pentagon": ("p", 5.0),
}
"""Plotly's marker names with matplotlib's, and points across, so that all look equally large."""

DASHES: dict[str, Any] = {
    "solid": "-",
    "dot": (0, (1, 1.6)),
    "dash": (0, (4, 1.8)),
    "dashdot": (0, (4, 1.6, 1, 1.6)),
    "longdash": (0, (8, 2.4)),
    "longdashdot": (0, (8, 1.8, 1, 1.8)),
    "dashdotdot": (0, (4, 1.5, 1, 1.5, 1, 1.5)),
}
"""Plotly's dash names with matplotlib's patterns."""
PLOTLY_DASHES = {"dashdotdot": "6px,3px,2px,3px,2px,3px"}
"""Dashes for which plotly has no name."""

POLICY_STYLES = {
    "adaptive": Style("#7f4fc9", "square", "longdash"),
    "greedy": Style("#8a8f98", "square", "dashdotdot"),
    "epsilon_greedy": Style("#b9875a", "diamond", "dashdot"),
    "thompson": Style("#a678b4", "triangle-up", "longdash"),
    "dfhpg_1": Style("#4a86c5", "triangle-down", "dot"),
    "dfhpg": Style("#d9455f", "circle"),
    "dfhpg_0": Style("#1f9e8f", "star", "dash"),
    "linear_thompson": Style("#e0982d", "pentagon", "longdashdot"),
    "gaussian_linear": Style("#d9455f", "circle"),
    "gaussian_nn": Style("#4a86c5", "triangle-down", "dashdot"),
    "flow": Style("#1f9e8f", "star", "dash"),
    "diffusion": Style("#a678b4", "triangle-up", "dot"),
}
OTHER_COLOURS = ("#2f7d4f", "#8c5a1e", "#3d6f8e", "#c2558f", "#6b7a12", "#b03a2e", "#5c4b8a", "#188aa8", "#d07c5c")
"""Colours of labels without a style of their own, in the order in which they are first used."""
_TAKEN = {(style.marker, style.dash) for style in POLICY_STYLES.values()}
_OTHER_DASHES = ("dash", "dot", "dashdot", "longdash", "dashdotdot", "solid")
_OTHER_PAIRS = [
    pair for i in range(42) if (pair := (list(MARKERS)[i % len(MARKERS)], _OTHER_DASHES[i % 6])) not in _TAKEN
]
REFERENCE_DASHES = {"random": "dot", "best_fixed": "dash", "clairvoyant": "dashdot", "market_forecast": "longdash"}


class Palette:
    """Assign styles to labels: a label keeps its style, and two labels never share one.

    >>> palette = Palette()
    >>> palette["dfhpg"] == POLICY_STYLES["dfhpg"], palette["custom"] == palette["custom"]
    (True, True)
    """

    def __init__(self) -> None:
        self._assigned: dict[str, Style] = {}

    def __getitem__(self, label: str) -> Style:
        if label in POLICY_STYLES:
            return POLICY_STYLES[label]
        if label not in self._assigned:
            index = len(self._assigned)
            colour = OTHER_COLOURS[index % len(OTHER_COLOURS)]
            self._assigned[label] = Style(colour, *_OTHER_PAIRS[index % len(_OTHER_PAIRS)])
        return self._assigned[label]


def reference_dashes(names: Iterable[str]) -> dict[str, str]:
    """Return different dashes for the reference lines of a chart.

    >>> reference_dashes(["random", "random (b)", "quota"])
    {'random': 'dot', 'random (b)': 'longdashdot', 'quota': 'dashdotdot'}
    """
    assigned: dict[str, str] = {}
    for name in names:
        preferred = REFERENCE_DASHES.get(name.split(" (")[0].replace(" ", "_"), "longdashdot")
        candidates = (preferred, "longdashdot", "dashdotdot", *DASHES)
        assigned[name] = next((dash for dash in candidates if dash not in assigned.values()), preferred)
    return assigned


# --- Descriptions of charts -----------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A curve, points or a bar, with optional standard errors; without a style it is a reference line."""

    label: str
    x: list[float] | list[str]
    y: np.ndarray
    error: np.ndarray | None = None
    style: Style | None = None

    def low(self, log: bool) -> np.ndarray:
        """Return the lower edge of the band, kept above zero on a logarithmic axis."""
        assert self.error is not None
        return np.maximum(self.y - self.error, 0.02 * self.y) if log else self.y - self.error

    def high(self) -> np.ndarray:
        """Return the upper edge of the band."""
        assert self.error is not None
        return np.asarray(self.y + self.error)


class Axis(NamedTuple):
    """An axis; without a range it shows everything."""

    title: str
    log: bool = False
    range: tuple[float, float] | None = None
    categories: bool = False


class Plot(NamedTuple):
    """A chart; ``outside`` holds reference lines too far away to be drawn."""

    form: Literal["curves", "points", "bars"]
    lines: list[Line]
    references: list[Line]
    x: Axis
    y: Axis
    outside: list[Line]

    def categories(self) -> list[float | str]:
        """Return the categories of the x axis from left to right."""
        return list(dict.fromkeys(place for line in [*self.lines, *self.references] for place in line.x))

    def outside_text(self) -> str:
        """Return the reference lines outside the chart with their values; empty if there are none."""
        parts = []
        for line in self.outside:
            ends = dict.fromkeys(format_number(float(end)) for end in (np.nanmin(line.y), np.nanmax(line.y)))
            parts.append(f"{display_name(line.label)} {' to '.join(ends)}")
        return f"Outside the chart: {', '.join(parts)}." if parts else ""


class HeatMap(NamedTuple):
    """Numbers by row (the first on top) and column; the colours follow ``shades``."""

    rows: list[str]
    columns: list[str]
    grid: np.ndarray
    shades: np.ndarray


class RegretCurve(NamedTuple):
    """Means over replications with standard errors at selected rounds."""

    rounds: np.ndarray
    mean: np.ndarray
    error: np.ndarray | None  # None with fewer than two replications


def select_rounds(horizon: int) -> np.ndarray:
    """Return at most ``MAX_POINTS`` rounds, dense at the start and even afterwards.

    >>> rounds = select_rounds(2000)
    >>> int(rounds[0]), int(rounds[-1]), len(rounds) <= MAX_POINTS
    (1, 2000, True)
    """
    half = MAX_POINTS // 2
    places = np.concatenate([np.geomspace(1, horizon, half), np.linspace(1, horizon, half)])
    return np.unique(np.rint(places).astype(int))


def regret_curve(result: Any, quantity: str = "average") -> RegretCurve | None:
    """Return a curve over rounds of the replications that stayed finite; None if there are none.

    Parameters
    ----------
    result : Result
        The outcome of one policy.
    quantity : str, default "average"
        ``"average"`` (cumulative regret divided by the round), ``"cumulative"``, or the name of a diagnostic.
    """
    if quantity in QUANTITIES:
        values = result.cumulative()[result.finished]
        rounds = select_rounds(result.regret.shape[1])
        values = values[:, rounds - 1] / (rounds if quantity == "average" else 1)
    else:
        values = result.diagnostics[quantity][result.finished].astype(np.float64)
        rounds = result.diagnostics_every * np.arange(1, values.shape[1] + 1)
    if not values.size:
        return None
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else None
    return RegretCurve(rounds, values.mean(axis=0), error)


def curve_plot(
    title: str, lines: list[Line], levels: Sequence[tuple[str, float]], horizon: int, last: int, log: bool | None = None
) -> Plot:
    """Return curves up to round ``last`` with reference levels; ``log`` None: if all end above zero."""
    settled = _between(lines, last // 10, last)  # the first rounds do not set the range
    final = [values[-1] for values in settled if values.size]
    across: list[float] = [1, horizon] if horizon > 1 else [0.5, 1.5]
    references = [Line(name, across, np.full(2, level)) for name, level in levels]
    log = all(value > 0 for value in final) if log is None else log
    axis, near, far = fit_axis(title, settled, log, references, _between(lines, last // 2, last))
    return Plot("curves", lines, near, Axis("round", range=(1, last) if last > 1 else (0.5, 1.5)), axis, far)


def _between(lines: Sequence[Line], first: int, last: int) -> list[np.ndarray]:
    return [line.y[(np.asarray(line.x) >= first) & (np.asarray(line.x) <= last)] for line in lines]


def fit_axis(
    title: str,
    values: Sequence[np.ndarray],
    log: bool,
    references: Sequence[Line],
    core: Sequence[np.ndarray] | None = None,
) -> tuple[Axis, list[Line], list[Line]]:
    """Return an axis that the values fill, the reference lines near enough to be drawn, and the others.

    Whether a line is near is measured by the range of ``core`` if given, otherwise of all values.
    """
    ends = _ends(values, log)
    if ends is None:
        return Axis(title), [], list(references)
    low, high = ends
    smallest = 0.1 if log else 0.1 * abs(high) or 1.0
    first, last = (_ends(core, log) if core is not None else None) or ends
    room = MAX_REFERENCE_GAP * max(last - first, smallest)
    first, last = min(low, first - room), max(high, last + room)
    near: list[Line] = []
    far: list[Line] = []
    for line in references:
        level = _positions(line.y, log)
        inside = first <= np.nanmin(level) and np.nanmax(level) <= last
        (near if inside else far).append(line)
        if inside:
            low, high = min(low, float(np.nanmin(level))), max(high, float(np.nanmax(level)))
    margin = 0.06 * (high - low) or 0.5 * smallest
    low, high = low - margin, high + margin
    return Axis(title, log, (10.0**low, 10.0**high) if log else (low, high)), near, far


def _ends(values: Sequence[np.ndarray], log: bool) -> tuple[float, float] | None:
    places = _positions(np.concatenate([np.ravel(part) for part in values]) if values else np.zeros(0), log)
    places = places[np.isfinite(places)]
    return (float(places.min()), float(places.max())) if places.size else None


def _positions(values: np.ndarray, log: bool) -> np.ndarray:
    """Return places along an axis: logarithms, -inf for values that a logarithmic axis cannot show, or the values."""
    if not log:
        return np.asarray(values, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values <= 0, -np.inf, np.log10(values))


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks of a logarithmic axis: decades, round numbers between them, or evenly spaced numbers.

    >>> log_ticks(90.0, 600.0), log_ticks(1010.0, 1035.0)
    ([100.0, 200.0, 500.0], [1010.0, 1020.0, 1030.0])
    """
    if not 0 < low <= high < math.inf:
        return []
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        ticks = [t for decade in decades for step in steps if low <= (t := float(f"{step:g}e{decade}")) <= high]
        if len(ticks) >= 3:
            return ticks[:: math.ceil(len(ticks) / MAX_TICKS)]
    size = 10.0 ** math.floor(math.log10(high - low)) if high > low else 0.0
    for spacing in (2 * size, size, size / 2, size / 5):
        first, last = (math.ceil(low / spacing), math.floor(high / spacing)) if spacing else (0, 0)
        if 3 <= last - first + 1 <= MAX_TICKS:
            return [float(f"{index * spacing:.12g}") for index in range(first, last + 1)]
    return [low, high] if low < high else [low]


def _positive_range(plot: Plot) -> tuple[float, float]:
    """Return the lowest and highest positive value of all lines and of the y range."""
    values = np.concatenate([*(line.y for line in [*plot.lines, *plot.references]), np.asarray(plot.y.range or ())])
    positive = values[np.isfinite(values) & (values > 0)]
    return (float(positive.min()), float(positive.max())) if positive.size else (0.0, 0.0)


def regret_plot(
    results: Mapping[str, Any],
    references: Iterable[tuple[str, float]] = (),
    quantity: str = "average",
    log: bool | None = None,
) -> Plot:
    """Return the curves of several results with reference lines, given by name and mean final regret.

    Parameters
    ----------
    results : mapping of str to Result
        Results by label.
    references : iterable of (str, float)
        Reference lines.
    quantity : str, default "average"
        ``"average"``, ``"cumulative"``, or the name of a diagnostic.
    log : bool, optional
        Whether the y axis is logarithmic; by default as it suits.

    Raises
    ------
    SettingsError
        If no result has this quantity.
    """
    usable = {label: r for label, r in results.items() if quantity in QUANTITIES or quantity in r.diagnostics}
    if not usable:
        known = [*QUANTITIES, *sorted({name for result in results.values() for name in result.diagnostics})]
        raise SettingsError(f"plot: expected a quantity among {', '.join(known)}, got {quantity!r}")
    palette = Palette()
    curves = {label: curve for label, result in usable.items() if (curve := regret_curve(result, quantity)) is not None}
    lines = [Line(label, c.rounds.tolist(), c.mean, c.error, palette[label]) for label, c in curves.items()]
    horizon = max(result.regret.shape[1] for result in results.values())
    share = {"average": 1.0 / horizon, "cumulative": 1.0}.get(quantity)
    levels = [] if share is None else [(name, total * share) for name, total in references]
    log = log if quantity == "average" else bool(log)
    return curve_plot(QUANTITIES.get(quantity, quantity), lines, levels, horizon, horizon, log)


def plot_results(
    results: Mapping[str, Any],
    references: Iterable[tuple[str, float]] = (),
    *,
    ax: "Axes | None" = None,
    quantity: str = "average",
    log: bool | None = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw the curves of several results.

    Parameters
    ----------
    results, references, quantity, log
        As in ``regret_plot``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    backend : {"matplotlib", "plotly"}
        The library that draws.

    Returns
    -------
    matplotlib.axes.Axes or plotly.graph_objects.Figure

    Raises
    ------
    SettingsError
        If the backend or the quantity is unknown, or axes are given to plotly.
    MissingExtraError
        If the library is not installed.
    """
    if backend not in BACKENDS:
        raise SettingsError(f"plot: expected backend 'matplotlib' or 'plotly', got {backend!r}")
    if backend == "plotly" and ax is not None:
        raise SettingsError("plot: expected no axes with backend='plotly', which returns its own figure: leave ax out")
    plot = regret_plot(results, references, quantity, log)
    if backend == "plotly":
        return plotly_figure(plot)
    with _quiet_fonts():
        if ax is None:
            figure = require("matplotlib.pyplot", extra="plots").figure(figsize=(7.2, 3.8), layout="constrained")
            ax = figure.add_subplot()
            draw_on(ax, plot)
            label_lines(figure, [ax], [plot])
        else:
            draw_on(ax, plot)
            if plot.lines:
                ax.legend(frameon=False, fontsize="small", handlelength=2.4)
        ax.grid(alpha=0.25, linewidth=0.5)
    return ax


# --- Drawing with matplotlib ----------------------------------------------------------------------------------------

PRINT_STYLE: dict[str, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Serif"],
    "font.size": 8,
    "mathtext.fontset": "stix",
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.titlesize": 8.5,
    "axes.titlepad": 4,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,
    "svg.hashsalt": "regretless",
}
PRINT_SIZE = (3.25, 2.3)
"""Inches of a chart of one column."""
LABEL_POINTS = 6.5
"""Font size of the labels at the line ends."""
MAX_END_LABEL = 22
"""Characters of a label that still fits at the end of its line; longer ones go into a legend."""
HEAT_COLOURS = [[0.0, "#f6f1dc"], [0.3, "#b9d9c0"], [0.65, "#4f9d9a"], [1.0, "#123f52"]]


@contextlib.contextmanager
def _quiet_fonts() -> Iterator[None]:
    """Suppress warnings about letters that a font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@contextlib.contextmanager
def print_style() -> Iterator[None]:
    """Set matplotlib's style for figures in print."""
    with require("matplotlib", extra="plots").rc_context(PRINT_STYLE), _quiet_fonts():
        yield


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as PDF or PNG, chosen by the suffix; equal figures give equal bytes."""
    form = path.suffix[1:]
    metadata: dict[str, Any] = {"CreationDate": None} if form == "pdf" else {"Software": None}
    with replacing(path) as place, print_style():
        figure.savefig(place, format=form, dpi=200, metadata=metadata)


def draw(plot: Plot | HeatMap, title: str = "", size: tuple[float, float] = PRINT_SIZE) -> "Figure":
    """Return a figure for print with one chart."""
    if isinstance(plot, HeatMap):
        size = (1.6 + 0.7 * len(plot.columns), 0.16 * len(plot.rows) + 0.5)
    return draw_sheet([(title, plot)], size, columns=1)


def draw_sheet(charts: Sequence[tuple[str, Plot | HeatMap]], size: tuple[float, float], columns: int) -> "Figure":
    """Return a figure for print with titled charts in rows; names stand at the line ends or in one common legend."""
    backend = require("matplotlib.backends.backend_agg", extra="plots")
    figure: Figure = require("matplotlib.figure", extra="plots").Figure(figsize=size, layout="constrained")
    backend.FigureCanvasAgg(figure)
    rows = -(-len(charts) // columns)
    with print_style():
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(charts) :]:
            axes.set_axis_off()
        drawn = list(grid.flat[: len(charts)])
        for axes, (title, plot) in zip(drawn, charts, strict=True):
            if isinstance(plot, HeatMap):
                draw_heat_map(axes, plot)
            else:
                draw_on(axes, plot)
            axes.set_title(_plain(title, 60) + axes.get_title())
        same_x, same_y = (
            len({axes.get_xlabel() for axes in drawn}) == 1,
            len({axes.get_ylabel() for axes in drawn}) == 1,
        )
        for index, axes in enumerate(drawn):  # titles of axes that all share stand at the left and at the bottom only
            if same_y and index % columns:
                axes.set_ylabel("")
            if same_x and index + columns < len(drawn):
                axes.set_xlabel("")
        lined = [(axes, plot) for axes, (_, plot) in zip(drawn, charts, strict=True) if isinstance(plot, Plot)]
        label_lines(figure, [axes for axes, _ in lined], [plot for _, plot in lined])
    return figure


def _plain(label: str, length: int = 40) -> str:
    """Return a label that matplotlib shows unchanged: no mathematics, no label hidden by a leading underscore."""
    text = shorten(label, length).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def draw_on(axes: "Axes", plot: Plot) -> None:
    """Draw a chart without title and legend on matplotlib's axes."""
    for index, line in enumerate(plot.lines):
        {"curves": _draw_curve, "points": _draw_points, "bars": _draw_bar}[plot.form](axes, plot, line, index)
    dashes = reference_dashes(line.label for line in [*plot.references, *plot.outside])
    for line in plot.references:
        look = {"color": QUIET_COLOUR, "linewidth": 0.9, "linestyle": DASHES[dashes[line.label]], "zorder": 1.5}
        axes.plot(_places(line, plot), line.y, label=_plain(display_name(line.label)), **look)
    _set_axes(axes, plot)
    if not plot.lines:
        axes.text(0.5, 0.5, EMPTY, transform=axes.transAxes, ha="center", va="center", wrap=True)


def _look(line: Line) -> dict[str, Any]:
    assert line.style is not None
    marker, size = MARKERS[line.style.marker]
    return {
        "label": _plain(display_name(line.label)),
        "color": line.style.colour,
        "linestyle": DASHES[line.style.dash],
        "marker": marker,
        "markersize": size,
        "markeredgecolor": "white",
        "markeredgewidth": 0.3,
        "linewidth": 1.1,
    }


def _draw_curve(axes: "Axes", plot: Plot, line: Line, index: int) -> None:
    """Draw a curve with its band and five markers, placed differently from its neighbours' markers."""
    look = _look(line)
    first, last = plot.x.range or (float(line.x[0]), float(line.x[-1]))
    wanted = first + (last - first) * np.arange(0.04 + 0.16 * ((index * 3) % 7) / 7, 1.0, 0.2)
    marked = sorted({int(np.abs(np.asarray(line.x, float) - place).argmin()) for place in wanted})
    axes.plot(line.x, line.y, markevery=marked, **look)
    if line.error is not None:
        band = (line.low(plot.y.log), line.high())
        axes.fill_between(line.x, *band, color=look["color"], alpha=BAND_OPACITY, linewidth=0)


def _draw_points(axes: "Axes", plot: Plot, line: Line, index: int) -> None:
    places = [float(place) for other in plot.lines for place in _places(other, plot)]
    shift = 0.012 * (max(places) - min(places)) * (index - (len(plot.lines) - 1) / 2)  # error bars stand side by side
    x = [place + shift for place in _places(line, plot)]
    axes.errorbar(x, line.y, _error_bars(line, plot), capsize=1.5, elinewidth=0.7, **_look(line))


def _draw_bar(axes: "Axes", plot: Plot, line: Line, index: int) -> None:
    look = {"color": _look(line)["color"], "width": 0.7, "capsize": 2, "error_kw": {"linewidth": 0.8}}
    axes.bar(_places(line, plot), line.y, yerr=_error_bars(line, plot), **look)
    axes.grid(False, axis="x")


def _places(line: Line, plot: Plot) -> list[Any]:
    """Return the x values of a line; categories are numbered from left to right."""
    return [plot.categories().index(place) for place in line.x] if plot.x.categories else list(line.x)


def _error_bars(line: Line, plot: Plot) -> np.ndarray | None:
    if line.error is None:
        return None
    both = np.stack([line.y - line.low(plot.y.log), line.error])
    return np.maximum(np.nan_to_num(both, nan=0.0), 0.0)


def _set_axes(axes: "Axes", plot: Plot) -> None:
    axes.set(xlabel="\n".join(filter(None, (_plain(plot.x.title), plot.outside_text()))), ylabel=_plain(plot.y.title))
    if plot.x.categories:
        names = [_plain(display_name(str(name)), 20) for name in plot.categories()]
        aslant = sum(len(name) + 2 for name in names) > 60
        axes.set_xticks(range(len(names)), names, rotation=30 * aslant, ha="right" if aslant else "center")
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
        ticks = log_ticks(*(plot.y.range or _positive_range(plot)))
        axes.set_yticks(ticks, [power_text(tick) for tick in ticks])
        axes.set_yticks([], minor=True)
        return
    largest = max(map(abs, axes.get_ylim()))
    exponent = math.floor(math.log10(largest)) if largest > 0 and math.isfinite(largest) else 0
    if -3 < exponent < 4:
        exponent = 0
    else:  # one power of ten for all ticks, in the title
        axes.set_ylabel(rf"{_plain(plot.y.title)} ($\times 10^{{{exponent}}}$)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 10.0**exponent:.6g}")


def power_text(value: float) -> str:
    r"""Format a tick in print, with a power of ten where that is shorter.

    >>> power_text(500.0), power_text(20000.0), power_text(1e-5)
    ('500', '$2{\\times}10^{4}$', '$10^{-5}$')
    """
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    factor = "" if float(mantissa) == 1.0 else rf"{float(mantissa):g}{{\times}}"
    return f"${factor}10^{{{int(exponent)}}}$"


def draw_heat_map(axes: "Axes", heat_map: HeatMap) -> None:
    """Draw numbers with colours behind them; a power of ten that all share stands in the title."""
    colors = require("matplotlib.colors", extra="plots")
    grid, shades = heat_map.grid, heat_map.shades
    finite = shades[np.isfinite(shades)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if finite.size:
        colours = colors.LinearSegmentedColormap.from_list(
            "regret", [(place, colour) for place, colour in HEAT_COLOURS]
        )
        axes.imshow(shades, aspect="auto", cmap=colours, vmin=low, vmax=high)
    else:
        axes.set(xlim=(-0.5, len(heat_map.columns) - 0.5), ylim=(len(heat_map.rows) - 0.5, -0.5))
    sizes = np.abs(grid[np.isfinite(grid) & (grid != 0)])
    shared = bool(sizes.size) and sizes.max() < 1000 * sizes.min()
    exponent = math.floor(math.log10(sizes.min())) if shared else 0
    for i, j in np.ndindex(*grid.shape):
        value, shade = float(grid[i, j]), float(shades[i, j])
        dark = math.isfinite(shade) and high > low and (shade - low) / (high - low) > 0.5
        text = f"{value / 10.0**exponent:.2f}" if shared and math.isfinite(value) else format_number(value)
        axes.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "black")
    axes.set_xticks(range(len(heat_map.columns)), [_plain(display_name(name), 20) for name in heat_map.columns])
    axes.set_yticks(range(len(heat_map.rows)), [_plain(display_name(name), 24) for name in heat_map.rows], fontsize=6)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.set_title(rf" ($\times 10^{{{exponent}}}$)" if exponent else "")


def label_lines(figure: "Figure", axes: "Sequence[Axes]", plots: Sequence[Plot]) -> None:
    """Name the lines of charts: at their right ends if there is one chart and the names fit, otherwise in a legend."""
    if len(plots) == 1 and _fits_at_ends(plots[0], axes[0].get_window_extent().height * 72.0 / figure.dpi):
        _label_ends(figure, axes[0], plots[0])
    elif plots:
        _add_legend(figure, axes, [line.label for plot in plots for line in [*plot.lines, *plot.references]])


def _fits_at_ends(plot: Plot, points: float) -> bool:
    """Return whether all lines reach the right end of a chart of this height and their names fit next to it."""
    names = [display_name(line.label) for line in [*plot.lines, *plot.references]]
    reaching = all(np.isfinite(line.y[-1]) and len(line.x) == len(plot.lines[0].x) for line in plot.lines)
    fitting = len(names) <= points / (1.25 * LABEL_POINTS) and all(len(name) <= MAX_END_LABEL for name in names)
    return plot.form in ("curves", "points") and bool(plot.lines) and reaching and fitting


def _label_ends(figure: "Figure", axes: "Axes", plot: Plot) -> None:
    """Write every name at the end of its line, joined to it by a thin line; names that would overlap move apart."""
    transforms = require("matplotlib.transforms", extra="plots")
    right = math.inf if plot.x.categories or plot.x.range is None else plot.x.range[1]
    offset = transforms.offset_copy(axes.transAxes, figure, x=9.0, units="points")
    ends = []
    for line in [*plot.lines, *plot.references]:
        places = np.zeros(len(line.x)) if plot.x.categories else np.asarray(line.x, float)
        shown = line.y[(places <= right) & np.isfinite(line.y)]
        if not len(shown):
            continue
        height = axes.transAxes.inverted().transform(axes.transData.transform((1.0, shown[-1])))[1]
        height = float(np.clip(np.nan_to_num(height), 0.0, 1.0))
        colour = QUIET_COLOUR if line.style is None else line.style.colour
        dark = "#" + "".join(f"{int(0.72 * int(colour[i : i + 2], 16)):02x}" for i in (1, 3, 5))
        joint = {"arrowstyle": "-", "linewidth": 0.5, "color": colour, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        look: dict[str, Any] = {"fontsize": LABEL_POINTS, "color": dark, "va": "center", "arrowprops": joint}
        look |= {"xytext": (1.0, height), "textcoords": offset, "annotation_clip": False}
        name = _plain(display_name(line.label))
        ends.append((height, axes.annotate(name, (1.0, height), xycoords="axes fraction", **look)))
    ends.sort(key=lambda end: end[0])
    for _ in range(2):  # the names narrow the chart; then its height is settled
        figure.draw_without_rendering()
        gap = 1.18 * LABEL_POINTS * figure.dpi / 72.0 / axes.get_window_extent().height
        for (_, label), place in zip(ends, spread_apart([height for height, _ in ends], gap, 0.0, 1.0), strict=True):
            label.xyann = (1.0, place)


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places near the wanted ones, ``gap`` apart and within the ends, with the least sum of squared moves.

    >>> spread_apart([0.5, 0.5, 0.9], 0.25, 0.0, 1.0)
    [0.375, 0.625, 0.9]
    """
    blocks: list[tuple[float, int]] = []  # sum and number of the shifted places of neighbours that touch
    for index, place in enumerate(wanted):
        blocks.append((place - index * gap, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + count)
    last = max(high - (len(wanted) - 1) * gap, low)
    free = [min(max(total / count, low), last) for total, count in blocks for _ in range(count)]
    return [round(place + index * gap, 12) for index, place in enumerate(free)]


def _add_legend(figure: "Figure", charts: "Sequence[Axes]", order: Iterable[str]) -> None:
    """Add one legend below all charts; the figure grows by its height."""
    handles: dict[str, Any] = {}
    for axes in charts:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [label for label in dict.fromkeys(_plain(display_name(name)) for name in order) if label in handles]
    if not labels:
        return
    width, height = figure.get_size_inches()
    column = 0.06 * max(map(len, labels)) + 0.55  # inches of the handle and the longest name
    rows = -(-len(labels) // max(int(width / column), 1))
    columns = -(-len(labels) // rows)
    look = {"frameon": False, "handlelength": 3.4, "handletextpad": 0.6, "borderaxespad": 0.2, "columnspacing": 1.2}
    figure.legend(
        [handles[label] for label in labels], labels, loc="outside lower center", ncols=columns, fontsize=7.0, **look
    )
    figure.set_size_inches(width, height + 0.14 * rows)


# --- Drawing with plotly --------------------------------------------------------------------------------------------

Chart = dict[str, Any]
"""A plotly chart as plain data: ``data``, ``layout`` and ``kind``; the page's script adds colours of the theme."""


def rounded(values: Iterable[float]) -> list[float | None]:
    """Round numbers to five digits for a screen; None for numbers that are not finite."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]


def plain_label(label: str, length: int = 60) -> str:
    """Escape a label, because plotly reads tags in labels as markup."""
    return html.escape(shorten(label, length), quote=False)


def category_labels(names: Iterable[str]) -> list[str]:
    """Return short, distinct labels for the categories of an axis."""
    labels: list[str] = []
    for name in names:
        labels.append(unique_name(plain_label(name, 24), labels))
    return labels


def log_axis(low: float, high: float, beyond: tuple[float, float] = (0.0, 0.0)) -> Chart:
    """Return a logarithmic plotly axis with written ticks; ``beyond`` adds ticks for ranges reached by zooming."""
    ticks = log_ticks(low, high)
    ticks = sorted([*ticks, *(tick for tick in log_ticks(*beyond) if not low <= tick <= high)])
    return {"type": "log", "tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}


def tick_text(value: float) -> str:
    """Format a round number on an axis.

    >>> tick_text(500.0), tick_text(20000.0), tick_text(0.0)
    ('500', '2e4', '0')
    """
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def plotly_chart(plot: Plot | HeatMap) -> Chart:
    """Return a chart as plotly data for the page."""
    if isinstance(plot, HeatMap):
        return _heat_chart(plot)
    traces = [trace for line in plot.lines for trace in _line_traces(line, plot)]
    dashes = reference_dashes(line.label for line in [*plot.references, *plot.outside])
    for line in plot.references:
        look = {"dash": _plotly_dash(dashes[line.label]), "width": 1.3}
        label, hover = plain_label(display_name(line.label)), "%{y:.4g}<extra>%{fullData.name}</extra>"
        traces.append(_trace(line, plot, "lines", name=label, line=look, meta="reference", hovertemplate=hover))
    x, y = _plotly_axis(plot.x), _plotly_axis(plot.y)
    if plot.y.log:
        y |= log_axis(*(plot.y.range or _positive_range(plot)), beyond=_positive_range(plot))
    return {"data": traces, "layout": {"xaxis": x, "yaxis": y}, "kind": plot.form}


def _plotly_dash(dash: str) -> str:
    return PLOTLY_DASHES.get(dash, dash)


def _plotly_axis(axis: Axis) -> Chart:
    layout: Chart = {"title": {"text": plain_label(axis.title)}}
    if axis.categories or axis.log:
        layout["type"] = "category" if axis.categories else "log"
    if axis.range is not None:
        layout["range"] = rounded(np.log10(axis.range) if axis.log else axis.range)
    return layout


def _trace(line: Line, plot: Plot, mode: str, /, **more: Any) -> Chart:
    x: list[Any] = list(line.x)
    if plot.x.categories:
        names = [str(name) for name in plot.categories()]
        shown = dict(zip(names, category_labels(names), strict=True))
        x = [shown[str(place)] for place in line.x]
    return {"type": "scatter", "mode": mode, "x": x, "y": rounded(line.y), **more}


def _line_traces(line: Line, plot: Plot) -> list[Chart]:
    """Return the traces of a curve with its band, of points with error bars, or of a bar."""
    assert line.style is not None
    colour, name = line.style.colour, plain_label(display_name(line.label))
    group = {"name": name, "legendgroup": line.label}
    bars = _error_bars(line, plot)
    error: Chart = {}
    if bars is not None and plot.form != "curves":
        sizes = {"array": rounded(bars[1]), "arrayminus": rounded(bars[0]), "symmetric": False}
        error = {"error_y": {"type": "data", **sizes, "thickness": 1.2, "width": 3, "color": "#667085"}}
    if plot.form == "bars":
        hover = "%{x}: %{y:.4g}<extra></extra>"
        bar = _trace(
            line, plot, "", name=name, marker={"color": colour}, showlegend=False, hovertemplate=hover, **error
        )
        return [{key: value for key, value in bar.items() if key != "mode"} | {"type": "bar"}]
    marker = {"color": colour, "symbol": line.style.marker, "size": 8}
    look = {"color": colour, "width": 2, "dash": _plotly_dash(line.style.dash)}
    if plot.form != "curves":
        hover = "%{x}: %{y:.4g}<extra>%{fullData.name}</extra>"
        return [_trace(line, plot, "lines+markers", **group, marker=marker, line=look, hovertemplate=hover, **error)]
    hover = "%{x:,} rounds: %{y:.4g}<extra>%{fullData.name}</extra>"
    mode = "lines" if len(line.x) > 1 else "markers"
    curve = _trace(line, plot, mode, **group, line=look, marker=marker, hovertemplate=hover)
    if line.error is None:
        return [curve]
    edge = [*line.x, *line.x[::-1]], np.concatenate([line.high(), line.low(plot.y.log)[::-1]])
    fill = {"fill": "toself", "fillcolor": translucent(colour), "line": {"width": 0}}
    quiet = {"legendgroup": line.label, "showlegend": False, "hoverinfo": "skip"}
    return [_trace(Line(line.label, *edge), plot, "lines", **quiet, **fill), curve]


def translucent(colour: str, opacity: float = BAND_OPACITY) -> str:
    """Return a colour with an opacity.

    >>> translucent("#ff0000", 0.5)
    'rgba(255,0,0,0.5)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def _heat_chart(heat_map: HeatMap) -> Chart:
    trace = {
        "type": "heatmap",
        "x": category_labels(heat_map.columns),
        "y": category_labels(heat_map.rows),
        "z": [rounded(row) for row in heat_map.shades],
        "text": [[format_number(value) for value in row] for row in heat_map.grid],
        "texttemplate": "%{text}",
        "colorscale": HEAT_COLOURS,
        "showscale": False,
        "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
    }
    layout = {
        "xaxis": {"side": "top", "type": "category"},
        "yaxis": {"automargin": True, "type": "category", "autorange": "reversed"},
        "height": 26 * len(heat_map.rows) + 48,
    }
    return {"data": [trace], "layout": layout, "kind": "heatmap"}


def plotly_figure(plot: Plot | HeatMap) -> Any:
    """Return a plotly figure that is readable on light and dark backgrounds."""
    graph_objects = require("plotly.graph_objects", extra="plots")
    chart = plotly_chart(plot)
    for trace in chart["data"]:
        if trace.pop("meta", None) == "reference":
            trace["line"]["color"] = QUIET_COLOUR
    layout = {**chart["layout"], "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    layout |= {"font": {"color": "#808896"}, "margin": {"t": 30, "r": 20}, "height": 420}
    for axis in ("xaxis", "yaxis"):
        layout[axis] = {**layout[axis], "gridcolor": "rgba(128,136,150,0.25)", "zeroline": False}
    return graph_objects.Figure(chart["data"], layout)
