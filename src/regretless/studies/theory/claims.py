"""The theorems as measurements: is each claim borne out by the library's own DFHPG, with what confidence?

The world is ``theory_world``, the runs are ``theory_runs``, the single steps ``theory_points``. An equality is borne out if its
simultaneous 95 % interval holds the theorem's value and the joint test of all coordinates does not reject; an upper bound on a
rate if the upper 95 % limit of the slope is at most the theorem's exponent, and no average exceeds the explicit bound.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless.simulate.programs import Progress
from regretless.studies.theory import world as world
from regretless.studies.theory.points import compare, sample_steps
from regretless.studies.theory.runs import SEGMENT, Measured, Rule, play_runs
from regretless.studies.theory.slopes import CONFIDENCE, Interval, fitted_slope, mean_interval

REPLICATIONS = 128
SAMPLES = 2**21
DOUBLINGS = 4
FORGOTTEN = 5.0
"""The shortest horizon is one at which every direction of either recursion has forgotten its start up to ``e^-5``."""

KINDS = ((1.0, 0.0), (0.0, 0.0), (0.25, 0.0), (0.5, 0.0), (0.75, 0.0), (0.5, 0.05))
"""Pairs of α and nuisance step of the estimators: the score, four mixtures with φ held, one with φ stepped first."""

ALPHAS: dict[Rule, tuple[float, ...]] = {"adaptive": (0.0, 0.5, 1.0), "constant": (0.0, 0.5)}
"""At α = 1 the nuisance has no say, so one rule will do."""


class Claim(NamedTuple):
    """One line of the result: what a theorem says and what was measured."""

    name: str
    setting: str
    quantity: str
    measured: Interval
    relation: str  # "=" or "≤"
    expected: float
    p_value: float | None = None  # of the joint test, for an equality
    bound_share: float | None = None  # largest upper limit of average / explicit bound, for a rate

    @property
    def holds(self) -> bool:
        """The verdict."""
        if self.relation == "=":
            assert self.p_value is not None
            agrees = self.measured.low <= self.expected <= self.measured.high
            return agrees and self.p_value >= (1.0 - CONFIDENCE) / len(EQUALITIES)
        assert self.bound_share is not None
        return self.measured.high <= self.expected and self.bound_share <= 1.0

    def to_dict(self) -> dict[str, Any]:
        """The line as a JSON object."""
        values = {**self._asdict(), **self.measured._asdict(), "holds": self.holds}
        del values["measured"]
        return {"measured" if key == "value" else key: value for key, value in values.items()}


class Curve(NamedTuple):
    """Averages by horizon of one quantity, rule and α, with their intervals and the theorem's bound."""

    quantity: str
    rule: str
    alpha: float
    horizons: list[int]
    averages: list[Interval]
    bounds: list[float]

    def to_dict(self) -> dict[str, Any]:
        """The curve as a JSON object."""
        parts = {key: [getattr(one, key) for one in self.averages] for key in Interval._fields}
        return {**self._asdict(), "averages": parts}


class TheoryResult(NamedTuple):
    """All claims, the curves behind them, and the constants they rest on."""

    claims: list[Claim]
    curves: list[Curve]
    constants: world.Constants
    visited_convexity: float  # smallest eigenvalue at any θ that was looked at along the runs
    clipped: int  # rounds in which the policy's clipping interfered (the theorems have none)
    record: dict[str, Any]  # seed, horizons, replications, samples, whether that is too short to judge, seconds

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object."""
        return {
            "claims": [claim.to_dict() for claim in self.claims],
            "curves": [curve.to_dict() for curve in self.curves],
            "constants": self.constants._asdict(),
            "visited_convexity": self.visited_convexity,
            "clipped": self.clipped,
            **self.record,
        }


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    replications: int = REPLICATIONS,
    samples: int = SAMPLES,
    horizons: Sequence[int] | None = None,
) -> TheoryResult:
    """Measures every claim; ``horizons`` are multiples of 512 (default: five, doubling, the shortest by ``FORGOTTEN``)."""
    if replications < 2 or seed < 0:
        raise ValueError(f"expected at least 2 replications and a seed of at least 0, got {replications} and {seed}")
    began = time.perf_counter()
    progress("constants of the theorems", 0, 1)
    facts = world.constants()
    shortest = shortest_horizon(facts)
    horizons = horizons or [shortest * 2**k for k in range(DOUBLINGS + 1)]
    with jax.enable_x64(True):
        claims = estimator_claims(samples, seed, progress)
        runs = all_runs(facts, horizons, replications, seed, progress)
    curves = all_curves(facts, horizons, runs)
    claims += [rate_claim(curve, samples, seed) for curve, samples in curves]
    record = {
        "seed": seed,
        "horizons": list(horizons),
        "replications": replications,
        "samples": samples,
        "short": horizons[0] < shortest or samples < SAMPLES,
        "seconds": round(time.perf_counter() - began, 1),
    }
    measured = [one for row in runs.values() for one in row]
    return TheoryResult(
        claims,
        [curve for curve, _ in curves],
        facts,
        min(one.convexity for one in measured),
        sum(one.clipped for one in measured),
        record,
    )


def shortest_horizon(facts: world.Constants) -> int:
    """The first power of two at which ``exp(−2 r √T) ≤ e^-FORGOTTEN`` for the slowest rate of nuisance and policy.

    Per round a direction of ``φ − φ*`` shrinks by ``η λ = r/√T`` at least, with ``r = λ D/G``; one of ``θ − θ*`` by
    ``β μ = r/√T`` with ``r = μ/L``.
    """
    rate = min(facts.convexity * facts.diameter / facts.slope, facts.relaxation / facts.smoothness)
    return max(SEGMENT, 2 ** math.ceil(2.0 * math.log2(FORGOTTEN / (2.0 * rate))))


def estimator_claims(samples: int, seed: int, progress: Progress) -> list[Claim]:
    """Claims 1 and 2: means of the estimators against exact gradients, at a point away from every optimum."""
    draw = np.random.default_rng(seed)
    shape = (world.ITEMS, world.FEATURES)
    theta, phi = draw.uniform(-1.0, 1.0, shape), draw.normal(size=shape)
    phi *= 0.75 * world.RADIUS / np.linalg.norm(phi)
    moments = sample_steps(theta, phi, KINDS, samples, seed, progress)
    gradient = np.asarray(world.gradient(jnp.asarray(theta))).reshape(-1)
    bias = np.asarray(world.bias_gradient(jnp.asarray(phi), jnp.asarray(theta))).reshape(-1)
    claims = []
    for index, (name, setting, quantity, expected) in enumerate(EQUALITIES):
        offset, direction = (np.zeros_like(bias), gradient) if index == 0 else (gradient, bias)
        measured, p_value = compare(moments, index, offset, direction, expected, len(EQUALITIES))
        claims.append(Claim(name, setting, quantity, measured, "=", expected, p_value))
    return claims


def _equalities() -> list[tuple[str, str, str, float]]:
    """Name, setting, quantity and theorem's value of each estimator in ``KINDS``."""
    size = float(np.sum(world.CONTEXTS[0] ** 2))  # ‖x‖², the same in every context
    rows = []
    for alpha, eta in KINDS:
        if alpha == 1.0:
            rows.append(("score_unbiased", "α = 1", "mean of score estimator / exact ∇V", 1.0))
        elif eta == 0.0:
            rows.append(("hybrid_bias", f"α = {alpha:g}", "bias of hybrid / exact plug-in bias", 1.0 - alpha))
        else:
            shrunk = (1.0 - alpha) * (1.0 - 2.0 * eta * size)
            rows.append(("hybrid_bias_new_phi", f"α = {alpha:g}, η = {eta:g}", "the same with φ stepped first", shrunk))
    return rows


