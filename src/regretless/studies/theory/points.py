"""The gradient estimators at a fixed point: single steps of DFHPG's own ``learn``, compared with exact gradients."""

import functools
import math
from collections.abc import Callable, Sequence
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
from regretless.studies.theory import surrogate, world
from regretless.studies.theory.runs import Variant, policy, smoothness
from regretless.studies.theory.slopes import CONFIDENCE, Interval

REPLICAS = 64
CHUNK = 1024
CONSTANT = 1e-9  # share of the largest variance below which a direction does not vary
EXACT = 1e-3  # of the largest standard error: how far a mean may be off where nothing varies
EVERY = 8  # of the steps that descent is looked at: V takes a quadrature


class Kind(NamedTuple):
    """An estimator: its variant, its α, and the nuisance step η taken before it (0 leaves φ where it is)."""

    variant: Variant
    alpha: float
    eta: float = 0.0


class Moments(NamedTuple):
    """Mean of ``size`` independent steps, ``[steps, dp]``, and the covariance of that mean, ``[steps, dp, dp]``."""

    mean: np.ndarray
    covariance: np.ndarray
    size: int
    variances: np.ndarray  # [steps, batches]: E‖g − E g‖² as each batch of CHUNK steps estimates it


class Sums(eqx.Module):
    """Sums over steps of ``g`` and ``g gᵀ``."""

    first: Float[Array, "steps dp"]
    second: Float[Array, "steps dp dp"]

    @staticmethod
    def of(g: Float[Array, "steps n dp"]) -> "Sums":
        """The sums of the rows."""
        return Sums(jnp.sum(g, axis=1), jnp.einsum("snp,snq->spq", g, g))


def _steps(one: DFHPG, game: Game, own: Any, theta: Array, phi: Array, start: Array) -> tuple[Array, Array]:
    """``θ_t − θ_{t+1}`` and ``φ_t − φ_{t+1}`` of ``CHUNK`` rounds from the same point, ``[chunk, dp]`` each."""
    fresh = one.init(own)
    state = eqx.tree_at(lambda s: (s.theta, s.phi.phi), fresh, (theta, phi))

    def step(t: Array) -> tuple[Array, Array]:
        played = game.benchmark.round(purpose_key(own, STREAM, t), None, t)
        context = game.benchmark.context(None, played.observation)
        decision = one.decide(purpose_key(own, DECIDE, t), state, context, None)
        feedback = one.problem.observe(decision, played.cost)
        new, _ = one.learn(purpose_key(own, LEARN, t), state, decision, feedback)
        return (theta - new.theta).reshape(-1), (phi - new.phi.phi).reshape(-1)

    return jax.vmap(step)(start + jnp.arange(CHUNK, dtype=jnp.int32))


def _sample(shared: tuple[DFHPG, Game, Array, Array, Any], own: Any) -> tuple[Sums, Sums]:
    """Sums of the policy's and of the nuisance's steps, for each policy of the stack on the same rounds."""
    stack, game, theta, phi, start = shared
    of_policy, of_nuisance = jax.vmap(lambda one: _steps(one, game, own, theta, phi, start))(stack)
    return Sums.of(of_policy), Sums.of(of_nuisance)


def _descend(shared: tuple[DFHPG, Game, Array, Array, Array, Array, Any], own: Any) -> Float[Array, " steps"]:
    """Mean over every eighth step of ``V(θ − βg) − V(θ) − ½ L β² ‖g‖²``, with ``V^α`` for the surrogate variant."""
    stack, game, theta, phi, rates, curvatures, start = shared

    def change(one: DFHPG, rate: Array, curvature: Array) -> Array:
        weight = jnp.ones(()) if one.surrogate is None else one.mixing.init().alpha
        height = world.value if one.surrogate is None else functools.partial(surrogate.mixed_value, weight)
        g = _steps(one, game, own, theta, phi, start)[0][::EVERY]
        after = jax.lax.map(lambda step: height(theta - rate * step.reshape(theta.shape)), g, batch_size=16)
        return jnp.mean(after - height(theta) - 0.5 * curvature * rate**2 * jnp.sum(jnp.square(g), axis=1))

    return jax.vmap(change)(stack, rates, curvatures)


