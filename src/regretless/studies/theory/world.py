"""A world small enough to know everything about: the setting of the theorems with exact action probabilities.

Four contexts ``x = (1, ±1, ±1)``, equally likely; three items of which one is chosen; costs ``c = f*(x) ⊙ ξ`` with
``f*(x) = Φ* x`` and ``ξ`` uniform on 1 ± ½. The policy predicts ``ĉ ~ N(R sin(θ x), σ² I)``. A mean that is bounded gives every
item a probability of at least ``p_min > 0`` whatever ``θ`` is, which the theorems ask for: "λ-strongly convex for every θ". No
Gaussian linear policy has that (as ``‖θ‖`` grows an item is never tried), and beside a realisable linear nuisance its
expected cost has no minimiser either: ``θ = s Φ*`` improves for ever. The sine has both, and everything else is smooth.
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Float, Int

from regretless import draws, oracles
from regretless.benchmarks.base import Benchmark, Round
from regretless.models.gaussian import Gaussian
from regretless.types import Context, Cost, Key

CONTEXTS = np.array([[1.0, a, b] for a in (1, -1) for b in (1, -1)])
COEFFICIENTS = 0.1 * np.array([[1.0, -0.6, 0.2], [1.0, 0.6, 0.2], [1.0, 0.0, -0.6]])  # Φ*: each item is best somewhere
NOISE_RADIUS = 0.5
REACH = 0.5  # R
SCALE = 1.0  # σ
RADIUS = 1.5 * float(np.linalg.norm(COEFFICIENTS))  # Φ is the ball ‖φ‖ ≤ RADIUS around 0, where φ starts
ITEMS, FEATURES = COEFFICIENTS.shape
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()

Parameters = Float[Array, "d p"]
Scalar = Float[Array, ""]


class World(Benchmark):
    """The stream of this world; nothing differs between replications but the draws."""

    def __init__(self) -> None:
        super().__init__("theory", oracles.top_k(ITEMS, 1), (FEATURES,), 1000, True)

    def environment(self, key: Key) -> None:
        return None

    def round(self, key: Key, environment: None, t: Int[Array, ""]) -> Round:
        context_key, noise_key = jax.random.split(key)
        x = jnp.asarray(CONTEXTS)[jax.random.randint(context_key, (), 0, len(CONTEXTS))]
        xi = draws.uniform(noise_key, (ITEMS,), 1.0 - NOISE_RADIUS, 1.0 + NOISE_RADIUS)
        mean = jnp.asarray(COEFFICIENTS) @ x
        return Round(x, mean * xi, mean)

    def context(self, environment: None, observation: Float[Array, " p"]) -> Context:
        return observation


class BoundedGaussian(Gaussian):
    """``ĉ ~ N(R sin(θ x), σ² I)``: the Gaussian linear model with its mean bent into ``[−R, R]``; starts at ``θ = 0``."""

    reach: Float[Array, ""] = eqx.field(default_factory=lambda: np.asarray(REACH))  # R

    def init(self, key: Key) -> Array:
        return jnp.zeros((self.dim, self.context_shape[-1]))

    def mean(self, params: Array, context: Context) -> Cost:
        return self.reach * jnp.sin(params @ context)


def probabilities(means: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Probability of each item to have the smallest ``ĉ_i = μ_i + σ ε_i``, by Gauss–Hermite quadrature.

    ``p_i = ∫ φ(z) Π_{j≠i} Φ((μ_j − μ_i)/σ − z) dz``.
    """
    gaps = (means[:, None, :] - means[:, :, None]) / SCALE  # [n, i, j] = (μ_j − μ_i)/σ
    beaten = ndtr(gaps[..., None] - jnp.asarray(NODES))
    beaten = jnp.where(jnp.eye(means.shape[1], dtype=bool)[None, :, :, None], 1.0, beaten)
    return jnp.sum(jnp.prod(beaten, axis=2) * jnp.asarray(WEIGHTS), axis=-1)


