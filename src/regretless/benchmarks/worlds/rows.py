"""Worlds whose items are told by a row of features each: one formula for all items, new rows every round."""

from typing import Self

import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field, model_validator

from regretless.benchmarks.worlds.base import WorldBenchmark, WorldSpec
from regretless.oracles.selection import TopKOracle
from regretless.types import Context, Key


class RowsWorld(WorldSpec):
    """The sizes of a selection from rows."""

    features: int = Field(default=8, ge=1, le=10**4, description="p, of each row")
    items: int = Field(default=50, ge=1, le=10**6, description="d, to choose from")
    k: int = Field(default=5, ge=1, description="to be chosen")
    named: bool = Field(
        default=False, description="whether each item has a base cost of its own, and its name in its row, one-hot"
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.k > self.items:
            raise ValueError(f"expected k ≤ items, got k = {self.k} of {self.items} items")
        if self.odd_columns or self.irrelevant:
            raise ValueError("odd_columns and irrelevant have no effect on feature rows: leave them out")
        return self

    def build(self) -> "RowsWorldBenchmark":
        """Return the benchmark."""
        return RowsWorldBenchmark(self)


class RowsWorldBenchmark(WorldBenchmark):
    """Pick the ``k`` cheapest of ``items``; what an item costs depends on its row ``z_i ~ N(0, I_p)``, by one formula."""

    def __init__(self, settings: RowsWorld):
        super().__init__("world_rows", TopKOracle(settings.items, settings.k), settings)
        self.context_shape = (settings.items, settings.features + (settings.items if settings.named else 0))

    @property
    def named(self) -> bool:
        """Whether each item has a base cost of its own."""
        assert isinstance(self.settings, RowsWorld)
        return self.settings.named

    @property
    def coefficient_rows(self) -> tuple[int, int]:
        return (self.oracle.dim if self.named else 1), 1

    def drawn(self, key: Key) -> Float[Array, "d p"]:
        return self.features(key, (self.oracle.dim, self.settings.features))

    def shown(self, key: Key, x: Float[Array, "d p"]) -> Context:
        return jnp.concatenate([jnp.eye(len(x), dtype=x.dtype), x], axis=1) if self.named else x
