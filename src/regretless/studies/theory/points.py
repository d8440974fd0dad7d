"""The gradient estimators at a fixed point: single steps of DFHPG's own ``learn``, compared with exact gradients."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import chdtrc, ndtri

from regretless.keys import DECIDE, LEARN, STREAM, purpose_key
from regretless.policies.dfhpg.algorithm import DFHPG
from regretless.simulate.programs import Progress, Replicas
from regretless.simulate.stream import Game
from regretless.studies.theory import world as world
from regretless.studies.theory.runs import policy
from regretless.studies.theory.slopes import CONFIDENCE, Interval

REPLICAS = 64
CHUNK = 1024


class Moments(NamedTuple):
    """Mean of ``size`` independent steps, ``[steps, dp]``, and the covariance of that mean, ``[steps, dp, dp]``."""

    mean: np.ndarray
    covariance: np.ndarray
    size: int


class Sums(eqx.Module):
    """Sums over steps of ``g`` and ``g gᵀ``."""

    first: Float[Array, "steps dp"]
    second: Float[Array, "steps dp dp"]


def _sample(shared: tuple[DFHPG, Game, Array, Array, Any], own: Any) -> Sums:
    """``CHUNK`` steps from the same point, for each policy of the stack on the same rounds."""
    stack, game, theta, phi, start = shared

    def steps(one: DFHPG) -> Float[Array, "chunk dp"]:
        fresh = one.init(own)
        state = eqx.tree_at(lambda s: (s.theta, s.phi.phi), fresh, (theta, phi))

        def step(t: Array) -> Float[Array, " dp"]:
            played = game.benchmark.round(purpose_key(own, STREAM, t), None, t)
            context = game.benchmark.context(None, played.observation)
            decision = one.decide(purpose_key(own, DECIDE, t), state, context, None)
            feedback = one.problem.observe(decision, played.cost)
            new, _ = one.learn(purpose_key(own, LEARN, t), state, decision, feedback)
            return (theta - new.theta).reshape(-1)

        return jax.vmap(step)(start + jnp.arange(CHUNK, dtype=jnp.int32))

    g = jax.vmap(steps)(stack)
    return Sums(jnp.sum(g, axis=1), jnp.einsum("snp,snq->spq", g, g))


def sample_steps(
    theta: np.ndarray,
    phi: np.ndarray,
    kinds: Sequence[tuple[float, float]],
    samples: int,
    seed: int,
    progress: Progress,
) -> Moments:
    """Moments of the step that ``learn`` takes from ``(θ, φ)``, for pairs of α and nuisance step η.

    With a policy rate of 1 the step is the estimator itself, ``g = θ_t − θ_{t+1}``. ``η = 0`` leaves ``φ`` where it is.
    """
    game = Game(world.World())
    built = [jax.tree.map(jnp.asarray, policy("constant", alpha, 1.0, eta)) for alpha, eta in kinds]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *built)
    replicas = Replicas(REPLICAS)
    keys = replicas.place(jax.vmap(jax.random.key)(np.arange(REPLICAS, dtype=np.uint32) + np.uint32(REPLICAS * seed)))
    width = world.ITEMS * world.FEATURES
    first, second, size = np.zeros((len(kinds), width)), np.zeros((len(kinds), width, width)), 0
    while size < samples:
        shared = (stack, game, jnp.asarray(theta), jnp.asarray(phi), jnp.int32(size // REPLICAS))
        replicas.prepare([(_sample, shared, keys)], progress)
        sums = jax.tree.map(
            np.asarray, replicas.run(_sample, shared, keys)
        )  # summed on the host: no device waits for another
        first, second = first + np.sum(sums.first, axis=0), second + np.sum(sums.second, axis=0)
        size += REPLICAS * CHUNK
        progress("gradient estimators", min(size, samples), samples)
    mean = first / size
    spread = second / size - np.einsum("sp,sq->spq", mean, mean)
    return Moments(mean, spread / (size - 1), size)


def compare(
    moments: Moments, index: int, offset: np.ndarray, direction: np.ndarray, expected: float, family: int
) -> tuple[Interval, float]:
    """Share of ``direction`` in ``mean − offset``, and the p-value of ``mean = offset + expected · direction`` jointly.

    The interval is one of ``family`` intervals that hold together with 95 % (Bonferroni).
    """
    mean, covariance = moments.mean[index], moments.covariance[index]
    length = float(direction @ direction)
    share = float((mean - offset) @ direction) / length
    error = math.sqrt(float(direction @ covariance @ direction)) / length
    margin = float(ndtri(1.0 - 0.5 * (1.0 - CONFIDENCE) / family)) * error
    miss = mean - offset - expected * direction
    statistic = float(miss @ np.linalg.solve(covariance, miss))
    return Interval(share, share - margin, share + margin), float(chdtrc(len(miss), statistic))
