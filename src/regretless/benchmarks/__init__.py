"""Sequential decision problems with their reference lines.

>>> import regretless as rg
>>> benchmark = rg.benchmarks.ShortestPath(degree=4).build()
>>> benchmark.oracle.dim, benchmark.context_shape, benchmark.horizon
(40, (10,), 2000)
>>> benchmark.problem(feedback="semi_bandit").feedback.name
'semi_bandit'
"""

from typing import TYPE_CHECKING

from regretless.benchmarks.base import REGISTRY, Benchmark, BenchmarkSpec, Round
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.benchmarks.arrays import ArraysBenchmark, from_arrays
    from regretless.benchmarks.energy import Energy
    from regretless.benchmarks.polynomial import ShortestPath, TopK
    from regretless.benchmarks.pricing import Pricing
    from regretless.benchmarks.worlds import AssignmentWorld, CoverWorld, GridWorld, RowsWorld, TopKWorld

__all__ = [
    "REGISTRY",
    "ArraysBenchmark",
    "AssignmentWorld",
    "Benchmark",
    "BenchmarkSpec",
    "CoverWorld",
    "Energy",
    "GridWorld",
    "Pricing",
    "Round",
    "RowsWorld",
    "ShortestPath",
    "TopK",
    "TopKWorld",
    "from_arrays",
    "parse",
    "register",
]

parse = REGISTRY.parse
"""Return a benchmark's specification from its name, such as ``"topk"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a benchmark of your own under a name."""

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    {
        **REGISTRY.locations,
        "ArraysBenchmark": "regretless.benchmarks.arrays:ArraysBenchmark",
        "from_arrays": "regretless.benchmarks.arrays:from_arrays",
    },
)
