"""One experiment as data: a benchmark, its feedback, some policies, seeds; checked as a whole before anything runs."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from regretless import benchmarks, models, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.policies import Policy, Problem
from regretless.registry import require_known
from regretless.settings import Settings
from regretless.simulate.programs import Progress
from regretless.simulate.simulation import Simulation, simulate_all

PUBLISHED_DEGREE = 8
PUBLISHED_MODEL = "gaussian_linear"


class Experiment(BaseModel):
    """What to run; ``overrides`` replace single settings of the preset or options of the benchmark.

    >>> import regretless as rg
    >>> outcome = rg.run(rg.Experiment(benchmark="topk", policies=("greedy",), seeds=2, horizon=20, overrides={"k": "3"}))
    >>> outcome.to_dict()["results"][0]["policy"]
    'greedy'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    policies: tuple[str, ...] = ()  # none: all that exist for the model
    feedback: str = "bandit"
    degree: int | None = None
    model: str = PUBLISHED_MODEL
    seeds: int = Field(30, ge=1)
    first_seed: int = Field(0, ge=0)
    horizon: int | None = Field(None, ge=1)
    overrides: dict[str, str] = {}
    preset: dict[str, Any] | None = None
    delay: int = Field(0, ge=0)
    missing: float = Field(0.0, ge=0, lt=1)
    data_dir: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_policies(cls, values: Any) -> Any:
        model = values.get("model", PUBLISHED_MODEL)
        if not values.get("policies") and model in models.REGISTRY:
            return {**values, "policies": policies.available(model)}
        return values


class Prepared(NamedTuple):
    """An experiment that passed every check."""

    benchmark: Benchmark
    policies: dict[str, Policy]
    settings: Settings
    horizon: int
    degree: int | None
    comparable: bool  # whether the published tables are about this very configuration
    notices: tuple[str, ...]


