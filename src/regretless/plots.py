"""Charts of results: a chart is described once as a ``Plot`` and drawn with matplotlib, or with plotly on a page.

The libraries belong to the extras ``plots`` and ``report`` and are imported when something is drawn.
"""

import contextlib
import html
import itertools
import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from regretless.errors import SettingsError
from regretless.extras import require
from regretless.files import replacing
from regretless.formatting import LABELS, display_name, format_number, shorten, unique_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUANTITIES = {"average": "average regret per round", "cumulative": "cumulative regret"}
EMPTY = "Every replication of every policy diverged: there is nothing to draw."
MAX_POINTS = 240
"""Points of a drawn regret curve."""
MAX_TICKS = 9
MAX_REFERENCE_GAP = 0.6
"""Reference lines may widen the axis by this share of the curves' range on each side; others are listed as text."""
QUIET_COLOUR = "#667085"
BAND_OPACITY = 0.13
ACCENT, GREY = "#2563c9", "#b3bac6"
"""Colours of a highlighted curve and of the others."""
NAME_GAP = 0.062
"""Smallest distance of names at the ends of curves, as a share of the chart's height."""


# --- Styles: curves stay distinguishable in greyscale because each has its own marker and dashes --------------------


class Style(NamedTuple):
    """Colour (``#rrggbb``), marker and dashes of a curve."""

    colour: str
    marker: str
    dash: str = "solid"


MARKERS = {"circle": "o", "square": "s", "diamond": "D", "star": "*", "pentagon": "p"}
MARKERS |= {"triangle-up": "^", "triangle-down": "v"}
"""Plotly's marker names with matplotlib's."""

DASHES: dict[str, tuple[float, ...]] = {
    "solid": (),
    "dot": (1, 1.6),
    "dash": (4, 1.8),
    "dashdot": (4, 1.6, 1, 1.6),
    "longdash": (8, 2.4),
    "longdashdot": (8, 1.8, 1, 1.8),
    "dashdotdot": (4, 1.5, 1, 1.5, 1, 1.5),
}
"""Lengths of dashes and gaps, in widths of the line."""

POLICY_STYLES = {label: Style(*entry["style"]) for label, entry in LABELS.items() if "style" in entry}
OTHER_COLOURS = ("#2f7d4f", "#8c5a1e", "#3d6f8e", "#c2558f", "#6b7a12", "#b03a2e", "#5c4b8a", "#188aa8", "#d07c5c")
"""Colours of labels without a style of their own, in the order in which they are first used."""
_TAKEN = {(style.marker, style.dash) for style in POLICY_STYLES.values()}
_OTHER_PAIRS = [pair for pair in itertools.product(MARKERS, DASHES) if pair not in _TAKEN]
REFERENCE_DASHES = ("dot", "dash", "dashdot", "longdash", "longdashdot", "dashdotdot")


class Palette(dict[str, Style]):
    """Assign styles to labels: a label keeps its style, and two labels never share one.

    >>> palette = Palette()
    >>> palette["dfhpg"] == POLICY_STYLES["dfhpg"], palette["custom"] == palette["custom"]
    (True, True)
    """

    def __init__(self) -> None:
        super().__init__(POLICY_STYLES)

    def __missing__(self, label: str) -> Style:
        index = len(self) - len(POLICY_STYLES)
        pair = _OTHER_PAIRS[8 * index % len(_OTHER_PAIRS)]  # neighbours differ in marker and dashes
        self[label] = Style(OTHER_COLOURS[index % len(OTHER_COLOURS)], *pair)
        return self[label]


