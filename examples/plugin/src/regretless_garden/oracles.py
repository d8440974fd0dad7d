"""An oracle in pure JAX: one plant for each bed."""

import equinox as eqx
import jax
import jax.numpy as jnp

import regretless as rg
from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE
from regretless.types import SOLVED, Solution


class OneOfEach(rg.oracles.MaskedOracle):
    """``S``: exactly one of ``size`` neighbouring items in each of ``groups`` groups; an instance masks what is to be had."""

    groups: int = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, groups=3, size=2):
        if groups < 1 or size < 1:
            raise SettingsError(f"one of each: expected at least one group of one item, got {groups} of {size}")
        self.dim, self.groups, self.size = groups * size, groups, size

    @property
    def support(self):
        return self.groups

    def minimise(self, cost, instance):
        there = jnp.ones(self.dim, bool) if instance is None else jnp.asarray(instance, bool)
        prices = jnp.where(there, cost, jnp.inf).reshape(self.groups, self.size)
        w = jax.nn.one_hot(jnp.argmin(prices, axis=1), self.size, dtype=cost.dtype).reshape(-1)
        lacking = jnp.any(jnp.all(jnp.isinf(prices), axis=1))
        return Solution(w, jnp.where(lacking, INFEASIBLE, SOLVED))

    def feasible(self, w, instance=None):
        there = True if instance is None else jnp.asarray(instance, bool)
        once = jnp.sum(w.reshape(self.groups, self.size), axis=1) == 1
        return jnp.all(once) & jnp.all((w == 0) | ((w == 1) & there))
