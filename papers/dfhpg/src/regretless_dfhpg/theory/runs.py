"""DFHPG played in the world of the theorems, measured in every round: both variants, runs of many horizons."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from regretless.policies import DFHPG, Policy
from regretless.policies.dfhpg.algorithm import PointDFHPG
from regretless.policies.dfhpg.gradients import score_gradient
from regretless.simulation import stream
from regretless.simulation.programs import Progress, Replicas
from regretless.simulation.stream import SimulationSpec
from regretless.types import Context, Decision, Feedback, Info, Instance, Key, Sample
from regretless_dfhpg.theory import surrogate, world
from regretless_dfhpg.theory.nuisance import LinearNuisance
from regretless_dfhpg.theory.statements import Curve, Statement, fitted_slope, mean_interval, two_term_pvalue

Rule = Literal["adaptive", "constant"]
Variant = Literal["plug_in", "listwise_ltr", "spo_plus"]
SEGMENT = 512


def policy(
    rule: Rule, alpha: float, policy_rate: float, nuisance_rate: float, variant: Variant = "plug_in"
) -> PointDFHPG:
    """Return DFHPG as the theorems assume it: fixed α, constant step β, no baseline, projected linear nuisance.

    ``variant`` is the first theorem's plug-in term, or the second's surrogate, evaluated at the sample.
    """
    settings: dict[str, Any] = {
        "nuisance": LinearNuisance(rule=rule, lr=nuisance_rate, radius=world.RADIUS),
        "policy_lr": policy_rate,
        "policy_schedule": "constant",
        "alpha.max": alpha,
        "alpha.min": alpha,
        "baseline": "none",
        "normalize_gradients": False,
        "exploration_scale": world.SCALE,
    }
    problem = world.World().problem("bandit")
    parts: dict[str, Any] = {"model": world.BoundedGaussian(), "surrogate": "spo_plus"}
    if variant == "plug_in":
        settings["variant"] = "plug_in"
    else:
        settings["surrogate_at"] = "sample"
    if variant == "listwise_ltr":
        parts["surrogate"] = surrogate.FullPool(temperature=surrogate.TEMPERATURE, pool=world.ITEMS)
    built = DFHPG(**settings, **parts).build(problem)
    assert isinstance(built, PointDFHPG)
    return built


class RunSums(eqx.Module):
    """Sums over the rounds of a run."""

    excess: Float[Array, ""]  # ½⟨∇ℓ_t(φ_t), φ_t − φ*⟩
    bias: Float[Array, ""]  # ‖∇B(φ_t, θ_t)‖², or that of B^sur
    stationarity: Float[Array, ""]  # ⟨∇V(θ_t), g*_t⟩, or that of V^α
    clipped: Int[Array, ""]  # rounds in which the gradient was clipped


class MeasuredState(eqx.Module):
    """The policy's state and the sums so far."""

    inner: Any
    sums: RunSums

    @property
    def version(self) -> Int[Array, ""]:
        """Return the number of learning steps."""
        return self.inner.version


