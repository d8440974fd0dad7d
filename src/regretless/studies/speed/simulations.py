"""How fast the programs are: microseconds per replication-round, beside what the authors' program needs."""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from regretless import policies
from regretless.simulation.programs import Progress
from regretless.simulation.simulator import no_progress
from regretless.studies.experiment import Experiment
from regretless.studies.outcome import run
from regretless.studies.preparing import prepare

AUTHORS_MICROSECONDS = {"topk": 1750.0, "shortest_path": 2100.0, "pricing": 6250.0}
"""DFHPG, one replication of 2000 rounds on one core in 3.5, 4.2 and 12.5 s."""

AUTHORS_GENERATIVE = {
    "flow": {"topk": 13_000.0, "shortest_path": 16_000.0, "pricing": 166_000.0},
    "diffusion": {"topk": 70_000.0, "shortest_path": 90_000.0},
}
"""DFHPG with generative models, one replication on one core, with the presets' numbers of scenarios."""

AUTHORS_ALL_CELLS = 1310.0
"""Seconds for all 18 bandit cells with 30 replications."""

BENCHMARKS = ("topk", "shortest_path", "pricing")
POLICIES = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0")
"""The methods of the published table, which the authors' seconds are about."""

ITEMS = (15, 100, 1000, 10_000)
SIDES = (5, 10, 30, 100)


def all_cells(benchmarks: Sequence[str], seeds: int, progress: Progress = no_progress) -> dict[str, Any]:
    """Wall-clock of every published policy on these benchmarks, full horizon."""
    began = time.perf_counter()
    parts = [run(Experiment(benchmark=name, policies=POLICIES, seeds=seeds), progress).seconds for name in benchmarks]
    elapsed = time.perf_counter() - began
    whole = tuple(benchmarks) == BENCHMARKS and seeds == 30
    return {
        "cells": len(benchmarks) * len(POLICIES),
        "seeds": seeds,
        "seconds": round(elapsed, 2),
        "compile": round(sum(part["compile"] for part in parts), 2),
        "run": round(sum(part["run"] for part in parts), 2),
        "authors_seconds": AUTHORS_ALL_CELLS if whole else None,
        "ratio": round(AUTHORS_ALL_CELLS / elapsed, 1) if whole else None,
    }


def each_cell(
    benchmarks: Sequence[str], seeds: int, horizon: int, progress: Progress = no_progress
) -> Iterator[dict[str, Any]]:
    """Microseconds per replication-round of each policy by itself, compilation apart."""
    for benchmark in benchmarks:
        for policy in policies.REGISTRY:
            experiment = Experiment(benchmark=benchmark, policies=(policy,), seeds=seeds, horizon=horizon)
            row: dict[str, Any] = {"benchmark": benchmark, "policy": policy, **timed(experiment, progress)}
            authors = AUTHORS_MICROSECONDS.get(benchmark) if policy == "dfhpg" else None
            row["authors_microseconds"] = authors
            row["ratio"] = round(authors / row["microseconds"], 1) if authors else None
            yield row


def generative_cells(
    model: str, benchmarks: Sequence[str], seeds: int, horizon: int, progress: Progress = no_progress
) -> Iterator[dict[str, Any]]:
    """Microseconds per replication-round of DFHPG with a generative model, compilation apart."""
    for benchmark in benchmarks:
        experiment = Experiment(benchmark=benchmark, model=model, policies=("dfhpg",), seeds=seeds, horizon=horizon)
        figures = timed(experiment, progress)
        scenarios = prepare(experiment).settled["dfhpg"].names()["generative.scenarios"]
        authors = AUTHORS_GENERATIVE[model].get(benchmark)
        ratio = round(authors / figures["microseconds"], 1) if authors else None
        yield {
            "benchmark": benchmark, "model": model, "scenarios": scenarios, **figures,
            "authors_microseconds": authors, "ratio": ratio,
        }  # fmt: skip


def sizes(horizon: int, seeds: int, progress: Progress = no_progress) -> Iterator[dict[str, Any]]:
    """How the cost of a round of DFHPG grows with the number of cost coordinates."""
    for items in ITEMS:
        yield _sized("topk", {"benchmark.items": items}, items, horizon, seeds, progress)
    for side in SIDES:
        edges = 2 * side * (side - 1)
        yield _sized("shortest_path", {"benchmark.side": side}, edges, horizon, seeds, progress)


def _sized(
    benchmark: str, settings: dict[str, Any], dim: int, horizon: int, seeds: int, progress: Progress
) -> dict[str, Any]:
    experiment = Experiment(benchmark=benchmark, policies=("dfhpg",), seeds=seeds, horizon=horizon, settings=settings)
    return {
        "benchmark": benchmark,
        "coordinates": dim,
        "seeds": seeds,
        "horizon": horizon,
        **timed(experiment, progress),
    }


def replications(counts: Sequence[int], horizon: int, progress: Progress = no_progress) -> Iterator[dict[str, Any]]:
    """How the cost of a replication-round of DFHPG on top-k falls with the number of replications."""
    for seeds in counts:
        experiment = Experiment(benchmark="topk", policies=("dfhpg",), seeds=seeds, horizon=horizon)
        yield {
            "benchmark": "topk",
            "coordinates": 15,
            "seeds": seeds,
            "horizon": horizon,
            **timed(experiment, progress),
        }


def timed(experiment: Experiment, progress: Progress = no_progress) -> dict[str, float]:
    """Compile seconds of a first run, and run seconds and microseconds per replication-round of a second."""
    first = run(experiment, progress).seconds
    second = run(experiment, progress)
    seconds = second.seconds["run"]
    steps = len(experiment.seeds) * second.prepared.horizon * len(experiment.arms)
    return {
        "microseconds": round(seconds / steps * 1e6, 3),
        "run_seconds": round(seconds, 3),
        "compile_seconds": round(first["compile"], 2),
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on, and the most memory that was used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "devices": [f"{device.platform} {device.device_kind}" for device in jax.local_devices()],
        "peak_memory_mib": round(peak / (2**20 if sys.platform == "darwin" else 2**10)),
    }
