"""A small world that satisfies the assumptions of the theorems and has exact choice probabilities.

There are four equally likely contexts ``x = (1, ±1, ±1)`` and three items of which one is chosen; costs are
``c = f*(x) ⊙ ξ`` with ``f*(x) = Φ* x`` and ``ξ`` uniform on 1 ± ½. The policy predicts ``ĉ ~ N(R sin(θ x), σ² I)``. The
bounded mean gives every item a probability of at least ``p_min > 0`` for every ``θ``, as the theorems assume
("λ-strongly convex for every θ"). A Gaussian linear policy does not have this property (as ``‖θ‖`` grows, an item is
never chosen), and with a realisable linear nuisance its expected cost has no minimiser: ``θ = s Φ*`` improves without
bound.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Float, Int

from regretless import draws
from regretless.benchmarks import Benchmark, Round
from regretless.models import GaussianModel, PointModelSpec
from regretless.oracles import top_k
from regretless.spec import number
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
    """The stream of this world; replications differ in their random draws only."""

    def __init__(self) -> None:
        super().__init__("theory", top_k(ITEMS, 1), (FEATURES,), 1000, True)

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


class BoundedGaussianModel(GaussianModel):
    """``ĉ ~ N(R sin(θ x), σ² I)``: a Gaussian model with a mean in ``[−R, R]`` that starts at ``θ = 0``."""

    reach: Float[Array, ""] = eqx.field(default_factory=lambda: np.asarray(REACH))  # R

    def init(self, key: Key) -> Array:
        return jnp.zeros((self.dim, self.context_shape[-1]))

    def mean(self, params: Array, context: Context) -> Cost:
        return self.reach * jnp.sin(params @ context)


class BoundedGaussian(PointModelSpec):
    """The bounded Gaussian model of the theorems."""

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> BoundedGaussianModel:
        """Return the model with exploration scale σ."""
        return BoundedGaussianModel(dim, context_shape, number(scale))


def probabilities(means: Float[Array, "n d"], scale: float = SCALE) -> Float[Array, "n d"]:
    """Return the probability of each item to have the smallest ``ĉ_i = μ_i + σ ε_i``, by Gauss–Hermite quadrature.

    ``p_i = ∫ φ(z) Π_{j≠i} Φ((μ_j − μ_i)/σ − z) dz``, with ``σ = scale``.
    """
    gaps = (means[:, None, :] - means[:, :, None]) / scale  # [n, i, j] = (μ_j − μ_i)/σ
    beaten = ndtr(gaps[..., None] - jnp.asarray(NODES))
    beaten = jnp.where(jnp.eye(means.shape[1], dtype=bool)[None, :, :, None], 1.0, beaten)
    return jnp.sum(jnp.prod(beaten, axis=2) * jnp.asarray(WEIGHTS), axis=-1)


def choice_probabilities(theta: Parameters) -> Float[Array, "n d"]:
    """Return the probability of each item in each context under ``θ``."""
    return probabilities(REACH * jnp.sin(jnp.asarray(CONTEXTS) @ theta.T))


def plug_in_value(phi: Parameters, theta: Parameters) -> Scalar:
    """Return ``J(φ, θ) = E[f_φ(x)·w*_θ(x)]``."""
    return jnp.mean(jnp.sum((jnp.asarray(CONTEXTS) @ phi.T) * choice_probabilities(theta), axis=1))


def value(theta: Parameters) -> Scalar:
    """Return ``V(θ) = J(φ*, θ)``, the expected cost."""
    return plug_in_value(jnp.asarray(COEFFICIENTS), theta)


def gradient(theta: Parameters) -> Parameters:
    """Return ``∇V(θ)``, the gradient of the expected cost."""
    return plug_in_gradient(jnp.asarray(COEFFICIENTS, theta.dtype), theta)


def plug_in_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """Return ``∇_θ J(φ, θ)`` in closed form, for ``f = φ x``."""
    contexts = jnp.asarray(CONTEXTS, theta.dtype)
    angles = contexts @ theta.T
    slopes = value_slopes(REACH * jnp.sin(angles), contexts @ phi.T.astype(theta.dtype))
    return (slopes * REACH * jnp.cos(angles)).T @ contexts / len(CONTEXTS)


def value_slopes(means: Float[Array, "n d"], costs: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Return ``∂(Σ_i f_i p_i)/∂μ`` for predictions of mean ``μ`` and costs ``f``, for three items.

    Items ``i`` and ``j`` swap places where ``ĉ_i = ĉ_j`` lies below the third, ``k``: ``∂p_i/∂μ_j = A_ij`` with
    ``A_ij = φ((μ_i − μ_j)/√2σ)/√2σ · Φ((μ_k − (μ_i + μ_j)/2)/√1.5 σ)``, so that ``∂J/∂μ_j = Σ_i (f_i − f_j) A_ij``.
    """
    slopes = [jnp.zeros(len(means), means.dtype)] * ITEMS
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        gap = (means[:, i] - means[:, j]) / (math.sqrt(2.0) * SCALE)
        above = (means[:, k] - 0.5 * (means[:, i] + means[:, j])) / (math.sqrt(3.0) * SCALE)
        exchange = jnp.exp(-0.5 * gap**2) / (2.0 * math.sqrt(math.pi) * SCALE) * 0.5 * (1.0 + erf(above))
        slopes[i] = slopes[i] + (costs[:, j] - costs[:, i]) * exchange
        slopes[j] = slopes[j] + (costs[:, i] - costs[:, j]) * exchange
    return jnp.stack(slopes, axis=1)


