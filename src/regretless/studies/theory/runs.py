"""DFHPG played in the world of the theorems, measured in every round: both variants, runs of many horizons."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from regretless.parts import number
from regretless.policies.base import Policy
from regretless.policies.dfhpg.gradients import score_gradient
from regretless.policies.dfhpg.point import PointDFHPG
from regretless.policies.dfhpg.settings import DFHPGSettings
from regretless.policies.dfhpg.variants import dfhpg
from regretless.simulate import rounds, stream
from regretless.simulate.programs import Progress, Replicas
from regretless.simulate.stream import Game
from regretless.studies.theory import surrogate, world
from regretless.surrogates.direct import SPOPlus
from regretless.types import Context, Decision, Feedback, Info, Instance, Key, Sample

Rule = Literal["adaptive", "constant"]
Variant = Literal["plug_in", "listwise_ltr", "spo_plus"]
SEGMENT = 512


def policy(
    rule: Rule, alpha: float, policy_rate: float, nuisance_rate: float, variant: Variant = "plug_in"
) -> PointDFHPG:
    """DFHPG as the theorems have it: fixed α, constant step β, no baseline, projected linear nuisance.

    ``variant`` is the first theorem's plug-in term, or the second's surrogate, evaluated at the sample.
    """
    settings: dict[str, Any] = {
        "nuisance": "linear",
        "nuisance.rule": rule,
        "nuisance.lr": nuisance_rate,
        "nuisance.radius": world.RADIUS,
        "policy_lr": policy_rate,
        "policy_schedule": "constant",
        "alpha.max": alpha,
        "alpha.min": alpha,
        "baseline": "none",
        "normalize_gradients": False,
        "exploration_scale": world.SCALE,
    }
    problem = world.World().problem("bandit")
    parts: dict[str, Any] = {
        "model": world.BoundedGaussian(world.ITEMS, (world.FEATURES,), number(world.SCALE)),
    }
    if variant == "plug_in":
        settings["variant"] = "plug_in"
    else:
        settings |= {"surrogate": variant, "surrogate_at": "sample"}
    if variant == "spo_plus":
        parts["surrogate"] = SPOPlus.build(problem.oracle, SPOPlus.Settings())
    if variant == "listwise_ltr":
        chosen = {"temperature": surrogate.TEMPERATURE, "pool": world.ITEMS}
        parts["surrogate"] = surrogate.FullPool.build(problem.oracle, surrogate.FullPool.Settings(**chosen))
    built = dfhpg(problem, DFHPGSettings(**settings), **parts)
    assert isinstance(built, PointDFHPG)
    return built


class Sums(eqx.Module):
    """What is summed over the rounds of a run."""

    excess: Float[Array, ""]  # ½⟨∇ℓ_t(φ_t), φ_t − φ*⟩
    bias: Float[Array, ""]  # ‖∇B(φ_t, θ_t)‖², or that of B^sur
    stationarity: Float[Array, ""]  # ⟨∇V(θ_t), g*_t⟩, or that of V^α
    clipped: Int[Array, ""]  # rounds in which the gradient was longer than the policy lets pass


class WatchedState(eqx.Module):
    """The policy's own state and what was measured so far."""

    inner: Any
    sums: Sums

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""
        return self.inner.version


