"""Runs an experiment: builds its worlds and policies, checks all of it, plays every world, tells what came out."""

import math
from typing import Any, NamedTuple

from regretless import benchmarks, policies
from regretless.benchmarks.base import Benchmark
from regretless.benchmarks.references import Reference
from regretless.errors import RegretlessError, SettingsError
from regretless.policies import Policy, Scaled
from regretless.problem import Problem
from regretless.simulate.programs import Progress
from regretless.simulate.simulation import compile_all, quiet, simulate_all
from regretless.studies.experiment import PUBLISHED_DEGREE, PUBLISHED_MODEL, Arm, Experiment
from regretless.studies.settling import Settled, World, require_effect, settle
from regretless.trace import Trace


class Prepared(NamedTuple):
    """An experiment that passed every check: its arms with their settings, worlds and policies, by label."""

    experiment: Experiment
    settled: dict[str, Settled]
    worlds: dict[str, str]  # the name of each arm's world; empty where all share one
    benchmarks: dict[str, Benchmark]  # by the name of the world
    policies: dict[str, Policy]
    horizon: int
    notices: tuple[str, ...]

    @property
    def benchmark(self) -> Benchmark:
        """The first arm's world."""
        return next(iter(self.benchmarks.values()))

    @property
    def degree(self) -> int | None:
        """The first arm's degree."""
        return next(iter(self.settled.values())).world.degree

    def comparable(self, label: str) -> bool:
        """Whether the published tables are about this very arm."""
        experiment, each = self.experiment, self.settled[label]
        world = self.benchmarks[self.worlds[label]]
        return (
            each.tuned
            and not experiment.settings
            and not each.scaling
            and each.world.degree in (None, PUBLISHED_DEGREE)
            and (each.arm.model or experiment.model) == PUBLISHED_MODEL
            and self.horizon == world.horizon
            and not experiment.delay
            and not experiment.missing
            and world.data != "synthetic"
        )


