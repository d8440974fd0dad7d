"""Sequential decision problems with their reference lines.

>>> import regretless as rg
>>> benchmark = rg.benchmarks.ShortestPath(degree=4).build()
>>> benchmark.oracle.dim, benchmark.context_shape, benchmark.horizon
(40, (10,), 2000)
>>> benchmark.problem(feedback="semi_bandit").feedback.name
'semi_bandit'
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.benchmarks.base import REGISTRY, Benchmark, BenchmarkSpec, Round
from regretless.registry import lazy_attribute

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

_LOCATIONS = {
    **REGISTRY.locations,
    "ArraysBenchmark": "regretless.benchmarks.arrays:ArraysBenchmark",
    "from_arrays": "regretless.benchmarks.arrays:from_arrays",
}


def parse(name: str, settings: Mapping[str, Any] | None = None) -> BenchmarkSpec:
    """Return a benchmark's specification from its name.

    Parameters
    ----------
    name : str
        A key of ``REGISTRY``, such as ``"topk"``.
    settings : mapping, optional
        Its settings by name.

    Raises
    ------
    SettingsError
        If the name or a setting is unknown, or a value cannot be used.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.benchmarks.parse("topk", {"degree": 4})
    rg.benchmarks.TopK(degree=4)
    """
    spec: BenchmarkSpec = REGISTRY.parse(name, settings)
    return spec


register = REGISTRY.register


def __getattr__(name: str) -> Any:
    return lazy_attribute(__name__, _LOCATIONS, name)


def __dir__() -> list[str]:
    return __all__
