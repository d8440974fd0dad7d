"""From an experiment to runs: each arm with its policy, benchmark and settings decided, and the address of its result.

The address is a hash of the run's configuration and of the code: one hash for the library, one for every plug-in that
takes part. A result that was computed by other code has another address and is never shown as if it were current.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

import regretless
from regretless import benchmarks, models, policies
from regretless.array_files import canonical
from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.errors import RegretlessError, SettingsError
from regretless.experiments.experiment import DEFAULT_MODEL, Arm, Experiment
from regretless.experiments.extension import Preset, Progress, find_preset
from regretless.policies import Policy, PolicySpec
from regretless.policies.building import owners
from regretless.policies.scaling import Scaled
from regretless.problem import Problem
from regretless.registry import have, require_known
from regretless.spec import Spec, merge_names

SCALING = "scaling"
WORLD = "benchmark."
"""How the settings of a benchmark begin."""


class World(NamedTuple):
    """A benchmark by name with its settings, or as an object, and the feedback on it."""

    benchmark: str | Benchmark
    settings: Spec | None
    feedback: str


@dataclasses.dataclass(frozen=True)
class Run:
    """One arm of an experiment with everything decided: a task whose result is stored under ``address``.

    Parameters
    ----------
    label : str
        The name of the arm.
    policy : str or Policy
        What is played.
    settings : Spec or None
        The settings of a policy that was given by name.
    world : World
        Where it is played.
    seeds : tuple of int
        The seeds of the replications.
    horizon, delay, missing : int, int, float
        The number of rounds, and how feedback arrives.
    scaling : bool
        Whether contexts and costs are scaled.
    standard : bool
        Whether this is the benchmark as it is and the policy with its tuned preset, which published values are about.
    tuned : bool
        Whether a tuned preset is used.
    notices : tuple of str
        What the user should know.
    """

    label: str
    policy: str | Policy
    settings: Spec | None
    world: World
    seeds: tuple[int, ...]
    horizon: int
    delay: int = 0
    missing: float = 0.0
    scaling: bool = False
    standard: bool = False
    tuned: bool = False
    notices: tuple[str, ...] = ()
    where: str = ""

    @property
    def name(self) -> str:
        """The world and the arm, for progress and error messages."""
        return f"{self.where}: {self.label}"

    @property
    def stream(self) -> tuple[Any, ...]:
        """What runs have in common that meet the same contexts and costs."""
        benchmark = self.world.benchmark
        settings = "" if self.world.settings is None else canonical(self.world.settings.names())
        known = benchmark if isinstance(benchmark, str) else id(benchmark)
        return known, settings, self.seeds, self.horizon, self.delay, self.missing

    def build_policy(self, benchmark: Benchmark) -> Policy:
        """Return the policy for a benchmark; refuse one that cannot be played on it."""
        problem = benchmark.problem(self.world.feedback, may_miss=self.missing > 0)
        if not isinstance(self.policy, str):
            self.policy.problem.require_played_on(problem, f"policy {self.label!r}")
            return self.policy
        try:
            assert isinstance(self.settings, PolicySpec)
            policy = self.settings.build(problem)
        except RegretlessError as error:
            raise SettingsError(f"policy {self.label!r}: {error}") from None
        return Scaled(problem, policy) if self.scaling else policy

    @functools.cached_property
    def parts(self) -> tuple[Policy, Benchmark]:
        """The policy and the benchmark; built once."""
        benchmark = build_benchmark(self.world)
        return self.build_policy(benchmark), benchmark

    @functools.cached_property
    def configuration(self) -> dict[str, Any]:
        """Everything that the numbers depend on apart from the code."""
        benchmark = self.parts[1]
        if self.settings is None:
            raise SettingsError(
                f"arm {self.label!r} is a policy object, which a store cannot recognise: register it and give its name"
            )
        description, oracle = benchmark.describe(), benchmark.oracle.fingerprint()
        if self.world.settings is None and description == {"name": benchmark.name}:
            raise SettingsError(
                f"benchmark {benchmark.name!r} is an object that describes itself by its name only, which a store "
                "cannot recognise: register it and give its name, or return its data from describe()"
            )
        return {
            "policy": {"name": self.policy, "settings": {**self.settings.names(), SCALING: self.scaling}},
            "benchmark": {**description, "settings": _world_settings(self.world), "oracle": oracle},
            "feedback": self.world.feedback,
            "seeds": list(self.seeds),
            "horizon": self.horizon,
            "delay": self.delay,
            "missing": self.missing,
        }

    @functools.cached_property
    def modules(self) -> tuple[str, ...]:
        """The packages of other people that take part."""
        entry = policies.REGISTRY[self.policy] if isinstance(self.policy, str) else self.policy
        parts = [*_parts_within(self.parts), *_parts_within(entry)]
        return tuple(sorted({package for part in parts if (package := _package_of(part)) is not None}))

    @functools.cached_property
    def address(self) -> str:
        """Under which the result is stored."""
        return address_of(self.configuration, self.modules)

    def compute(self, progress: Progress) -> Any:
        """Play this run by itself."""
        from regretless.experiments.run import play

        return play([self], progress)[0]

    def __getstate__(self) -> dict[str, Any]:
        kept = {field.name for field in dataclasses.fields(self)} | {"address"}
        return {name: value for name, value in self.__dict__.items() if name in kept}


def resolve(experiment: Experiment) -> list[Run]:
    """Return the runs of an experiment, one per arm; build and check every policy and benchmark.

    Parameters
    ----------
    experiment : Experiment
        What to run.

    Returns
    -------
    list of Run
        One run per arm, in order.

    Raises
    ------
    SettingsError
        If something cannot be run, or a setting has no effect on any arm.
    """
    arms = [_resolve_arm(experiment, arm) for arm in experiment.arms]
    for name in experiment.settings:
        if not name.startswith(WORLD) and not any(name in arm.given for arm in arms):
            _refuse_setting(name, experiment)
    worlds: list[tuple[World, Benchmark]] = []
    for arm in arms:
        if not any(is_same_world(arm.run.world, world) for world, _ in worlds):
            worlds.append((arm.run.world, build_benchmark(arm.run.world)))
    horizon = _horizon(experiment, [benchmark for _, benchmark in worlds])
    runs: list[Run] = []
    idle: dict[str, str] = {}
    used: set[str] = set()
    for arm in arms:
        world, benchmark = next(known for known in worlds if is_same_world(arm.run.world, known[0]))
        run = dataclasses.replace(
            arm.run,
            world=world,
            horizon=horizon,
            standard=arm.run.standard and horizon == benchmark.horizon and benchmark.data != "synthetic",
            notices=(*data_notices(benchmark), *arm.run.notices),
        )
        policy = run.build_policy(benchmark)
        run.__dict__["parts"] = (policy, benchmark)  # the value of a cached property
        reasons = _reasons_without_effect(run, policy.problem, arm.given)
        idle |= reasons
        used |= {name for name in arm.given if name not in reasons}
        runs.append(run)
    for name, reason in idle.items():
        if name not in used:
            raise SettingsError(f"setting {name!r} has no effect here: {reason}")
    return runs


class _ResolvedArm(NamedTuple):
    """An arm before its benchmark is built."""

    run: Run
    given: tuple[str, ...]  # settings of the policy that were set by hand


def _resolve_arm(experiment: Experiment, arm: Arm) -> _ResolvedArm:
    """Return an arm with its settings: the preset, then the experiment's changes, then its own."""
    changes = {**experiment.settings, **arm.settings}
    world, default_world = _resolve_world(experiment, arm, changes)
    base = Run(
        arm.label, arm.policy, None, world, experiment.seed_list, 1, experiment.delay, experiment.missing,
        where=experiment.title or experiment.where,
    )  # fmt: skip
    if not isinstance(arm.policy, str):
        if arm.preset or any(not name.startswith(WORLD) for name in arm.settings):
            raise SettingsError(f"arm {arm.label!r}: settings and preset are for a policy by name, not an object")
        return _ResolvedArm(base, ())
    entry = policies.REGISTRY[arm.policy]
    model = str(changes.get("model", DEFAULT_MODEL)) if "model" in entry.model_fields else DEFAULT_MODEL
    require_known("model", model, models.REGISTRY)
    preset, tuned = _find_preset(experiment, arm, world, str(changes.get("model", DEFAULT_MODEL)))
    asked = _asked(entry, arm, experiment)
    values = {name: value for name, value in preset.values.items() if name != SCALING and _has_field(entry, name)}
    unscaled = tuned and bool(values)  # tuned presets were tuned without
    scaling = _parse_flag(changes.get(SCALING, preset.values.get(SCALING, not unscaled)))
    settings = _parse_policy(arm.policy, entry, values, asked, model)
    given = (*asked, *(name for name in (SCALING,) if name in changes))
    notices: tuple[str, ...] = ()
    degree = getattr(world.settings, "degree", None)
    if tuned and preset.degree != degree:
        notices = (f"no preset was tuned at degree {degree}: using the one of degree {preset.degree}",)
    standard = tuned and default_world and not scaling and not _changes_policy(experiment, arm)
    run = dataclasses.replace(base, settings=settings, scaling=scaling, tuned=tuned, standard=standard, notices=notices)
    return _ResolvedArm(run, given)