class Outcome(NamedTuple):
    """An experiment with what came out: traces by label, reference lines with the name of their world, seconds."""

    prepared: Prepared
    traces: dict[str, Trace]
    references: list[tuple[str, Reference]]
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object; null stands for what does not exist."""
        experiment, prepared = self.prepared.experiment, self.prepared
        return {
            "benchmark": experiment.benchmark_name,
            "feedback": experiment.feedback,
            "degree": prepared.degree,
            "data": prepared.benchmark.data,
            "model": experiment.model,
            "horizon": prepared.horizon,
            "seeds": len(experiment.seeds),
            "first_seed": experiment.seeds[0],
            "results": [self._row(arm) for arm in experiment.arms],
            "references": self.lines(),
            "seconds": {key: round(value, 3) for key, value in self.seconds.items()},
            "settings": {label: each.names() for label, each in prepared.settled.items()},
            "notices": list(prepared.notices),
        }

    def lines(self) -> list[dict[str, Any]]:
        """The reference lines as JSON objects."""
        return [
            {
                "name": line.name,
                "mean": finite(line.mean),
                "standard_error": finite(line.standard_error),
                "world": world,
            }
            for world, line in self.references
        ]

    def _row(self, arm: Arm) -> dict[str, Any]:
        trace = self.traces[arm.label]
        row = {
            "policy": arm.label,
            "world": self.prepared.worlds[arm.label],
            "mean": finite(trace.mean()),
            "standard_error": finite(trace.standard_error()),
            "median": finite(trace.median()),
            "diverged": trace.diverged,
            "diverged_rounds": sorted(int(t) for t in trace.diverged_at if t),
            "published_mean": None,
            "published_standard_error": None,
            "z": None,
        }
        world = self.prepared.settled[arm.label].world
        known = benchmarks.published(str(world.benchmark), world.feedback, arm.label)
        if known is not None and self.prepared.comparable(arm.label):
            row["published_mean"], row["published_standard_error"] = known
            row["z"] = finite(known.z(trace.mean(), trace.standard_error()))
        return row


def finite(value: float) -> float | None:
    """A finite number; None for any other."""
    return float(value) if math.isfinite(value) else None


def prepare(experiment: Experiment) -> Prepared:
    """Builds every world and policy; refuses what cannot be run with a SettingsError."""
    settled = {each.arm.label: each for each in settle(experiment)}
    names = _world_names([each.world for each in settled.values()])
    worlds = dict(zip(settled, names, strict=True))
    built: dict[str, Benchmark] = {}
    problems: dict[str, Problem] = {}
    chosen: dict[str, Policy] = {}
    for label, each in settled.items():
        name = worlds[label]
        if name not in built:
            built[name] = build_world(each.world)
        problems[label] = built[name].problem(each.world.feedback, may_miss=experiment.missing > 0)
        chosen[label] = _policy(each, problems[label])
    require_effect(list(settled.values()), problems, experiment)
    notices = [note for each in built.values() for note in data_notices(each)]
    notices += [note for each in settled.values() for note in each.notices]
    return Prepared(
        experiment, settled, worlds, built, chosen, _horizon(experiment, list(built.values())),
        tuple(dict.fromkeys(notices)),
    )  # fmt: skip


def _policy(settled: Settled, problem: Problem) -> Policy:
    arm = settled.arm
    if not isinstance(arm.policy, str):
        arm.policy.problem.require_played_on(problem, f"policy {arm.label!r}")
        return arm.policy
    assert settled.settings is not None
    try:
        policy: Policy = policies.REGISTRY[arm.policy].build(problem, settled.settings)
    except RegretlessError as error:
        raise SettingsError(f"policy {arm.label!r}: {error}") from None
    return Scaled(problem, policy) if settled.scaling else policy


def build_world(world: World) -> Benchmark:
    """The benchmark of an arm."""
    if not isinstance(world.benchmark, str):
        return world.benchmark
    try:
        return benchmarks.build(world.benchmark, world.settings)
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError(f"benchmark {world.benchmark!r}: {error}") from None


def _horizon(experiment: Experiment, worlds: list[Benchmark]) -> int:
    horizon = experiment.horizon or min(world.horizon for world in worlds)
    if experiment.delay >= horizon:
        raise SettingsError(
            f"expected a delay of less than the {horizon} rounds that are played, got {experiment.delay}"
        )
    for world in worlds:
        if world.longest is not None and horizon > world.longest:
            raise SettingsError(f"benchmark {world.name!r} has {world.longest} rounds, got a horizon of {horizon}")
    return horizon


def _world_names(worlds: list[World]) -> list[str]:
    """Names that tell the worlds apart: in what they differ; empty where all are the same."""
    told = [
        {
            "benchmark": world.benchmark if isinstance(world.benchmark, str) else world.benchmark.name,
            "feedback": world.feedback,
            **({} if world.settings is None else world.settings.names()),
        }
        for world in worlds
    ]
    keys = list(dict.fromkeys(key for each in told for key in each))
    apart = [key for key in keys if len({str(each.get(key)) for each in told}) > 1]
    word = lambda key, each: str(each[key]) if key in ("benchmark", "feedback") else f"{key} {each.get(key)}"  # noqa: E731
    names: list[str] = []
    for place, (world, each) in enumerate(zip(worlds, told, strict=True)):
        same = next((names[i] for i in range(place) if _same(worlds[i], world)), None)
        plain = ", ".join(word(key, each) for key in apart if key in each)
        others = {name for name in names if name == plain or name.startswith(f"{plain} (")}
        names.append(same if same is not None else f"{plain} ({len(others) + 1})".strip() if others else plain)
    return names


def _same(one: World, other: World) -> bool:
    """Whether two arms meet in one world; an object is the same world as itself only."""
    if isinstance(one.benchmark, str) and isinstance(other.benchmark, str):
        return one == other
    return one.benchmark is other.benchmark and one.feedback == other.feedback


def data_notices(benchmark: Benchmark) -> tuple[str, ...]:
    """What must be said about the data that a benchmark was built from."""
    if benchmark.data != "synthetic":
        return ()
    return (
        "no real data found: playing on synthetic data, which nothing published is about; "
        f"'regretless data fetch {benchmark.name}' downloads the real ones, --data-dir or REGRETLESS_DATA names a directory",
    )


def run(experiment: Experiment, progress: Progress = quiet) -> Outcome:
    """Runs an experiment after checking all of it."""
    return play_prepared(prepare(experiment), progress)


def compile_prepared(prepared: Prepared) -> None:
    """Compiles what ``play_prepared`` of the same will need."""
    experiment = prepared.experiment
    for world, benchmark in prepared.benchmarks.items():
        mine = {label: policy for label, policy in prepared.policies.items() if prepared.worlds[label] == world}
        compile_all(mine, benchmark, len(experiment.seeds), prepared.horizon, experiment.delay, experiment.missing)


def play_prepared(prepared: Prepared, progress: Progress = quiet) -> Outcome:
    """Runs an experiment that passed every check, world by world."""
    experiment = prepared.experiment
    traces: dict[str, Trace] = {}
    lines: list[tuple[str, Reference]] = []
    seconds: dict[str, float] = {"compile": 0.0, "run": 0.0}
    for place, (world, benchmark) in enumerate(prepared.benchmarks.items()):
        mine = {label: policy for label, policy in prepared.policies.items() if prepared.worlds[label] == world}
        simulation = simulate_all(
            mine,
            benchmark,
            seeds=experiment.seeds,
            horizon=prepared.horizon,
            delay=experiment.delay,
            missing=experiment.missing,
            config={"model": experiment.model},
            progress=_share(progress, place, len(prepared.benchmarks)),
        )
        traces |= simulation.traces
        lines += [(world, line) for line in simulation.references]
        seconds = {key: seconds[key] + simulation.seconds[key] for key in seconds}
    return Outcome(prepared, {arm.label: traces[arm.label] for arm in experiment.arms}, lines, seconds)


def _share(progress: Progress, place: int, worlds: int) -> Progress:
    """The progress of one world as a part of all of them."""

    def tell(task: str, done: int, total: int) -> None:
        progress(task, *((done, total) if task != "running" else (place * total + done, worlds * total)))

    return tell
