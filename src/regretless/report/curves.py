"""Regret curves: average regret per round with ±1 standard-error bands, as in the paper's convergence figures."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from regretless.trace import Trace

COLOURS = {
    "greedy": "#8c8c8c",
    "epsilon_greedy": "#c49a6c",
    "thompson": "#b07aa1",
    "dfhpg_1": "#4e79a7",
    "dfhpg": "#d1495b",
    "dfhpg_0": "#2a9d8f",
}


def regret_curves(traces: Mapping[str, Trace], references: Mapping[str, float], title: str, path: Path) -> None:
    """Writes the picture to ``path``; ``references`` (final regret by name) become dashed lines."""
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    horizon = 1
    for index, (name, trace) in enumerate(traces.items()):
        kept = trace.cumulative()[trace.finished]
        if not len(kept):
            continue
        horizon = kept.shape[1]
        rounds = np.arange(1, horizon + 1)
        average = kept / rounds
        mean = average.mean(axis=0)
        colour = COLOURS.get(name, f"C{index}")
        axes.plot(rounds, mean, label=name, color=colour, linewidth=1.8)
        if len(kept) > 1:
            error = average.std(axis=0, ddof=1) / len(kept) ** 0.5
            axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
    for name, regret in references.items():
        if regret > 0:
            axes.axhline(regret / horizon, color="#444444", linestyle="--", linewidth=0.9)
            axes.annotate(name, (horizon, regret / horizon), ha="right", va="bottom", fontsize=8, color="#444444")
    axes.set(title=title, xlabel="round", ylabel="average regret per round", yscale="log", xlim=(1, horizon))
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", frameon=False, ncols=6)
    with matplotlib.rc_context({"svg.hashsalt": "regretless"}):
        figure.savefig(path, dpi=150)
