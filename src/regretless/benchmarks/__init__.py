"""Sequential decision problems with their reference lines.

>>> import regretless as rg
>>> bench = rg.benchmarks.build("shortest_path", {"degree": 4})
>>> bench.oracle.dim, bench.context_shape, bench.horizon
(40, (10,), 2000)
>>> bench.problem(feedback="semi_bandit").feedback.name
'semi_bandit'
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.benchmarks.base import Benchmark, Round
from regretless.registry import Later, Registry, late_name
from regretless.settings import Settings

if TYPE_CHECKING:
    from regretless.benchmarks.arrays import ArraysBenchmark, from_arrays

_LATE: dict[str, Later[Any]] = {
    "ArraysBenchmark": Later("regretless.benchmarks.arrays", "ArraysBenchmark"),
    "from_arrays": Later("regretless.benchmarks.arrays", "from_arrays"),
}

REGISTRY: Registry[type[Benchmark]] = Registry(
    "benchmark",
    "benchmarks",
    {
        "topk": Later("regretless.benchmarks.topk", "TopKBenchmark"),
        "shortest_path": Later("regretless.benchmarks.shortest_path", "ShortestPathBenchmark"),
        "pricing": Later("regretless.benchmarks.pricing", "PricingBenchmark"),
        "energy": Later("regretless.benchmarks.energy.benchmark", "EnergyBenchmark"),
        "world_topk": Later("regretless.benchmarks.worlds.sets", "TopKWorld"),
        "world_rows": Later("regretless.benchmarks.worlds.rows", "RowsWorld"),
        "world_assignment": Later("regretless.benchmarks.worlds.sets", "AssignmentWorld"),
        "world_grid": Later("regretless.benchmarks.worlds.sets", "GridWorld"),
        "world_cover": Later("regretless.benchmarks.worlds.sets", "CoverWorld"),
    },
    ("Settings", "build"),
    "a class that subclasses regretless.benchmarks.Benchmark",
)


def __getattr__(name: str) -> Any:
    return late_name(__name__, _LATE, name)


def __dir__() -> list[str]:
    return __all__


def settings_for(name: str, values: Mapping[str, Any] | None = None) -> Settings:
    """The settings of the benchmark called ``name``."""
    return REGISTRY[name].Settings(**(values or {}))


def build(name: str, settings: Settings | Mapping[str, Any] | None = None) -> Benchmark:
    """The benchmark called ``name``, with settings of its own by name or as its settings object."""
    return REGISTRY[name].build(settings if isinstance(settings, Settings) else settings_for(name, settings))


__all__ = [
    "REGISTRY", "ArraysBenchmark", "Benchmark", "Round", "build", "from_arrays", "settings_for",
]  # fmt: skip