def _changes_policy(experiment: Experiment, arm: Arm) -> bool:
    """Return whether anything but the tuned preset decides how an arm is played."""
    return bool(experiment.settings or arm.settings or experiment.delay or experiment.missing)


def _asked(entry: Any, arm: Arm, experiment: Experiment) -> dict[str, Any]:
    """Return the policy's settings that were set by hand; refuse those of the arm that its policy does not have."""
    own = {name: value for name, value in arm.settings.items() if name != SCALING and not name.startswith(WORLD)}
    for name in own:
        if not _has_field(entry, name):
            policies.parse(str(arm.policy), {name: own[name]})  # says who has it
    shared = {name: value for name, value in experiment.settings.items() if _has_field(entry, name)}
    return merge_names(shared, own)


def _parse_policy(name: str, entry: Any, preset: Mapping[str, Any], asked: Mapping[str, Any], model: str) -> Spec:
    """Return the settings of a policy from its preset and what was set by hand."""
    for key in asked:
        field = entry.model_fields.get(key)
        if field is not None and isinstance(field.default, Spec) and field.default.registry is None:
            inner = ", ".join(f"{key}.{each}" for each in field.default.names())
            raise SettingsError(f"setting {key!r} stands for several settings: expected one of {inner}")
    values = merge_names(preset, asked)
    if "model" in entry.model_fields:
        known = {f"model.{field}" for field in models.REGISTRY[model].model_fields}
        values = {key: each for key, each in values.items() if not key.startswith("model.") or key in {*known, *asked}}
        values = {"model": model, **values}
    return policies.parse(name, values)


