"""``regretless bench``: measure the speed of simulations and of a live learner, to see what a change costs."""

import resource
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

import regretless as rg
from regretless.cli import console
from regretless.cli.console import Format, LiveProgress, Names, clear_errors, option
from regretless.startup import Device, configure

BENCHMARKS = ("topk", "shortest_path", "pricing")
POLICIES = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0")
"""The policies of the DFHPG paper's table."""

LEARNER_POLICIES = ("adaptive", "linear_thompson", "dfhpg")
LIMITS = {"decide": 1000.0, "learn": 2000.0}
"""Microseconds that the median on top-k should stay below."""

WARM_UP = 50
BATCH, BATCHES = 100, 50
"""Contexts at once, and how often that is measured."""

MAX_BATCH_COST = 5.0
"""How many times a single decision a batch may cost."""

app = typer.Typer(cls=console.PlainGroup, help="Measure speed on this machine.", no_args_is_help=True)


@app.command(cls=console.PlainCommand)
def speed(
    benchmark: Annotated[Names, option("A benchmark to measure; repeatable.", "all three")] = None,
    model: Annotated[str | None, option("Time DFHPG with this model instead.", "the six policies")] = None,
    seeds: Annotated[int | None, option("Replications.", "30; with --model 8", min=1)] = None,
    horizon: Annotated[int | None, option("Rounds, policy by policy.", "500; with --model 100", min=10)] = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the figures.")] = "table",
) -> None:
    """Time the policies of the DFHPG paper: all cells of the bandit table together, then policy by policy.

    The first figure starts from a cold compilation cache; the others leave compilation out. With --model the cells are
    those of DFHPG with that model.
    """
    with clear_errors():
        configure(device, compilation_cache=False)
        size: dict[str, Any] = {"seeds": seeds or (8 if model else 30), "horizon": horizon or (100 if model else 500)}
        settings = {"model": model} if model else {}
        played = ("dfhpg",) if model else POLICIES
        chosen = benchmark or BENCHMARKS
        cells = [rg.Experiment(name, policy, **size, settings=settings) for name in chosen for policy in played]
        figures: dict[str, Any] = {} if model else {"all_cells": time_all(chosen, seeds or 30)}
        figures |= {"cells": [time_experiment(cell) for cell in cells], "machine": machine()}
        report(figures, "cells", format, "µs: per replication and round, compilation apart")


@app.command(cls=console.PlainCommand)
def learner(
    benchmark: Annotated[str, option("Whose feasible set and preset to use.")] = "topk",
    policy: Annotated[Names, option("A policy to measure; repeatable.", "adaptive, linear_thompson, dfhpg")] = None,
    rounds: Annotated[int, option("Rounds to measure after 50 of warm-up.", min=10)] = 1000,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the figures.")] = "table",
) -> None:
    """Time 'decide' and 'learn' of a live learner: median and 99th percentile in microseconds, compilation apart."""
    with clear_errors():
        configure(device, compilation_cache=False)
        rg.Experiment(benchmark, policy or LEARNER_POLICIES)  # refuses unknown names before anything is measured
        rows = [row for name in policy or LEARNER_POLICIES for row in time_learner(benchmark, name, rounds)]
        caption = "median, p99, limit: µs per call; times: processor time of a batch over one decision (limit 5)"
        report({"rows": rows, "machine": machine()}, "rows", format, caption)


def play(experiment: "rg.Experiment") -> "rg.Results":
    """Run an experiment with a bar of progress."""
    with LiveProgress(experiment.name) as progress:
        return rg.run(experiment, monitor=rg.simulation.Monitor(progress=progress))


def time_all(benchmarks: Sequence[str], seeds: int) -> dict[str, Any]:
    """Return the wall-clock time of every published policy on these benchmarks, full horizon."""
    began = time.perf_counter()
    parts = [play(rg.Experiment(name, POLICIES, seeds=seeds)).seconds for name in benchmarks]
    return {
        "cells": len(benchmarks) * len(POLICIES),
        "seeds": seeds,
        "seconds": round(time.perf_counter() - began, 2),
        "compile": round(sum(part["compile"] for part in parts), 2),
        "run": round(sum(part["run"] for part in parts), 2),
    }


