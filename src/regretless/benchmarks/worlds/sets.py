"""Worlds by their feasible set: pick ``k`` items, match a table, walk a grid, cover demands."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from pydantic import Field, model_validator

from regretless import draws
from regretless.benchmarks.worlds.base import WorldBenchmark, WorldSpec
from regretless.oracles.dag import ShortestPathOracle, grid_edges
from regretless.oracles.matching import AssignmentOracle
from regretless.oracles.mixed_integer import MilpOracle
from regretless.oracles.selection import TopKOracle
from regretless.types import Instance, Key


class TopKWorld(WorldSpec):
    """The sizes of a selection."""

    items: int = Field(default=30, ge=1, le=10**6, description="d, to choose from")
    k: int = Field(default=5, ge=1, description="to be chosen")
    available: float = Field(default=1.0, gt=0, le=1, description="share of the items that are there each round")

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.k > int(self.available * self.items):
            raise ValueError(
                f"expected k ≤ the {int(self.available * self.items)} items that are there at a time, got k = {self.k}"
            )
        return self

    def build(self) -> "TopKWorldBenchmark":
        """Return the benchmark."""
        return TopKWorldBenchmark(self)


class TopKWorldBenchmark(WorldBenchmark):
    """Pick the ``k`` cheapest of ``items``, or of a random share of them that changes every round."""

    there: int = eqx.field(static=True)

    def __init__(self, settings: TopKWorld):
        super().__init__("world_topk", TopKOracle(settings.items, settings.k), settings)
        self.there = int(settings.available * settings.items)

    def feasible_now(self, key: Key) -> Instance:
        if self.there == self.oracle.dim:
            return None
        place = jnp.argsort(jnp.argsort(draws.uniform(key, (self.oracle.dim,))))
        return place < self.there


class AssignmentWorld(WorldSpec):
    """The size of an assignment."""

    side: int = Field(default=8, ge=1, le=1000, description="n, of an n × n table of costs")

    def build(self) -> "AssignmentWorldBenchmark":
        """Return the benchmark."""
        return AssignmentWorldBenchmark(self)


class AssignmentWorldBenchmark(WorldBenchmark):
    """Give each of ``side`` workers one of ``side`` jobs; only pairs have costs."""

    def __init__(self, settings: AssignmentWorld):
        super().__init__("world_assignment", AssignmentOracle(settings.side), settings)


class GridWorld(WorldSpec):
    """The size of a grid."""

    height: int = Field(default=6, ge=1, le=500, description="nodes from top to bottom")
    width: int = Field(default=6, ge=2, le=500, description="nodes from left to right")

    def build(self) -> "GridWorldBenchmark":
        """Return the benchmark."""
        return GridWorldBenchmark(self)


class GridWorldBenchmark(WorldBenchmark):
    """Walk from the first corner of a grid to the last, right and down."""

    def __init__(self, settings: GridWorld):
        edges = grid_edges(settings.height, settings.width)
        super().__init__("world_grid", ShortestPathOracle(edges), settings)


class CoverWorld(WorldSpec):
    """The size of a covering problem."""

    items: int = Field(default=12, ge=1, le=1000, description="d, to choose from")
    demands: int = Field(default=2, ge=1, le=100, description="that the chosen items must cover")
    cover: float = Field(default=0.4, gt=0, le=1, description="of each demand, as a share of what all items give")
    layout: int = Field(default=0, ge=0, le=2**31, description="which integers the items give, as a seed")

    def build(self) -> "CoverWorldBenchmark":
        """Return the benchmark."""
        return CoverWorldBenchmark(self)


class CoverWorldBenchmark(WorldBenchmark):
    """Choose items that cover several demands: a small mixed-integer programme, solved on the host.

    What item ``i`` gives to demand ``j`` is an integer from 1 to 9, the same in every replication.
    """

    def __init__(self, settings: CoverWorld):
        gives = np.random.RandomState(settings.layout).randint(1, 10, (settings.demands, settings.items))
        demanded = np.floor(settings.cover * gives.sum(axis=1))
        oracle = MilpOracle(A_ub=-gives, b_ub=-demanded, bounds=(0, 1), integrality=1)
        super().__init__("world_cover", oracle, settings)
