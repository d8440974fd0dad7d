"""The scheduling oracle and HiGHS on the same random prices: largest difference in cost, and times."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from regretless.benchmarks.energy import Energy
from regretless.errors import OracleError
from regretless.oracles.plant import schedule_solver

TOLERANCE = 1e-6
REPETITIONS = 10


def random_prices(count, slots, seed=0):
    """Return price curves: a third around 50 with spikes, a third around 0, a third with a long negative stretch."""
    draw = np.random.default_rng(seed)
    spikes = draw.exponential(300.0, (count, slots)) * (draw.uniform(size=(count, slots)) < 0.02)
    prices = draw.normal(50.0, 25.0, (count, slots)) + spikes
    prices[1::3] = draw.normal(0.0, 1.0, prices[1::3].shape)
    for row in range(2, count, 3):
        start = draw.integers(slots // 2)
        prices[row, start : start + slots // 3] *= -1.0
    return prices


def exact_cost(plant, price, starts):
    """Return ``c·w`` and ``Σ |c_i w_i|`` of the schedule with these starts, in float64."""
    w = plant.energy @ plant.running(np.asarray(starts))
    return float(np.sum(price * w)), float(np.sum(np.abs(price * w)))


def compare(instance, vectors):
    """Return the largest difference of cost relative to ``Σ |c_i w_i|``, and both times."""
    with jax.enable_x64(True):
        benchmark = Energy(instance=instance).build()
        oracle = benchmark.oracle
        prices = random_prices(vectors, oracle.dim)
        ours = np.asarray(oracle.answer(prices).aux)
        oracle.solve(jnp.asarray(prices)).w.block_until_ready()  # compiles
        times = []
        for _ in range(REPETITIONS):  # one of milliseconds is easily disturbed by other processes
            began = time.perf_counter()
            oracle.solve(jnp.asarray(prices)).w.block_until_ready()
            times.append(time.perf_counter() - began)
        seconds = min(times)
    whole = schedule_solver(oracle.plant).full
    whole.solver.begin()
    began = time.perf_counter()
    starts, status = whole.solve(oracle.plant, prices)
    highs_seconds = time.perf_counter() - began
    if np.any(status):
        raise OracleError(f"HiGHS did not solve price vector {int(np.argmax(status != 0))}")
    differences = []
    for price, mine, reference in zip(prices, ours, starts, strict=True):
        (cost, scale), (best, _) = exact_cost(oracle.plant, price, mine), exact_cost(oracle.plant, price, reference)
        differences.append(abs(cost - best) / max(scale, 1e-300))
    worst = max(differences)
    return {
        "largest_difference": worst,
        "agrees": worst <= TOLERANCE,
        "always_packs": oracle.always_packs,
        "ratio": highs_seconds / seconds,
    }
