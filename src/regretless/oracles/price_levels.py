"""Pricing: one price level per product, at most ``budget`` products on promotion (the paper's Section 3.1)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles import inputs
from regretless.oracles.base import TraceableOracle
from regretless.oracles.selection import cheapest
from regretless.oracles.status import INFEASIBLE
from regretless.types import SOLVED, Cost, Instance, Solution


class Pricing(TraceableOracle):
    """``S``: exactly one of ``levels`` per product, at most ``budget`` products on one of the ``promotions`` lowest levels.

    The dynamic programme over (product, budget left) has a closed form because every promotion uses one unit: with ``r_i``
    and ``q_i`` the cheapest regular and the cheapest promotional cost of product ``i``, promote the products with the largest
    saving ``r_i − q_i > 0``, at most ``budget`` of them. Ties: no promotion before a promotion, lower index first.
    Coordinates run product by product. An instance is the round's budget (None: the one given here).
    """

    products: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    promotions: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)

    def __init__(self, products: int, levels: int, promotions: int, budget: int):
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
            promoted = cheapest(-saving, budget) & (saving > 0)
        level = jnp.arange(self.levels)
        on_offer = (level[None, :] < self.promotions) == promoted[:, None]
        chosen = jnp.argmin(jnp.where(on_offer, table, jnp.inf), axis=1)
        w = (level[None, :] == chosen[:, None]).astype(cost.dtype).reshape(-1)
        return Solution(w, jnp.where(jnp.sum(promoted) > budget, INFEASIBLE, SOLVED))

    def instance(self, given: Any) -> Instance:
        return None if given is None else self._budget("instance", given, ())

    def instances(self, given: Any, rows: int) -> Instance:
        return None if given is None else self._budget("instances", given, (rows,))

    def example_instance(self) -> Instance:
        return np.asarray(self.budget, np.int32)

    def _budget(self, what: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
        budget = inputs.finite(what, given, shape)
        if np.any((budget != np.round(budget)) | (budget < 0)):
            raise SettingsError(f"{what}: expected the promotion budget as an integer of at least 0, got {given!r}")
        return np.minimum(budget, self.products).astype(np.int32)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        known = self._converted(instance)
        budget = self.budget if known is None else known
        table = w.reshape(self.products, self.levels)
        binary = jnp.all((w == 0) | (w == 1)) & jnp.all(jnp.sum(table, axis=1) == 1)
        return binary & (jnp.sum(table[:, : self.promotions]) <= budget)