class Outcome(NamedTuple):
    """An experiment with what came out."""

    experiment: Experiment
    prepared: Prepared
    simulation: Simulation

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object; null stands for what does not exist."""
        experiment, prepared = self.experiment, self.prepared
        return {
            "benchmark": experiment.benchmark,
            "feedback": experiment.feedback,
            "degree": prepared.degree,
            "data": prepared.benchmark.data,
            "model": experiment.model,
            "horizon": prepared.horizon,
            "seeds": experiment.seeds,
            "first_seed": experiment.first_seed,
            "results": [self._row(name) for name in prepared.policies],
            "references": [
                {"name": line.name, "mean": _number(line.mean), "standard_error": _number(line.standard_error)}
                for line in self.simulation.references
            ],
            "seconds": {key: round(value, 3) for key, value in self.simulation.seconds.items()},
            "settings": prepared.settings.model_dump(),
            "notices": list(prepared.notices),
        }

    def _row(self, name: str) -> dict[str, Any]:
        trace = self.simulation.traces[name]
        row = {
            "policy": name,
            "mean": _number(trace.mean()),
            "standard_error": _number(trace.standard_error()),
            "median": _number(trace.median()),
            "diverged": trace.diverged,
            "diverged_rounds": sorted(int(t) for t in trace.diverged_at if t),
            "published_mean": None,
            "published_standard_error": None,
            "z": None,
        }
        known = benchmarks.published(self.experiment.benchmark, self.experiment.feedback, name)
        if known is not None and self.prepared.comparable:
            row["published_mean"], row["published_standard_error"] = known
            row["z"] = _number(known.z(trace.mean(), trace.standard_error()))
        return row


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


class Settled(NamedTuple):
    """What an experiment's words come to: the benchmark's options, and settings from the preset and the changes."""

    options: dict[str, Any]
    settings: Settings
    degree: int | None
    notices: tuple[str, ...]


def settle(experiment: Experiment) -> Settled:
    """Puts the preset and the overrides together; builds nothing."""
    name = experiment.benchmark
    require_known("benchmark", name, benchmarks.REGISTRY)
    options, changes = _split_overrides(name, experiment.overrides)
    if experiment.degree is not None:
        if "degree" not in benchmarks.options_of(name):
            raise SettingsError(f"benchmark {name!r} has no degree")
        options["degree"] = experiment.degree
    if experiment.data_dir is not None:
        if "data_dir" not in benchmarks.options_of(name):
            raise SettingsError(f"benchmark {name!r} reads no data")
        options["data_dir"] = experiment.data_dir
    degree = {**benchmarks.options_of(name), **options}.get("degree")
    require_known("model", experiment.model, models.REGISTRY)
    notices = []
    if experiment.preset is None:
        tuned = benchmarks.preset(name, experiment.model, degree, experiment.feedback)
        settings = tuned.settings
        if tuned.degree != degree:
            notices.append(f"no preset was tuned at degree {degree}: using the one of degree {tuned.degree}")
    else:
        settings = Settings.checked(**experiment.preset)
    return Settled(options, settings.updated(**changes), degree, tuple(notices))


def build_benchmark(experiment: Experiment, options: Mapping[str, Any]) -> tuple[Benchmark, Measurement]:
    """The benchmark with these options, and its feedback; refuses what it cannot be with a SettingsError."""
    try:
        benchmark = benchmarks.build(experiment.benchmark, **options)
        rule = benchmark.measurement(experiment.feedback)
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError(str(error)) from None
    horizon, longest = experiment.horizon, benchmark.longest
    if horizon is not None and longest is not None and horizon > longest:
        raise SettingsError(f"benchmark {experiment.benchmark!r} has {longest} rounds, got a horizon of {horizon}")
    return benchmark, rule


def data_notices(benchmark: Benchmark) -> tuple[str, ...]:
    """What must be said about the data that a benchmark was built from."""
    if benchmark.data != "synthetic":
        return ()
    return (
        "no real data found: playing on synthetic data, which nothing published is about; "
        f"'regretless data fetch {benchmark.name}' downloads the real ones, --data-dir or REGRETLESS_DATA names a directory",
    )


def is_comparable(experiment: Experiment, benchmark: Benchmark, degree: int | None) -> bool:
    """Whether the published tables are about this very configuration."""
    return (
        not experiment.overrides
        and experiment.preset is None
        and degree in (None, PUBLISHED_DEGREE)
        and experiment.model == PUBLISHED_MODEL
        and experiment.horizon in (None, benchmark.horizon)
        and not experiment.delay
        and not experiment.missing
        and benchmark.data != "synthetic"
    )


def prepare(experiment: Experiment) -> Prepared:
    """Builds the benchmark and the policies; refuses what cannot be run with a SettingsError."""
    options, settings, degree, notices = settle(experiment)
    benchmark, rule = build_benchmark(experiment, options)
    problem = Problem(benchmark.oracle, benchmark.context_shape, rule, experiment.model, experiment.missing > 0)
    built = {policy: policies.build(policy, settings, problem) for policy in experiment.policies}
    horizon = experiment.horizon or benchmark.horizon
    comparable = is_comparable(experiment, benchmark, degree)
    return Prepared(benchmark, built, settings, horizon, degree, comparable, (*data_notices(benchmark), *notices))


def _split_overrides(benchmark: str, overrides: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """``key=value`` pairs as options of the benchmark and as settings of the policies."""
    options_of = {
        key: value for key, value in benchmarks.options_of(benchmark).items() if key not in ("degree", "data_dir")
    }
    options: dict[str, Any] = {}
    changes: dict[str, str] = {}
    for key, value in overrides.items():
        require_known("setting", key, [*Settings.model_fields, *options_of])
        if key in options_of:
            kind = type(options_of[key])
            try:
                options[key] = kind(value)
            except ValueError:
                raise SettingsError(f"option {key!r} of {benchmark}: expected {kind.__name__}, got {value!r}") from None
        else:
            changes[key] = value
    return options, changes


def run(experiment: Experiment, progress: Progress = lambda what, done, total: None) -> Outcome:
    """Runs an experiment after checking all of it."""
    return play(experiment, prepare(experiment), progress)


def play(experiment: Experiment, prepared: Prepared, progress: Progress = lambda what, done, total: None) -> Outcome:
    """Runs an experiment that passed every check."""
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.seeds)
    simulation = simulate_all(
        prepared.policies,
        prepared.benchmark,
        feedback=experiment.feedback,
        seeds=seeds,
        horizon=prepared.horizon,
        delay=experiment.delay,
        missing=experiment.missing,
        config={"model": experiment.model, "settings": prepared.settings.model_dump()},
        progress=progress,
    )
    return Outcome(experiment, prepared, simulation)


def read_preset(path: Path) -> dict[str, Any]:
    """A preset file: one JSON object of settings."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read preset {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"preset {path}: expected one JSON object of settings, but {error}") from None
    if not isinstance(values, dict):
        raise SettingsError(f"preset {path}: expected one JSON object of settings, got {type(values).__name__}")
    return values
