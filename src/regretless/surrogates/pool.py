"""A pool of feasible decisions seen so far: the last ``size`` distinct ones, kept in arrays of fixed shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

SIZE = 128
NEVER = np.iinfo(np.int32).max


class Pool(eqx.Module):
    """Decisions with the time each was last added; a place with time 0 is empty."""

    decisions: Float[Array, "size d"]
    added: Int[Array, " size"]
    clock: Int[Array, ""]

    def present(self) -> Bool[Array, " size"]:
        """Which places hold a decision."""
        return self.added > 0

    def count(self) -> Int[Array, ""]:
        """How many decisions are held."""
        return jnp.sum(self.present())

    def costs(self, cost: Float[Array, " d"]) -> Float[Array, " size"]:
        """``c·w`` of each decision, infinite for an empty place."""
        return jnp.where(self.present(), self.decisions @ cost, jnp.inf)

    def cheapest(self, cost: Float[Array, " d"]) -> Bool[Array, " size"]:
        """Marks the decision of least ``c·w``, the oldest one on ties."""
        costs = self.costs(cost)
        age = jnp.where(self.present() & (costs == jnp.min(costs)), self.added, NEVER)
        return (age == jnp.min(age)) & (age < NEVER)

    def best(self, cost: Float[Array, " d"]) -> Float[Array, " d"]:
        """The decision of least ``c·w``, the oldest one on ties."""
        return self.cheapest(cost).astype(self.decisions.dtype) @ self.decisions

    def only(self, kept: Bool[Array, " size"]) -> "Pool":
        """The pool without the decisions that are not marked."""
        return Pool(self.decisions, jnp.where(kept, self.added, 0), self.clock)


def empty(dim: int, size: int = SIZE) -> Pool:
    """A pool without decisions."""
    return Pool(jnp.zeros((size, dim)), jnp.zeros(size, jnp.int32), jnp.zeros((), jnp.int32))


def add(pool: Pool, w: Float[Array, " d"]) -> Pool:
    """The pool with ``w`` as its newest decision; an equal one (to 8 decimals) is renewed, the oldest makes room if need be."""
    clock = pool.clock + 1
    same = pool.present() & jnp.all(jnp.abs(pool.decisions - w) < 0.5e-8, axis=1)
    oldest = jnp.arange(pool.added.shape[0]) == jnp.argmin(pool.added)
    place = jnp.where(jnp.any(same), same, oldest)
    return Pool(jnp.where(place[:, None], w, pool.decisions), jnp.where(place, clock, pool.added), clock)


def add_many(pool: Pool, ws: Float[Array, "n d"]) -> Pool:
    """What ``add`` of each row in turn comes to: the distinct decisions added last, as many as there is room for."""
    size, n = pool.added.shape[0], ws.shape[0]
    clock = pool.clock + n
    decisions = jnp.concatenate([pool.decisions, ws])
    added = jnp.concatenate([pool.added, pool.clock + 1 + jnp.arange(n, dtype=pool.added.dtype)])
    same = jnp.all(jnp.abs(decisions[:, None, :] - ws[None, :, :]) < 0.5e-8, axis=2)
    renewed = jnp.any(same & (added[None, size:] > added[:, None]), axis=1)
    added, place = jax.lax.top_k(jnp.where(renewed, 0, added), size)
    return Pool(decisions[place], added, clock)
