"""Surrogates that rank a pool of decisions: the prediction should order them as the target does (Mandi et al., 2022)."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.surrogates import pool as pools
from regretless.surrogates.base import Surrogate
from regretless.surrogates.pool import Pool
from regretless.types import Cost, Instance


class _Pooled(Surrogate):
    """Adds ``w*(c)``, then ``w*(ĉ)``, to its pool at every call, before the gradient is taken."""

    def init(self) -> Pool:
        return pools.empty(self.oracle.dim)

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([target, prediction])

    def remember(self, memory: Pool, solutions: Float[Array, "2 d"]) -> Pool:
        return pools.add(pools.add(memory, solutions[0]), solutions[1])

    def available(self, memory: Pool, instance: Instance) -> Pool:
        return memory.available(self.oracle, instance)


class PairwiseDiff(_Pooled):
    """``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``: regress the cost differences to the pool's best.

    ``w_b`` is the pool's best decision under the target ``c``, ``R`` the rest; of decisions with exactly equal target cost
    only the oldest counts.
    """

    def gradient(
        self, memory: Pool, prediction: Cost, target: Cost, noise: None, solutions: Float[Array, "2 d"]
    ) -> Cost:
        costs = memory.costs(target)
        best = memory.cheapest(target)
        rest = memory.present() & ~best & ~_repeated(memory, costs)
        difference = best.astype(target.dtype) @ memory.decisions - memory.decisions
        weight = jnp.where(rest, difference @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(jnp.sum(rest), 1) * (weight @ difference)


def _repeated(memory: Pool, costs: Float[Array, " size"]) -> Bool[Array, " size"]:
    """Marks the decisions for which the pool holds an older one of exactly the same cost."""
    older = memory.present()[None, :] & (memory.added[None, :] < memory.added[:, None])
    return jnp.any(older & (costs[None, :] == costs[:, None]), axis=1)
