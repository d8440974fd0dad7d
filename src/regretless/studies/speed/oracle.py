"""The scheduling oracle against HiGHS on the whole mixed-integer programme: does it agree, and how much faster is it?"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.benchmarks.energy import Energy
from regretless.errors import OracleError
from regretless.oracles import Plant
from regretless.oracles.schedule_solver import schedule_solver
from regretless.simulation.programs import Progress
from regretless.simulation.simulator import no_progress

TOLERANCE = 1e-6
CHUNK = 5
REPEATS = 5


def random_prices(count: int, slots: int, seed: int = 0) -> np.ndarray:
    """Price curves: a third around 50 with spikes, a third around 0, a third with a long negative stretch."""
    draw = np.random.default_rng(seed)
    prices = draw.normal(50.0, 25.0, (count, slots)) + draw.exponential(300.0, (count, slots)) * (
        draw.uniform(size=(count, slots)) < 0.02
    )
    prices[1::3] = draw.normal(0.0, 1.0, prices[1::3].shape)
    for row in range(2, count, 3):
        start = draw.integers(slots // 2)
        prices[row, start : start + slots // 3] *= -1.0
    return prices


def exact_cost(plant: Plant, price: np.ndarray, starts: np.ndarray) -> tuple[float, float]:
    """``c·w`` and ``Σ |c_i w_i|`` of the schedule with these starts, in float64."""
    w = sum(energy * plant.runs(task, int(starts[task])) for task, energy in enumerate(plant.energy))
    return float(np.sum(price * w)), float(np.sum(np.abs(price * w)))


def compare(instance: str, vectors: int, data_dir: str = "", progress: Progress = no_progress) -> dict[str, Any]:
    """Both on the same random prices: the largest difference of cost relative to ``Σ |c_i w_i|``, and the times."""
    with jax.enable_x64(True):
        benchmark = Energy(instance=instance, data_dir=data_dir).build()
        oracle = benchmark.oracle
        prices = random_prices(vectors, oracle.dim)
        ours = np.asarray(oracle.answer(prices).aux)
        seconds = min(_timed(oracle, prices) for _ in range(REPEATS if oracle.always_packs else 1))
    theirs, highs_seconds = _whole_programme(oracle.plant, prices, progress)
    costs = [
        (exact_cost(oracle.plant, *pair), exact_cost(oracle.plant, pair[0], other))
        for pair, other in zip(zip(prices, ours, strict=True), theirs, strict=True)
    ]
    worst = max(abs(mine - reference) / max(scale, 1e-300) for (mine, scale), (reference, _) in costs)
    return {
        "instance": instance,
        "data": benchmark.data,
        "vectors": vectors,
        "largest_difference": worst,
        "agrees": worst <= TOLERANCE,
        "always_packs": oracle.always_packs,
        "microseconds": round(seconds / vectors * 1e6, 1),
        "highs_microseconds": round(highs_seconds / vectors * 1e6),
        "ratio": float(f"{highs_seconds / seconds:.3g}"),
    }


def _timed(oracle: Any, prices: np.ndarray) -> float:
    costs = jnp.asarray(prices)
    began = time.perf_counter()
    oracle.solve(costs).w.block_until_ready()
    return time.perf_counter() - began


def _whole_programme(plant: Plant, prices: np.ndarray, progress: Progress) -> tuple[np.ndarray, float]:
    """Starts and seconds of HiGHS, which shares the rows of a batch among the cores."""
    whole = schedule_solver(plant).full
    whole.solver.begin()
    began = time.perf_counter()
    parts = []
    for first in range(0, len(prices), CHUNK):
        progress("HiGHS", first, len(prices))
        starts, status = whole.solve(plant, prices[first : first + CHUNK])
        if np.any(status):
            raise OracleError(f"HiGHS did not solve price vector {first + int(np.argmax(status != 0))}")
        parts.append(starts)
    return np.concatenate(parts), time.perf_counter() - began
