"""DFHPG played in the world of the theorems: runs of many horizons, and single steps at a fixed point."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from regretless import policies
from regretless.parts import number
from regretless.policies.base import Policy
from regretless.policies.dfhpg.gradients import score_gradient
from regretless.policies.dfhpg.point import PointDFHPG
from regretless.simulate import rounds, stream
from regretless.simulate.programs import Progress, Replicas
from regretless.simulate.stream import Game
from regretless.studies.theory import world as world
from regretless.types import Context, Decision, Feedback, Info, Instance, Key, Sample

Rule = Literal["adaptive", "constant"]
RULES: tuple[Rule, ...] = ("adaptive", "constant")
SEGMENT = 512


def policy(rule: Rule, alpha: float, policy_rate: float, nuisance_rate: float) -> PointDFHPG:
    """DFHPG as the theorems have it: plug-in variant, fixed α, constant step β, no baseline, projected linear nuisance."""
    settings = {
        "variant": "plug_in",
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
    model = world.BoundedGaussian(world.ITEMS, (world.FEATURES,), number(world.SCALE))
    built = policies.build("dfhpg", world.World().problem("bandit"), settings, model=model)
    assert isinstance(built, PointDFHPG)
    return built


class WatchedState(eqx.Module):
    """The policy's own state and what was measured so far."""

    inner: Any
    excess: Float[Array, ""]  # Σ ½⟨∇ℓ_t(φ_t), φ_t − φ*⟩
    stationarity: Float[Array, ""]  # Σ ⟨∇V(θ_t), g*_t⟩
    clipped: Int[Array, ""]  # rounds in which the gradient was longer than the policy lets pass

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""
        return self.inner.version


class Watched(Policy):
    """A DFHPG that is measured in every round, before it learns.

    Both sums are of one-sample estimates whose conditional means are the quantities of the theorems. Such sums telescope (the
    proofs rest on that), so they vary far less between replications than sums of the quantities themselves:

    - ``½⟨∇ℓ_t(φ_t), φ_t − φ*⟩ = (f_φ(x)·w − y)(f_φ(x)·w − f*(x)·w)``, of mean ``R_θ(f_φ) − R_θ(f*)``;
    - ``⟨∇V(θ_t), g*_t⟩`` with ``g*_t`` the hybrid estimator that has ``f*`` for ``f_φ``, of mean ``‖∇V(θ_t)‖²``.
    """

    inner: PointDFHPG

    def init(self, key: Key) -> WatchedState:
        zero = jnp.zeros(())
        return WatchedState(self.inner.init(key), zero, zero, jnp.zeros((), jnp.int32))

    def sample(self, key: Key, state: WatchedState, context: Context, instance: Instance) -> Sample:
        return self.inner.sample(key, state.inner, context, instance)

    def learn(self, key: Key, state: WatchedState, decision: Decision, feedback: Feedback) -> tuple[WatchedState, Info]:
        phi, truth = state.inner.phi.phi, jnp.asarray(world.COEFFICIENTS)
        predicted, known = decision.w @ (phi @ decision.context), decision.w @ (truth @ decision.context)
        excess = (predicted - feedback.total()) * (predicted - known)
        slope = world.gradient(state.inner.theta.astype(jnp.float32))
        alpha = state.inner.mixing.alpha
        weight = alpha * feedback.total() + (1.0 - alpha) * known
        steps = score_gradient(self.inner.model, state.inner.theta, decision, weight, jnp.asarray(True))
        stationarity = jnp.sum(slope * steps)
        inner, info = self.inner.learn(key, state.inner, decision, feedback)
        clipped = state.clipped + (info.more["mixed_norm"] > self.inner.clip)
        return WatchedState(inner, state.excess + excess, state.stationarity + stationarity, clipped), info


class Measured(NamedTuple):
    """Averages over the rounds of each replication, ``[alphas, replications]``."""

    excess: np.ndarray
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
    rule: Rule, alphas: Sequence[float], horizon: int, seeds: Sequence[int], facts: world.Constants, progress: Progress
) -> Measured:
    """Runs of one horizon with the step sizes that the theorems choose for it."""
    if horizon % SEGMENT:
        raise ValueError(f"expected a horizon that is a multiple of {SEGMENT}, got {horizon}")
    nuisance_rate = 1.0 / facts.convexity if rule == "adaptive" else facts.diameter / (facts.slope * horizon**0.5)
    policy_rate = 1.0 / (facts.smoothness * horizon**0.5)
    built = [policy(rule, alpha, policy_rate, nuisance_rate) for alpha in alphas]
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
    state = carry.state
    return Measured(
        np.asarray(state.excess).T / horizon,
        np.asarray(state.stationarity).T / horizon,
        lowest,
        int(np.asarray(state.clipped).sum()),
    )
