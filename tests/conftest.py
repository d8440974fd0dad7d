"""Shared by all tests: two CPU devices (so that programs split over devices are what is tested) and a float64 mode."""

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest

jax.config.update("jax_num_cpu_devices", 2)
hypothesis.settings.register_profile("regretless", deadline=None, derandomize=True)
hypothesis.settings.load_profile("regretless")

GOLDEN = Path(__file__).parent / "golden"


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
