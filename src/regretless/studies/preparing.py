"""Prepares an experiment: builds its worlds and policies and checks all of it, before anything is played."""

from typing import NamedTuple

from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.errors import RegretlessError, SettingsError
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.scaling import Scaled
from regretless.problem import Problem
from regretless.studies.experiment import PUBLISHED_DEGREE, PUBLISHED_MODEL, Experiment
from regretless.studies.settling import Settled, World, require_effect, settle, world_names


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


def prepare(experiment: Experiment) -> Prepared:
    """Builds every world and policy; refuses what cannot be run with a SettingsError."""
    settled = {each.arm.label: each for each in settle(experiment)}
    names = world_names([each.world for each in settled.values()])
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
    try:
        assert isinstance(settled.settings, PolicySpec)
        policy = settled.settings.build(problem)
    except RegretlessError as error:
        raise SettingsError(f"policy {arm.label!r}: {error}") from None
    return Scaled(problem, policy) if settled.scaling else policy


def build_world(world: World) -> Benchmark:
    """The benchmark of an arm."""
    if not isinstance(world.benchmark, str):
        return world.benchmark
    try:
        assert isinstance(world.settings, BenchmarkSpec)
        return world.settings.build()
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


def data_notices(benchmark: Benchmark) -> tuple[str, ...]:
    """What must be said about the data that a benchmark was built from."""
    if benchmark.data != "synthetic":
        return ()
    return (
        "no real data found: playing on synthetic data, which nothing published is about; "
        f"'regretless data fetch {benchmark.name}' downloads the real ones, --data-dir or REGRETLESS_DATA names a directory",
    )