def bias_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """Return ``∇_θ B(φ, θ) = ∇_θ J(φ, θ) − ∇V(θ)``, the bias of the plug-in estimator."""
    return plug_in_gradient(phi - jnp.asarray(COEFFICIENTS), theta)


def decision_moments(theta: Parameters) -> Parameters:
    """Return ``∇_φ J(φ, θ) = E[w*_θ(x) xᵀ]``."""
    return choice_probabilities(theta).T @ jnp.asarray(CONTEXTS) / len(CONTEXTS)


def nuisance_gradient(phi: Parameters, theta: Parameters) -> Parameters:
    """Return ``∇_φ R_θ(f_φ)``: ``2 E[p_i(x) (f_φ − f*)_i(x) xᵀ]`` for item ``i``."""
    contexts = jnp.asarray(CONTEXTS)
    errors = contexts @ (phi - jnp.asarray(COEFFICIENTS)).T
    return 2.0 * (choice_probabilities(theta) * errors).T @ contexts / len(CONTEXTS)


def convexity(theta: Parameters) -> Scalar:
    """Return the smallest eigenvalue of the nuisance loss's Hessian: ``2 min_i λ_min(E[p_i(x) x xᵀ])``."""
    contexts = jnp.asarray(CONTEXTS)
    gram = jnp.einsum("ni,np,nq->ipq", choice_probabilities(theta), contexts, contexts) / len(CONTEXTS)
    return 2.0 * jnp.min(jnp.linalg.eigvalsh(gram))


class Constants(NamedTuple):
    """The constants of the theorems for this world; all but the smoothness in closed form, from the paper's lemmas."""

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
        """Return the bound on nuisance regret: ``D G / √T`` (constant) or ``G² (1 + log T) / (2 λ T)`` (adaptive)."""
        if rule == "constant":
            return self.diameter * self.slope / math.sqrt(horizon)
        return self.slope**2 * (1.0 + math.log(horizon)) / (2.0 * self.convexity * horizon)

    def stationarity_bound(self, rule: str, alpha: float, horizon: float) -> float:
        """Return the bound of Theorem 2.2: ``(2LΔ₁ + (G^J)² + σ_α²)/√T + (1−α)² · bias_bound``."""
        deviation = alpha * self.score_deviation + (1.0 - alpha) * self.plug_in_deviation
        descent = (2.0 * self.smoothness * self.gap + self.gradient**2 + deviation**2) / math.sqrt(horizon)
        return descent + (1.0 - alpha) ** 2 * self.bias_bound(rule, horizon)

    def bias_bound(self, rule: str, horizon: float) -> float:
        """Return the bound on the averaged bias gradient: ``B_∇w² L_f² (2/λ) · nuisance_bound``."""
        return (self.jacobian * self.lipschitz) ** 2 * 2.0 * self.nuisance_bound(rule, horizon) / self.convexity


@functools.cache
def constants() -> Constants:
    """Return the constants of this world, in double precision."""
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
        smoothness = largest(lambda theta: jnp.max(jnp.abs(curvatures(theta))), COEFFICIENTS.shape)
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
    """Return the eigenvalues of ``∇²V(θ)``, ascending."""
    return eigenvalues(gradient, theta)


def eigenvalues(slope: Callable[[Parameters], Parameters], theta: Parameters) -> Float[Array, " dp"]:
    """Return the eigenvalues at ``θ`` of the Hessian of the function with this gradient, ascending."""
    return jnp.linalg.eigvalsh(jax.jacfwd(slope)(theta).reshape(theta.size, theta.size))


def largest(height: Callable[[Array], Scalar], shape: tuple[int, ...], points: int = 1000, rounds: int = 30) -> float:
    """Return the largest ``height`` found by random search; every coordinate has period 2π."""
    heights = jax.jit(jax.vmap(height))
    draw = np.random.default_rng(0)
    tried = draw.uniform(-math.pi, math.pi, (points, *shape))
    first = np.arange(points).reshape(-1, *[1] * len(shape)) == 0
    for width in np.geomspace(0.3, 1e-3, rounds):
        best = tried[np.argmax(np.asarray(heights(tried)))]
        tried = best + np.where(first, 0.0, width * draw.normal(size=tried.shape))
    return float(np.max(heights(tried)))


def descend(theta: Parameters, smoothness: float, steps: int = 2000) -> Parameters:
    """Return the point that exact gradient descent with step ``1/L`` reaches."""
    body = lambda i, theta: theta - gradient(theta) / smoothness  # noqa: E731
    return jax.jit(lambda theta: jax.lax.fori_loop(0, steps, body, theta))(theta)