def time_experiment(experiment: "rg.Experiment") -> dict[str, Any]:
    """Return microseconds per replication and round of a policy, compilation apart."""
    first, second = play(experiment), play(experiment)
    seconds, rounds = second.seconds["run"], sum(result.regret.size for result in second.values())
    return {
        "benchmark": experiment.benchmark_name,
        "policy": experiment.arms[0].label,
        **experiment.settings,
        "microseconds": round(seconds / rounds * 1e6, 3),
        "run_seconds": round(seconds, 3),
        "compile_seconds": round(first.seconds["compile"], 2),
    }


def time_learner(benchmark: str, policy: str, rounds: int) -> Iterator[dict[str, Any]]:
    """Iterate over the latencies of ``decide``, ``learn`` and a batch of a learner with its preset."""
    import numpy as np

    from regretless.experiments.runner import resolve

    (run,) = resolve(rg.Experiment(benchmark, policy))
    world = run.parts[1]
    assert isinstance(run.policy, rg.policies.PolicySpec)
    learner = rg.Learner(world.problem("bandit", may_miss=True), policy=rg.policies.Unscaled(run.policy))
    rng = np.random.default_rng(0)
    spent: dict[str, list[float]] = {"decide": [], "learn": []}
    for _ in range(WARM_UP + rounds):
        context, cost = rng.normal(size=world.context_shape), rng.uniform(1.0, 3.0, size=world.oracle.dim)
        began = time.perf_counter()
        choice = learner.decide(context)
        decided = time.perf_counter()
        learner.learn(choice.id, total=float(cost @ choice.w))
        spent["decide"].append(decided - began)
        spent["learn"].append(time.perf_counter() - decided)
    batches, times = _time_batches(learner, rng)
    limit = round(MAX_BATCH_COST * 1e6 * float(np.median(spent["decide"][WARM_UP:])), 1)
    limits = LIMITS if benchmark == "topk" else {}
    rows = [(verb, seconds, WARM_UP, None, limits.get(verb)) for verb, seconds in spent.items()]
    for verb, seconds, warm_up, work, most in [*rows, (f"decide {BATCH}", batches, 1, times, limit)]:
        warm = np.array(seconds[warm_up:]) * 1e6
        yield {
            "benchmark": benchmark,
            "policy": policy,
            "verb": verb,
            "median": round(float(np.median(warm)), 1),
            "p99": round(float(np.percentile(warm, 99)), 1),
            "times": work,
            "limit": most,
            "first_seconds": round(seconds[0], 2),
        }


def _time_batches(learner: "rg.Learner", rng: Any) -> tuple[list[float], float]:
    """Return the seconds of batches, and their processor time over that of single decisions in between."""
    import numpy as np

    seconds, work = [], []
    for _ in range(1 + BATCHES):
        contexts = rng.normal(size=(BATCH, *learner.problem.context_shape))
        began, spent = time.perf_counter(), time.process_time()
        learner.decide_batch(contexts)
        seconds.append(time.perf_counter() - began)
        batch = time.process_time()
        learner.decide(contexts[0])
        work.append((batch - spent, time.process_time() - batch))
    many, single = np.median(work[1:], axis=0)
    return seconds, round(float(many / single), 2)


def machine() -> dict[str, Any]:
    """Return what the figures were measured on, and the most memory that was used."""
    from regretless.results import describe_environment

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
    return {"devices": describe_environment()["devices"], "peak_memory_mib": round(peak / 2**10)}


def report(figures: dict[str, Any], rows: str, format: Format, caption: str) -> None:
    """Print the figures."""
    if format == "json":
        console.say_json(figures)
        return
    head = [key.replace("microseconds", "µs") for key in figures[rows][0]]
    console.say_table([list(row.values()) for row in figures[rows]], head, caption=caption)
    for name, part in figures.items():
        if name != rows:
            console.say(f"{name}: " + ", ".join(f"{key} {value}" for key, value in part.items()))
