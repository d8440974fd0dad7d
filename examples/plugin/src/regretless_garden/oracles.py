"""An oracle in pure JAX: one plant for each bed."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

import regretless as rg
from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE
from regretless.types import SOLVED, Cost, Instance, Solution


class OneOfEach(rg.oracles.MaskedOracle):
    """``S``: exactly one of ``size`` items in each of ``groups`` groups.

    An instance is a mask of the available items.
    """

    groups: int = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, groups: int = 3, size: int = 2) -> None:
        if groups < 1 or size < 1:
            raise SettingsError(
                "one of each: expected at least one group of one item, "
                f"got {groups} of {size}"
            )
        self.dim, self.groups, self.size = groups * size, groups, size

    @property
    def support(self) -> int:
        return self.groups

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        prices = jnp.where(self._mask(instance), cost, jnp.inf)
        prices = prices.reshape(self.groups, self.size)
        best = jnp.argmin(prices, axis=1)
        w = jax.nn.one_hot(best, self.size, dtype=cost.dtype)
        empty = jnp.any(jnp.all(jnp.isinf(prices), axis=1))
        return Solution(w.reshape(-1), jnp.where(empty, INFEASIBLE, SOLVED))

    def feasible(self, w: Array, instance: Instance = None) -> Array:
        sums = jnp.sum(w.reshape(self.groups, self.size), axis=1)
        allowed = (w == 0) | ((w == 1) & self._mask(instance))
        return jnp.all(sums == 1) & jnp.all(allowed)

    def _mask(self, instance: Instance) -> Array:
        if instance is None:
            return jnp.ones(self.dim, bool)
        return jnp.asarray(instance, bool)
