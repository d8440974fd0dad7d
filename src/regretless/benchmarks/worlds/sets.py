"""Worlds by their feasible set: pick ``k`` items, match a table, walk a grid, cover demands."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from pydantic import Field, model_validator

from regretless import draws
from regretless.benchmarks.worlds.base import WorldBenchmark, WorldSettings
from regretless.oracles.assignment import Assignment
from regretless.oracles.dag import ShortestPath, grid_edges
from regretless.oracles.mixed_integer import Milp
from regretless.oracles.topk import TopK
from regretless.types import Instance, Key


class TopKWorldSettings(WorldSettings):
    """The sizes of a selection."""

    items: int = Field(30, ge=1, le=10**6, description="d, to choose from")
    k: int = Field(5, ge=1, description="to be chosen")
    available: float = Field(1.0, gt=0, le=1, description="share of the items that are there each round")

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.k > int(self.available * self.items):
            raise ValueError(
                f"expected k ≤ the {int(self.available * self.items)} items that are there at a time, got k = {self.k}"
            )
        return self


class TopKWorld(WorldBenchmark):
    """Pick the ``k`` cheapest of ``items``, or of a random share of them that changes every round."""

    Settings = TopKWorldSettings

    there: int = eqx.field(static=True)

    def __init__(self, settings: TopKWorldSettings):
        super().__init__("world_topk", TopK(settings.items, settings.k), settings)
        self.there = int(settings.available * settings.items)

    def feasible_now(self, key: Key) -> Instance:
        if self.there == self.oracle.dim:
            return None
        place = jnp.argsort(jnp.argsort(draws.uniform(key, (self.oracle.dim,))))
        return place < self.there


class AssignmentWorldSettings(WorldSettings):
    """The size of an assignment."""

    side: int = Field(8, ge=1, le=1000, description="n, of an n × n table of costs")


class AssignmentWorld(WorldBenchmark):
    """Give each of ``side`` workers one of ``side`` jobs; only pairs have costs."""

    Settings = AssignmentWorldSettings

    def __init__(self, settings: AssignmentWorldSettings):
        super().__init__("world_assignment", Assignment(settings.side), settings)


class GridWorldSettings(WorldSettings):
    """The size of a grid."""

    height: int = Field(6, ge=1, le=500, description="nodes from top to bottom")
    width: int = Field(6, ge=2, le=500, description="nodes from left to right")


class GridWorld(WorldBenchmark):
    """Walk from the first corner of a grid to the last, right and down."""

    Settings = GridWorldSettings

    def __init__(self, settings: GridWorldSettings):
        edges = grid_edges(settings.height, settings.width)
        super().__init__("world_grid", ShortestPath(edges), settings)


class CoverWorldSettings(WorldSettings):
    """The size of a covering problem."""

    items: int = Field(12, ge=1, le=1000, description="d, to choose from")
    demands: int = Field(2, ge=1, le=100, description="that the chosen items must cover")
    cover: float = Field(0.4, gt=0, le=1, description="of each demand, as a share of what all items give")
    layout: int = Field(0, ge=0, le=2**31, description="which integers the items give, as a seed")


class CoverWorld(WorldBenchmark):
    """Choose items that cover several demands: a small mixed-integer programme, solved on the host.

    What item ``i`` gives to demand ``j`` is an integer from 1 to 9, the same in every replication.
    """

    Settings = CoverWorldSettings

    def __init__(self, settings: CoverWorldSettings):
        gives = np.random.RandomState(settings.layout).randint(1, 10, (settings.demands, settings.items))
        demanded = np.floor(settings.cover * gives.sum(axis=1))
        oracle = Milp(A_ub=-gives, b_ub=-demanded, bounds=(0, 1), integrality=1)
        super().__init__("world_cover", oracle, settings)
