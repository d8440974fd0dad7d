"""Measure all theorems, propositions and lemmas of the convergence theory with the library's own DFHPG.

``world`` and ``surrogate`` define the world of the theorems, ``estimators`` checks single rounds, ``runs`` checks
rates, and this module checks constants and collects everything.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from regretless.simulation.programs import Progress
from regretless_dfhpg.theory import surrogate, world
from regretless_dfhpg.theory.estimators import (
    check_descent,
    check_estimators,
    check_minimiser,
    check_surrogate_estimators,
)
from regretless_dfhpg.theory.runs import check_rates, play_all_runs, shortest_horizon, summarise_runs
from regretless_dfhpg.theory.statements import Curve, Interval, Statement

SHAPE = world.COEFFICIENTS.shape


def check_constants() -> list[Statement]:
    """Check Corollary B.1, Lemma D.1, Lemma E.3 and the assumption of strong convexity."""
    bounds, surrogate_bounds = world.constants(), surrogate.constants()
    second = density_curvature()
    with jax.enable_x64(True):
        rows = [
            ("convexity", "any θ", "λ / smallest eigenvalue found", "Assumption 6 (iii)",
             bounds.convexity * world.largest(lambda theta: 1.0 / world.convexity(theta), SHAPE, 200, 20)),
            ("decision_slope", "any θ, x", "‖∇_θ w*_θ(x)‖ / (B_S M)", "Corollary B.1",
             largest_jacobian() / bounds.jacobian),
            ("decision_curvature", "any θ, x", "Lipschitz constant of ∇_θ w*_θ(x) / (B_S M_∇)", "Corollary B.1",
             largest_bend() / second),
            ("plug_in_slope", "any θ, φ", "‖∇_θ J‖ / G^J", "Lemma D.1 (i)",
             world.RADIUS * world.largest(plug_in_slope, SHAPE, 200, 20) / bounds.gradient),
            ("plug_in_curvature", "any θ, φ", "‖∇²_θ J‖ / L^J", "Lemma D.1 (ii)",
             world.largest(plug_in_curvature, (2, *SHAPE), 200, 20) / (world.RADIUS * _size() * second)),
            ("plug_in_lipschitz", "any θ", "‖∇_φ J‖ / (B_S L_f)", "Lemma D.1 (iii)",
             world.largest(lambda theta: jnp.linalg.norm(world.decision_moments(theta)), SHAPE, 200, 20)
             / bounds.lipschitz),
        ]  # fmt: skip
    for alpha, found in surrogate_bounds.smoothness.items():
        lemma = alpha * world.RADIUS * _size() * second + (1.0 - alpha) * surrogate_bounds.lemma_smoothness
        rows.append(("mixed_curvature", f"α = {alpha:g}", "‖∇²V^α‖ / L^α", "Lemma E.3", found / lemma))
    return [
        Statement(name, setting, quantity, Interval(share, share, share), "≤", 1.0, statement=statement)
        for name, setting, quantity, statement, share in rows
    ]


def _size() -> float:
    """Return ``‖x‖``, the same in every context."""
    return float(np.linalg.norm(world.CONTEXTS[0]))


def density_curvature() -> float:
    """Return an upper bound of ``M_∇ = sup ∫‖∇²p_θ‖``: ``(R‖x‖/σ)² (E‖ε‖² + 1) + (R‖x‖²/σ) E‖ε‖``, with ``B_S = 1``.

    ``∇²p/p = ∇² log p + s sᵀ`` with ``s = (∇μ)ᵀ ε/σ``, and ``‖ε εᵀ − I‖ ≤ ‖ε‖² + 1``.
    """
    size, items = _size(), world.ITEMS
    norm = math.sqrt(2.0) * math.gamma((items + 1) / 2) / math.gamma(items / 2)
    return (world.REACH * size / world.SCALE) ** 2 * (items + 1.0) + world.REACH * size**2 / world.SCALE * norm


def decision_jacobian(angles: Float[Array, " d"]) -> Float[Array, "d d"]:
    """Return ``∂p/∂a`` for ``ĉ ~ N(R sin a, σ² I)``; ``∇_θ w*_θ(x)`` is this times ``x``."""
    return jax.jacfwd(lambda a: world.probabilities(world.REACH * jnp.sin(a)[None])[0])(angles)


def largest_jacobian() -> float:
    """Return ``max ‖∇_θ w*_θ(x)‖`` over one period of the angles."""
    return _size() * world.largest(lambda a: jnp.linalg.norm(decision_jacobian(a), 2), (world.ITEMS,), 200, 20)


def largest_bend() -> float:
    """Return ``max ‖∂(∇_θ w*_θ(x))/∂v‖`` over angles and directions ``v`` of θ."""

    def bend(place: Float[Array, "2 d"]) -> Array:
        direction = place[1] / jnp.linalg.norm(place[1])
        return jnp.linalg.norm(jax.jvp(decision_jacobian, (place[0],), (direction,))[1], 2)

    return _size() ** 2 * world.largest(bend, (2, world.ITEMS), 200, 20)


def plug_in_slope(theta: world.Parameters) -> Array:
    """Return ``max over ‖φ‖ ≤ 1 of ‖∇_θ J(φ, θ)‖``: ``J`` is linear in ``φ``."""
    size = theta.size
    linear = jax.jacfwd(lambda phi: world.plug_in_gradient(phi, theta))(jnp.zeros(SHAPE))
    return jnp.linalg.norm(linear.reshape(size, size), 2)


def plug_in_curvature(place: Float[Array, "2 d p"]) -> Array:
    """Return ``‖∇²_θ J(φ, θ)‖`` for ``φ`` on the edge of its ball."""
    phi = world.RADIUS * place[1] / jnp.linalg.norm(place[1])
    return jnp.max(jnp.abs(world.eigenvalues(lambda theta: world.plug_in_gradient(phi, theta), place[0])))


REPLICATIONS = 128
SAMPLES = 2**21
DOUBLINGS = 4


class TheoryResult(NamedTuple):
    """All claims, the curves behind them, and the constants they rest on."""

    claims: list[Statement]
    curves: list[Curve]
    constants: world.Constants
    visited_convexity: float  # smallest eigenvalue at any θ that was looked at along the runs
    clipped: int  # rounds in which the policy's clipping interfered (the theorems have none)
    record: dict[str, Any]  # seed, horizons, replications, samples, whether that is too short to judge, seconds
    surrogate_constants: surrogate.SurrogateConstants | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as one JSON object."""
        extra = self.surrogate_constants
        return {
            "claims": [claim.to_dict(self.record["short"]) for claim in self.claims],
            "curves": [curve.to_dict() for curve in self.curves],
            "constants": self.constants._asdict(),
            "surrogate_constants": None if extra is None else extra.to_dict(),
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
    """Measure every statement.

    Parameters
    ----------
    progress : callable, optional
        Called with what is being done, how much of it is finished and how much there is.
    seed, replications, samples : int
        First seed, replications of every horizon, and samples of every estimator.
    horizons : sequence of int, optional
        Multiples of 512; by default five that double, the shortest from ``shortest_horizon``.
    """
    if replications < 2 or seed < 0:
        raise ValueError(f"expected at least 2 replications and a seed of at least 0, got {replications} and {seed}")
    began = time.perf_counter()
    progress("constants of the theorems", 0, 1)
    bounds, surrogate_bounds = world.constants(), surrogate.constants()
    shortest = shortest_horizon(bounds)
    horizons = horizons or [shortest * 2**k for k in range(DOUBLINGS + 1)]
    claims = check_constants()
    with jax.enable_x64(True):
        claims += check_estimators(samples, seed, progress)
        claims += check_surrogate_estimators(samples, seed, progress)
        claims += check_minimiser(samples, seed, progress)
        claims += check_descent(samples, horizons[-1], seed, progress)
        runs = play_all_runs(horizons, replications, seed, progress)
    curves = summarise_runs(horizons, runs)
    claims += check_rates(curves, seed)
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
        bounds,
        min(one.convexity for one in measured),
        sum(one.clipped for one in measured),
        record,
        surrogate_bounds,
    )