def _resolve_world(experiment: Experiment, arm: Arm, changes: Mapping[str, Any]) -> tuple[World, bool]:
    """Return the world of an arm, and whether it is the benchmark as it is."""
    benchmark = arm.benchmark or experiment.benchmark
    settings = {name.removeprefix(WORLD): value for name, value in changes.items() if name.startswith(WORLD)}
    feedback = arm.feedback or experiment.feedback
    if not isinstance(benchmark, str):
        for name in settings:
            raise SettingsError(f"benchmark {benchmark.name!r} is an object: {name} has to be set where it is made")
        return World(benchmark, None, feedback), False
    fields = benchmarks.REGISTRY[benchmark].model_fields
    for name in settings:
        require_known("setting", name, fields, f" of benchmark {benchmark!r}")
    parsed = benchmarks.parse(benchmark, settings)
    default = benchmarks.parse(benchmark, {k: v for k, v in settings.items() if k == "data_dir"})
    return World(benchmark, parsed, feedback), parsed == default


def _find_preset(experiment: Experiment, arm: Arm, world: World, model: str) -> tuple[Preset, bool]:
    """Return settings by name, with the degree they were tuned at, and whether they are a tuned preset."""
    given = experiment.preset if arm.preset is None else arm.preset
    if given is not None:
        for name, value in given.items():
            _check_preset(name, value)
        return Preset(given, None), False
    if isinstance(world.benchmark, str) and isinstance(arm.policy, str) and _takes_presets(arm.policy):
        tuned = find_preset(world.benchmark, getattr(world.settings, "degree", None), model, world.feedback)
        if tuned is not None:
            return tuned, True
    return Preset({}, None), False


def _check_preset(name: str, value: Any) -> None:
    """Refuse a name of a preset that no policy has, or a value that its owner refuses."""
    if name == "model":
        raise SettingsError("a preset has no 'model': give it as a setting (--model), because presets depend on it")
    if name != SCALING and not owners(name):
        require_known("setting", name, _setting_names(), " of the preset")
    if name.startswith("model."):
        fields = {field for model in models.REGISTRY for field in models.REGISTRY[model].model_fields}
        require_known("setting", name.removeprefix("model."), fields, " of a model, in the preset")
    if name != SCALING and "." not in name:
        policies.parse(owners(name)[0], {name: value})


def _takes_presets(policy: str) -> bool:
    """Return whether presets are meant for a policy: nothing was tuned for those of other packages, or untuned ones."""
    return policies.REGISTRY.built_in(policy) and policies.REGISTRY[policy].presets


def _has_field(entry: Any, name: str) -> bool:
    return name.partition(".")[0] in entry.model_fields


