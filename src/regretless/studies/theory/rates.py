"""How fast things fall with the horizon: runs of both variants, averages over their rounds, slopes with verdicts."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regretless.simulate.programs import Progress
from regretless.studies.theory import surrogate, world
from regretless.studies.theory.lines import Claim, Curve
from regretless.studies.theory.runs import SEGMENT, Measured, Rule, Variant, play_runs
from regretless.studies.theory.slopes import fitted_slope, mean_interval, two_terms

FORGOTTEN = 5.0
"""The shortest horizon is one at which every direction of either recursion has forgotten its start up to ``e^-5``."""


class Group(NamedTuple):
    """Runs that share a program."""

    variant: Variant
    rule: Rule
    alphas: tuple[float, ...]


GROUPS = (
    Group("plug_in", "adaptive", (0.0, 0.5, 1.0)),
    Group("plug_in", "constant", (0.0, 0.5)),  # at α = 1 the nuisance has no say, so one rule will do
    Group("listwise_ltr", "adaptive", surrogate.ALPHAS),
    Group("listwise_ltr", "constant", surrogate.ALPHAS),
)

QUANTITIES = ("excess", "bias", "stationarity")
STATEMENTS = {
    ("excess", "plug_in", "constant"): "Proposition 2.1 (i)",
    ("excess", "plug_in", "adaptive"): "Proposition 2.1 (ii)",
    ("bias", "plug_in", "constant"): "Proposition D.2 (i)",
    ("bias", "plug_in", "adaptive"): "Proposition D.2 (ii)",
    ("bias", "listwise_ltr", "constant"): "Proposition E.4, constant",
    ("bias", "listwise_ltr", "adaptive"): "Proposition E.4",
    ("stationarity", "plug_in", "constant"): "Theorem 2.2 (i)",
    ("stationarity", "plug_in", "adaptive"): "Theorem 2.2 (ii)",
    ("stationarity", "listwise_ltr", "constant"): "Theorem 2.3, constant",
    ("stationarity", "listwise_ltr", "adaptive"): "Theorem 2.3",
}
"""The nuisance regret of the surrogate's runs is that of the proposition too: it is about any sequence of policies."""

LOGARITHMIC = ("excess", "bias")
"""What falls like ``(1 + log T)/T`` with the adaptive step; all else like ``T^(−1/2)``."""


def shortest_horizon(facts: world.Constants) -> int:
    """The first power of two at which ``exp(−2 r √T) ≤ e^-FORGOTTEN`` for the slowest rate of nuisance and policy.

    Per round a direction of ``φ − φ*`` shrinks by ``η λ = r/√T`` at least, with ``r = λ D/G``; one of ``θ − θ*`` by
    ``β μ = r/√T`` with ``r = μ/L``.
    """
    rate = min(facts.convexity * facts.diameter / facts.slope, facts.relaxation / facts.smoothness)
    return max(SEGMENT, 2 ** math.ceil(2.0 * math.log2(FORGOTTEN / (2.0 * rate))))


def all_runs(horizons: Sequence[int], replications: int, seed: int, progress: Progress) -> dict[Group, list[Measured]]:
    """Runs of every horizon and group; each horizon has seeds of its own."""
    total = sum(len(group.alphas) for group in GROUPS) * sum(horizons)
    before = 0
    runs: dict[Group, list[Measured]] = {}
    for group in GROUPS:
        runs[group] = []
        for index, horizon in enumerate(horizons):
            first = (seed * len(horizons) + index) * replications

            def told(what: str, done: int, of: int, before: int = before, weight: int = len(group.alphas)) -> None:
                if what == "running":
                    what, done, of = "runs of all horizons", before + weight * done, total
                progress(what, done, of)

            runs[group].append(play_runs(*group, horizon, range(first, first + replications), told))
            before += len(group.alphas) * horizon
    return runs


def all_curves(horizons: Sequence[int], runs: dict[Group, list[Measured]]) -> list[tuple[Curve, list[np.ndarray]]]:
    """The curves with their replications, by quantity, group and α."""
    curves = []
    for quantity in QUANTITIES:
        for group, measured in runs.items():
            for index, alpha in enumerate(group.alphas):
                if quantity != "stationarity" and alpha == 1.0:
                    continue  # the nuisance does not learn there
                samples = [getattr(one, quantity)[index] for one in measured]
                bounds = [bound(quantity, group, alpha, horizon) for horizon in horizons]
                averages = [mean_interval(sample) for sample in samples]
                curve = Curve(quantity, group.rule, alpha, list(horizons), averages, bounds, group.variant)
                curves.append((curve, samples))
    return curves


def bound(quantity: str, group: Group, alpha: float, horizon: int) -> float:
    """The paper's explicit bound with all its constants."""
    facts = world.constants()
    if quantity == "excess":
        return facts.nuisance_bound(group.rule, horizon)
    if group.variant == "plug_in":
        return (
            facts.bias_bound(group.rule, horizon)
            if quantity == "bias"
            else facts.stationarity_bound(group.rule, alpha, horizon)
        )
    more = surrogate.constants()
    if quantity == "bias":
        return more.bias_bound(facts, group.rule, horizon)
    return more.stationarity_bound(facts, group.rule, alpha, horizon)


def rate_claims(curves: Sequence[tuple[Curve, list[np.ndarray]]], seed: int) -> list[Claim]:
    """The slope of each curve against the paper's exponent."""
    return [rate_claim(curve, samples, seed, len(curves)) for curve, samples in curves]


def rate_claim(curve: Curve, samples: list[np.ndarray], seed: int, family: int) -> Claim:
    """One curve: its slope, whether it follows the rate and a next term, and its share of the bound."""
    times = np.asarray(curve.horizons, float)
    logarithm = curve.quantity in LOGARITHMIC and curve.rule == "adaptive"
    rate = (1.0 + np.log(times)) / times if logarithm else times**-0.5
    divided = [sample / part for sample, part in zip(samples, rate, strict=True)] if logarithm else samples
    share = max(one.high / most for one, most in zip(curve.averages, curve.bounds, strict=True))
    name, what = _words(curve)
    return Claim(
        name,
        _setting(curve),
        f"slope of {what}{' / ((1 + log T)/T)' if logarithm else ''}",
        fitted_slope(curve.horizons, divided, seed),
        "≤",
        0.0 if logarithm else -0.5,
        p_value=two_terms(samples, rate, 1.0 / times),
        bound_share=share,
        statement=STATEMENTS.get((curve.quantity, curve.variant, curve.rule), "Proposition 2.1"),
        family=family,
    )


def _words(curve: Curve) -> tuple[str, str]:
    """The name of a curve's line, and what is averaged."""
    own = curve.variant == "plug_in"
    if curve.quantity == "stationarity":
        return ("stationarity", "average ‖∇V‖²") if own else ("surrogate_stationarity", "average ‖∇V^α‖²")
    if curve.quantity == "bias":
        name, what = ("bias", "average ‖∇B‖²") if own else ("surrogate_bias", "average ‖∇B^sur‖²")
        return f"{name}_{curve.rule}", what
    return f"nuisance_{curve.rule}", "average excess loss"


def _setting(curve: Curve) -> str:
    words = f"α = {curve.alpha:g}"
    if curve.quantity == "stationarity" and curve.alpha < 1.0:
        words += f", {curve.rule}"
    if curve.quantity == "excess" and curve.variant != "plug_in":
        words += ", surrogate"
    return words