class MeasuredPolicy(Policy):
    """DFHPG with measurements in every round, before it learns.

    Two of the sums are of one-sample estimates whose conditional means are the quantities of the theorems. Such sums
    telescope (the proofs rest on that), so they vary far less between replications than sums of the quantities
    themselves:

    - ``½⟨∇ℓ_t(φ_t), φ_t − φ*⟩ = (f_φ(x)·w − y)(f_φ(x)·w − f*(x)·w)``, of mean ``R_θ(f_φ) − R_θ(f*)``;
    - ``⟨∇V(θ_t), g*_t⟩`` with ``g*_t`` the hybrid estimator that has ``f*`` for ``f_φ``, of mean ``‖∇V(θ_t)‖²``; for
    the surrogate variant the same with ``V^α``.
    """

    inner: PointDFHPG

    def init(self, key: Key) -> MeasuredState:
        zero = jnp.zeros(())
        return MeasuredState(self.inner.init(key), RunSums(zero, zero, zero, jnp.zeros((), jnp.int32)))

    def sample(self, key: Key, state: MeasuredState, context: Context, instance: Instance) -> Sample:
        return self.inner.sample(key, state.inner, context, instance)

    def learn(
        self, key: Key, state: MeasuredState, decision: Decision, feedback: Feedback
    ) -> tuple[MeasuredState, Info]:
        phi, truth = state.inner.phi.phi, jnp.asarray(world.COEFFICIENTS)
        predicted, known = decision.w @ (phi @ decision.context), decision.w @ (truth @ decision.context)
        excess = (predicted - feedback.total()) * (predicted - known)
        watch = self._plug_in if self.inner.surrogate is None else self._surrogate
        bias, slope, steps = watch(state.inner, decision, feedback.total(), known)
        inner, info = self.inner.learn(key, state.inner, decision, feedback)
        sums = RunSums(
            state.sums.excess + excess,
            state.sums.bias + jnp.sum(jnp.square(bias)),
            state.sums.stationarity + jnp.sum(slope * steps),
            state.sums.clipped + (info.more["mixed_norm"] > self.inner.clip),
        )
        return MeasuredState(inner, sums), info

    def _plug_in(self, state: Any, decision: Decision, y: Array, known: Array) -> tuple[Array, Array, Array]:
        """Return ``∇B(φ, θ)``, ``∇V(θ)`` and ``g*``."""
        alpha, low = state.mixing.alpha, state.theta.astype(jnp.float32)
        steps = self._score(state, decision, alpha * y + (1.0 - alpha) * known)
        return world.bias_gradient(state.phi.phi.astype(low.dtype), low), world.gradient(low), steps

    def _surrogate(self, state: Any, decision: Decision, y: Array, known: Array) -> tuple[Array, Array, Array]:
        """Return ``∇B^sur(φ, θ)``, ``∇V^α(θ)`` and ``g*``."""
        alpha, low = state.mixing.alpha, state.theta.astype(jnp.float32)
        target = jnp.asarray(world.COEFFICIENTS) @ decision.context
        cotangent, _ = self.inner.surrogate(state.memory, decision.cost_sample, target, None)  # type: ignore[misc]
        carried = self.inner.model.pullback(state.theta, decision.context, cotangent)
        steps = alpha * self._score(state, decision, y) + (1.0 - alpha) * carried
        slope = surrogate.mixed_gradient(alpha, low, surrogate.FAST)
        return surrogate.surrogate_bias_gradient(state.phi.phi.astype(low.dtype), low), slope, steps

    def _score(self, state: Any, decision: Decision, weight: Array) -> Array:
        return score_gradient(self.inner.model, state.theta, decision, weight, jnp.asarray(True))


class RunAverages(NamedTuple):
    """Averages over the rounds of each replication, ``[alphas, replications]``."""

    excess: np.ndarray
    bias: np.ndarray
    stationarity: np.ndarray
    convexity: float  # smallest eigenvalue at any θ that ended a segment
    clipped: int


def _begin(shared: tuple[MeasuredPolicy, SimulationSpec], seed_key: Any) -> stream.Carry:
    stack, spec = shared
    return jax.vmap(lambda one: stream.begin(one, spec, seed_key))(stack)


def _advance(shared: tuple[MeasuredPolicy, SimulationSpec, Any], mapped: Any) -> tuple[stream.Carry, Array]:
    """Play one segment of a replication, for all α at once on the same stream."""
    stack, spec, start = shared
    key, carry = mapped
    count = jnp.int32(SEGMENT)
    segment = stream.draw(spec, key, start, count, SEGMENT)
    play = lambda one, carry: stream.play_segment(one, spec, carry, key, segment, start, count)  # noqa: E731
    carry, _ = jax.vmap(play)(stack, carry)
    return carry, jnp.min(jax.vmap(world.convexity)(carry.state.inner.theta))