# --- Descriptions of charts -----------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A curve, points or a bar, with optional standard errors; without a style it is a reference line."""

    label: str
    x: list[float] | list[str]
    y: np.ndarray
    error: np.ndarray | None = None
    style: Style | None = None

    def band(self, log: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of the band, kept above zero on a logarithmic axis."""
        error = np.zeros_like(self.y) if self.error is None else self.error
        return np.maximum(self.y - error, 0.02 * self.y) if log else self.y - error, self.y + error

    def error_bars(self, log: bool) -> np.ndarray | None:
        """Return how far the band extends below and above; None without errors."""
        if self.error is None:
            return None
        low, high = self.band(log)
        return np.maximum(np.nan_to_num(np.stack([self.y - low, high - self.y])), 0.0)


class Axis(NamedTuple):
    """An axis; without a range it shows everything."""

    title: str
    log: bool = False
    range: tuple[float, float] | None = None
    categories: bool = False


class Plot(NamedTuple):
    """A chart; reference lines outside the range of the y axis are listed as text."""

    form: Literal["curves", "points", "bars"]
    lines: list[Line]
    references: list[Line]
    x: Axis
    y: Axis

    def categories(self) -> list[float | str]:
        """Return the categories of the x axis from left to right."""
        return list(dict.fromkeys(place for line in [*self.lines, *self.references] for place in line.x))

    def visible_references(self) -> dict[str, Line]:
        """Return the reference lines in the range of the y axis by their dashes."""
        low, high = self.y.range or (-math.inf, math.inf)
        dashed = zip(itertools.cycle(REFERENCE_DASHES), self.references, strict=False)
        return {dash: line for dash, line in dashed if low <= np.nanmin(line.y) <= np.nanmax(line.y) <= high}

    def outside_text(self) -> str:
        """Return the reference lines outside the chart with their values; empty if there are none."""
        visible, parts = [line.label for line in self.visible_references().values()], []
        for line in self.references:
            if line.label not in visible:
                ends = dict.fromkeys(format_number(float(end)) for end in (np.nanmin(line.y), np.nanmax(line.y)))
                parts.append(f"{display_name(line.label)} {' to '.join(ends)}")
        return f"Outside the chart: {', '.join(parts)}." if parts else ""


class HeatMap(NamedTuple):
    """Numbers by row (the first on top) and column; the colours follow ``shades``, by default orders of magnitude."""

    rows: list[str]
    columns: list[str]
    grid: np.ndarray
    shades: np.ndarray | None = None

    def colours(self) -> np.ndarray:
        """Return places on the colour scale, between 0 and 1."""
        shades = self.grid if self.shades is None else self.shades
        if self.shades is None and np.all(self.grid[np.isfinite(self.grid)] > 0):
            shades = np.log10(self.grid)
        finite = shades[np.isfinite(shades)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        return np.asarray((shades - low) / ((high - low) or 1.0))


def select_rounds(horizon: int) -> np.ndarray:
    """Return at most ``MAX_POINTS`` rounds, dense at the start and even afterwards.

    >>> rounds = select_rounds(2000)
    >>> int(rounds[0]), int(rounds[-1]), len(rounds) <= MAX_POINTS
    (1, 2000, True)
    """
    half = MAX_POINTS // 2
    places = np.concatenate([np.geomspace(1, horizon, half), np.linspace(1, horizon, half)])
    return np.unique(np.rint(places).astype(int))


def regret_line(label: str, style: Style, result: Any, quantity: str = "average") -> Line | None:
    """Return the mean of a quantity by round over the replications that stayed finite; None if there are none.

    Parameters
    ----------
    label, style : str and Style
        Label and style of the line.
    result : Result
        The outcome of one policy.
    quantity : str, default "average"
        ``"average"`` (cumulative regret divided by the round), ``"cumulative"``, or the name of a diagnostic.
    """
    if quantity in QUANTITIES:
        rounds = select_rounds(result.regret.shape[1])
        values = result.cumulative()[result.finished][:, rounds - 1] / (rounds if quantity == "average" else 1)
    else:
        values = result.diagnostics[quantity][result.finished].astype(np.float64)
        rounds = result.diagnostics_every * np.arange(1, values.shape[1] + 1)
    if not values.size:
        return None
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else None
    return Line(label, rounds.tolist(), values.mean(axis=0), error, style)


def curve_plot(
    title: str, lines: list[Line], levels: Sequence[tuple[str, float]], horizon: int, last: int, log: bool | None = None
) -> Plot:
    """Return curves up to round ``last`` with reference levels; ``log`` None: if all end above zero."""
    # the first rounds do not set the range
    settled = [line.y[(np.asarray(line.x) >= last // 10) & (np.asarray(line.x) <= last)] for line in lines]
    across: list[float] = [1, horizon] if horizon > 1 else [0.5, 1.5]
    references = [Line(name, across, np.full(2, level)) for name, level in levels]
    log = all(values[-1] > 0 for values in settled if values.size) if log is None else log
    x = Axis("round", range=(1, last) if last > 1 else (0.5, 1.5))
    return Plot("curves", lines, references, x, fit_axis(title, settled, log, references))


def fit_axis(title: str, values: Sequence[np.ndarray], log: bool, references: Sequence[Line] = ()) -> Axis:
    """Return an axis that the values fill, widened for the reference lines that are near."""
    numbers = np.concatenate([np.zeros(0), *map(np.ravel, values)])
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    if not numbers.size:
        return Axis(title)
    places = np.log10(numbers) if log else numbers
    low, high = float(places.min()), float(places.max())
    smallest = 0.1 if log else 0.1 * abs(high) or 1.0
    room = MAX_REFERENCE_GAP * max(high - low, smallest)
    first, last = low - room, high + room
    for line in references:
        ends = [float(np.nanmin(line.y)), float(np.nanmax(line.y))]
        if log:
            ends = [math.log10(end) if end > 0 else -math.inf for end in ends]
        if first <= ends[0] <= ends[1] <= last:
            low, high = min(low, ends[0]), max(high, ends[1])
    margin = 0.06 * (high - low) or 0.5 * smallest
    low, high = (end + sign * margin if end or log else end for end, sign in ((low, -1), (high, 1)))  # bars start at 0
    return Axis(title, log, (10.0**low, 10.0**high) if log else (low, high))


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


def regret_plot(
    results: Mapping[str, Any],
    references: Iterable[tuple[str, float]] = (),
    quantity: str = "average",
    log: bool | None = None,
    palette: Palette | None = None,
    last: int | None = None,
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
        Whether the y axis is logarithmic; by default for average regret, if all curves end above zero.
    palette : Palette, optional
        Styles of the labels; by default a new one.
    last : int, optional
        The last round to show; by default the end of the longest run.

    Raises
    ------
    SettingsError
        If no result has this quantity.
    """
    usable = {label: r for label, r in results.items() if quantity in QUANTITIES or quantity in r.diagnostics}
    if results and not usable:
        known = [*QUANTITIES, *sorted({name for result in results.values() for name in result.diagnostics})]
        raise SettingsError(f"plot: expected a quantity among {', '.join(known)}, got {quantity!r}")
    styles = Palette() if palette is None else palette
    drawn = [regret_line(label, styles[label], result, quantity) for label, result in usable.items()]
    horizon = max((result.regret.shape[1] for result in results.values()), default=1)
    share = {"average": 1.0 / horizon, "cumulative": 1.0}.get(quantity)
    levels = [] if share is None else [(name, total * share) for name, total in references]
    lines = [line for line in drawn if line is not None]
    log = log if quantity == "average" else bool(log)
    return curve_plot(QUANTITIES.get(quantity, quantity), lines, levels, horizon, min(last or horizon, horizon), log)


def draw_for_screen(plot: Plot, ax: "Axes | None", highlight: str | None = None, title: str = "") -> "Axes":
    """Draw a chart on matplotlib's axes, in a new figure if there are none.

    It has a legend, or with ``highlight`` one bold curve among grey ones and names next to the curves.
    """
    with _style(for_print=False):
        if ax is None:
            figure = require("matplotlib.pyplot", extra="plots").figure(figsize=(7.2, 3.8), layout="constrained")
            ax = figure.add_subplot()
            if highlight is not None:
                draw_highlighted(ax, plot, highlight)
                ax.set_title("\n".join(textwrap.wrap(title, 76)), loc="left", fontsize=10.5, fontweight="bold")
                return ax
            draw_on(ax, plot)
            _add_legend(figure, [ax], points=8.5)
        else:
            draw_on(ax, plot)
            if plot.lines:
                ax.legend(frameon=False, fontsize="small", handlelength=3.4)
        ax.grid(alpha=0.25, linewidth=0.5)
    return ax


# --- Drawing with matplotlib ----------------------------------------------------------------------------------------

PRINT_SIZE = (3.25, 2.3)
"""Inches of a chart of one column."""
LINE_LOOK = {"linewidth": 1.1, "markersize": 4.2, "markeredgecolor": "white", "markeredgewidth": 0.3}
HEAT_COLOURS = [(0.0, "#f6f1dc"), (0.3, "#b9d9c0"), (0.65, "#4f9d9a"), (1.0, "#123f52")]


@contextlib.contextmanager
def _style(for_print: bool = True) -> Iterator[None]:
    """Set matplotlib's settings, without warnings about letters that a font lacks."""
    sheet = [Path(__file__).with_name("print.mplstyle")] if for_print else {}
    with require("matplotlib.style", extra="plots").context(sheet), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as PDF or PNG, chosen by the suffix; equal figures give equal bytes."""
    form = path.suffix[1:]
    metadata: dict[str, Any] = {"CreationDate": None} if form == "pdf" else {"Software": None}
    with replacing(path) as place, _style():
        figure.savefig(place, format=form, dpi=200, metadata=metadata)


def draw(plot: Plot | HeatMap, title: str = "", size: tuple[float, float] = PRINT_SIZE) -> "Figure":
    """Return a figure for print with one chart."""
    if isinstance(plot, HeatMap):
        size = (1.6 + 0.7 * len(plot.columns), 0.16 * len(plot.rows) + 0.5)
    return draw_sheet([(title, plot)], size, columns=1)


def draw_sheet(charts: Sequence[tuple[str, Plot | HeatMap]], size: tuple[float, float], columns: int) -> "Figure":
    """Return a figure for print with titled charts in rows and one common legend below them."""
    figure: Figure = require("matplotlib.figure", extra="plots").Figure(figsize=size, layout="constrained")
    with _style():
        grid = figure.subplots(-(-len(charts) // columns), columns, squeeze=False)
        for axes in grid.flat[len(charts) :]:
            axes.set_axis_off()
        drawn = list(grid.flat[: len(charts)])
        for axes, (title, plot) in zip(drawn, charts, strict=True):
            axes.set_title(_plain(title, 60))
            draw_on(axes, plot)
        if len({axes.get_ylabel() for axes in drawn}) == 1:  # a title that all share stands at the left only
            for index, axes in enumerate(drawn):
                axes.set_ylabel(axes.get_ylabel() if index % columns == 0 else "")
        _add_legend(figure, drawn)
    return figure


def _plain(label: str, length: int = 40) -> str:
    """Return a label that matplotlib shows unchanged: no mathematics, no label hidden by a leading underscore."""
    text = shorten(label, length).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def draw_on(axes: "Axes", plot: Plot | HeatMap) -> None:
    """Draw a chart without title and legend on matplotlib's axes."""
    if isinstance(plot, HeatMap):
        _draw_heat_map(axes, plot)
        return
    for index, line in enumerate(plot.lines):
        _draw_line(axes, plot, line, index)
    for dash, line in plot.visible_references().items():
        look = {"color": QUIET_COLOUR, "linewidth": 0.9, "linestyle": _linestyle(dash)}
        label, order = _plain(display_name(line.label)), 2.5 if plot.form == "bars" else 1.5
        axes.plot(_places(line, plot), line.y, label=label, zorder=order, **look)
    _set_axes(axes, plot)
    if not plot.lines:
        axes.text(0.5, 0.5, EMPTY, transform=axes.transAxes, ha="center", va="center", wrap=True)


def draw_highlighted(axes: "Axes", plot: Plot, highlight: str) -> None:
    """Draw curves with one in bold and the others in grey, with names at their ends instead of a legend.

    Parameters
    ----------
    axes : matplotlib axes
        Where to draw.
    plot : Plot
        A chart of curves.
    highlight : str
        The label of the bold curve.
    """
    ends: list[tuple[float, str, dict[str, Any]]] = []
    for line in plot.lines:
        bold = line.label == highlight
        colour, width = (ACCENT, 2.6) if bold else (GREY, 1.2)
        axes.plot(line.x, line.y, color=colour, linewidth=width, zorder=3 if bold else 2)
        if bold and line.error is not None:
            axes.fill_between(line.x, *line.band(plot.y.log), color=ACCENT, alpha=BAND_OPACITY, linewidth=0)
        look = {"color": ACCENT if bold else QUIET_COLOUR, "fontweight": "bold" if bold else "normal"}
        shown_part = line.y[np.asarray(line.x, float) <= (plot.x.range or (0.0, math.inf))[1]]
        ends.append((float(shown_part[-1]), _plain(display_name(line.label)), look))
    for dash, line in plot.visible_references().items():
        axes.plot(line.x, line.y, color=QUIET_COLOUR, linewidth=0.9, linestyle=_linestyle(dash), zorder=1.5)
        reference = {"color": QUIET_COLOUR, "fontstyle": "italic"}
        ends.append((float(line.y[-1]), _plain(display_name(line.label)), reference))
    _set_axes(axes, plot)
    axes.grid(alpha=0.25, linewidth=0.5)
    low, high = axes.get_ylim()
    place = (lambda y: math.log(y / low) / math.log(high / low)) if plot.y.log else lambda y: (y - low) / (high - low)
    shown = sorted(((place(y), name, look) for y, name, look in ends if low < y < high), key=lambda one: one[0])
    for height, (_, name, style) in zip(_spread([one[0] for one in shown], NAME_GAP), shown, strict=True):
        axes.annotate(name, (1.01, height), xycoords="axes fraction", va="center", fontsize=8.5, **style)


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places moved as little as possible so that neighbours are at least a gap apart.

    >>> _spread([0.2, 0.21, 0.9], 0.1)
    [0.155, 0.255, 0.9]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _centre(groups[-1]) - _centre(groups[-2]) < 0.5 * gap * (
            len(groups[-1]) + len(groups[-2])
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    spread = [
        _centre(group) + gap * (index - 0.5 * (len(group) - 1)) for group in groups for index in range(len(group))
    ]
    return [round(place, 12) for place in spread]


def _centre(places: Sequence[float]) -> float:
    return sum(places) / len(places)


def _linestyle(dash: str) -> Any:
    return (0, DASHES[dash]) if DASHES[dash] else "-"


def _draw_line(axes: "Axes", plot: Plot, line: Line, index: int) -> None:
    """Draw a curve with its band, points or a bar; ``index`` keeps markers and error bars of several apart."""
    assert line.style is not None
    colour, x, errors = line.style.colour, _places(line, plot), line.error_bars(plot.y.log)
    if plot.form == "bars":
        axes.bar(x, line.y, yerr=errors, color=colour, width=0.7, capsize=2, error_kw={"linewidth": 0.8})
        axes.grid(False, axis="x")
        return
    look = {"color": colour, "linestyle": _linestyle(line.style.dash), "marker": MARKERS[line.style.marker]}
    look |= {"label": _plain(display_name(line.label)), **LINE_LOOK}
    if plot.form == "points":
        places = [float(place) for other in plot.lines for place in _places(other, plot)]
        shift = 0.012 * (max(places) - min(places)) * (index - (len(plot.lines) - 1) / 2)
        axes.errorbar([place + shift for place in x], line.y, errors, capsize=1.5, elinewidth=0.7, **look)
        return
    axes.plot(x, line.y, markevery=(0.03 * (index % 7), 0.21), **look)
    if line.error is not None:
        axes.fill_between(x, *line.band(plot.y.log), color=colour, alpha=BAND_OPACITY, linewidth=0)


def _places(line: Line, plot: Plot) -> list[Any]:
    """Return the x values of a line; categories are numbered from left to right."""
    return [plot.categories().index(place) for place in line.x] if plot.x.categories else list(line.x)


def _set_axes(axes: "Axes", plot: Plot) -> None:
    axes.set(xscale="log" if plot.x.log else "linear", yscale="log" if plot.y.log else "linear")
    axes.set(xlabel="\n".join(filter(None, (_plain(plot.x.title), plot.outside_text()))), ylabel=_plain(plot.y.title))
    if plot.x.categories:
        names = [_plain(display_name(str(name)), 20) for name in plot.categories()]
        aslant = sum(len(name) + 2 for name in names) > 60
        axes.set_xticks(range(len(names)), names, rotation=30 * aslant, ha="right" if aslant else "center")
    elif plot.form == "curves":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.set(xlim=plot.x.range, ylim=plot.y.range)
    if plot.y.log:
        ticks = log_ticks(*axes.get_ylim())
        axes.set_yticks(ticks, [power_text(tick) for tick in ticks])
        axes.set_yticks([], minor=True)
    else:
        axes.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)


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


def _draw_heat_map(axes: "Axes", heat_map: HeatMap) -> None:
    """Draw numbers with colours behind them."""
    colors = require("matplotlib.colors", extra="plots")
    shares = heat_map.colours()
    colours = colors.LinearSegmentedColormap.from_list("regret", HEAT_COLOURS)
    axes.imshow(shares, aspect="auto", cmap=colours, vmin=0.0, vmax=1.0)
    for (i, j), value in np.ndenumerate(heat_map.grid):
        colour = "white" if shares[i, j] > 0.5 else "black"
        axes.text(j, i, format_number(float(value)), ha="center", va="center", fontsize=6, color=colour)
    axes.set_xticks(range(len(heat_map.columns)), [_plain(display_name(name), 20) for name in heat_map.columns])
    axes.set_yticks(range(len(heat_map.rows)), [_plain(display_name(name), 24) for name in heat_map.rows], fontsize=6)
    axes.tick_params(length=0)
    axes.grid(False)


def _add_legend(figure: "Figure", charts: "Sequence[Axes]", points: float = 7.0) -> None:
    """Add one legend below all charts; the figure grows by its height."""
    pairs = [pair for axes in charts for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    pairs.sort(key=lambda pair: getattr(pair[0], "get_color", str)() == QUIET_COLOUR)  # reference lines last
    handles = {label: handle for handle, label in reversed(pairs)}
    handles = dict(reversed(handles.items()))
    if handles:
        width, height = figure.get_size_inches()
        column = 0.0085 * points * max(map(len, handles)) + 0.08 * points  # inches of the handle and the longest name
        rows = -(-len(handles) // max(int(width / column), 1))
        look = {"frameon": False, "handlelength": 3.4, "borderaxespad": 0.2, "columnspacing": 1.2, "fontsize": points}
        columns = -(-len(handles) // rows)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, **look)
        figure.set_size_inches(width, height + 0.02 * points * rows)


# --- Data for plotly --------------------------------------------------------------------------------------------

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


def plotly_chart(plot: Plot) -> Chart:
    """Return a chart as plotly data for the page."""
    traces = [trace for line in plot.lines for trace in _line_traces(line, plot)]
    for dash, line in plot.visible_references().items():
        look = {"color": QUIET_COLOUR, "dash": _plotly_dash(dash), "width": 1.3}
        hover = "%{y:.4g}<extra>%{fullData.name}</extra>"
        traces.append(_trace(line, plot, hover, mode="lines", line=look, meta="reference"))
    return {"data": traces, "layout": {"xaxis": _plotly_axis(plot.x), "yaxis": _plotly_axis(plot.y)}, "kind": plot.form}


def _plotly_dash(name: str) -> str:
    return ",".join(f"{1.6 * length:.3g}px" for length in DASHES[name]) or "solid"


def _plotly_axis(axis: Axis) -> Chart:
    layout: Chart = {"title": {"text": plain_label(axis.title)}}
    if axis.categories or axis.log:
        layout["type"] = "category" if axis.categories else "log"
    if axis.range is not None:
        layout["range"] = rounded(np.log10(axis.range) if axis.log else axis.range)
        layout |= {"tickvals": log_ticks(*axis.range)} if axis.log else {}
    return layout


def _trace(line: Line, plot: Plot, hover: str, /, **more: Any) -> Chart:
    """Return a line as a trace; categories are shortened where they are long."""
    x: list[Any] = list(line.x)
    if plot.x.categories:
        names = [str(name) for name in plot.categories()]
        shown = dict(zip(names, category_labels(names), strict=True))
        x = [shown[str(place)] for place in line.x]
    name = plain_label(display_name(line.label))
    return {"type": "scatter", "x": x, "y": rounded(line.y), "name": name, "hovertemplate": hover, **more}


def _line_traces(line: Line, plot: Plot) -> list[Chart]:
    """Return the traces of a curve with its band, of points with error bars, or of a bar."""
    assert line.style is not None
    colour, bars = line.style.colour, line.error_bars(plot.y.log)
    error: Chart = {}
    if bars is not None:
        sizes = {"array": rounded(bars[1]), "arrayminus": rounded(bars[0]), "symmetric": False}
        error = {"error_y": {"type": "data", **sizes, "thickness": 1.2, "width": 3, "color": QUIET_COLOUR}}
    if plot.form == "bars":
        look: Chart = {"type": "bar", "marker": {"color": colour}, "showlegend": False}
        return [_trace(line, plot, "%{x}: %{y:.4g}<extra></extra>", **look, **error)]
    look = {"mode": "lines+markers", "legendgroup": line.label}
    look["marker"] = {"color": colour, "symbol": line.style.marker, "size": 8}
    look["line"] = {"color": colour, "width": 2, "dash": _plotly_dash(line.style.dash)}
    if plot.form == "points":
        return [_trace(line, plot, "%{x}: %{y:.4g}<extra>%{fullData.name}</extra>", **look, **error)]
    look["mode"] = "lines" if len(line.x) > 1 else "markers"
    curve = _trace(line, plot, "%{x:,} rounds: %{y:.4g}<extra>%{fullData.name}</extra>", **look)
    if line.error is None:
        return [curve]
    low, high = line.band(plot.y.log)
    edge: Chart = {"x": [*line.x, *line.x[::-1]], "y": rounded(np.concatenate([high, low[::-1]]))}
    fill = {"fill": "toself", "fillcolor": colour, "opacity": BAND_OPACITY, "line": {"width": 0}}
    quiet = {"mode": "lines", "legendgroup": line.label, "showlegend": False, "hoverinfo": "skip"}
    return [{"type": "scatter", **edge, **quiet, **fill}, curve]
