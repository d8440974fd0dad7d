"""Top-k: choose exactly ``k`` of ``d`` items."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import MaskedOracle
from regretless.oracles.selection import cheapest
from regretless.oracles.status import INFEASIBLE
from regretless.types import SOLVED, Cost, Instance, Solution


class TopK(MaskedOracle):
    """``S = {w in {0,1}^d : 1·w = k}``; ties go to the lowest index.

    An instance is a mask of the items that are available this round, booleans or exactly 0 and 1 (None: all of them).
    """

    k: int = eqx.field(static=True)

    def __init__(self, dim: int, k: int):
        if not 1 <= k <= dim:
            raise SettingsError(f"top-k: expected 1 ≤ k ≤ number of items, got k = {k} with {dim} items")
        self.dim, self.k = dim, k

    @property
    def support(self) -> int:
        return self.k

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        available = jnp.ones(self.dim, bool) if instance is None else jnp.asarray(instance, bool)
        w = cheapest(jnp.where(available, cost, jnp.inf), self.k).astype(cost.dtype)
        return Solution(w, jnp.where(jnp.sum(available) < self.k, INFEASIBLE, SOLVED))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        known = self._converted(instance)
        available = True if known is None else jnp.asarray(known, bool)
        return jnp.all((w == 0) | ((w == 1) & available)) & (jnp.sum(w) == self.k)
