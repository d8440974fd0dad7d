"""Sequential decision problems with their presets, published values and reference lines.

>>> import regretless as rg
>>> bench = rg.benchmarks.build("shortest_path", degree=4)
>>> bench.oracle.dim, bench.context_shape, bench.horizon
(40, (10,), 2000)
"""

import inspect
from collections.abc import Callable
from typing import Any

from regretless.benchmarks.arrays import ArraysBenchmark, from_arrays
from regretless.benchmarks.base import Benchmark, Round
from regretless.benchmarks.energy.benchmark import EnergyBenchmark
from regretless.benchmarks.presets import Preset, preset
from regretless.benchmarks.pricing import PricingBenchmark
from regretless.benchmarks.published import Published, published
from regretless.benchmarks.shortest_path import ShortestPathBenchmark
from regretless.benchmarks.topk import TopKBenchmark
from regretless.settings import require_known

REGISTRY: dict[str, Callable[..., Benchmark]] = {
    "topk": TopKBenchmark,
    "shortest_path": ShortestPathBenchmark,
    "pricing": PricingBenchmark,
    "energy": EnergyBenchmark,
}


def build(name: str, **options: Any) -> Benchmark:
    """The benchmark called ``name``; ``options`` are its own (``options_of`` lists them)."""
    require_known("benchmark", name, REGISTRY)
    for option in options:
        require_known(f"option of {name}", option, options_of(name))
    return REGISTRY[name](**options)


def options_of(name: str) -> dict[str, Any]:
    """A benchmark's options with their defaults."""
    require_known("benchmark", name, REGISTRY)
    parameters = inspect.signature(REGISTRY[name]).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


__all__ = [
    "REGISTRY", "ArraysBenchmark", "Benchmark", "Preset", "Published", "Round", "build", "from_arrays", "options_of",
    "preset", "published",
]  # fmt: skip
