"""The paper's constants: the largest value that a search finds of what each lemma bounds, as a share of the bound."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from regretless.studies.theory import surrogate, world
from regretless.studies.theory.lines import Claim
from regretless.studies.theory.slopes import Interval

SHAPE = world.COEFFICIENTS.shape


def regularity_claims() -> list[Claim]:
    """Corollary B.1, Lemma D.1, Lemma E.3 and the assumption of strong convexity."""
    facts, more = world.constants(), surrogate.constants()
    second = density_curvature()
    with jax.enable_x64(True):
        rows = [
            ("convexity", "any θ", "λ / smallest eigenvalue found", "Assumption 6 (iii)",
             facts.convexity * world.largest(lambda theta: 1.0 / world.convexity(theta), SHAPE, 200, 20)),
            ("decision_slope", "any θ, x", "‖∇_θ w*_θ(x)‖ / (B_S M)", "Corollary B.1",
             largest_jacobian() / facts.jacobian),
            ("decision_curvature", "any θ, x", "Lipschitz constant of ∇_θ w*_θ(x) / (B_S M_∇)", "Corollary B.1",
             largest_bend() / second),
            ("plug_in_slope", "any θ, φ", "‖∇_θ J‖ / G^J", "Lemma D.1 (i)",
             world.RADIUS * world.largest(plug_in_slope, SHAPE, 200, 20) / facts.gradient),
            ("plug_in_curvature", "any θ, φ", "‖∇²_θ J‖ / L^J", "Lemma D.1 (ii)",
             world.largest(plug_in_curvature, (2, *SHAPE), 200, 20) / (world.RADIUS * _size() * second)),
            ("plug_in_lipschitz", "any θ", "‖∇_φ J‖ / (B_S L_f)", "Lemma D.1 (iii)",
             world.largest(lambda theta: jnp.linalg.norm(world.decision_moments(theta)), SHAPE, 200, 20)
             / facts.lipschitz),
        ]  # fmt: skip
    for alpha, found in more.smoothness.items():
        lemma = alpha * world.RADIUS * _size() * second + (1.0 - alpha) * more.lemma_smoothness
        rows.append(("mixed_curvature", f"α = {alpha:g}", "‖∇²V^α‖ / L^α", "Lemma E.3", found / lemma))
    return [
        Claim(name, setting, quantity, Interval(share, share, share), "≤", 1.0, statement=statement)
        for name, setting, quantity, statement, share in rows
    ]


def _size() -> float:
    """``‖x‖``, the same in every context."""
    return float(np.linalg.norm(world.CONTEXTS[0]))


def density_curvature() -> float:
    """At least ``M_∇ = sup ∫‖∇²p_θ‖``: ``(R‖x‖/σ)² (E‖ε‖² + 1) + (R‖x‖²/σ) E‖ε‖``, with ``B_S = 1``.

    ``∇²p/p = ∇² log p + s sᵀ`` with ``s = (∇μ)ᵀ ε/σ``, and ``‖ε εᵀ − I‖ ≤ ‖ε‖² + 1``.
    """
    size, items = _size(), world.ITEMS
    norm = math.sqrt(2.0) * math.gamma((items + 1) / 2) / math.gamma(items / 2)
    return (world.REACH * size / world.SCALE) ** 2 * (items + 1.0) + world.REACH * size**2 / world.SCALE * norm


def decision_jacobian(angles: Float[Array, " d"]) -> Float[Array, "d d"]:
    """``∂p/∂a`` for ``ĉ ~ N(R sin a, σ² I)``; ``∇_θ w*_θ(x)`` is this times ``x``."""
    return jax.jacfwd(lambda a: world.probabilities(world.REACH * jnp.sin(a)[None])[0])(angles)


def largest_jacobian() -> float:
    """``max ‖∇_θ w*_θ(x)‖`` over one period of the angles."""
    return _size() * world.largest(lambda a: jnp.linalg.norm(decision_jacobian(a), 2), (world.ITEMS,), 200, 20)


def largest_bend() -> float:
    """``max ‖∂(∇_θ w*_θ(x))/∂v‖`` over angles and directions ``v`` of θ."""

    def bend(place: Float[Array, "2 d"]) -> Array:
        direction = place[1] / jnp.linalg.norm(place[1])
        return jnp.linalg.norm(jax.jvp(decision_jacobian, (place[0],), (direction,))[1], 2)

    return _size() ** 2 * world.largest(bend, (2, world.ITEMS), 200, 20)


def plug_in_slope(theta: world.Parameters) -> Array:
    """``max over ‖φ‖ ≤ 1 of ‖∇_θ J(φ, θ)‖``: ``J`` is linear in ``φ``."""
    size = theta.size
    linear = jax.jacfwd(lambda phi: world.plug_in_gradient(phi, theta))(jnp.zeros(SHAPE))
    return jnp.linalg.norm(linear.reshape(size, size), 2)


def plug_in_curvature(place: Float[Array, "2 d p"]) -> Array:
    """``‖∇²_θ J(φ, θ)‖`` for ``φ`` on the edge of its ball."""
    phi = world.RADIUS * place[1] / jnp.linalg.norm(place[1])
    return jnp.max(jnp.abs(world.eigenvalues(lambda theta: world.plug_in_gradient(phi, theta), place[0])))