def _stacked(kinds: Sequence[Kind]) -> DFHPG:
    """The policies of one variant in one tree; with a policy rate of 1 a step is the estimator itself."""
    built = [jax.tree.map(jnp.asarray, policy("constant", one.alpha, 1.0, one.eta, one.variant)) for one in kinds]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *built)


def _calls(
    function: Callable[..., Any], shared: tuple[Any, ...], samples: int, seed: int, what: str, progress: Progress
) -> list[Any]:
    """What ``function`` gives for as many batches as ``samples`` need, each with an axis of replicas."""
    replicas = Replicas(REPLICAS)
    keys = replicas.place(jax.vmap(jax.random.key)(np.arange(REPLICAS, dtype=np.uint32) + np.uint32(REPLICAS * seed)))
    answers = []
    for size in range(0, samples, REPLICAS * CHUNK):
        call = (function, (*shared, jnp.int32(size // REPLICAS)), keys)
        replicas.prepare([call], progress)
        answers.append(jax.tree.map(np.asarray, replicas.run(*call)))  # on the host: no device waits for another
        progress(what, min(size + REPLICAS * CHUNK, samples), samples)
    return answers


def sample_steps(
    theta: np.ndarray,
    phi: np.ndarray,
    kinds: Sequence[Kind],
    samples: int,
    seed: int,
    progress: Progress,
    of_nuisance: bool = False,
) -> Moments:
    """Moments of the step that ``learn`` takes from ``(θ, φ)``: of the policy, or of the nuisance (divided by η).

    ``g = θ_t − θ_{t+1}``; all ``kinds`` are of one variant.
    """
    shared = (_stacked(kinds), Game(world.World()), jnp.asarray(theta), jnp.asarray(phi))
    answers = _calls(_sample, shared, samples, seed, "gradient estimators", progress)
    sums = [nuisance if of_nuisance else own for own, nuisance in answers]
    scale = np.array([1.0 / one.eta if of_nuisance and one.eta else 1.0 for one in kinds])
    firsts = np.concatenate([one.first for one in sums]) * scale[:, None]  # [batches, steps, dp]
    seconds = np.concatenate([one.second for one in sums]) * scale[:, None, None] ** 2
    size = CHUNK * len(firsts)
    mean = np.sum(firsts, axis=0) / size
    spread = np.sum(seconds, axis=0) / size - np.einsum("sp,sq->spq", mean, mean)
    within = np.trace(seconds, axis1=2, axis2=3) - np.sum(np.square(firsts), axis=2) / CHUNK
    return Moments(mean, spread / (size - 1), size, within.T / (CHUNK - 1))


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
    return Interval(share, share - margin, share + margin), _joint(miss, covariance)


def _joint(miss: np.ndarray, covariance: np.ndarray) -> float:
    """The p-value of a normal vector with mean zero. Where an estimator does not vary at all it has to be exact: the costs that
    a ranking loss moves sum to zero in every sample.
    """
    variances, axes = np.linalg.eigh(covariance)
    along = axes.T @ miss
    varies = variances > CONSTANT * variances[-1]
    if np.any(np.abs(along[~varies]) > EXACT * np.sqrt(variances[-1])):
        return 0.0
    return float(chdtrc(int(varies.sum()), float(np.sum(np.square(along[varies]) / variances[varies]))))


def descents(
    theta: np.ndarray,
    phi: np.ndarray,
    kinds: Sequence[Kind],
    horizon: int,
    samples: int,
    seed: int,
    progress: Progress,
) -> list[np.ndarray]:
    """``V(θ_{t+1}) − V(θ_t) − ½ L β² ‖g‖²`` of one step of size ``β = 1/(L√T)``, for each kind: means of batches."""
    curvatures = np.array([smoothness(one.variant, one.alpha) for one in kinds])
    rates = 1.0 / (curvatures * horizon**0.5)
    shared = (_stacked(kinds), Game(world.World()), *map(jnp.asarray, (theta, phi, rates, curvatures)))
    return list(np.concatenate(_calls(_descend, shared, samples, seed, "one-step descent", progress)).T)
