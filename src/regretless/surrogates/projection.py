"""Surrogates that project: onto the hull of the feasible set, or onto the cone of costs of an optimal decision."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

from regretless.oracles.base import Oracle
from regretless.surrogates.base import FieldSpec, Memory, Rows, Surrogate
from regretless.types import Cost, Instance

SMALL = 1e-12
"""Lengths below which a direction is taken to be zero."""


class FrankWolfeSurrogate(Surrogate):
    """``w*(c) − ŵ(ĉ)`` with ``ŵ(ĉ) = argmin over the hull of S of ĉ·w + ½ λ ‖w‖²``, by Frank-Wolfe with line search."""

    lam: Float[Array, ""]
    iterations: int = eqx.field(static=True)

    def prepare(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance) -> Any:
        lam = self.lam.astype(prediction.dtype)
        solve = lambda cost: self.oracle.solve_round(cost[None], instance).w[0].astype(prediction.dtype)  # noqa: E731

        def step(_: Any, w: Cost) -> Cost:
            slope = prediction + lam * w
            away = w - solve(slope)
            length = lam * jnp.sum(jnp.square(away))
            share = jnp.where(length > SMALL, slope @ away / jnp.maximum(length, SMALL), 0.0)
            return w - jnp.clip(share, 0.0, 1.0) * away

        return jax.lax.fori_loop(0, self.iterations, step, solve(prediction))

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return target[None]

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return solutions[0] - noise


class RegularizedFrankWolfe(FieldSpec, of=FrankWolfeSurrogate):
    """Fenchel-Young loss of a quadratic regulariser (Dalle et al., 2022), by Frank-Wolfe; gradient ``w*(c) − ŵ(ĉ)``.

    ``ŵ(ĉ) = argmin over the hull of S of ĉ·w + ½ λ ‖w‖²``. Loss: ``ĉ·w*(c) + ½ λ ‖w*(c)‖²`` minus that minimum. Each
    iteration asks the oracle once more.

    Parameters
    ----------
    lam : float, default 1.0
        λ.
    iterations : int, default 20
        Steps of Frank-Wolfe after the first solution.
    """

    lam: float = Field(default=1.0, gt=0)
    iterations: int = Field(default=20, ge=1, le=10**4)


class CaVESurrogate(Surrogate):
    """Minus the cosine of ``−ĉ`` and its projection onto the cone of the constraints that bind at ``w*(c)``."""

    iterations: int = eqx.field(static=True)

    def prepare(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance) -> Any:
        best = self.oracle.solve_round(target[None], instance).w[0].astype(prediction.dtype)
        normals = self.oracle.binding_normals(best, instance)
        normals = normals / jnp.maximum(jnp.linalg.norm(normals, axis=1, keepdims=True), SMALL)
        return project_on_cone(-prediction, normals, self.iterations)

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.zeros((0, self.oracle.dim))

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        size, reach = jnp.linalg.norm(prediction), jnp.linalg.norm(noise)
        inside, own = noise / jnp.maximum(reach, SMALL), -prediction / jnp.maximum(size, SMALL)
        return (inside - (inside @ own) * own) / jnp.maximum(size, SMALL)


def project_on_cone(point: Cost, normals: Float[Array, "m d"], iterations: int) -> Cost:
    """Return the nearest ``Σ λ_i n_i`` with ``λ ≥ 0``, by accelerated projected gradients; zero rows do nothing."""
    size = jnp.max(jnp.sum(jnp.abs(normals), axis=0)) * jnp.max(jnp.sum(jnp.abs(normals), axis=1))
    rate = 1.0 / jnp.maximum(size, SMALL)  # an upper bound of the largest eigenvalue of N Nᵀ

    def step(_: Any, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        weights, ahead, momentum = carried
        after = jnp.maximum(ahead - rate * (normals @ (ahead @ normals - point)), 0.0)
        following = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * jnp.square(momentum)))
        return after, after + (momentum - 1.0) / following * (after - weights), following

    zeros = jnp.zeros(len(normals), point.dtype)
    weights, _, _ = jax.lax.fori_loop(0, iterations, step, (zeros, zeros, jnp.ones((), point.dtype)))
    return weights @ normals


class CaVE(FieldSpec, of=CaVESurrogate):
    """CaVE (Tang & Khalil, 2024): aligns ``−ĉ`` with the cone of the constraints that bind at ``w*(c)``.

    Loss: ``1 − cos(−ĉ, p)`` with ``p`` the projection of ``−ĉ`` onto that cone, which is held fixed in the gradient.
    The oracle has to know its constraints (``Oracle.constraints``).

    Parameters
    ----------
    iterations : int, default 100
        Steps of the projection; few steps stay inside the cone.
    """

    iterations: int = Field(default=100, ge=1, le=10**5)

    def build(self, oracle: Oracle) -> Surrogate:
        """Return the gradient on a feasible set; refuse an oracle that does not know its constraints."""
        oracle.require_constraints("cave")
        return super().build(oracle)