def play_runs(
    variant: Variant, rule: Rule, alphas: Sequence[float], horizon: int, seeds: Sequence[int], progress: Progress
) -> RunAverages:
    """Play runs of one horizon with the step sizes of the theorems."""
    if horizon % SEGMENT:
        raise ValueError(f"expected a horizon that is a multiple of {SEGMENT}, got {horizon}")
    bounds = world.constants()
    nuisance_rate = 1.0 / bounds.convexity if rule == "adaptive" else bounds.diameter / (bounds.slope * horizon**0.5)
    built = [
        policy(rule, alpha, 1.0 / (smoothness(variant, alpha) * horizon**0.5), nuisance_rate, variant)
        for alpha in alphas
    ]
    watched = [jax.tree.map(jnp.asarray, MeasuredPolicy(one.problem, one)) for one in built]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *watched)
    spec = SimulationSpec(world.World())
    replicas = Replicas(len(seeds), spec.benchmark.oracle)
    keys = replicas.place(jax.vmap(jax.random.key)(np.asarray(seeds, np.uint32)))
    carry = replicas.run(_begin, (stack, spec), keys)
    lowest = np.inf
    for start in range(0, horizon, SEGMENT):
        call = (_advance, (stack, spec, jnp.int32(start)), (keys, carry))
        replicas.prepare([call], progress)
        carry, eigenvalue = replicas.run(*call)
        lowest = min(lowest, float(np.asarray(eigenvalue).min()))
        progress("running", start + SEGMENT, horizon)
    sums = carry.state.sums
    excess, bias, stationarity = (
        np.asarray(total).T / horizon for total in (sums.excess, sums.bias, sums.stationarity)
    )
    return RunAverages(excess, bias, stationarity, lowest, int(np.asarray(sums.clipped).sum()))


def smoothness(variant: Variant, alpha: float) -> float:
    """Return ``L`` of the function that a variant minimises: ``V``, or ``V^α``."""
    return world.constants().smoothness if variant == "plug_in" else surrogate.constants().smoothness[alpha]


FORGOTTEN = 5.0
"""At the shortest horizon every direction of either recursion has forgotten its start up to ``e^-5``."""


class RunGroup(NamedTuple):
    """Runs that share a program."""

    variant: Variant
    rule: Rule
    alphas: tuple[float, ...]


