"""The surrogate variant in the world of the theorems: ``J^sur``, ``V^α``, their exact gradients and constants.

The theorem assumes a surrogate whose gradient is bounded and Lipschitz in both arguments. ``listwise_ltr`` has one if
its pool does not change, ``∇_ĉ h(c, ĉ) = (softmax(−c/τ) − softmax(−ĉ/τ))/τ``, evaluated at the sample. So the pool
holds all three items from the start. The gradient of ``spo_plus`` jumps; it is here for its unbiasedness alone.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from regretless.oracles import Oracle
from regretless.surrogates import pool
from regretless.surrogates.pool import ListwiseLTR, ListwiseLTRSurrogate
from regretless_dfhpg.theory import world
from regretless_dfhpg.theory.world import Constants, Parameters, Scalar

TEMPERATURE = 1.0  # τ
ALPHAS = (0.0, 0.5)
"""Mixing weights at which Theorem 2.3 is measured; at α = 1 it is Theorem 2.2."""


class FullPoolSurrogate(ListwiseLTRSurrogate):
    """``listwise_ltr`` whose pool holds every item before the first round, so that the loss never changes."""

    def init(self) -> pool.Pool:
        return pool.add_many(super().init(), jnp.eye(self.oracle.dim))


class FullPool(ListwiseLTR):
    """``listwise_ltr`` with a pool that is full from the start."""

    def build(self, oracle: Oracle) -> FullPoolSurrogate:
        """Return the gradient on a feasible set."""
        return FullPoolSurrogate(oracle, **self.hyperparameters())


def _plane(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of ``E[g(ε)]`` for a ``g`` that does not change when all three items shift."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid @ basis, np.outer(weights, weights).reshape(-1) / np.sum(weights) ** 2


FAST, EXACT = _plane(8), _plane(20)
"""Quadrature for every round (error at most 3e-5) and for everything else (1e-8)."""


def expected_shares(means: Float[Array, "n d"], rule: tuple[np.ndarray, np.ndarray] = EXACT) -> Float[Array, "n d"]:
    """Return ``E[softmax(−ĉ/τ)]`` with ``ĉ = μ + σ ε``; means are bounded, so that no exponential overflows."""
    factors = jnp.asarray(np.exp(-world.SCALE * rule[0] / TEMPERATURE), means.dtype)
    own = jnp.exp(-means / TEMPERATURE)
    return own * ((jnp.asarray(rule[1], means.dtype) / (own @ factors.T)) @ factors)


def target_shares(phi: Parameters) -> Float[Array, "n d"]:
    """Return ``softmax(−f_φ(x)/τ)`` in each context."""
    return jax.nn.softmax(-(jnp.asarray(world.CONTEXTS, phi.dtype) @ phi.T) / TEMPERATURE, axis=-1)


def pull_back(slopes: Float[Array, "n d"], theta: Parameters) -> Parameters:
    """Return ``E_x[(∇_θ μ_θ(x))ᵀ s(x)]`` for a vector ``s`` per context."""
    contexts = jnp.asarray(world.CONTEXTS, theta.dtype)
    return (slopes * world.REACH * jnp.cos(contexts @ theta.T)).T @ contexts / len(world.CONTEXTS)


def means(theta: Parameters) -> Float[Array, "n d"]:
    """Return ``μ_θ(x)`` in each context."""
    return world.REACH * jnp.sin(jnp.asarray(world.CONTEXTS, theta.dtype) @ theta.T)


def surrogate_value(phi: Parameters, theta: Parameters) -> Scalar:
    """Return ``J^sur(φ, θ) = E[h(f_φ(x), ĉ)]`` with ``h = −Σ softmax(−f_φ/τ) log softmax(−ĉ/τ)``."""
    shifts, weights = EXACT
    centre = means(theta)
    tops = jnp.log(jnp.exp(-centre / TEMPERATURE) @ jnp.asarray(np.exp(-world.SCALE * shifts / TEMPERATURE)).T)
    return jnp.mean(jnp.sum(target_shares(phi) * centre, axis=1) / TEMPERATURE + tops @ jnp.asarray(weights))


def surrogate_gradient(phi: Parameters, theta: Parameters, rule: tuple[np.ndarray, np.ndarray] = EXACT) -> Parameters:
    """Return ``∇_θ J^sur(φ, θ)``."""
    return pull_back(
        (target_shares(phi).astype(theta.dtype) - expected_shares(means(theta), rule)) / TEMPERATURE, theta
    )


def surrogate_bias_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """Return ``∇_θ B^sur(φ, θ) = ∇_θ J^sur(φ, θ) − ∇_θ J^sur(φ*, θ)``, where terms in ``ĉ`` cancel."""
    return pull_back(
        (target_shares(phi) - target_shares(jnp.asarray(world.COEFFICIENTS, phi.dtype))) / TEMPERATURE, theta
    )


def spo_plus_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """Return ``∇_θ J^sur(φ, θ)`` of ``spo_plus``: ``E_x[(∇_θ μ)ᵀ 2 (w*(f_φ(x)) − E[w*(2ĉ − f_φ(x))])]``."""
    costs = jnp.asarray(world.CONTEXTS) @ phi.T
    best = jax.nn.one_hot(jnp.argmin(costs, axis=1), world.ITEMS)
    tried = world.probabilities(2.0 * means(theta) - costs, 2.0 * world.SCALE)
    return pull_back(2.0 * (best - tried), theta)


def mixed_value(alpha: float | Scalar, theta: Parameters) -> Scalar:
    """Return ``V^α(θ) = α V(θ) + (1 − α) J^sur(φ*, θ)`` (equation 27)."""
    return alpha * world.value(theta) + (1.0 - alpha) * surrogate_value(jnp.asarray(world.COEFFICIENTS), theta)


def mixed_gradient(alpha: float | Scalar, theta: Parameters, rule: tuple[np.ndarray, np.ndarray] = EXACT) -> Parameters:
    """Return ``∇V^α(θ)``."""
    truth = jnp.asarray(world.COEFFICIENTS, theta.dtype)
    part = jnp.asarray(alpha, theta.dtype)
    return part * world.gradient(theta) + (1.0 - part) * surrogate_gradient(truth, theta, rule)


class SurrogateConstants(NamedTuple):
    """The additional constants of Theorem 2.3; all but the smoothness in closed form."""

    slope: float  # G_sur, bounds ∇_ĉ h
    target_lipschitz: float  # L_c^sur
    prediction_lipschitz: float  # L_ĉ^sur
    reach: float  # G_μ, bounds ∇_θ μ
    bend: float  # L_μ, its Lipschitz constant
    lemma_smoothness: float  # L_θ^sur = L_μ G_sur + G_μ² L_ĉ^sur, as the lemma has it
    smoothness: dict[float, float]  # by α: the largest curvature of V^α, found by search
    gap: dict[float, float]  # by α: at least Δ₁^α = V^α(θ₁) − V^{α,⋆}

    @property
    def deviation(self) -> float:
        """Return ``σ_sur``, at most the norm of the estimator, ``G_μ G_sur``."""
        return self.reach * self.slope

    def to_dict(self) -> dict[str, Any]:
        """Return the constants as a JSON object; those by α have names like ``0.5``."""
        by_alpha = {
            key: {f"{alpha:g}": one for alpha, one in getattr(self, key).items()} for key in ("smoothness", "gap")
        }
        return {**self._asdict(), **by_alpha}

    def bias_bound(self, bounds: Constants, rule: str, horizon: float) -> float:
        """Return the bound of Proposition E.4: ``(L_c^sur G_μ L_f)² (2/λ) · nuisance_bound``."""
        factor = (self.target_lipschitz * self.reach * bounds.lipschitz) ** 2
        return factor * 2.0 * bounds.nuisance_bound(rule, horizon) / bounds.convexity

    def stationarity_bound(self, bounds: Constants, rule: str, alpha: float, horizon: float) -> float:
        """Return the bound of Theorem E.6: ``(2 L^α Δ₁^α + G̃_α² + σ̃_α²)/√T + (1−α)² · bias_bound``."""
        norm = alpha * bounds.gradient + (1.0 - alpha) * self.reach * self.slope
        deviation = alpha * bounds.score_deviation + (1.0 - alpha) * self.deviation
        descent = (2.0 * self.smoothness[alpha] * self.gap[alpha] + norm**2 + deviation**2) / math.sqrt(horizon)
        return descent + (1.0 - alpha) ** 2 * self.bias_bound(bounds, rule, horizon)


@functools.cache
def constants() -> SurrogateConstants:
    """Return the constants of the surrogate variant in this world, in double precision."""
    size = float(np.linalg.norm(world.CONTEXTS, axis=1).max())
    slope, lipschitz = math.sqrt(2.0) / TEMPERATURE, 0.5 / TEMPERATURE**2
    reach, bend = world.REACH * size, world.REACH * size**2
    with jax.enable_x64(True):
        start, truth = jnp.zeros_like(jnp.asarray(world.COEFFICIENTS)), jnp.asarray(world.COEFFICIENTS)
        shares = target_shares(truth)
        entropy = -float(jnp.mean(jnp.sum(shares * jnp.log(shares), axis=1)))  # no cross entropy is below it
        cheapest = float((world.CONTEXTS @ world.COEFFICIENTS.T).min(axis=1).mean())
        gap = {alpha: float(mixed_value(alpha, start)) - alpha * cheapest - (1.0 - alpha) * entropy for alpha in ALPHAS}
        smoothness = {alpha: largest_curvature(alpha) for alpha in ALPHAS}
    lemma = bend * slope + reach**2 * lipschitz
    return SurrogateConstants(slope, lipschitz, lipschitz, reach, bend, lemma, smoothness, gap)


def largest_curvature(alpha: float) -> float:
    """Return an upper bound of ``L^α``: the largest curvature that any one context has in its angles ``a = θ x``.

    ``∇²V^α = E[M(θx) ⊗ x xᵀ]`` with a 3 × 3 matrix ``M`` for each context, and ``E[x xᵀ] = I``, so that no curvature of
    ``V^α`` exceeds the largest ``‖M‖``; three angles can be searched thoroughly.
    """
    costs = jnp.asarray(world.CONTEXTS @ world.COEFFICIENTS.T)
    shares = target_shares(jnp.asarray(world.COEFFICIENTS))

    def slopes(angles: Float[Array, " d"]) -> Float[Array, "n d"]:
        centre = jnp.broadcast_to(world.REACH * jnp.sin(angles), costs.shape)
        push = (shares - expected_shares(centre[:1], FAST)) / TEMPERATURE
        return (alpha * world.value_slopes(centre, costs) + (1.0 - alpha) * push) * world.REACH * jnp.cos(angles)

    return world.largest(
        lambda angles: jnp.max(jnp.abs(jnp.linalg.eigvalsh(jax.jacfwd(slopes)(angles)))), (world.ITEMS,)
    )
