"""A pool of feasible decisions, kept in arrays of fixed shape, and what surrogates that compare its decisions share."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from regretless.surrogates.base import Rows, Surrogate, SurrogateSpec
from regretless.types import Cost

SIZE = 128
"""Decisions that a pool holds unless set otherwise."""

NEVER = np.iinfo(np.int32).max


class Pool(eqx.Module):
    """Decisions with the time each was last added; a place with time 0 is empty."""

    decisions: Float[Array, "size d"]
    added: Int[Array, " size"]
    clock: Int[Array, ""]

    def present(self) -> Bool[Array, " size"]:
        """Return which places hold a decision."""
        return self.added > 0

    def count(self) -> Int[Array, ""]:
        """Return how many decisions are held."""
        return jnp.sum(self.present())

    def costs(self, cost: Float[Array, " d"]) -> Float[Array, " size"]:
        """Return ``c·w`` of each decision, infinite for an empty place."""
        return jnp.where(self.present(), self.decisions @ cost, jnp.inf)

    def cheapest(self, cost: Float[Array, " d"]) -> Bool[Array, " size"]:
        """Mark the decision of least ``c·w``, the oldest one on ties."""
        costs = self.costs(cost)
        age = jnp.where(self.present() & (costs == jnp.min(costs)), self.added, NEVER)
        return (age == jnp.min(age)) & (age < NEVER)

    def best(self, cost: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the decision of least ``c·w``, the oldest one on ties."""
        return self.cheapest(cost).astype(self.decisions.dtype) @ self.decisions

    def only(self, kept: Bool[Array, " size"]) -> "Pool":
        """Return the pool without the decisions that are not marked."""
        return Pool(self.decisions, jnp.where(kept, self.added, 0), self.clock)


def empty(dim: int, size: int = SIZE) -> Pool:
    """Return a pool without decisions."""
    return Pool(jnp.zeros((size, dim)), jnp.zeros(size, jnp.int32), jnp.zeros((), jnp.int32))


def add(pool: Pool, w: Float[Array, " d"]) -> Pool:
    """Return the pool with ``w`` as its newest decision, in place of an equal one (to 8 decimals) or the oldest."""
    clock = pool.clock + 1
    same = pool.present() & jnp.all(jnp.abs(pool.decisions - w) < 0.5e-8, axis=1)
    oldest = jnp.arange(pool.added.shape[0]) == jnp.argmin(pool.added)
    place = jnp.where(jnp.any(same), same, oldest)
    return Pool(jnp.where(place[:, None], w, pool.decisions), jnp.where(place, clock, pool.added), clock)


def add_many(pool: Pool, ws: Float[Array, "n d"]) -> Pool:
    """Return the result of ``add`` of each row in turn: the last distinct decisions, up to the size of the pool."""
    size, n = pool.added.shape[0], ws.shape[0]
    clock = pool.clock + n
    decisions = jnp.concatenate([pool.decisions, ws])
    added = jnp.concatenate([pool.added, pool.clock + 1 + jnp.arange(n, dtype=pool.added.dtype)])
    same = jnp.all(jnp.abs(decisions[:, None, :] - ws[None, :, :]) < 0.5e-8, axis=2)
    renewed = jnp.any(same & (added[None, size:] > added[:, None]), axis=1)
    added, place = jax.lax.top_k(jnp.where(renewed, 0, added), size)
    return Pool(decisions[place], added, clock)


class PooledSurrogate(Surrogate):
    """A surrogate whose gradient compares decisions of a pool ``P``; ``w_b`` is the pool's best under the target.

    Every call adds ``w*(c)``, then ``w*(ĉ)``, before the gradient is taken.
    """

    pool: int = eqx.field(static=True)

    @abc.abstractmethod
    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        """Return ``∇_ĉ ℓ`` from the pool; ``best`` is ``w*(c)``."""

    def init(self) -> Pool:
        return empty(self.oracle.dim, self.pool)

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction])

    def remember(self, memory: Pool, solutions: Rows) -> Pool:
        for w in solutions:
            memory = add(memory, w)
        return memory

    def before_all(self, memory: Pool, solutions: Float[Array, "k q d"]) -> Pool:
        return add(memory, solutions[0, 0])

    def after_all(self, memory: Pool, gradients: Float[Array, "k d"], solutions: Float[Array, "k q d"]) -> Pool:
        return add_many(memory, solutions[:, 1:].reshape(-1, solutions.shape[-1]))

    def points(self, memory: Pool) -> Float[Array, "n d"]:
        return memory.decisions

    def available(self, memory: Pool, feasible: Bool[Array, " n"]) -> Pool:
        return memory.only(feasible)

    def gradient(self, memory: Pool, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return self.slope(memory, prediction, target, solutions[0])


class PooledSpec(SurrogateSpec):
    """Base class of the surrogates with a pool of decisions.

    Parameters
    ----------
    pool : int, default 128
        Decisions that are remembered.
    """

    pool: int = Field(default=SIZE, ge=2)
