"""The picture of the theory study: the estimators' bias, the two nuisance rates and the stationarity rate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from regretless.report.style import KNOWN, QUIET

STYLES = {"adaptive": "-", "constant": "--"}


def mixing_colour(alpha: float) -> str:
    """The colour of a mixing weight: that of DFHPG-0 for 0, of DFHPG-1 for 1, and of DFHPG between."""
    return KNOWN["dfhpg_0" if alpha == 0 else "dfhpg_1" if alpha == 1 else "dfhpg"].colour


def theory_figure(result: Mapping[str, Any]) -> Figure:
    """Four panels; ``result`` is what ``TheoryResult.to_dict`` gives."""
    figure = Figure(figsize=(9.0, 6.5), layout="constrained")
    (bias, adaptive), (constant, stationarity) = figure.subplots(2, 2)
    _bias(bias, [claim for claim in result["claims"] if claim["relation"] == "="])
    curves = result["curves"]
    for axes, rule, exponent in ((adaptive, "adaptive", "(1 + log T)/T"), (constant, "constant", "T^(−1/2)")):
        mine = [curve for curve in curves if curve["quantity"] == "excess" and curve["rule"] == rule]
        _curves(axes, mine, f"average excess nuisance loss, {rule} step", exponent)
    mine = [curve for curve in curves if curve["quantity"] == "stationarity"]
    _curves(stationarity, mine, "average ‖∇V(θ)‖²", "T^(−1/2)")
    figure.suptitle(
        f"What the theorems say and what was measured, {result['replications']} replications per horizon, 95 % bands"
    )
    return figure


def _bias(axes: Axes, claims: Sequence[Mapping[str, Any]]) -> None:
    """Measured minus expected share, with intervals that hold together: all should reach the line at zero."""
    expected = np.array([claim["expected"] for claim in claims])
    measured = np.array([claim["measured"] for claim in claims])
    error = np.array([[claim["measured"] - claim["low"], claim["high"] - claim["measured"]] for claim in claims]).T
    axes.axhline(0.0, color=QUIET, linewidth=0.9, linestyle="--")
    axes.errorbar(
        np.arange(len(claims)), measured - expected, yerr=error, fmt="o", color=KNOWN["dfhpg"].colour, capsize=4
    )
    labels = [f"{NAMES[claim['name']]}\n{claim['setting'].replace(', ', chr(10))}" for claim in claims]
    axes.set_xticks(np.arange(len(claims)), labels, fontsize=7)
    axes.set(title="gradient estimators: measured share − theorem's share", ylabel="difference")
    axes.grid(alpha=0.25)


NAMES = {"score_unbiased": "score", "hybrid_bias": "bias", "hybrid_bias_new_phi": "bias, φ first"}


def _curves(axes: Axes, curves: Sequence[Mapping[str, Any]], title: str, exponent: str) -> None:
    """Averages over horizons with bands, and the theorem's rate drawn through the first point of each."""
    for curve in curves:
        horizons = np.asarray(curve["horizons"], float)
        averages = {key: np.asarray(values) for key, values in curve["averages"].items()}
        colour = mixing_colour(curve["alpha"])
        label = f"α = {curve['alpha']:g}"
        if curve["quantity"] == "stationarity" and curve["alpha"] < 1.0:
            label += f", {curve['rule']} step"
        axes.plot(
            horizons, averages["value"], STYLES[curve["rule"]], marker="o", markersize=4, color=colour, label=label
        )
        axes.fill_between(horizons, averages["low"], averages["high"], color=colour, alpha=0.18, linewidth=0)
        rate = (1.0 + np.log(horizons)) / horizons if "log" in exponent else horizons**-0.5
        guide = averages["value"][0] * rate / rate[0]
        axes.plot(horizons, guide, ":", color=QUIET, linewidth=0.9, label=exponent if curve is curves[-1] else None)
    axes.set(title=title, xlabel="horizon T", xscale="log", yscale="log")
    axes.set_xticks(horizons, [f"{int(t):,}" for t in horizons], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, handlelength=3.0)