def _parse_flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise SettingsError(f"setting 'scaling': expected true or false, got {value!r}")
    return str(value).lower() in ("true", "1")


def _setting_names() -> list[str]:
    """Return every setting that some policy has, apart from those of chosen parts."""
    names = [name for entry in policies.REGISTRY.usable().values() for name in entry().names()]
    return sorted({*names, SCALING})


def _refuse_setting(name: str, experiment: Experiment) -> None:
    """Raise the error about a setting that no arm has."""
    labels, having = ", ".join(arm.label for arm in experiment.arms), owners(name)
    if name == SCALING:
        raise SettingsError(f"setting {name!r} has no effect on {labels}: wrap policy objects in rg.policies.Scaled")
    if having:
        raise SettingsError(f"setting {name!r} has no effect on {labels}; {have(having)} it")
    benchmark = experiment.benchmark
    if isinstance(benchmark, str) and name in benchmarks.REGISTRY[benchmark].model_fields:
        raise SettingsError(f"unknown setting {name!r}; did you mean 'benchmark.{name}'?")
    require_known("setting", name, _setting_names())


def _reasons_without_effect(run: Run, problem: Problem, given: Sequence[str]) -> dict[str, str]:
    """Return the settings that were set by hand and have no effect on a run, with the reason."""
    if run.settings is None:
        return {}
    unused = run.settings.unused(problem)
    reasons = {}
    for name in given:
        matches = (why for key, why in unused.items() if key == name or (key[-1] == "." and name.startswith(key)))
        reason = next(matches, None)
        if reason is not None:
            reasons[name] = f"{reason} (policy {run.label!r})"
    return reasons


def build_benchmark(world: World) -> Benchmark:
    """Return the benchmark of a world."""
    if not isinstance(world.benchmark, str):
        return world.benchmark
    try:
        assert isinstance(world.settings, BenchmarkSpec)
        return world.settings.build()
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError(f"benchmark {world.benchmark!r}: {error}") from None


def _horizon(experiment: Experiment, worlds: Sequence[Benchmark]) -> int:
    """Return the number of rounds that all arms are played."""
    horizon = experiment.horizon or min(world.horizon for world in worlds)
    if experiment.delay >= horizon:
        raise SettingsError(
            f"expected a delay of less than the {horizon} rounds that are played, got {experiment.delay}"
        )
    for world in worlds:
        if world.longest is not None and horizon > world.longest:
            raise SettingsError(f"benchmark {world.name!r} has {world.longest} rounds, got a horizon of {horizon}")
    return int(horizon)


def data_notices(benchmark: Benchmark) -> tuple[str, ...]:
    """Return what a user should know about the data that a benchmark was built from."""
    if benchmark.data != "synthetic":
        return ()
    return (
        "no real data found: playing on synthetic data, which no published value is about; "
        f"'regretless data fetch {benchmark.name}' downloads it, --data-dir or REGRETLESS_DATA names a folder",
    )


def is_same_world(one: World, other: World) -> bool:
    """Return whether two arms are played in one world; an object is the same world as itself only."""
    if isinstance(one.benchmark, str) and isinstance(other.benchmark, str):
        return one == other
    return one.benchmark is other.benchmark and one.feedback == other.feedback


def _world_settings(world: World) -> dict[str, Any]:
    """Return the settings of a benchmark; where its data are stored does not matter."""
    names = {} if world.settings is None else world.settings.names()
    return {name: value for name, value in names.items() if name != "data_dir"}


def world_names(worlds: Sequence[World]) -> list[str]:
    """Return names that tell worlds apart by what differs between them; empty ones if all are the same."""
    described = [
        {
            "benchmark": world.benchmark if isinstance(world.benchmark, str) else world.benchmark.name,
            "feedback": world.feedback,
            **({} if world.settings is None else world.settings.names()),
        }
        for world in worlds
    ]
    keys = dict.fromkeys(key for description in described for key in description)
    differing = [key for key in keys if len({str(description.get(key)) for description in described}) > 1]
    names: list[str] = []
    for place, description in enumerate(described):
        known = next((names[i] for i in range(place) if is_same_world(worlds[i], worlds[place])), None)
        if known is None:
            known = ", ".join(
                str(description[key]) if key in ("benchmark", "feedback") else f"{key} {description[key]}"
                for key in differing
                if key in description
            )
            others = {name for name in names if name == known or name.startswith(f"{known} (")}
            known = f"{known} ({len(others) + 1})".strip() if others else known
        names.append(known)
    return names


# Addresses

PRESENTATION = ("cli", "live", "plots.py", "report", "show", "testing", "studies/claims", "experiments/report")
"""Parts of the library that no result of a run depends on."""

