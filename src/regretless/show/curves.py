"""Traces in a notebook: regret curves on matplotlib's axes or as a plotly figure, and the table of paired differences."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regretless.errors import SettingsError
from regretless.show.plots import Line, Plot, beyond_words, curves
from regretless.show.series import anchor_of, curve, diagnostic
from regretless.show.style import QUIET, Palette
from regretless.show.words import policy

if TYPE_CHECKING:
    import pandas as pd

    from regretless.trace import Trace

TITLES = {"average": "average regret per round", "cumulative": "cumulative regret"}
SIZE = (7.2, 3.8)
BACKENDS = ("matplotlib", "plotly")


def plotted(
    traces: "Mapping[str, Trace]",
    references: Sequence[tuple[str, float]],
    what: str,
    ax: Any,
    log: bool | None,
    backend: str,
) -> Any:
    """Curves by label with their bands, and reference lines by name and final regret: axes, or a plotly figure."""
    if backend not in BACKENDS:
        raise SettingsError(f"plot: expected backend 'matplotlib' or 'plotly', got {backend!r}")
    if backend == "plotly" and ax is not None:
        raise SettingsError(
            "plot: expected no axes with backend='plotly', which returns a figure of its own: leave ax out"
        )
    plot = _plot(traces, references, what, log)
    return _plotly(plot) if backend == "plotly" else _on_axes(plot, ax)


def _plot(traces: "Mapping[str, Trace]", references: Sequence[tuple[str, float]], what: str, log: bool | None) -> Plot:
    found: dict[str, Any] = {}
    for label, trace in traces.items():
        if what in TITLES:
            found[label] = curve(trace, what == "cumulative")
        elif what in trace.diagnostics:
            found[label] = diagnostic(trace, what)
    if not found:
        known = sorted({name for trace in traces.values() for name in trace.diagnostics})
        raise SettingsError(f"plot: expected what to be one of {', '.join([*TITLES, *known])}, got {what!r}")
    palette = Palette()
    lines = [
        Line(policy(label), each.rounds.tolist(), each.mean, each.error, palette[label])
        for label, each in found.items()
        if each is not None
    ]
    horizon = max(trace.regret.shape[1] for trace in traces.values())
    share = {"average": 1.0 / horizon, "cumulative": 1.0}.get(what)
    levels = [] if share is None else [(name.replace("_", " "), total * share) for name, total in references]
    return curves(TITLES.get(what, what), lines, levels, horizon, horizon, log if what == "average" else bool(log))


def _on_axes(plot: Plot, ax: Any) -> Any:
    """Draws on the given axes, with the legend where there is room; a new figure has its legend beside the curves."""
    from regretless.show.figures import draw_on

    own = ax is None
    if own:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=SIZE, layout="constrained")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        draw_on(ax, plot)
        ax.grid(alpha=0.25, linewidth=0.5)
        beyond = beyond_words(plot)
        if beyond:
            ax.set_xlabel(f"round\n{beyond}")
        handles, _ = ax.get_legend_handles_labels()
        if own and handles:
            ax.figure.legend(loc="outside right upper", frameon=False, fontsize="small", handlelength=2.4)
        elif handles:
            ax.legend(frameon=False, fontsize="small", handlelength=2.4)
    return ax


def _plotly(plot: Plot) -> Any:
    """The report's own chart as a figure; reference lines in a colour that is readable on light and dark."""
    import plotly.graph_objects as go

    from regretless.show.charts import spec

    found = spec(plot)
    for trace in found["data"]:
        if trace.pop("meta", None) == "reference":
            trace["line"]["color"] = QUIET
    layout = {**found["layout"], "template": "none", "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    layout |= {"font": {"color": "#808896"}, "margin": {"t": 30, "r": 20}, "height": 420}
    for axis in ("xaxis", "yaxis"):
        layout[axis] = {**layout[axis], "gridcolor": "rgba(128,136,150,0.25)", "zeroline": False}
    return go.Figure(found["data"], layout)


def compare_table(
    traces: "Mapping[str, Trace]", against: str | None, worlds: Mapping[str, str] | None = None
) -> "pd.DataFrame":
    """A row per policy: final regret, and the difference from ``against``, paired by seed, with its 95 % interval.

    ``worlds`` names the world of each policy: differences are taken within one world only.
    """
    import pandas as pd

    if against is None:
        against = anchor_of(traces)
    elif against not in traces:
        raise SettingsError(f"compare_table: expected against to be one of {', '.join(traces)}, got {against!r}")
    same, rows = worlds or {}, {}
    for label, trace in traces.items():
        row: dict[str, Any] = {
            "mean": trace.mean(), "standard_error": trace.standard_error(), "median": trace.median(),
            "diverged": trace.diverged,
        }  # fmt: skip
        if against in traces and label != against and same.get(label) == same.get(against):
            found = trace.compare(traces[against])
            row |= {"difference": found.mean, "low": found.low, "high": found.high, "pairs": found.pairs}
        rows[label] = row
    columns = ["mean", "standard_error", "median", "diverged", "difference", "low", "high", "pairs"]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns)
    table["pairs"] = table["pairs"].fillna(0).astype(int)
    table.index.name = "policy"
    table.attrs["against"] = against
    return table
