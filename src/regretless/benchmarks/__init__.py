"""Sequential decision problems with their reference lines.

>>> import regretless as rg
>>> benchmark = rg.benchmarks.ShortestPath(degree=4).build()
>>> benchmark.oracle.dim, benchmark.context_shape, benchmark.horizon
(40, (10,), 2000)
>>> benchmark.problem(feedback="semi_bandit").feedback.name
'semi_bandit'
"""

from typing import TYPE_CHECKING

from regretless.benchmarks.base import REGISTRY as REGISTRY
from regretless.benchmarks.base import Benchmark as Benchmark
from regretless.benchmarks.base import BenchmarkSpec as BenchmarkSpec
from regretless.benchmarks.base import Contextuality as Contextuality
from regretless.benchmarks.base import Round as Round
from regretless.benchmarks.base import contextuality as contextuality
from regretless.benchmarks.base import contextuality_of as contextuality_of
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.benchmarks.arrays import ArraysBenchmark as ArraysBenchmark
    from regretless.benchmarks.arrays import from_arrays as from_arrays
    from regretless.benchmarks.datasets import DataWorld as DataWorld
    from regretless.benchmarks.energy import Energy as Energy
    from regretless.benchmarks.maps import GridMap as GridMap
    from regretless.benchmarks.maps import Maps as Maps
    from regretless.benchmarks.maps import read_warcraft as read_warcraft
    from regretless.benchmarks.polynomial import ShortestPath as ShortestPath
    from regretless.benchmarks.polynomial import TopK as TopK
    from regretless.benchmarks.pricing import Pricing as Pricing
    from regretless.benchmarks.published import GridPath as GridPath
    from regretless.benchmarks.published import Knapsack as Knapsack
    from regretless.benchmarks.published import Matching as Matching
    from regretless.benchmarks.published import Portfolio as Portfolio
    from regretless.benchmarks.published import TravellingSalesman as TravellingSalesman
    from regretless.benchmarks.worlds import AssignmentWorld as AssignmentWorld
    from regretless.benchmarks.worlds import CoverWorld as CoverWorld
    from regretless.benchmarks.worlds import GridWorld as GridWorld
    from regretless.benchmarks.worlds import RowsWorld as RowsWorld
    from regretless.benchmarks.worlds import StorageWorld as StorageWorld
    from regretless.benchmarks.worlds import TopKWorld as TopKWorld

parse = REGISTRY.parse
"""Return a benchmark's specification from its name, such as ``"topk"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a benchmark of your own under a name."""

__all__, __getattr__, __dir__ = lazy_exports(__name__, "parse", "register")
