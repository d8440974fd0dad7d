"""Combinatorial pricing: one price level per product under a promotion budget; the cost is the negative revenue."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.errors import SettingsError
from regretless.oracles.selection import PricingOracle
from regretless.types import Context, Key


class Pricing(BenchmarkSpec):
    """Price 20 products at 4 levels, the 2 lowest of them promotions, with at most 10 promotions; the paper's sizes.

    Mean demand is ``softplus(min(|b_i·x|^degree + (1 − price)^degree, demand_cap))``, at least 1e-6; the cap is not
    in the paper, and a tenth of the entries reach it at degree 8. Demand is Poisson around it, with one shock
    ``exp(0.1 ζ − 0.005)`` a round. Feedback is realised revenue.

    Parameters
    ----------
    degree : int, default 8
        Degree of the demand.
    products, levels : int
        Number of products, and of prices for each.
    promotions, budget : int
        How many of the lowest prices are promotions, and how many promotions are allowed at once.
    features : int, default 25
        Length of the context ``x`` that all products share.
    lowest_price, highest_price : float
        Prices are evenly spaced between these.
    shock_scale : float, default 0.1
        Standard deviation of the round's common log-demand.
    demand_cap : float, default 50
        Limit of the growth of mean demand.
    elasticity : float, default 0
        Largest price elasticity. Mean demand is multiplied by ``exp(−k_i(x) (price − lowest_price))``, where
        ``k_i(x) = elasticity / (1 + exp(−2 b_i·x))``. With 0, the paper's demand, one decision is best in every
        context: the highest price for all products. With 8, about 14 products gain from a promotion, which ones
        depends on the context, and the budget of 10 binds.
    regret : {"mean", "realised"}
        Count regret on conditional means, or on realised costs as the paper writes.
    context : {"rows", "vector"}
        Policies see a row of 60 features per (product, price), or ``x`` alone as the paper writes.
    """

    degree: int = Field(default=8, ge=1, le=100)
    products: int = Field(default=20, ge=1, le=10**5)
    levels: int = Field(default=4, ge=2, le=10**5)
    promotions: int = Field(default=2, ge=0, le=10**5)
    budget: int = Field(default=10, ge=0, le=10**5)
    features: int = Field(default=25, ge=1, le=10**5)
    lowest_price: float = Field(default=0.1, gt=0, le=1)
    highest_price: float = Field(default=0.9, gt=0, le=1)
    shock_scale: float = Field(default=0.1, ge=0)
    demand_cap: float = Field(default=50.0, gt=0)
    elasticity: float = Field(default=0.0, ge=0, le=1000)
    regret: Literal["mean", "realised"] = "mean"
    context: Literal["rows", "vector"] = "rows"

    def build(self) -> "PricingBenchmark":
        """Return the benchmark."""
        return PricingBenchmark(self)


class PricingBenchmark(Benchmark):
    """The stream of ``Pricing``."""

    settings: Pricing = eqx.field(static=True)  # but for the degree
    degree: Int[Array, ""]

    def __init__(self, settings: Pricing):
        if settings.promotions > settings.levels:
            raise SettingsError(
                f"expected promotions ≤ levels, got {settings.promotions} promotions among {settings.levels} prices"
            )
        if settings.lowest_price > settings.highest_price:
            prices = f"{settings.lowest_price} and {settings.highest_price}"
            raise SettingsError(f"expected lowest_price ≤ highest_price, got {prices}")
        rows, columns = settings.products * settings.levels, 2 * settings.features + 6 + settings.levels
        self.name, self.horizon, self.regret_on_mean = "pricing", 2000, settings.regret == "mean"
        self.settings, self.degree = settings.replace(degree=1), jnp.asarray(settings.degree, jnp.int32)
        self.oracle = PricingOracle(settings.products, settings.levels, settings.promotions, settings.budget)
        self.context_shape = (rows, columns) if settings.context == "rows" else (settings.features,)

    @property
    def prices(self) -> np.ndarray:
        """The price levels."""
        return np.linspace(self.settings.lowest_price, self.settings.highest_price, self.settings.levels)

    def environment(self, key: Key) -> Float[Array, "products features"]:
        directions = draws.normal(key, (self.settings.products, self.settings.features))
        return directions / jnp.linalg.norm(directions, axis=1, keepdims=True)

    def round(self, key: Key, environment: Float[Array, "products features"], t: Int[Array, ""]) -> Round:
        context_key, shock_key, demand_key = jax.random.split(key, 3)
        x = draws.normal(context_key, (self.settings.features,))
        match = environment @ x
        appeal = jnp.abs(match) ** self.degree
        steepness = (1.0 - self.prices) ** self.degree
        demand = jax.nn.softplus(jnp.minimum(appeal[:, None] + steepness[None, :], self.settings.demand_cap))
        if self.settings.elasticity:
            elasticity = self.settings.elasticity * jax.nn.sigmoid(2.0 * match)
            demand = demand * jnp.exp(-elasticity[:, None] * (self.prices - self.settings.lowest_price))
        demand = jnp.maximum(demand, 1e-6)
        scale = self.settings.shock_scale
        shock = jnp.exp(scale * draws.normal(shock_key) - scale**2 / 2)
        sold = jax.random.poisson(demand_key, (shock * demand).astype(jnp.float32)).astype(demand.dtype)
        prices = jnp.asarray(self.prices, demand.dtype)
        return Round(x, -(prices * sold).reshape(-1), -(prices * demand).reshape(-1))

    def context(
        self, environment: Float[Array, "products features"], observation: Float[Array, " features"]
    ) -> Context:
        """Return ``x``, or one feature row per (product, level).

        Its columns: x, b_i, b_i·x, |b_i·x|^degree, price, (1 − price)^degree, promotion, level, 1.
        """
        settings, x, n = self.settings, observation, self.oracle.dim
        if settings.context == "vector":
            return x
        match = environment @ x
        by_product = jnp.column_stack([environment, match, jnp.abs(match) ** self.degree])
        is_promotion = np.arange(settings.levels) < settings.promotions
        steepness = (1.0 - self.prices) ** self.degree
        by_level = jnp.column_stack([self.prices, steepness, is_promotion, np.eye(settings.levels)])
        shared = jnp.broadcast_to(x, (n, settings.features))
        by_product = jnp.repeat(by_product, settings.levels, axis=0)
        by_level = jnp.tile(by_level, (settings.products, 1))
        return jnp.column_stack([shared, by_product, jnp.asarray(by_level, x.dtype), jnp.ones(n, x.dtype)])
