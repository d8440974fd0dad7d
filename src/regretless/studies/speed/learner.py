"""How long a live learner takes to decide and to learn, after warm-up."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regretless import benchmarks
from regretless.live.learner import Learner
from regretless.policies import PolicySpec
from regretless.policies.building import Unscaled
from regretless.studies.experiment import Experiment
from regretless.studies.settling import settle

LIMITS = {"decide": 1000.0, "learn": 2000.0}
"""Microseconds that the median should stay below on top-k."""

POLICIES = ("adaptive", "linear_thompson", "dfhpg")
WARM_UP = 50
BATCH, BATCHES = 100, 50
"""Contexts at once, and how often that is measured."""

MOST_TIMES = 5.0
"""How many times a single decision a batch may cost."""


def latencies(benchmark: str, policies: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
    """Median and 99th percentile in microseconds of ``decide``, ``learn`` and a batch, policy by policy, with its preset."""
    bench = benchmarks.parse(benchmark).build()
    for policy in policies:
        experiment = Experiment(benchmark=benchmark, policies=(policy,))
        (settled,) = settle(experiment)
        assert isinstance(settled.settings, PolicySpec)
        learner = Learner(bench.oracle, context=bench.context_shape, policy=Unscaled(settled.settings))
        rng = np.random.default_rng(0)
        spent: dict[str, list[float]] = {"decide": [], "learn": []}
        for _ in range(WARM_UP + rounds):
            context, cost = rng.normal(size=bench.context_shape), rng.uniform(1.0, 3.0, size=bench.oracle.dim)
            began = time.perf_counter()
            choice = learner.decide(context)
            decided = time.perf_counter()
            learner.learn(choice.id, total=float(cost @ choice.w))
            spent["decide"].append(decided - began)
            spent["learn"].append(time.perf_counter() - decided)
        for verb, seconds in spent.items():
            warm = np.array(seconds[WARM_UP:]) * 1e6
            yield {
                "benchmark": benchmark,
                "policy": policy,
                "verb": verb,
                "median": round(float(np.median(warm)), 1),
                "p99": round(float(np.percentile(warm, 99)), 1),
                "times": None,
                "limit": LIMITS[verb] if benchmark == "topk" else None,
                "first_seconds": round(seconds[0], 2),
            }
        yield _batches(benchmark, policy, learner, rng, float(np.median(spent["decide"][WARM_UP:])))


def _batches(benchmark: str, policy: str, learner: Learner, rng: np.random.Generator, one: float) -> dict[str, Any]:
    """The same for many contexts at once, with a limit relative to ``one``, the seconds of a single decision.

    ``times`` is the processor time over that of single decisions in between, which a busy machine does not change.
    """
    seconds, work = [], []
    for _ in range(1 + BATCHES):
        contexts = rng.normal(size=(BATCH, *learner.problem.context_shape))
        began, spent = time.perf_counter(), time.process_time()
        learner.decide_batch(contexts)
        seconds.append(time.perf_counter() - began)
        many = time.process_time()
        learner.decide(contexts[0])
        work.append((many - spent, time.process_time() - many))
    warm, (many, single) = np.array(seconds[1:]) * 1e6, np.median(work[1:], axis=0)
    return {
        "benchmark": benchmark,
        "policy": policy,
        "verb": f"decide {BATCH}",
        "median": round(float(np.median(warm)), 1),
        "p99": round(float(np.percentile(warm, 99)), 1),
        "times": round(float(many / single), 2),
        "limit": round(MOST_TIMES * one * 1e6, 1),
        "first_seconds": round(seconds[0], 2),
    }
