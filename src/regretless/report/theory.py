"""The picture of the theory study: the estimators' bias, the nuisance rates, the bias rates and the two theorems."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from regretless.show.figures import MARKERS, SIZES
from regretless.show.style import KNOWN, QUIET, Style

STYLES = {"adaptive": "-", "constant": "--"}


def mixing_style(alpha: float) -> Style:
    """The look of a mixing weight: that of DFHPG-0 for 0, of DFHPG-1 for 1, and of DFHPG between."""
    return KNOWN["dfhpg_0" if alpha == 0 else "dfhpg_1" if alpha == 1 else "dfhpg"]


def mixing_colour(alpha: float) -> str:
    """The colour of a mixing weight."""
    return mixing_style(alpha).colour


def theory_figure(result: Mapping[str, Any]) -> Figure:
    """Seven panels; ``result`` is what ``TheoryResult.to_dict`` gives."""
    figure = Figure(figsize=(9.0, 13.0), layout="constrained")
    grid = figure.add_gridspec(4, 2)
    _bias(figure.add_subplot(grid[0, :]), [claim for claim in result["claims"] if claim["relation"] == "="])
    places = (figure.add_subplot(grid[place, side]) for place in (1, 2, 3) for side in (0, 1))
    for quantity, variant, rule in RATES:
        mine = _chosen(result, quantity, variant, rule)
        exponent = "(1 + log T)/T" if rule == "adaptive" else "T^(−1/2)"
        _curves(next(places), mine, f"average {SYMBOLS[quantity, variant]}, {rule} step", exponent)
    for variant in ("plug_in", "listwise_ltr"):
        mine = _chosen(result, "stationarity", variant, None)
        _curves(next(places), mine, f"average {SYMBOLS['stationarity', variant]}", "T^(−1/2)")
    figure.suptitle(
        f"What the theorems say and what was measured, {result['replications']} replications per horizon, 95 % bands"
    )
    return figure


RATES = (
    ("excess", "plug_in", "adaptive"),
    ("excess", "plug_in", "constant"),
    ("bias", "plug_in", "adaptive"),
    ("bias", "listwise_ltr", "adaptive"),
)
SYMBOLS = {
    ("excess", "plug_in"): "excess nuisance loss",
    ("bias", "plug_in"): "‖∇B(φ, θ)‖²",
    ("bias", "listwise_ltr"): "‖∇B^sur(φ, θ)‖²",
    ("stationarity", "plug_in"): "‖∇V(θ)‖²",
    ("stationarity", "listwise_ltr"): "‖∇V^α(θ)‖²",
}


def _chosen(result: Mapping[str, Any], quantity: str, variant: str, rule: str | None) -> list[Mapping[str, Any]]:
    """The curves of one panel."""
    return [
        curve
        for curve in result["curves"]
        if (curve["quantity"], curve["variant"]) == (quantity, variant) and rule in (None, curve["rule"])
    ]


def _bias(axes: Axes, claims: Sequence[Mapping[str, Any]]) -> None:
    """Measured minus expected share, with intervals that hold together: all should reach the line at zero."""
    expected = np.array([claim["expected"] for claim in claims])
    measured = np.array([claim["measured"] for claim in claims])
    error = np.array([[claim["measured"] - claim["low"], claim["high"] - claim["measured"]] for claim in claims]).T
    axes.axhline(0.0, color=QUIET, linewidth=0.9, linestyle="--")
    axes.errorbar(
        np.arange(len(claims)), measured - expected, yerr=error, fmt="o", color=KNOWN["dfhpg"].colour, capsize=4
    )
    settings = [claim["setting"].removeprefix("a ").removesuffix(" of the other lines") for claim in claims]
    labels = [
        f"{NAMES[claim['name']]}\n{setting.replace(', ', chr(10))}"
        for claim, setting in zip(claims, settings, strict=True)
    ]
    axes.set_xticks(np.arange(len(claims)), labels, fontsize=6)
    axes.set(title="gradient estimators: measured share − theorem's share", ylabel="difference")
    axes.grid(alpha=0.25)


NAMES = {
    "score_unbiased": "score",
    "hybrid_bias": "bias",
    "hybrid_bias_new_phi": "bias, φ first",
    "surrogate_unbiased": "surrogate",
    "surrogate_hybrid_bias": "V^α bias",
    "universal_minimiser": "nuisance",
}


def _curves(axes: Axes, curves: Sequence[Mapping[str, Any]], title: str, exponent: str) -> None:
    """Averages over horizons with bands, and the theorem's rate drawn through the first point of each."""
    if not curves:
        axes.set_axis_off()
        return
    for curve in curves:
        horizons = np.asarray(curve["horizons"], float)
        averages = {key: np.asarray(values) for key, values in curve["averages"].items()}
        colour = mixing_colour(curve["alpha"])
        label = f"α = {curve['alpha']:g}"
        if curve["quantity"] == "stationarity" and curve["alpha"] < 1.0:
            label += f", {curve['rule']} step"
        marker = mixing_style(curve["alpha"]).marker
        axes.plot(
            horizons, averages["value"], STYLES[curve["rule"]], marker=MARKERS[marker], markersize=1.3 * SIZES[marker],
            color=colour, label=label,
        )  # fmt: skip
        axes.fill_between(horizons, averages["low"], averages["high"], color=colour, alpha=0.18, linewidth=0)
        rate = (1.0 + np.log(horizons)) / horizons if "log" in exponent else horizons**-0.5
        guide = averages["value"][0] * rate / rate[0]
        axes.plot(horizons, guide, ":", color=QUIET, linewidth=0.9, label=exponent if curve is curves[-1] else None)
    axes.set(title=title, xlabel="horizon T", xscale="log", yscale="log")
    axes.set_xticks(horizons, [f"{int(t):,}" for t in horizons], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.25)
    if len(curves) > 3:  # room for the legend above the curves
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.4)
    axes.legend(frameon=False, fontsize=8, handlelength=3.0, loc="upper right", ncols=2 if len(curves) > 3 else 1)
