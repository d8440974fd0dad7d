"""Combinatorial pricing: one price level per product under a promotion budget; the cost is the negative revenue."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from regretless import draws, oracles
from regretless.benchmarks.base import Benchmark, Round
from regretless.errors import SettingsError
from regretless.types import Key

SHOCK_SCALE = 0.1
DEMAND_CAP = 50.0
LEVELS, PROMOTIONS = 4, 2
PRICES = np.linspace(0.1, 0.9, LEVELS)


class PricingBenchmark(Benchmark):
    """20 products at 4 prices, the 2 lowest of them promotions, at most 10 promotions, 25 context features.

    Mean demand ``softplus(min(|b_i·x|^degree + (1 − price)^degree, 50))``, at least 1e-6; the cap is not in the paper, and a
    tenth of the entries reach it at degree 8. Demand is Poisson around it, with one shock ``exp(0.1 ζ − 0.005)`` a round.
    Feedback is realised revenue; regret is counted on conditional means.
    """

    products: int = eqx.field(static=True)
    features: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)

    def __init__(self, degree: int = 8, products: int = 20, budget: int = 10, features: int = 25):
        if degree < 1:
            raise SettingsError(f"expected a degree of at least 1, got {degree}")
        if features < 1:
            raise SettingsError(f"expected at least one context feature, got {features}")
        super().__init__(
            name="pricing",
            oracle=oracles.pricing(products, LEVELS, PROMOTIONS, budget),
            context_shape=(products * LEVELS, 2 * features + 6 + LEVELS),
            horizon=2000,
            regret_on_mean=True,
        )
        self.products, self.features, self.degree = products, features, degree

    def environment(self, key: Key) -> Float[Array, "products features"]:
        directions = draws.normal(key, (self.products, self.features))
        return directions / jnp.linalg.norm(directions, axis=1, keepdims=True)

    def round(self, key: Key, environment: Float[Array, "products features"], t: Int[Array, ""]) -> Round:
        context_key, shock_key, demand_key = jax.random.split(key, 3)
        x = draws.normal(context_key, (self.features,))
        appeal = jnp.abs(environment @ x) ** self.degree
        steepness = (1.0 - PRICES) ** self.degree
        demand = jax.nn.softplus(jnp.minimum(appeal[:, None] + steepness[None, :], DEMAND_CAP))
        demand = jnp.maximum(demand, 1e-6)
        shock = jnp.exp(SHOCK_SCALE * draws.normal(shock_key) - SHOCK_SCALE**2 / 2)
        sold = jax.random.poisson(demand_key, (shock * demand).astype(jnp.float32)).astype(demand.dtype)
        prices = jnp.asarray(PRICES, demand.dtype)
        return Round(x, -(prices * sold).reshape(-1), -(prices * demand).reshape(-1))

    def context(
        self, environment: Float[Array, "products features"], observation: Float[Array, " features"]
    ) -> Float[Array, "rows columns"]:
        """Feature rows of (product, level): x, b_i, b_i·x, |b_i·x|^degree, price, (1 − price)^degree, promotion, level, 1."""
        x, n = observation, self.products * LEVELS
        match = environment @ x
        by_product = jnp.concatenate([environment, match[:, None], (jnp.abs(match) ** self.degree)[:, None]], axis=1)
        level = np.arange(LEVELS)
        by_level = np.concatenate(
            [PRICES[:, None], ((1.0 - PRICES) ** self.degree)[:, None], (level < PROMOTIONS)[:, None], np.eye(LEVELS)],
            axis=1,
        )
        return jnp.concatenate(
            [
                jnp.broadcast_to(x, (n, self.features)),
                jnp.repeat(by_product, LEVELS, axis=0),
                jnp.asarray(np.tile(by_level, (self.products, 1)), x.dtype),
                jnp.ones((n, 1), x.dtype),
            ],
            axis=1,
        )

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "degree": self.degree, "products": self.products}