GROUPS = (
    RunGroup("plug_in", "adaptive", (0.0, 0.5, 1.0)),
    RunGroup("plug_in", "constant", (0.0, 0.5)),  # at α = 1 the nuisance has no influence
    RunGroup("listwise_ltr", "adaptive", surrogate.ALPHAS),
    RunGroup("listwise_ltr", "constant", surrogate.ALPHAS),
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
"""Proposition 2.1 also covers the nuisance regret of the surrogate's runs: it holds for any sequence of policies."""

LOGARITHMIC = ("excess", "bias")
"""Quantities that fall like ``(1 + log T)/T`` with the adaptive step; the others fall like ``T^(−1/2)``."""


def shortest_horizon(bounds: world.Constants) -> int:
    """Return the first power of two at which ``exp(−2 r √T) ≤ e^-FORGOTTEN`` for the slowest rate.

    Per round a direction of ``φ − φ*`` shrinks by ``η λ = r/√T`` at least, with ``r = λ D/G``; one of ``θ − θ*`` by
    ``β μ = r/√T`` with ``r = μ/L``.
    """
    rate = min(
        bounds.convexity * bounds.diameter / bounds.slope,
        bounds.relaxation / bounds.smoothness,
    )
    return max(SEGMENT, 2 ** math.ceil(2.0 * math.log2(FORGOTTEN / (2.0 * rate))))


def play_all_runs(
    horizons: Sequence[int], replications: int, seed: int, progress: Progress
) -> dict[RunGroup, list[RunAverages]]:
    """Play the runs of every horizon and group; each horizon has its own seeds."""
    total = sum(len(group.alphas) for group in GROUPS) * sum(horizons)
    before = 0
    runs: dict[RunGroup, list[RunAverages]] = {}
    for group in GROUPS:
        runs[group] = []
        for index, horizon in enumerate(horizons):
            first = (seed * len(horizons) + index) * replications

            def report(what: str, done: int, of: int, before: int = before, weight: int = len(group.alphas)) -> None:
                if what == "running":
                    what, done, of = "runs of all horizons", before + weight * done, total
                progress(what, done, of)

            runs[group].append(play_runs(*group, horizon, range(first, first + replications), report))
            before += len(group.alphas) * horizon
    return runs


def summarise_runs(
    horizons: Sequence[int], runs: dict[RunGroup, list[RunAverages]]
) -> list[tuple[Curve, list[np.ndarray]]]:
    """Return the curves with their replications, by quantity, group and α."""
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


def bound(quantity: str, group: RunGroup, alpha: float, horizon: int) -> float:
    """Return the paper's explicit bound with all its constants."""
    bounds = world.constants()
    if quantity == "excess":
        return bounds.nuisance_bound(group.rule, horizon)
    if group.variant == "plug_in":
        return (
            bounds.bias_bound(group.rule, horizon)
            if quantity == "bias"
            else bounds.stationarity_bound(group.rule, alpha, horizon)
        )
    surrogate_bounds = surrogate.constants()
    if quantity == "bias":
        return surrogate_bounds.bias_bound(bounds, group.rule, horizon)
    return surrogate_bounds.stationarity_bound(bounds, group.rule, alpha, horizon)


def check_rates(curves: Sequence[tuple[Curve, list[np.ndarray]]], seed: int) -> list[Statement]:
    """Compare the slope of each curve with the paper's exponent."""
    return [check_rate(curve, samples, seed, len(curves)) for curve, samples in curves]


def check_rate(curve: Curve, samples: list[np.ndarray], seed: int, family: int) -> Statement:
    """Compare one curve with its rate: slope, fit of rate and next term, and share of the bound."""
    times = np.asarray(curve.horizons, float)
    logarithm = curve.quantity in LOGARITHMIC and curve.rule == "adaptive"
    rate = (1.0 + np.log(times)) / times if logarithm else times**-0.5
    divided = [sample / part for sample, part in zip(samples, rate, strict=True)] if logarithm else samples
    share = max(one.high / limit for one, limit in zip(curve.averages, curve.bounds, strict=True))
    name, what = _words(curve)
    return Statement(
        name,
        _setting(curve),
        f"slope of {what}{' / ((1 + log T)/T)' if logarithm else ''}",
        fitted_slope(curve.horizons, divided, seed),
        "≤",
        0.0 if logarithm else -0.5,
        p_value=two_term_pvalue(samples, rate, 1.0 / times),
        bound_share=share,
        statement=STATEMENTS.get((curve.quantity, curve.variant, curve.rule), "Proposition 2.1"),
        family=family,
    )


def _words(curve: Curve) -> tuple[str, str]:
    """Return the name of a curve's statement and the averaged quantity."""
    plug_in = curve.variant == "plug_in"
    if curve.quantity == "stationarity":
        return ("stationarity", "average ‖∇V‖²") if plug_in else ("surrogate_stationarity", "average ‖∇V^α‖²")
    if curve.quantity == "bias":
        name, what = ("bias", "average ‖∇B‖²") if plug_in else ("surrogate_bias", "average ‖∇B^sur‖²")
        return f"{name}_{curve.rule}", what
    return f"nuisance_{curve.rule}", "average excess loss"


def _setting(curve: Curve) -> str:
    words = f"α = {curve.alpha:g}"
    if curve.quantity == "stationarity" and curve.alpha < 1.0:
        words += f", {curve.rule}"
    if curve.quantity == "excess" and curve.variant != "plug_in":
        words += ", surrogate"
    return words
