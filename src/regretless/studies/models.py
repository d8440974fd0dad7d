"""The model comparison: DFHPG with each model of the cost on the same streams, at a long horizon, and the orientation ablation.

Writes one trace per benchmark and arm and ``models.json`` with means, paired differences and the course of the average
regret. A trace that is already there with the same seeds, horizon and settings is not computed again, so that a run that was
stopped goes on where it was. From a script, without the command line::

    from regretless.studies import models
    models.run("results/models", seeds=10)
"""

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless import benchmarks, models
from regretless.programs import Progress
from regretless.studies.experiment import Experiment, prepare
from regretless.studies.experiment import run as run_experiment
from regretless.trace import Comparison, Trace

HORIZON = 15_000
"""Rounds on the synthetic benchmarks; a benchmark without degrees keeps its own horizon."""

CHECKPOINTS = (250, 500, 1000, 2000, 5000, 10_000, 15_000)
POLICY = "dfhpg"
FIRST = "gaussian_linear"


class Arm(NamedTuple):
    """A model, and for generative ones how their surrogates are oriented."""

    model: str
    orientation: str = "minimise"

    @property
    def label(self) -> str:
        """What the arm is called in files and figures."""
        return self.model if self.orientation == "minimise" else f"{self.model}_{self.orientation}"


def arms(chosen: Sequence[str], ablation: bool) -> list[Arm]:
    """The models, then the generative ones among them with the published orientation if ``ablation`` says so."""
    published = [Arm(model, "published") for model in chosen if model in models.GENERATIVE]
    return [Arm(model) for model in chosen] + (published if ablation else [])


def quiet(what: str, done: int, total: int) -> None:
    """A progress that tells nobody."""


def run(
    out: str | Path,
    chosen_benchmarks: Sequence[str] = tuple(benchmarks.REGISTRY),
    chosen_models: Sequence[str] = tuple(models.REGISTRY),
    seeds: int = 30,
    first_seed: int = 0,
    horizon: int | None = None,
    ablation: bool = True,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Plays every arm on every benchmark, leaves traces and ``models.json`` in ``out`` and returns what that file holds."""
    experiments = {
        (name, arm): experiment(name, arm, seeds, first_seed, horizon)
        for name in chosen_benchmarks
        for arm in arms(chosen_models, ablation)
    }
    for each in experiments.values():
        prepare(each)  # everything is checked before anything runs
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"policy": POLICY, "seeds": seeds, "first_seed": first_seed, "benchmarks": {}}
    for name in chosen_benchmarks:
        traces: dict[Arm, Trace] = {}
        for (benchmark, arm), each in experiments.items():
            if benchmark == name:
                told = lambda what, done, total, where=f"{name}, {arm.label}": progress(f"{where}: {what}", done, total)  # noqa: E731
                traces[arm] = stored(each, folder / f"{name}_{arm.label}.parquet", told)
        result["benchmarks"][name] = summary(traces)
        (folder / "models.json").write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return result


def experiment(benchmark: str, arm: Arm, seeds: int, first_seed: int, horizon: int | None) -> Experiment:
    """One arm on one benchmark, as the command line would play it."""
    long = "degree" in benchmarks.options_of(benchmark)
    changes = {} if arm.orientation == "minimise" else {"orientation": arm.orientation}
    return Experiment(
        benchmark=benchmark,
        model=arm.model,
        policies=(POLICY,),
        seeds=seeds,
        first_seed=first_seed,
        horizon=horizon or (HORIZON if long else None),
        overrides=changes,
    )


def stored(each: Experiment, path: Path, progress: Progress = quiet) -> Trace:
    """The trace of an experiment: read from ``path`` if it is that experiment's, else computed and written there."""
    prepared = prepare(each)
    if path.exists():
        trace = Trace.load(path)
        seeds = tuple(range(each.first_seed, each.first_seed + each.seeds))
        wanted = {
            "benchmark": prepared.benchmark.describe(),
            "model": each.model,
            "settings": prepared.settings.model_dump(),
        }
        same = all(trace.config.get(key) == value for key, value in wanted.items())
        if same and trace.seeds == seeds and trace.regret.shape[1] == prepared.horizon:
            return trace
    simulation = run_experiment(each, progress).simulation
    trace = simulation.traces[POLICY]
    notes = {
        "references": {line.name: line.mean for line in simulation.references},
        "seconds": simulation.seconds,
    }
    trace = dataclasses.replace(trace, config={**trace.config, **notes})
    unfinished = path.with_suffix(".part")
    trace.save(unfinished)
    unfinished.replace(path)
    return trace


def summary(traces: dict[Arm, Trace]) -> dict[str, Any]:
    """What one benchmark's traces come to: per arm, paired differences, and the reference lines."""
    by_label = {arm.label: trace for arm, trace in traces.items()}
    first = next(iter(traces.values()))
    return {
        "horizon": first.regret.shape[1],
        "references": first.config["references"],
        "arms": [row(arm, trace) for arm, trace in traces.items()],
        "differences": [
            {"first": a, "second": b, **_finite(by_label[a].compare(by_label[b]))} for a, b in pairs(list(traces))
        ],
    }


def pairs(chosen: Sequence[Arm]) -> Iterator[tuple[str, str]]:
    """What is compared: every model with every one before it, and each published orientation with ours."""
    plain = [arm.label for arm in chosen if arm.orientation == "minimise"]
    for index, label in enumerate(plain):
        yield from ((label, before) for before in plain[:index])
    yield from ((arm.label, arm.model) for arm in chosen if arm.orientation != "minimise" and arm.model in plain)


def row(arm: Arm, trace: Trace) -> dict[str, Any]:
    """One arm: final regret, divergences with their rounds, and average regret per round so far at some rounds."""
    kept, horizon = trace.cumulative()[trace.finished], trace.regret.shape[1]
    course = []
    for t in sorted({*(t for t in CHECKPOINTS if t < horizon), horizon}):
        average = kept[:, t - 1] / t
        error = np.std(average, ddof=1) / len(average) ** 0.5 if len(average) > 1 else math.nan
        course.append(
            {"round": t, "mean": _number(average.mean()) if len(average) else None, "standard_error": _number(error)}
        )
    return {
        "arm": arm.label,
        "model": arm.model,
        "orientation": arm.orientation if arm.model in models.GENERATIVE else None,
        "mean": _number(trace.mean()),
        "standard_error": _number(trace.standard_error()),
        "median": _number(trace.median()),
        "diverged": trace.diverged,
        "diverged_rounds": sorted(int(t) for t in trace.diverged_at if t),
        "average_regret": course,
        "seconds": {key: round(value, 1) for key, value in trace.config["seconds"].items()},
    }


def _finite(comparison: Comparison) -> dict[str, Any]:
    return {key: _number(value) for key, value in comparison._asdict().items()}


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
