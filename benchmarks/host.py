"""Print what a solver or policy in Python costs beyond itself: ``python benchmarks/host.py [PART …]``.

Parts: ``loop`` (linear Thompson sampling around a trivial solver, next to the same arithmetic as a plain NumPy loop),
``ortools`` (a knapsack of OR-Tools, in a new process without a cache), ``live`` (a learner's first decisions, in a new
process without and with a cache) and ``learners`` (many learners, each with a solver of its own, in one process).
Times are processor times of one process.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ITEMS, FEATURES, REPLICATIONS, ROUNDS = 20, 5, 10, 500


def seconds_of(function: Callable[[], Any]) -> float:
    """Return the processor time of a call, of all threads."""
    gc.collect()
    began = time.process_time()
    function()
    return time.process_time() - began


def cheapest(costs: np.ndarray) -> np.ndarray:
    """Choose the cheapest item of each row."""
    w = np.zeros_like(costs)
    w[np.arange(len(costs)), np.argmin(costs, axis=1)] = 1.0
    return w


def world(oracle: Any) -> Any:
    """Return linear costs with noise on a feasible set."""
    import jax

    from regretless import draws
    from regretless.benchmarks import Benchmark, Round

    class Linear(Benchmark):
        """``c = B (1, x) + noise``."""

        def environment(self, key: Any) -> Any:
            return draws.normal(key, (ITEMS, FEATURES + 1))

        def round(self, key: Any, environment: Any, t: Any) -> Round:
            first, second = jax.random.split(key)
            x = draws.normal(first, (FEATURES,))
            mean = environment[:, 0] + environment[:, 1:] @ x
            return Round(x, mean + 0.1 * draws.normal(second, mean.shape), mean)

        def context(self, environment: Any, observation: Any) -> Any:
            return observation

    return Linear("linear", oracle, (FEATURES,), ROUNDS, True)


def thompson_loop(rng: np.random.Generator, rounds: int, size: int) -> None:
    """Play linear Thompson sampling with NumPy: a draw from the posterior, a solve and an update of its factor."""
    truth = rng.normal(size=(ITEMS, FEATURES + 1))
    mean, factor, prior, seen, square = np.zeros(size), np.eye(size) / 3.0, np.full(size, 9.0), 0.0, 1.0
    for t in range(rounds):
        x = np.concatenate([[1.0], rng.normal(size=FEATURES)])
        drawn = mean + 0.1 * square**0.5 * (factor @ rng.normal(size=size))
        costs = drawn.reshape(ITEMS, -1) @ x
        w = cheapest(costs[None])[0]
        total = (truth @ x + 0.1 * rng.normal(size=ITEMS)) @ w
        row = np.outer(w, x).ravel()
        seen += row @ row
        missing = max(seen / (t + 1) * prior[t % size] - prior[t % size], 0.0)
        row_of_prior = np.zeros(size)
        row_of_prior[t % size] = missing**0.5
        residual = total - row @ mean
        square = 0.98 * square + 0.02 * min(residual**2, 16.0 * square)
        rows = np.stack([row, row_of_prior])
        errors = np.array([residual, -row_of_prior @ mean])
        loads = rows @ factor
        gains = factor @ loads.T
        inner = np.eye(2) + loads @ loads.T
        mean = mean + gains @ np.linalg.solve(inner, errors)
        root = np.linalg.cholesky(inner)
        factor = factor - gains @ np.linalg.solve(root.T, np.linalg.solve(root + np.eye(2), loads))
        prior[t % size] += missing


def measure_loop() -> None:
    """Compare a round of ``simulate`` with a round of the plain loop, both warm."""
    import regretless as rg

    bench = world(rg.oracles.external(cheapest, ITEMS, batched=True))
    play = lambda: rg.simulate("linear_thompson", bench, seeds=REPLICATIONS, horizon=ROUNDS)  # noqa: E731
    size = ITEMS * (FEATURES + 1)

    def loop() -> None:
        for seed in range(REPLICATIONS):
            thompson_loop(np.random.default_rng(seed), ROUNDS, size)

    play()
    loop()
    pairs = [(seconds_of(play), seconds_of(loop)) for _ in range(5)]
    ours, plain = (float(np.median(times)) for times in zip(*pairs, strict=True))
    unit = 1e6 / ROUNDS / REPLICATIONS
    print(f"loop: {ours * unit:.0f} µs a replication and round, plain NumPy {plain * unit:.0f}: {ours / plain:.2f}")


def measure_ortools(policy: str) -> None:
    """Print the processor time of 10 × 500 rounds around a knapsack of OR-Tools, and of its solver."""
    from ortools.algorithms.python import knapsack_solver

    import regretless as rg

    weights = [[int(weight) for weight in np.random.default_rng(0).integers(1, 10, ITEMS)]]
    solver = knapsack_solver.KnapsackSolver(
        knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER, "knapsack"
    )
    spent = 0.0

    def solve(cost: np.ndarray) -> np.ndarray:
        nonlocal spent
        began = time.thread_time()
        profits = np.maximum(np.round(-1e4 * cost), 0).astype(int).tolist()
        solver.init(profits, weights, [40])
        solver.solve()
        w = np.array([float(solver.best_solution_contains(item)) for item in range(ITEMS)])
        spent += time.thread_time() - began
        return w

    rg.simulate(policy, world(rg.oracles.external(solve, ITEMS)), seeds=REPLICATIONS, horizon=ROUNDS)
    print(json.dumps([time.process_time(), spent]))


def measure_live(part: str) -> None:
    """Print the processor time until a learner has decided and learned for the first time."""
    import regretless as rg

    if part == "readme":
        learner = rg.Learner(rg.oracles.top_k(15, 2), context=5)
        choice = learner.decide(np.zeros(5))
        learner.learn(choice.id, total=1.0)
    else:
        from scipy.optimize import linear_sum_assignment

        def assign(cost: np.ndarray) -> np.ndarray:
            w = np.zeros((12, 12))
            w[linear_sum_assignment(cost.reshape(12, 12))] = 1.0
            return w.ravel()

        learner = rg.Learner(rg.oracles.external(assign, 144), context=6, policy="adaptive")
        learner.warm_up()
    print(json.dumps([time.process_time(), 0.0]))


def measure_learners(count: int = 200) -> None:
    """Print memory and memory maps of a process while it makes learners, each with a solver of its own."""
    import regretless as rg

    def maps() -> int:
        with Path("/proc/self/maps").open(encoding="utf-8") as file:
            return sum(1 for _ in file)

    kept = []
    for number in range(1, count + 1):
        learner = rg.Learner(rg.oracles.external(lambda cost: cheapest(cost[None])[0], ITEMS), context=FEATURES)
        choice = learner.decide(np.zeros(FEATURES))
        learner.learn(choice.id, total=1.0)
        kept.append(learner)
        if number in (1, 2, 10, count):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"learners: {number}: {maps():,} memory maps, {peak:.0f} MiB at most", flush=True)


def in_new_process(part: str, cache: str) -> tuple[float, float]:
    """Return what a part prints in a process of its own: its processor time, and that of the solver."""
    environment = {**os.environ, "REGRETLESS_CACHE": cache}
    done = subprocess.run([sys.executable, __file__, part], env=environment, capture_output=True, text=True, check=True)
    total, solver = json.loads(done.stdout.splitlines()[-1])
    return total, solver


def main(parts: list[str]) -> None:
    """Print a line for each part."""
    for part in parts:
        name, _, choice = part.partition(":")
        if name == "loop":
            measure_loop()
        elif name == "learners":
            measure_learners()
        elif choice:
            (measure_ortools if name == "ortools" else measure_live)(choice)
        else:
            for choice in ("greedy", "adaptive") if name == "ortools" else ("readme", "assignment"):
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("cold", "warm"):
                        total, solver = in_new_process(f"{name}:{choice}", cache)
                        print(f"{part} {choice}, {state}: {total - solver:.2f} s beyond the solver's {solver:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or ["loop", "ortools", "live", "learners"])