ORCHESTRATION = ("arena", "campaign", "extension", "parallel", "store", "study", "tuning")
"""Modules of ``experiments`` that decide what is run and where, not what comes out."""

CODE = (".py", ".csv", ".json", ".txt")
SHARED = {"regretless", "jax", "jaxlib", "equinox", "numpy", "scipy", "pydantic", "highspy", "builtins"}
"""Packages that are not plug-ins: the library and what it is built on."""

ROUNDING_FLAGS = ("optimization_level", "fast_math", "excess_precision", "fusion")
"""Parts of the names of XLA's flags that change how a program rounds."""


def address_of(configuration: Mapping[str, Any], modules: Iterable[str] = ()) -> str:
    """Return the address of a result.

    Parameters
    ----------
    configuration : mapping
        JSON data that the result depends on.
    modules : iterable of str, optional
        Modules or packages outside the library whose code the result depends on.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> address_of({"seeds": 3}) == address_of({"seeds": 3}) != address_of({"seeds": 4})
    True
    """
    flags = sorted(f for f in os.environ.get("XLA_FLAGS", "").split() if any(part in f for part in ROUNDING_FLAGS))
    whole = {"configuration": configuration, "code": code_versions(modules), **({"compiler": flags} if flags else {})}
    return hashlib.sha256(canonical(whole)).hexdigest()


def code_versions(modules: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of the library's code and of modules of other packages, by name."""
    return {"regretless": code_version(), **{name: _digest(_module_files(name)) for name in sorted(set(modules))}}


@functools.cache
def code_version() -> str:
    """Return the version of the library with a hash of all its code that results depend on."""
    root = Path(regretless.__file__).parent
    files = [path for path in sorted(root.rglob("*")) if path.suffix in CODE and not _is_apart(path.relative_to(root))]
    return f"{regretless.__version__}+{_digest(files, root)}"


def is_outdated(versions: Mapping[str, str]) -> bool:
    """Return whether code of these versions is known to have changed; a module that is not found here is not known."""
    for name, version in versions.items():
        try:
            current = code_version() if name == "regretless" else _digest(_module_files(name))
        except SettingsError:
            continue
        if version != current:
            return True
    return False


def _is_apart(path: Path) -> bool:
    """Return whether no result depends on a file of the library."""
    place = path.as_posix()
    if any(f"{place}/".startswith(f"{part}/") for part in PRESENTATION):
        return True
    return path.parts[0] == "experiments" and path.name.startswith(ORCHESTRATION)


def _digest(files: Iterable[Path], root: Path | None = None) -> str:
    digest = hashlib.sha256()
    for path in files:
        name = path.name if root is None else path.relative_to(root).as_posix()
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


def _module_files(name: str) -> list[Path]:
    """Return the source files of a package, or of a module and what it imports from its own folder."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        raise SettingsError(f"the module {name} cannot be found: install its package, or start where it is")
    if spec.submodule_search_locations:
        folders = map(Path, spec.submodule_search_locations)
        return [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in CODE]
    return [] if spec.origin in (None, "built-in", "frozen") else sorted(_with_imports(Path(str(spec.origin)), set()))


def _with_imports(path: Path, known: set[Path]) -> set[Path]:
    """Return a file and those in its folder that it imports, directly or not."""
    known.add(path)
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return known
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    for name in names:
        module, package = path.parent / f"{name.split('.')[0]}.py", path.parent / name.split(".")[0]
        if module.is_file() and module not in known:
            _with_imports(module, known)
        elif (package / "__init__.py").is_file():
            known.update(package.rglob("*.py"))
    return known


def _parts_within(part: Any) -> Iterator[Any]:
    """Iterate over a part and all that it holds: a policy's surrogate and model, a solver's function."""
    if isinstance(part, tuple | list):
        for member in part:
            yield from _parts_within(member)
    elif isinstance(part, Mapping):
        yield from _parts_within(list(part.values()))
    elif isinstance(part, eqx.Module):
        yield type(part)
        yield from _parts_within([getattr(part, field.name, None) for field in dataclasses.fields(part)])
    elif isinstance(part, functools.partial):
        yield from _parts_within(part.func)
    elif isinstance(part, type) or inspect.isroutine(part):
        yield part


def _package_of(part: Any) -> str | None:
    """Return the plug-in package of a class or function; None for the library's own and the standard ones."""
    package = str(getattr(part, "__module__", None) or "builtins").partition(".")[0]
    return None if package in SHARED or package in sys.stdlib_module_names else package