def choices(theta: Parameters) -> Float[Array, "n d"]:
    """Probability of each item in each context under ``θ``."""
    return probabilities(REACH * jnp.sin(jnp.asarray(CONTEXTS) @ theta.T))


def plug_in_value(phi: Parameters, theta: Parameters) -> Scalar:
    """``J(φ, θ) = E[f_φ(x)·w*_θ(x)]``."""
    return jnp.mean(jnp.sum((jnp.asarray(CONTEXTS) @ phi.T) * choices(theta), axis=1))


def value(theta: Parameters) -> Scalar:
    """``V(θ) = J(φ*, θ)``, the expected cost."""
    return plug_in_value(jnp.asarray(COEFFICIENTS), theta)


def gradient(theta: Parameters) -> Parameters:
    """``∇V(θ)`` in closed form, for three items.

    Items ``i`` and ``j`` change places where ``ĉ_i = ĉ_j`` lies below the third, ``k``: ``∂p_i/∂μ_j = A_ij`` with
    ``A_ij = φ((μ_i − μ_j)/√2σ)/√2σ · Φ((μ_k − (μ_i + μ_j)/2)/√1.5 σ)``, so that ``∂V/∂μ_j = Σ_i (f_i − f_j) A_ij``.
    """
    contexts = jnp.asarray(CONTEXTS, theta.dtype)
    angles = contexts @ theta.T
    means, costs = REACH * jnp.sin(angles), contexts @ jnp.asarray(COEFFICIENTS.T, theta.dtype)
    slopes = [jnp.zeros(len(CONTEXTS), theta.dtype)] * ITEMS
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        gap = (means[:, i] - means[:, j]) / (math.sqrt(2.0) * SCALE)
        above = (means[:, k] - 0.5 * (means[:, i] + means[:, j])) / (math.sqrt(3.0) * SCALE)
        exchange = jnp.exp(-0.5 * gap**2) / (2.0 * math.sqrt(math.pi) * SCALE) * 0.5 * (1.0 + erf(above))
        slopes[i] = slopes[i] + (costs[:, j] - costs[:, i]) * exchange
        slopes[j] = slopes[j] + (costs[:, i] - costs[:, j]) * exchange
    pull = jnp.stack(slopes, axis=1) * REACH * jnp.cos(angles)
    return pull.T @ contexts / len(CONTEXTS)


def bias_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """``∇_θ B(φ, θ) = ∇_θ J(φ, θ) − ∇V(θ)``, the bias of the plug-in estimator."""
    return jax.grad(plug_in_value, argnums=1)(phi - jnp.asarray(COEFFICIENTS), theta)


def convexity(theta: Parameters) -> Scalar:
    """Smallest eigenvalue of the Hessian of the nuisance loss under ``θ``: ``2 min_i λ_min(E[p_i(x) x xᵀ])``."""
    contexts = jnp.asarray(CONTEXTS)
    gram = jnp.einsum("ni,np,nq->ipq", choices(theta), contexts, contexts) / len(CONTEXTS)
    return 2.0 * jnp.min(jnp.linalg.eigvalsh(gram))


class Constants(NamedTuple):
    """The constants of the theorems for this world; all but the smoothness in closed form, as the paper's lemmas give them."""

    convexity: float  # λ, valid for every θ: 2 p_min λ_min(E[x xᵀ])
    diameter: float  # D_Φ
    slope: float  # G, the largest gradient of a round's nuisance loss
    smoothness: float  # L, the largest curvature of V
    jacobian: float  # B_∇w = B_S M, bounds ∇_θ w*_θ(x)
    gradient: float  # G^J = B_f B_∇w
    score_deviation: float  # σ_score
    plug_in_deviation: float  # σ_plug-in
    lipschitz: float  # L_f
    gap: float  # at least Δ₁ = V(θ₁) − V*
    relaxation: float  # smallest curvature of V at the minimum that descent from θ₁ reaches

    def nuisance_bound(self, rule: str, horizon: float) -> float:
        """The proposition on nuisance regret: ``D G / √T`` (constant) or ``G² (1 + log T) / (2 λ T)`` (adaptive)."""
        if rule == "constant":
            return self.diameter * self.slope / math.sqrt(horizon)
        return self.slope**2 * (1.0 + math.log(horizon)) / (2.0 * self.convexity * horizon)

    def stationarity_bound(self, rule: str, alpha: float, horizon: float) -> float:
        """The theorem on stationarity: ``(2LΔ₁ + (G^J)² + σ_α²)/√T + (1−α)² B_∇w² L_f² (2/λ) · nuisance_bound``."""
        deviation = alpha * self.score_deviation + (1.0 - alpha) * self.plug_in_deviation
        descent = (2.0 * self.smoothness * self.gap + self.gradient**2 + deviation**2) / math.sqrt(horizon)
        bias = 2.0 * self.nuisance_bound(rule, horizon) / self.convexity
        return descent + ((1.0 - alpha) * self.jacobian * self.lipschitz) ** 2 * bias


