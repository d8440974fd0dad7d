"""From an experiment's words to settings: preset and changes together, each name handed to its owner, none without effect."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from regretless import benchmarks, models, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import SettingsError
from regretless.experiments.extension import find_preset
from regretless.policies.building import owners
from regretless.problem import Problem
from regretless.registry import have, require_known
from regretless.spec import Spec, merge_names
from regretless.studies.experiment import PUBLISHED_MODEL, Arm, Experiment

SCALING = "scaling"
WORLD = "benchmark."
ELSEWHERE = {
    "model": "model (--model)",
    "benchmark.degree": "degree (--degree)",
    "benchmark.data_dir": "data_dir (--data-dir)",
}
"""Names that an experiment has a field for, because presets depend on it."""


class World(NamedTuple):
    """Where an arm is played."""

    benchmark: str | Benchmark
    settings: Spec | None  # the benchmark's own; None for an object
    feedback: str
    degree: int | None


class Settled(NamedTuple):
    """What an arm's words come to."""

    arm: Arm
    world: World
    settings: Spec | None  # the policy's own; None for an object
    given: tuple[str, ...]  # names that were set by hand
    scaling: bool
    tuned: bool  # whether a preset of the paper is used as it is
    notices: tuple[str, ...]

    def names(self) -> dict[str, Any]:
        """The policy's settings by dotted name."""
        return {} if self.settings is None else {**self.settings.names(), SCALING: self.scaling}


def settle(experiment: Experiment) -> list[Settled]:
    """Every arm with its settings; refuses a name that no arm uses. Builds nothing."""
    for name in {**experiment.settings, **{key: 0 for arm in experiment.arms for key in arm.settings}}:
        if name in ELSEWHERE:
            raise SettingsError(f"setting {name!r}: give it as {ELSEWHERE[name]}, because presets depend on it")
    settled = [_arm(experiment, arm) for arm in experiment.arms]
    for name in experiment.settings:
        if not name.startswith(WORLD) and not any(name in each.given for each in settled):
            _refuse(name, experiment)
    if experiment.model != PUBLISHED_MODEL and not any(_has(arm, "model") for arm in experiment.arms):
        raise SettingsError(f"model {experiment.model!r} has no effect: {_labels(experiment)} has none to choose")
    return settled


def _arm(experiment: Experiment, arm: Arm) -> Settled:
    changes = {**experiment.settings, **arm.settings}
    world = _world(experiment, arm, changes)
    model = arm.model or experiment.model
    preset, degree, tuned = _preset(experiment, arm, world, model)
    notices = []
    if tuned and degree != world.degree:
        notices.append(f"no preset was tuned at degree {world.degree}: using the one of degree {degree}")
    said = preset.pop(SCALING, None)
    if not isinstance(arm.policy, str):
        if arm.preset or arm.model or any(not name.startswith(WORLD) for name in arm.settings):
            raise SettingsError(
                f"arm {arm.label!r}: settings, preset and model are for a policy by name, not an object"
            )
        return Settled(arm, world, None, (), False, False, ())
    entry = policies.REGISTRY[arm.policy]
    if arm.model is not None and not _has(arm, "model"):
        raise SettingsError(f"arm {arm.label!r}: model {arm.model!r} has no effect: policy {arm.policy!r} has none")
    mine = lambda values: {name: each for name, each in values.items() if _owns(entry, name)}  # noqa: E731
    strict = {name: each for name, each in arm.settings.items() if name != SCALING and not name.startswith(WORLD)}
    asked = mine(changes) | strict
    values = merge_names(mine(preset), asked)
    unscaled = tuned and bool(mine(preset))  # the paper's presets were tuned without
    scaling = _flag(changes.get(SCALING, not unscaled if said is None else said))
    _require_single(entry, values)
    if "model" in entry.model_fields:
        own = {f"model.{name}" for name in models.REGISTRY[model].model_fields}
        idle = {name for name in preset if name.startswith("model.") and name not in {*own, *asked}}
        values = {"model": model, **{name: each for name, each in values.items() if name not in idle}}
    settings = policies.parse(arm.policy, values)
    given = (*asked, *(name for name in (SCALING,) if name in changes))
    return Settled(arm, world, settings, given, scaling, tuned and not arm.settings, tuple(notices))


