"""Settings and fixtures of all tests.

Two CPU devices, so that programs split over devices are tested. Programs are compiled without expensive
optimisations, because the tests compile much and compute little (six policies on a toy: 26 s of compiling with, 6 s
without); REGRETLESS_TEST_COMPILATION=optimized keeps them, for tests that measure times. Garbage is collected less
often: tracing creates many objects and little garbage (3.5 % of the time of the contract checks).
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest

from regretless.simulation import programs

FAST_COMPILATION = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 "
    "--xla_llvm_disable_expensive_passes=true"
)
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # no test reads locations
os.environ.setdefault("REGRETLESS_CACHE", "off")
optimized = os.environ.get("REGRETLESS_TEST_COMPILATION") == "optimized"
if not optimized and FAST_COMPILATION not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST_COMPILATION}"
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_traceback_in_locations_limit", 0)
gc.set_threshold(20_000, 10, 10)
hypothesis.settings.register_profile("regretless", deadline=None, derandomize=True)
hypothesis.settings.load_profile("regretless")

GOLDEN = Path(__file__).parent / "golden"
SLOW = set((Path(__file__).parent / "slow.txt").read_text("utf-8").split())  # written by tools/slow_tests.py


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests and modules that were measured as slow."""
    for item in items:
        path, *names = item.nodeid.partition("[")[0].split("::")
        module = ".".join([path.removesuffix(".py").replace("/", "."), *names[:-1]])
        if not SLOW.isdisjoint((module, f"{module}::{names[-1]}")):
            item.add_marker("slow")


@pytest.fixture(scope="module", autouse=True)
def room() -> None:
    """Drop programs of earlier test files before the process runs out of memory maps."""
    programs.make_room()


@pytest.fixture
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def golden() -> "GoldenFiles":
    return GoldenFiles()


class GoldenFiles:
    """Values that an independent program produced; see ``tests/golden/README.md``."""

    def __call__(self, name: str) -> dict[str, np.ndarray]:
        with np.load(GOLDEN / f"{name}.npz") as file:
            return dict(file)

    def energy(self, mode: str) -> dict[str, np.ndarray]:
        """Rounds on the real prices, which stay outside this repository, in the form of the others."""
        folder = Path(
            os.environ.get("REGRETLESS_GOLDEN") or Path(os.environ.get("REGRETLESS_DATA", "")).parent / "golden"
        )
        path = folder / f"dfhpg_energy_{mode}.npz"
        if not os.environ.get("REGRETLESS_DATA") or not path.is_file():
            reason = (
                f"needs REGRETLESS_DATA with the energy files, and {path.name} in REGRETLESS_GOLDEN or next to the data"
            )
            assert not os.environ.get("CI"), reason
            pytest.skip(reason)
        with np.load(path) as file:
            given = ("context", "cost", "theta", *(f"nuisance_{part}{i}" for part in "wb" for i in (1, 2, 3)))
            trace = {name if name in given else f"{mode}/{name}": file[name] for name in file}
        return {**trace, f"{mode}/theta_after": trace[f"{mode}/theta_after"][9::10]}