@functools.cache
def constants() -> Constants:
    """The constants of this world, in double precision."""
    with jax.enable_x64(True):
        worst = jnp.full((1, ITEMS), -REACH).at[0, 0].set(REACH)
        p_min = float(probabilities(worst)[0, 0])
        spread = float(np.linalg.eigvalsh(CONTEXTS.T @ CONTEXTS / len(CONTEXTS))[0])
        size = float(np.linalg.norm(CONTEXTS, axis=1).max())
        costs = CONTEXTS @ COEFFICIENTS.T
        largest_cost = (1.0 + NOISE_RADIUS) * float(np.abs(costs).max())
        largest_prediction = RADIUS * size  # B_f
        push = REACH * size / SCALE  # ‖∇_θ log p‖ ≤ push · ‖ε‖
        mean_norm = math.sqrt(2.0) * math.gamma((ITEMS + 1) / 2) / math.gamma(ITEMS / 2)  # E‖ε‖
        jacobian = push * mean_norm  # B_S = 1
        start = jnp.zeros((ITEMS, FEATURES))
        smoothness = largest_curvature()
        return Constants(
            convexity=2.0 * p_min * spread,
            diameter=2.0 * RADIUS,
            slope=2.0 * (largest_prediction + largest_cost) * size,
            smoothness=smoothness,
            jacobian=jacobian,
            gradient=largest_prediction * jacobian,
            score_deviation=largest_cost * push * math.sqrt(ITEMS),
            plug_in_deviation=largest_prediction * push * math.sqrt(ITEMS),
            lipschitz=size,
            gap=float(value(start)) - float(costs.min(axis=1).mean()),
            relaxation=float(curvatures(descend(start, smoothness))[0]),
        )


def curvatures(theta: Parameters) -> Float[Array, " dp"]:
    """Eigenvalues of ``∇²V(θ)``, ascending."""
    size = ITEMS * FEATURES
    return jnp.linalg.eigvalsh(jax.jacfwd(gradient)(theta).reshape(size, size))


def largest_curvature(points: int = 1000, rounds: int = 30) -> float:
    """``L = max over θ of ‖∇²V(θ)‖``: V has period 2π in every coordinate, so random points and a search around the best."""
    steepest = jax.jit(jax.vmap(lambda theta: jnp.max(jnp.abs(curvatures(theta)))))
    draw = np.random.default_rng(0)
    shape = (points, ITEMS, FEATURES)
    tried = draw.uniform(-math.pi, math.pi, shape)
    for width in np.geomspace(0.3, 1e-3, rounds):
        heights = np.asarray(steepest(tried))
        best = tried[np.argmax(heights)]
        tried = best + np.where(np.arange(points)[:, None, None] > 0, width * draw.normal(size=shape), 0.0)
    return float(np.max(steepest(tried)))


def descend(theta: Parameters, smoothness: float, steps: int = 2000) -> Parameters:
    """Where exact gradient descent with step ``1/L`` ends up."""
    body = lambda i, theta: theta - gradient(theta) / smoothness  # noqa: E731
    return jax.jit(lambda theta: jax.lax.fori_loop(0, steps, body, theta))(theta)