def _world(experiment: Experiment, arm: Arm, changes: Mapping[str, Any]) -> World:
    benchmark = arm.benchmark or experiment.benchmark
    own = {name.removeprefix(WORLD): value for name, value in changes.items() if name.startswith(WORLD)}
    degree = experiment.degree if arm.degree is None else arm.degree
    feedback = arm.feedback or experiment.feedback
    if not isinstance(benchmark, str):
        for name, given in (("degree", degree), ("data_dir", experiment.data_dir), *own.items()):
            if given is not None:
                raise SettingsError(f"benchmark {benchmark.name!r} is an object: {name} has to be set where it is made")
        return World(benchmark, None, feedback, None)
    fields = benchmarks.REGISTRY[benchmark].model_fields
    for name, given, words in (
        ("degree", degree, "has no degree"),
        ("data_dir", experiment.data_dir, "reads no data"),
    ):
        if given is not None and name not in fields:
            raise SettingsError(f"benchmark {benchmark!r} {words}")
        own |= {} if given is None else {name: given}
    for name in own:
        require_known("setting", name, fields, f" of benchmark {benchmark!r}")
    settings = benchmarks.parse(benchmark, own)
    return World(benchmark, settings, feedback, getattr(settings, "degree", None))


def _preset(experiment: Experiment, arm: Arm, world: World, model: str) -> tuple[dict[str, Any], int | None, bool]:
    """Settings by name, the degree they were tuned at, and whether they are the paper's."""
    given = experiment.preset if arm.preset is None else arm.preset
    if given is not None:
        for name in given:
            if name == "model":
                raise SettingsError("a preset has no 'model': give it as model (--model), because presets depend on it")
            if name != SCALING and not owners(name):
                require_known("setting", name, _every_name(), " of the preset")
            if name.startswith("model."):
                every = {key for each in models.REGISTRY for key in models.REGISTRY[each].model_fields}
                require_known("setting", name.removeprefix("model."), every, " of a model, in the preset")
            if name != SCALING and "." not in name:
                policies.parse(owners(name)[0], {name: given[name]})  # refuses what its owner would
        return dict(given), None, False
    ours = not isinstance(arm.policy, str) or _has_presets(arm.policy)
    if ours and isinstance(world.benchmark, str):
        tuned = find_preset(world.benchmark, world.degree, model, world.feedback)
        if tuned is not None:
            return dict(tuned.values), tuned.degree, True
    return {}, None, False


def _has_presets(policy: str) -> bool:
    """Whether the paper's presets are meant for it: nothing was tuned for other people's policies, nor for untuned ones."""
    return policies.REGISTRY.built_in(policy) and policies.REGISTRY[policy].presets


def _owns(entry: Any, name: str) -> bool:
    return name.partition(".")[0] in entry.model_fields


def _has(arm: Arm, field: str) -> bool:
    return isinstance(arm.policy, str) and field in policies.REGISTRY[arm.policy].model_fields


def _labels(experiment: Experiment) -> str:
    return ", ".join(arm.label for arm in experiment.arms)


def _require_single(settings: type[Spec], names: Iterable[str]) -> None:
    """Refuses a name that stands for several settings."""
    for name in names:
        field = settings.model_fields.get(name)
        if field is not None and isinstance(field.default, Spec) and field.default.registry is None:
            inner = ", ".join(f"{name}.{each}" for each in field.default.names())
            raise SettingsError(f"setting {name!r} stands for several settings: expected one of {inner}")


def _flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise SettingsError(f"setting 'scaling': expected true or false, got {value!r}")
    return str(value).lower() in ("true", "1")


def _every_name() -> list[str]:
    """Every setting that some policy has, apart from those of chosen parts."""
    names = [name for entry in policies.REGISTRY.usable().values() for name in entry().names()]
    return sorted({*names, SCALING})


def _refuse(name: str, experiment: Experiment) -> None:
    chosen, having = _labels(experiment), owners(name)
    if name == SCALING:
        raise SettingsError(f"setting {name!r} has no effect on {chosen}: wrap policy objects in rg.policies.Scaled")
    if having:
        raise SettingsError(f"setting {name!r} has no effect on {chosen}; {have(having)} it")
    benchmark = experiment.benchmark
    if isinstance(benchmark, str) and name in benchmarks.REGISTRY[benchmark].model_fields:
        raise SettingsError(f"unknown setting {name!r}; did you mean 'benchmark.{name}'?")
    require_known("setting", name, _every_name())


def require_effect(settled: list[Settled], problems: Mapping[str, Problem], experiment: Experiment) -> None:
    """Refuses a name that was set by hand and has no effect on any arm that has it."""
    idle: dict[str, str] = {}
    used: set[str] = set()
    for each in settled:
        if each.settings is None:
            continue
        without = each.settings.unused(problems[each.arm.label])
        for name in each.given:
            why = next(
                (w for key, w in without.items() if key == name or (key[-1] == "." and name.startswith(key))), None
            )
            idle |= {} if why is None else {name: f"{why} (policy {each.arm.label!r})"}
            used |= {name} if why is None else set()
    for name, why in idle.items():
        if name not in used:
            raise SettingsError(f"setting {name!r} has no effect here: {why}")


def world_names(worlds: list[World]) -> list[str]:
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
