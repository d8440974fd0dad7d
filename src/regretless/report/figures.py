"""Figures for print, drawn with matplotlib in the paper's style: names beside the curves, or a legend below the chart."""

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from regretless.files import replacing
from regretless.report.paper.labels import fits_beside, name_curves, tell_beyond
from regretless.show.charts import HEAT
from regretless.show.figures import draw_on, named, printed
from regretless.show.plots import HeatMap, Plot
from regretless.show.words import number

PAPER: dict[Any, Any] = {
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
SIZE = (3.25, 2.3)
SHADES = LinearSegmentedColormap.from_list("regret", [(float(str(place)), str(colour)) for place, colour in HEAT])
AROUND = (0.6, 0.6)
"""Inches that ticks and titles take beside and below a chart."""


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
    with replacing(path) as place:
        figure.savefig(place, format=form, dpi=200, metadata=metadata)


def draw(shown: Plot | HeatMap, title: str, size: tuple[float, float] = SIZE) -> Figure:
    """A chart of this size with names beside its curves; where they do not fit, a legend adds to its height."""
    if isinstance(shown, HeatMap):
        size = (1.6 + 0.7 * len(shown.columns), 0.16 * len(shown.rows) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_panel(axes, shown, title, size)
    if isinstance(shown, HeatMap):
        return figure
    if fits_beside(shown, size[1] - AROUND[1]):
        name_curves(figure, axes, shown)
    else:
        add_legend(figure, [axes], labels_of([shown]))
    return figure


def draw_panel(axes: Axes, shown: Plot | HeatMap, title: str, size: tuple[float, float]) -> None:
    """One chart with its title; ``size`` is what it may take, in inches."""
    if isinstance(shown, HeatMap):
        _draw_heat(axes, shown, title)
        return
    draw_on(axes, shown)
    tell_beyond(axes, shown, size[0] - AROUND[0], max(size[1] - AROUND[1], 0.6))
    axes.set_title(printed(title, 60))


def add_legend(figure: Figure, every: Sequence[Axes], order: Iterable[str]) -> None:
    """One legend for all axes below them, its labels in this order, in even rows; the figure grows by its height."""
    known: dict[str, Any] = {}
    for axes in every:
        handles, labels = axes.get_legend_handles_labels()
        known |= {label: known.get(label, handle) for handle, label in zip(handles, labels, strict=True)}
    labels = [label for label in dict.fromkeys(printed(named(name)) for name in order) if label in known]
    if not labels:
        return
    width, height = figure.get_size_inches()
    counts = dict.fromkeys(
        -(-len(labels) // rows) for rows in range(1, len(labels) + 1)
    )  # columns that rows fill evenly
    tries = [(columns, 7.0) for columns in counts if columns > 1] + [(2, 6.0), (1, 7.0)]
    for columns, size in tries:
        legend = figure.legend(
            [known[label] for label in labels], labels, loc="outside lower center", frameon=False, ncols=columns,
            columnspacing=1.2, handlelength=3.4, handletextpad=0.6, borderaxespad=0.2, fontsize=size,
        )  # fmt: skip
        box = legend.get_window_extent()
        if box.width <= 0.98 * width * figure.dpi or columns == 1:
            figure.set_size_inches(width, height + box.height / figure.dpi)
            return
        legend.remove()


def labels_of(plots: Sequence[Plot]) -> list[str]:
    """The labels of all curves, and behind them those of the reference lines."""
    lines = [line for plot in plots for line in plot.lines] + [line for plot in plots for line in plot.references]
    return [line.label for line in lines]


def _draw_heat(axes: Axes, shown: HeatMap, title: str) -> None:
    """Numbers with colours behind them; where all are of one size, their power of ten stands in the title."""
    finite = shown.shades[np.isfinite(shown.shades)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if finite.size:
        axes.imshow(shown.shades, aspect="auto", cmap=SHADES, vmin=low, vmax=high)
    else:
        axes.set(xlim=(-0.5, len(shown.columns) - 0.5), ylim=(len(shown.rows) - 0.5, -0.5))
    exponent = _shared_exponent(shown.grid)
    for i, j in np.ndindex(*shown.grid.shape):
        value, shade = float(shown.grid[i, j]), float(shown.shades[i, j])
        dark = math.isfinite(shade) and high > low and (shade - low) / (high - low) > 0.5
        words = number(value) if exponent is None or not math.isfinite(value) else f"{value / 10.0**exponent:.2f}"
        axes.text(j, i, words, ha="center", va="center", fontsize=6, color="white" if dark else "black")
    axes.set_xticks(range(len(shown.columns)), [printed(named(name), 20) for name in shown.columns])
    axes.set_yticks(range(len(shown.rows)), [printed(named(name), 24) for name in shown.rows], fontsize=6)
    axes.tick_params(length=0)
    axes.grid(False)
    power = rf" ($\times 10^{{{exponent}}}$)" if exponent else ""
    axes.set_title(printed(title, 60) + power)


def _shared_exponent(grid: np.ndarray) -> int | None:
    """The power of ten of the smallest number, if the largest is less than a thousand times that; None otherwise."""
    sizes = np.abs(grid[np.isfinite(grid) & (grid != 0)])
    if not sizes.size or sizes.max() >= 1000 * sizes.min():
        return None
    return math.floor(math.log10(sizes.min()))
