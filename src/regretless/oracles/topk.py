"""Top-k: choose exactly ``k`` of ``d`` items."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.oracles.base import TraceableOracle
from regretless.oracles.selection import cheapest
from regretless.types import SOLVED, Cost, Instance, Solution


class TopK(TraceableOracle):
    """``S = {w in {0,1}^d : 1·w = k}``; ties go to the lowest index.

    An instance is a boolean vector of the items that are available this round (None: all of them).
    """

    k: int = eqx.field(static=True)

    def __init__(self, dim: int, k: int):
        if not 1 <= k <= dim:
            raise ValueError(f"top-k: expected 1 ≤ k ≤ number of items, got k = {k} with {dim} items")
        self.dim, self.k = dim, k

    @property
    def support(self) -> int:
        return self.k

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        if instance is not None:
            cost = jnp.where(instance, cost, jnp.inf)
        w = cheapest(cost, self.k).astype(cost.dtype)
        short = 0 if instance is None else jnp.sum(instance) < self.k
        return Solution(w, jnp.where(short, 1, SOLVED))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        allowed = 1.0 if instance is None else instance
        return jnp.all((w == 0) | (w == allowed)) & (jnp.sum(w) == self.k)