class Watched(Policy):
    """A DFHPG that is measured in every round, before it learns.

    Two of the sums are of one-sample estimates whose conditional means are the quantities of the theorems. Such sums telescope
    (the proofs rest on that), so they vary far less between replications than sums of the quantities themselves:

    - ``½⟨∇ℓ_t(φ_t), φ_t − φ*⟩ = (f_φ(x)·w − y)(f_φ(x)·w − f*(x)·w)``, of mean ``R_θ(f_φ) − R_θ(f*)``;
    - ``⟨∇V(θ_t), g*_t⟩`` with ``g*_t`` the hybrid estimator that has ``f*`` for ``f_φ``, of mean ``‖∇V(θ_t)‖²``; for the
      surrogate variant the same with ``V^α``.
    """

    inner: PointDFHPG

    def init(self, key: Key) -> WatchedState:
        zero = jnp.zeros(())
        return WatchedState(self.inner.init(key), Sums(zero, zero, zero, jnp.zeros((), jnp.int32)))

    def sample(self, key: Key, state: WatchedState, context: Context, instance: Instance) -> Sample:
        return self.inner.sample(key, state.inner, context, instance)

    def learn(self, key: Key, state: WatchedState, decision: Decision, feedback: Feedback) -> tuple[WatchedState, Info]:
        phi, truth = state.inner.phi.phi, jnp.asarray(world.COEFFICIENTS)
        predicted, known = decision.w @ (phi @ decision.context), decision.w @ (truth @ decision.context)
        excess = (predicted - feedback.total()) * (predicted - known)
        watch = self._plug_in if self.inner.surrogate is None else self._surrogate
        bias, slope, steps = watch(state.inner, decision, feedback.total(), known)
        inner, info = self.inner.learn(key, state.inner, decision, feedback)
        sums = Sums(
            state.sums.excess + excess,
            state.sums.bias + jnp.sum(jnp.square(bias)),
            state.sums.stationarity + jnp.sum(slope * steps),
            state.sums.clipped + (info.more["mixed_norm"] > self.inner.clip),
        )
        return WatchedState(inner, sums), info

    def _plug_in(self, state: Any, decision: Decision, y: Array, known: Array) -> tuple[Array, Array, Array]:
        """``∇B(φ, θ)``, ``∇V(θ)`` and ``g*``."""
        alpha, low = state.mixing.alpha, state.theta.astype(jnp.float32)
        steps = self._score(state, decision, alpha * y + (1.0 - alpha) * known)
        return world.bias_gradient(state.phi.phi.astype(low.dtype), low), world.gradient(low), steps

    def _surrogate(self, state: Any, decision: Decision, y: Array, known: Array) -> tuple[Array, Array, Array]:
        """``∇B^sur(φ, θ)``, ``∇V^α(θ)`` and ``g*``."""
        alpha, low = state.mixing.alpha, state.theta.astype(jnp.float32)
        target = jnp.asarray(world.COEFFICIENTS) @ decision.context
        cotangent, _ = self.inner.surrogate(state.memory, decision.cost_sample, target, None)  # type: ignore[misc]
        carried = self.inner.model.pullback(state.theta, decision.context, cotangent)
        steps = alpha * self._score(state, decision, y) + (1.0 - alpha) * carried
        slope = surrogate.mixed_gradient(alpha, low, surrogate.FAST)
        return surrogate.surrogate_bias_gradient(state.phi.phi.astype(low.dtype), low), slope, steps

    def _score(self, state: Any, decision: Decision, weight: Array) -> Array:
        return score_gradient(self.inner.model, state.theta, decision, weight, jnp.asarray(True))


class Measured(NamedTuple):
    """Averages over the rounds of each replication, ``[alphas, replications]``."""

    excess: np.ndarray
    bias: np.ndarray
    stationarity: np.ndarray
    convexity: float  # smallest eigenvalue at any θ that ended a segment
    clipped: int


def _begin(shared: tuple[Watched, Game], own: Any) -> rounds.Carry:
    stack, game = shared
    return jax.vmap(lambda one: rounds.begin(one, game, own))(stack)


def _advance(shared: tuple[Watched, Game, Any], own: Any) -> tuple[rounds.Carry, Array]:
    """One segment of a replication, for all α at once on the same stream."""
    stack, game, start = shared
    key, carry = own
    segment = stream.draw_and_solve(game, key, start, SEGMENT)
    carry, _ = jax.vmap(lambda one, carry: rounds.play_segment(one, game, carry, key, segment, start))(stack, carry)
    return carry, jnp.min(jax.vmap(world.convexity)(carry.state.inner.theta))


def play_runs(
    variant: Variant, rule: Rule, alphas: Sequence[float], horizon: int, seeds: Sequence[int], progress: Progress
) -> Measured:
    """Runs of one horizon with the step sizes that the theorems choose for it."""
    if horizon % SEGMENT:
        raise ValueError(f"expected a horizon that is a multiple of {SEGMENT}, got {horizon}")
    facts = world.constants()
    nuisance_rate = 1.0 / facts.convexity if rule == "adaptive" else facts.diameter / (facts.slope * horizon**0.5)
    built = [
        policy(rule, alpha, 1.0 / (smoothness(variant, alpha) * horizon**0.5), nuisance_rate, variant)
        for alpha in alphas
    ]
    watched = [jax.tree.map(jnp.asarray, Watched(one.problem, one)) for one in built]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *watched)
    game = Game(world.World())
    replicas = Replicas(len(seeds))
    keys = replicas.place(jax.vmap(jax.random.key)(np.asarray(seeds, np.uint32)))
    carry = replicas.run(_begin, (stack, game), keys)
    lowest = np.inf
    for start in range(0, horizon, SEGMENT):
        call = (_advance, (stack, game, jnp.int32(start)), (keys, carry))
        replicas.prepare([call], progress)
        carry, eigenvalue = replicas.run(*call)
        lowest = min(lowest, float(np.asarray(eigenvalue).min()))
        progress("running", start + SEGMENT, horizon)
    sums = carry.state.sums
    excess, bias, stationarity = (
        np.asarray(total).T / horizon for total in (sums.excess, sums.bias, sums.stationarity)
    )
    return Measured(excess, bias, stationarity, lowest, int(np.asarray(sums.clipped).sum()))


def smoothness(variant: Variant, alpha: float) -> float:
    """``L`` of the function that a variant descends: ``V``, or ``V^α``."""
    return world.constants().smoothness if variant == "plug_in" else surrogate.constants().smoothness[alpha]