EQUALITIES = _equalities()


def all_runs(
    facts: world.Constants, horizons: Sequence[int], replications: int, seed: int, progress: Progress
) -> dict[Rule, list[Measured]]:
    """Runs of every horizon with both rules; each horizon has seeds of its own."""
    total = sum(len(alphas) for alphas in ALPHAS.values()) * sum(horizons)
    before = 0
    runs: dict[Rule, list[Measured]] = {}
    for rule, alphas in ALPHAS.items():
        runs[rule] = []
        for index, horizon in enumerate(horizons):
            first = (seed * len(horizons) + index) * replications

            def told(what: str, done: int, of: int, before: int = before, weight: int = len(alphas)) -> None:
                if what == "running":
                    what, done, of = "runs of all horizons", before + weight * done, total
                progress(what, done, of)

            runs[rule].append(play_runs(rule, alphas, horizon, range(first, first + replications), facts, told))
            before += len(alphas) * horizon
    return runs


def all_curves(
    facts: world.Constants, horizons: Sequence[int], runs: dict[Rule, list[Measured]]
) -> list[tuple[Curve, list[np.ndarray]]]:
    """The curves with their replications: excess nuisance loss, then squared gradient norm, by rule and α."""
    curves = []
    for quantity in ("excess", "stationarity"):
        for rule, measured in runs.items():
            for index, alpha in enumerate(ALPHAS[rule]):
                if quantity == "excess" and alpha == 1.0:
                    continue  # the nuisance does not learn there
                samples = [getattr(one, quantity)[index] for one in measured]
                bounds = [
                    facts.nuisance_bound(rule, horizon)
                    if quantity == "excess"
                    else facts.stationarity_bound(rule, alpha, horizon)
                    for horizon in horizons
                ]
                averages = [mean_interval(sample) for sample in samples]
                curves.append((Curve(quantity, rule, alpha, list(horizons), averages, bounds), samples))
    return curves


def rate_claim(curve: Curve, samples: list[np.ndarray], seed: int) -> Claim:
    """Claims 3 to 5: the slope of a curve against the theorem's exponent."""
    logarithm = curve.quantity == "excess" and curve.rule == "adaptive"
    rates = [(1.0 + math.log(t)) / t if logarithm else 1.0 for t in curve.horizons]
    measured = fitted_slope(curve.horizons, [sample / rate for sample, rate in zip(samples, rates, strict=True)], seed)
    share = max(one.high / bound for one, bound in zip(curve.averages, curve.bounds, strict=True))
    if curve.quantity == "stationarity":
        name, quantity = "stationarity", "slope of average ‖∇V‖²"
    elif logarithm:
        name, quantity = "nuisance_adaptive", "slope of average excess loss / ((1 + log T)/T)"
    else:
        name, quantity = "nuisance_constant", "slope of average excess loss"
    setting = f"α = {curve.alpha:g}"
    if name == "stationarity" and curve.alpha < 1.0:
        setting += f", {curve.rule}"
    return Claim(name, setting, quantity, measured, "≤", 0.0 if logarithm else -0.5, bound_share=share)
