"""Oracles that select the lowest costs: ``k`` of ``d`` items, or one price level per product under a budget."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import (
    INFEASIBLE,
    Constraints,
    MaskedOracle,
    TraceableOracle,
    check_finite,
    check_integer,
)
from regretless.types import SOLVED, Cost, Instance, Solution

PAIRWISE_LIMIT = 64
"""Up to this many values every pair is compared, which is faster than sorting; beyond it a partial sort takes over."""


def mark_lowest(values: Float[Array, " n"], k: int | Array) -> Bool[Array, " n"]:
    """Mark the ``k`` lowest values, ties to the lowest index; a traced ``k`` compares all pairs.

    >>> import jax.numpy as jnp
    >>> mark_lowest(jnp.array([3., 1., 2., 1.]), 2).tolist()
    [False, True, False, True]
    """
    n = values.shape[0]
    if isinstance(k, int):
        k = min(max(k, 0), n)
    if n <= PAIRWISE_LIMIT or not isinstance(k, int) or k == 0:
        index = jnp.arange(n)
        before = (values[None, :] < values[:, None]) | (
            (values[None, :] == values[:, None]) & (index[None, :] < index[:, None])
        )
        return jnp.sum(before, axis=1) < k
    last = -jax.lax.top_k(-values, k)[0][-1]
    less, equal = values < last, values == last
    return less | (equal & (jnp.cumsum(equal) <= k - jnp.sum(less)))


class TopKOracle(MaskedOracle):
    """``S = {w in {0,1}^d : 1·w = k}``; ties go to the lowest index.

    An instance is a mask of the items that are available in this round, booleans or exactly 0 and 1 (None: all of
    them).

    Parameters
    ----------
    dim : int
        Number of items ``d``.
    k : int
        How many are selected.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.oracles.top_k(3, 2).answer([[3.0, 1.0, 2.0]]).w.tolist()
    [[0.0, 1.0, 1.0]]
    """

    k: int = eqx.field(static=True)

    def __init__(self, dim: int, k: int):
        dim, k = check_integer("top-k: dim", dim), check_integer("top-k: k", k)
        if not 1 <= k <= dim:
            raise SettingsError(f"top-k: expected 1 ≤ k ≤ number of items, got k = {k} with {dim} items")
        self.dim, self.k = dim, k

    @property
    def support(self) -> int:
        return self.k

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        available = jnp.ones(self.dim, bool) if instance is None else jnp.asarray(instance, bool)
        w = mark_lowest(jnp.where(available, cost, jnp.inf), self.k).astype(cost.dtype)
        return Solution(w, jnp.where(jnp.sum(available) < self.k, INFEASIBLE, SOLVED))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        checked = self._converted(instance)
        available = True if checked is None else jnp.asarray(checked, bool)
        return jnp.all((w == 0) | ((w == 1) & available)) & (jnp.sum(w) == self.k)

    def constraints(self, instance: Instance) -> Constraints:
        return self._within(np.ones((1, self.dim)), instance)


class PricingOracle(TraceableOracle):
    """``S``: exactly one of ``levels`` per product, at most ``budget`` products on one of the lowest levels.

    The dynamic program over (product, budget left) has a closed form because every promotion uses one unit (Section
    3.1 of the paper): with ``r_i`` and ``q_i`` the lowest regular and the lowest promotional cost of product ``i``,
    promote the products with the largest saving ``r_i − q_i > 0``, at most ``budget`` of them. Ties: no promotion
    before a promotion, lower index first. Coordinates run product by product. An instance is the round's budget
    (None: the one given here).

    Parameters
    ----------
    products, levels : int
        Number of products, and of prices for each.
    promotions : int
        How many of the lowest levels are promotions.
    budget : int
        Largest number of products on promotion.
    """

    products: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    promotions: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)

    def __init__(self, products: int, levels: int, promotions: int, budget: int):
        given = {"products": products, "levels": levels, "promotions": promotions, "budget": budget}
        products, levels, promotions, budget = (check_integer(f"pricing: {name}", n) for name, n in given.items())
        if products < 1 or levels < 1 or not 0 <= promotions <= levels:
            raise SettingsError(
                "pricing: expected at least one product and one level, and 0 ≤ promotions ≤ levels; "
                f"got products = {products}, levels = {levels}, promotions = {promotions}"
            )
        if budget < (products if promotions == levels else 0):
            need = f"at least {products}, as every level is a promotion" if promotions == levels else "at least 0"
            raise SettingsError(f"pricing: infeasible promotion budget {budget}, expected {need}")
        self.products, self.levels, self.promotions, self.budget = products, levels, promotions, budget
        self.dim = products * levels

    @property
    def support(self) -> int:
        return self.products

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        budget = self.budget if instance is None else instance
        table = cost.reshape(self.products, self.levels)
        promotional, regular = table[:, : self.promotions], table[:, self.promotions :]
        if not self.promotions:
            promoted = jnp.zeros(self.products, bool)
        elif self.promotions == self.levels:
            promoted = jnp.ones(self.products, bool)
        else:
            saving = jnp.min(regular, axis=1) - jnp.min(promotional, axis=1)
            promoted = mark_lowest(-saving, budget) & (saving > 0)
        level = jnp.arange(self.levels)
        allowed = (level[None, :] < self.promotions) == promoted[:, None]
        chosen = jnp.argmin(jnp.where(allowed, table, jnp.inf), axis=1)
        w = (level[None, :] == chosen[:, None]).astype(cost.dtype).reshape(-1)
        return Solution(w, jnp.where(jnp.sum(promoted) > budget, INFEASIBLE, SOLVED))

    def example_instance(self) -> Instance:
        return np.asarray(self.budget, np.int32)

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        if given is None:
            return None
        budget = check_finite(name, given, lead)
        if np.any((budget != np.round(budget)) | (budget < 0)):
            raise SettingsError(f"{name}: expected the promotion budget as an integer of at least 0, got {given!r}")
        return np.minimum(budget, self.products).astype(np.int32)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        checked = self._converted(instance)
        budget = self.budget if checked is None else checked
        table = w.reshape(self.products, self.levels)
        binary = jnp.all((w == 0) | (w == 1)) & jnp.all(jnp.sum(table, axis=1) == 1)
        return binary & (jnp.sum(table[:, : self.promotions]) <= budget)

    def constraints(self, instance: Instance) -> Constraints:
        promoted = np.tile(np.arange(self.levels) < self.promotions, self.products)[None]
        budget = jnp.asarray(self.budget if instance is None else instance)[None]
        once = np.kron(np.eye(self.products), np.ones((1, self.levels)))
        return Constraints(promoted, budget, once, jnp.zeros(self.dim), jnp.ones(self.dim))
