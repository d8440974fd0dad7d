"""From an experiment to results: each arm with everything decided, the address of its result, and how it is played.

The address is a hash of the run's configuration and of the code: one hash for the library, one for every plug-in that
takes part. A result that was computed by other code has another address and is never shown as if it were current. Arms
of one world share its stream and reference lines; no arm depends on which others run.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import modulefinder
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import regretless
from regretless.array_files import canonical
from regretless.benchmarks.base import REGISTRY as BENCHMARKS
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, contextuality
from regretless.errors import RegretlessError, SettingsError, short_repr
from regretless.experiments.experiment import DEFAULT_MODEL, Arm, Experiment
from regretless.experiments.extension import Listener, Preset, Progress, Task, find_preset
from regretless.formatting import unique_name
from regretless.models.base import REGISTRY as MODELS
from regretless.policies.base import REGISTRY as POLICIES
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.scaling import Unscaled, build_policy, owners
from regretless.registry import names_have, require_known
from regretless.results import Result, Results
from regretless.simulation.programs import make_room
from regretless.simulation.simulator import Execution, Monitor, Recording, simulate
from regretless.spec import Spec, merge_names

SCALING = "scaling"
WORLD = "benchmark."
"""Prefix of the settings of a benchmark."""

DATA_DIR = "data_dir"
"""The setting of a benchmark that says where its data are stored, which does not change a result."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One arm of an experiment with everything decided: a task whose result is stored under ``address``.

    Parameters
    ----------
    label : str
        The name of the arm.
    policy : PolicySpec or Policy
        What is played.
    benchmark : BenchmarkSpec or Benchmark
        Where it is played.
    feedback : str
        What a decision reveals.
    seeds : tuple of int
        The seeds of the replications.
    horizon, delay, missing : int, int, float
        The number of rounds, and how feedback arrives.
    scaling : bool
        Whether contexts and costs are scaled.
    tuned : bool
        Whether a tuned preset is used.
    standard : bool
        Whether the benchmark is unchanged and the policy has its tuned preset, so that published values apply.
    notices : tuple of str
        What the user should know.
    where : str
        A description of the experiment without its arms.
    """

    label: str
    policy: PolicySpec | Policy
    benchmark: BenchmarkSpec | Benchmark
    feedback: str
    seeds: tuple[int, ...]
    horizon: int
    delay: int = 0
    missing: float = 0.0
    scaling: bool = False
    tuned: bool = False
    standard: bool = False
    notices: tuple[str, ...] = ()
    where: str = ""

    @property
    def name(self) -> str:
        """The world and the arm, for progress and error messages."""
        return f"{self.where}: {self.label}"

    @property
    def world(self) -> tuple[Any, ...]:
        """A key that is equal for runs on the same benchmark; a benchmark object equals only itself."""
        spec = self.benchmark
        return (spec.registered_name, canonical(spec.names())) if isinstance(spec, BenchmarkSpec) else (id(spec),)

    @property
    def conditions(self) -> dict[str, Any]:
        """What ``simulate`` takes in addition to policies and benchmark."""
        return {"seeds": self.seeds, "horizon": self.horizon, "delay": self.delay, "missing": self.missing}

    @property
    def stream(self) -> tuple[Any, ...]:
        """A key that is equal for runs with the same contexts and costs."""
        return *self.world, *self.conditions.values()

    def build_policy(self, benchmark: Benchmark) -> Policy:
        """Return the policy for a benchmark; refuse one that cannot be played on it.

        Parameters
        ----------
        benchmark : Benchmark
            What it is played on.
        """
        problem = benchmark.problem(self.feedback, may_miss=self.missing > 0)
        if isinstance(self.policy, Policy):
            self.policy.problem.require_played_on(problem, f"policy {self.label!r}")
            return self.policy
        try:
            return build_policy(self.policy, problem, self.scaling, check_effect=False)
        except RegretlessError as error:
            raise SettingsError(f"policy {self.label!r}: {error}") from None

    @functools.cached_property
    def parts(self) -> tuple[Policy, Benchmark]:
        """The policy and the benchmark; built once."""
        benchmark = build_benchmark(self.benchmark)
        return self.build_policy(benchmark), benchmark

    @functools.cached_property
    def configuration(self) -> dict[str, Any]:
        """Everything that the numbers depend on apart from the code."""
        benchmark = self.parts[1]
        if isinstance(self.policy, Policy):
            what = f"arm {self.label!r} is a policy object"
            raise SettingsError(f"{what}, which a store cannot recognise: give its specification or name")
        description, oracle = benchmark.describe(), benchmark.oracle.fingerprint()
        settings = self.benchmark.names() if isinstance(self.benchmark, BenchmarkSpec) else {}
        if isinstance(self.benchmark, Benchmark) and description == {"name": benchmark.name}:
            what = f"benchmark {benchmark.name!r} is an object that describes itself by its name only"
            raise SettingsError(f"{what}, which a store cannot recognise: give its name, or its data in describe()")
        settings.pop(DATA_DIR, None)
        return {
            "policy": {"name": self.policy.registered_name, "settings": {**self.policy.names(), SCALING: self.scaling}},
            "benchmark": {**description, "settings": settings, "oracle": oracle},
            "feedback": self.feedback,
            **self.conditions,
        }

    @functools.cached_property
    def modules(self) -> tuple[str, ...]:
        """The packages outside the library whose code the result depends on."""
        parts = _parts_within([self.parts, self.policy, self.benchmark])
        return tuple(sorted({package for part in parts if (package := _package_of(part)) is not None}))

    @functools.cached_property
    def address(self) -> str:
        """The address under which the result is stored."""
        return address_of(self.configuration, self.modules)

    def compute(self, progress: Progress) -> Result:
        """Play this run by itself.

        Parameters
        ----------
        progress : callable
            Called with what is being done, how much of it is finished and how much there is.
        """
        return play([self], Monitor(progress=progress))[0]

    def __getstate__(self) -> dict[str, Any]:
        kept = {field.name for field in dataclasses.fields(self)} | {"address", "modules"}
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
    if not isinstance(experiment, Experiment):
        raise SettingsError(f"expected an Experiment, got {short_repr(experiment)}")
    arms = [_resolve_arm(experiment, arm) for arm in experiment.arms]
    for name in experiment.settings:
        if not name.startswith(WORLD) and not any(name in given for _, given in arms):
            _refuse_setting(name, experiment)
    specs = {run.world: run.benchmark for run, _ in arms}
    benchmarks = {world: build_benchmark(spec) for world, spec in specs.items()}
    horizon = _horizon(experiment, list(benchmarks.values()))
    runs: list[Run] = []
    idle: dict[str, str] = {}
    used: set[str] = set()
    for arm, given in arms:
        benchmark = benchmarks[arm.world]
        standard = arm.standard and horizon == benchmark.horizon and benchmark.data != "synthetic"
        notices = (*data_notices(benchmark), *arm.notices)
        run = dataclasses.replace(arm, horizon=horizon, standard=standard, notices=notices)
        policy = run.build_policy(benchmark)
        run.__dict__["parts"] = (policy, benchmark)  # the value of a cached property
        unused = {} if isinstance(run.policy, Policy) else run.policy.unused_settings(policy.problem)
        for name in given:
            if name in unused:
                idle[name] = f"{unused[name]} (policy {run.label!r})"
            else:
                used.add(name)
        runs.append(run)
    for name, reason in idle.items():
        if name not in used:
            raise SettingsError(f"setting {name!r} has no effect here: {reason}")
    return runs


def _resolve_arm(experiment: Experiment, arm: Arm) -> tuple[Run, tuple[str, ...]]:
    """Return an arm before its benchmark is built, and the settings of its policy that were set by hand.

    The preset comes first, then the changes of the experiment, then those of the arm.
    """
    changes = {**experiment.settings, **arm.settings}
    benchmark, is_default = _resolve_benchmark(experiment, arm, changes)
    policy: Any = arm.policy.policy if isinstance(arm.policy, Unscaled) else arm.policy
    feedback, where = arm.feedback or experiment.feedback, experiment.title or experiment.where
    shared = {name: getattr(experiment, name) for name in ("delay", "missing")}
    run = Run(arm.label, policy, benchmark, feedback, experiment.seed_list, horizon=1, where=where, **shared)
    if not isinstance(arm.policy, str):
        if arm.preset or any(not name.startswith(WORLD) for name in arm.settings):
            raise SettingsError(f"arm {arm.label!r}: settings and preset are for a policy by name")
        if isinstance(run.policy, Policy):
            return run, ()
        given = tuple(run.policy.changed_names())
        return dataclasses.replace(run, scaling=not isinstance(arm.policy, Unscaled)), given
    spec = POLICIES[arm.policy]
    model = str(changes.get("model", DEFAULT_MODEL))
    require_known("model", model, MODELS)
    preset, tuned = _find_preset(experiment, arm, benchmark, model)
    asked = _asked(spec, arm, experiment)
    values = {name: value for name, value in preset.values.items() if name != SCALING and _has_field(spec, name)}
    unscaled = tuned and bool(values)  # presets were tuned without scaling
    scaling = _parse_flag(changes.get(SCALING, preset.values.get(SCALING, not unscaled)))
    notices: tuple[str, ...] = ()
    degree = getattr(benchmark, "degree", None)
    if tuned and preset.degree != degree:
        notices = (f"no preset was tuned at degree {degree}: using the one of degree {preset.degree}",)
    changed = experiment.settings or arm.settings or experiment.delay or experiment.missing
    standard = tuned and is_default and not (scaling or changed)
    policy = _parse_policy(arm.policy, values, asked, model)
    run = dataclasses.replace(run, policy=policy, scaling=scaling, tuned=tuned, standard=standard, notices=notices)
    return run, (*asked, *(name for name in (SCALING,) if name in changes))


def _asked(spec: type[PolicySpec], arm: Arm, experiment: Experiment) -> dict[str, Any]:
    """Return the policy's settings that were set by hand; refuse those of the arm that its policy does not have."""
    specific = {name: value for name, value in arm.settings.items() if name != SCALING and not name.startswith(WORLD)}
    for name in specific:
        if not _has_field(spec, name):
            POLICIES.parse(str(arm.policy), {name: specific[name]})  # says which policies have it
    shared = {name: value for name, value in experiment.settings.items() if _has_field(spec, name)}
    return merge_names(shared, specific)


def _parse_policy(name: str, preset: Mapping[str, Any], asked: Mapping[str, Any], model: str) -> PolicySpec:
    """Return the specification of a policy from its preset and what was set by hand."""
    spec = POLICIES[name]
    for key in asked:
        field = spec.model_fields.get(key)
        if field is not None and isinstance(field.default, Spec) and field.default.registry is None:
            inner = ", ".join(f"{key}.{setting}" for setting in field.default.names())
            raise SettingsError(f"setting {key!r} stands for several settings: expected one of {inner}")
    values = merge_names(preset, asked)
    if "model" in spec.model_fields:
        known = {f"model.{field}" for field in MODELS[model].model_fields}
        kept = {*known, *asked}
        values = {key: value for key, value in values.items() if not key.startswith("model.") or key in kept}
        values = {"model": model, **values}
    return POLICIES.parse(name, values)


def _resolve_benchmark(
    experiment: Experiment, arm: Arm, changes: Mapping[str, Any]
) -> tuple[BenchmarkSpec | Benchmark, bool]:
    """Return the benchmark of an arm, and whether it is an unchanged benchmark of the library."""
    benchmark = arm.benchmark or experiment.benchmark
    settings = {name.removeprefix(WORLD): value for name, value in changes.items() if name.startswith(WORLD)}
    if isinstance(benchmark, Benchmark):
        for name in settings:
            raise SettingsError(f"benchmark {benchmark.name!r} is an object: {name} must be set where it is made")
        return benchmark, False
    name = benchmark if isinstance(benchmark, str) else benchmark.registered_name
    spec = BENCHMARKS.parse(benchmark) if isinstance(benchmark, str) else benchmark
    for setting in settings:
        require_known("setting", setting, type(spec).model_fields, f" of benchmark {name!r}")
    spec = type(spec).from_text(merge_names(spec.names(), settings))
    return spec, name in BENCHMARKS.built_in_names and not set(spec.changed_names()) - {DATA_DIR}


def _find_preset(
    experiment: Experiment, arm: Arm, benchmark: BenchmarkSpec | Benchmark, model: str
) -> tuple[Preset, bool]:
    """Return settings by name, with the degree they were tuned at, and whether they are a tuned preset."""
    given = experiment.preset if arm.preset is None else arm.preset
    if given is not None:
        for name, value in given.items():
            _check_preset(name, value)
        return Preset(given, None), False
    tuned = None
    name = str(arm.policy)  # nothing was tuned for the policies of other packages
    if isinstance(benchmark, BenchmarkSpec) and name in POLICIES.built_in_names and POLICIES[name].presets:
        degree = getattr(benchmark, "degree", None)
        tuned = find_preset(benchmark.registered_name, degree, model, arm.feedback or experiment.feedback)
    return tuned or Preset({}, None), tuned is not None


def _check_preset(name: str, value: Any) -> None:
    """Refuse a name of a preset that no policy has, or a value that its owner refuses."""
    if name == "model":
        raise SettingsError("a preset has no 'model': give it as a setting (--model), because presets depend on it")
    if name != SCALING and not owners(name):
        require_known("setting", name, _setting_names(), " of the preset")
    if name.startswith("model."):
        fields = {field for spec in MODELS.usable().values() for field in spec.model_fields}
        require_known("setting", name.removeprefix("model."), fields, " of a model, in the preset")
    if name != SCALING and "." not in name:
        POLICIES.parse(owners(name)[0], {name: value})


def _has_field(spec: type[PolicySpec], name: str) -> bool:
    return name.partition(".")[0] in spec.model_fields


def _parse_flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise SettingsError(f"setting 'scaling': expected true or false, got {value!r}")
    return str(value).lower() in ("true", "1")


def _setting_names() -> list[str]:
    """Return every setting that some policy has, apart from those of chosen parts."""
    names = [name for spec in POLICIES.usable().values() for name in spec().names()]
    return sorted({*names, SCALING})


def _refuse_setting(name: str, experiment: Experiment) -> None:
    """Raise the error about a setting that no arm has."""
    labels, having = ", ".join(arm.label for arm in experiment.arms), owners(name)
    if name == SCALING:
        raise SettingsError(f"setting {name!r} has no effect on {labels}: it is for policies by name")
    if having:
        raise SettingsError(f"setting {name!r} has no effect on {labels}; {names_have(having)} it")
    benchmark = experiment.benchmark
    if isinstance(benchmark, str) and name in BENCHMARKS[benchmark].model_fields:
        raise SettingsError(f"unknown setting {name!r}; did you mean 'benchmark.{name}'?")
    require_known("setting", name, _setting_names())


def build_benchmark(benchmark: BenchmarkSpec | Benchmark) -> Benchmark:
    """Return the benchmark of a specification; a benchmark is returned as it is."""
    if isinstance(benchmark, Benchmark):
        return benchmark
    try:
        return benchmark.build()
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError(f"benchmark {benchmark.registered_name!r}: {error}") from None


def _horizon(experiment: Experiment, worlds: Sequence[Benchmark]) -> int:
    """Return the number of rounds that all arms are played."""
    horizon = experiment.horizon or min(world.horizon for world in worlds)
    if experiment.delay >= horizon:
        late = f"expected a delay of less than the {horizon} rounds that are played"
        raise SettingsError(f"{late}, got {experiment.delay}")
    for world in worlds:
        if world.longest is not None and horizon > world.longest:
            raise SettingsError(f"benchmark {world.name!r} has {world.longest} rounds, got a horizon of {horizon}")
    return int(horizon)


def data_notices(benchmark: Benchmark) -> tuple[str, ...]:
    """Return what a user should know about the data that a benchmark was built from."""
    if benchmark.data != "synthetic":
        return ()
    return (
        "no real data found: playing on synthetic data, to which no published value applies; "
        f"'regretless data fetch {benchmark.name}' downloads it, --data-dir or REGRETLESS_DATA names a folder",
    )


# Playing


def run(
    experiment: Experiment,
    *,
    store: str | os.PathLike[str] | None = None,
    recording: Recording = Recording(),  # noqa: B008 -- frozen
    monitor: Monitor = Monitor(),  # noqa: B008 -- frozen
    save: str | os.PathLike[str] | None = None,
) -> Results:
    """Run an experiment after checking all of it.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    store : path, optional
        A folder of results: arms that it holds already are read, the others are computed and stored.
    recording : Recording
        What is kept in addition to the regret; not together with ``store``.
    monitor : Monitor
        Callbacks. Arms on different worlds are played one after another, and the callback receives each.
    save : path, optional
        A file in which the run is kept, so that it can continue after a kill; the files of further worlds end in a
        number. Not together with ``store``.

    Returns
    -------
    Results
        One result per arm, by label.

    Raises
    ------
    SettingsError
        If something cannot be run.

    Examples
    --------
    >>> results = run(Experiment("topk", ["greedy"], seeds=2, horizon=20))
    >>> results["greedy"].regret.shape
    (2, 20)
    """
    runs = resolve(experiment)
    if store is None:
        return collect(add_contextuality(runs, play(runs, monitor, recording, save)))
    if recording != Recording() or monitor.callback is not None or save is not None:
        raise SettingsError("recording, callback and save are for a run without a store")
    return collect(_from_store(runs, store, monitor.progress))


def _from_store(runs: Sequence[Run], folder: str | os.PathLike[str], progress: Progress) -> list[Result]:
    """Return the results of a store, after those that it lacks were computed."""
    from regretless.experiments.campaign import compute_missing, work
    from regretless.experiments.store import ResultStore

    class _Listener(Listener):
        def progress(self, task: Task, what: str, done: int, total: int) -> None:
            progress(what, done, total)

    target = ResultStore(folder)
    target.create()
    compute_missing(list({run.address: run for run in runs}.values()), target, work, _Listener())
    for arm in runs:
        failure = target.failure(arm.address)
        if failure is not None:
            raise SettingsError(f"{arm.label}: {failure.last_line}")
    return [dataclasses.replace(target.load(arm.address), label=arm.label) for arm in runs]


def collect(results: Sequence[Result]) -> Results:
    """Return results by label, with the time of all of them."""
    seconds = {name: sum(result.seconds.get(name, 0.0) for result in results) for name in ("compile", "run")}
    return Results(results, seconds=seconds)


def play(runs: Sequence[Run], monitor: Monitor, recording: Recording | None = None, save: Any = None) -> list[Result]:
    """Return the results of runs, in their order; ``seconds`` are the share of the runs that were played together.

    Numbers of a run do not depend on the others: every policy runs in a separate program, with as many replications
    together as if it were alone.
    """
    make_room()
    groups: dict[Any, list[int]] = {}
    for place, arm in enumerate(runs):
        groups.setdefault(arm.stream, []).append(place)
    results: dict[int, Result] = {}
    for number, places in enumerate(groups.values()):
        first = runs[places[0]]
        names: dict[int, str] = {}
        for place in places:
            names[place] = unique_name(runs[place].label, names.values())
        policies = {names[place]: runs[place].parts[0] for place in places}
        watching = dataclasses.replace(monitor, progress=share_progress(monitor.progress, number, 1, len(groups)))
        alone = Execution(merge=False, save=save and os.fspath(save) + (f".{number}" if number else ""))
        simulated = simulate(
            policies,
            first.parts[1],
            **first.conditions,
            recording=recording or Recording(),
            monitor=watching,
            execution=alone,
        )
        share = {name: spent / len(places) for name, spent in simulated.seconds.items()}
        for place in places:
            results[place] = _finish(runs[place], simulated[names[place]], share)
    return [results[place] for place in range(len(runs))]


def add_contextuality(runs: Sequence[Run], results: Sequence[Result]) -> list[Result]:
    """Return the results with what the context of their world is worth, one sentence for tables and reports."""
    sentences: dict[Any, str | None] = {}
    for arm in runs:
        if arm.stream not in sentences:
            benchmark = arm.parts[1]
            few = {"seeds": 2, "rounds": 50} if benchmark.oracle.on_host else {}
            sentences[arm.stream] = None
            with contextlib.suppress(RegretlessError):  # it is a remark; the results do not depend on it
                sentences[arm.stream] = str(contextuality(benchmark, **few))
    added = []
    for arm, result in zip(runs, results, strict=True):
        sentence = sentences[arm.stream]
        extra = {} if sentence is None else {"contextuality": sentence}
        added.append(dataclasses.replace(result, extra={**result.extra, **extra}))
    return added


def _finish(run: Run, result: Result, seconds: dict[str, float]) -> Result:
    """Return a simulated result under the arm's label, with its configuration."""
    try:
        configuration = {name: value for name, value in run.configuration.items() if name != "seeds"}
    except SettingsError:  # an object: the simulation has described it
        configuration = {}
    extra = {name: getattr(run, name) for name in ("where", "tuned", "standard")}
    extra |= {"data": run.parts[1].data, "notices": list(run.notices)}
    config = {**result.config, **configuration}
    return dataclasses.replace(result, label=run.label, config=config, seconds=seconds, extra=extra)


def share_progress(progress: Progress, done: int, count: int, total: int) -> Progress:
    """Return the progress of ``count`` things that are simulated together as that of all; ``done`` came before."""

    def report(what: str, part: int, whole: int) -> None:
        running = done * whole + count * part, total * whole
        progress(what, *(running if what == "running" else (part, whole)))

    return report


# Addresses

ORCHESTRATION = ("arena", "campaign", "extension", "report/", "store", "study", "tuning")
"""Parts of ``experiments`` that show results, or decide what is run and where."""

IGNORED = ("cli/", "live/", "plots.py", "formatting.py", "testing/", *(f"experiments/{name}" for name in ORCHESTRATION))
"""Parts of the library that no result of a run depends on."""

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
    return {name: _version_of(name) for name in ("regretless", *sorted(set(modules)))}


def _version_of(name: str) -> str:
    return code_version() if name == "regretless" else _digest(_module_files(name))


@functools.cache
def code_version() -> str:
    """Return the version of the library with a hash of all its code that results depend on."""
    root = Path(regretless.__file__).parent
    files = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.suffix in CODE}
    return f"{regretless.__version__}+{_digest({n: file for n, file in files.items() if not n.startswith(IGNORED)})}"


def is_outdated(versions: Mapping[str, str]) -> bool:
    """Return whether code of these versions is known to have changed; a module that is not found here is not known."""
    for name, version in versions.items():
        with contextlib.suppress(SettingsError):
            if version != _version_of(name):
                return True
    return False


def _digest(files: Mapping[str, Path]) -> str:
    """Return a hash of the contents of files, with their names."""
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return hashlib.sha256(canonical(hashes)).hexdigest()[:12]


def _module_files(name: str) -> dict[str, Path]:
    """Return the source files of a package, or of a module and what it imports from its own folder."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        raise SettingsError(f"the module {name} cannot be found: install its package, or start where it is")
    if spec.submodule_search_locations:
        folders = [Path(folder) for folder in spec.submodule_search_locations]
        return {str(p.relative_to(root)): p for root in folders for p in root.rglob("*") if p.suffix in CODE}
    if not spec.has_location or spec.origin is None:
        return {}
    path = Path(spec.origin)
    finder = modulefinder.ModuleFinder([str(path.parent)] if "site-packages" not in path.parts else [])
    with contextlib.suppress(SyntaxError, ValueError):  # it is not Python, and counts by itself
        finder.run_script(spec.origin)
    files = {name: getattr(module, "__file__", None) for name, module in finder.modules.items()}
    return {"__main__": path, **{name: Path(file) for name, file in files.items() if file}}


def _parts_within(part: Any) -> Iterator[Any]:
    """Iterate over a part and all that it holds: a policy's surrogate and model, a solver's function."""
    if isinstance(part, tuple | list):
        for member in part:
            yield from _parts_within(member)
    elif isinstance(part, Mapping):
        yield from _parts_within(list(part.values()))
    elif isinstance(part, Spec) or (dataclasses.is_dataclass(part) and not isinstance(part, type)):
        yield type(part)
        yield from _parts_within(list(vars(part).values()))
    elif isinstance(part, functools.partial):
        yield from _parts_within(part.func)
    elif isinstance(part, type) or inspect.isroutine(part):
        yield part


def _package_of(part: Any) -> str | None:
    """Return the plug-in package of a class or function; None for the library's own and the standard ones."""
    package = str(getattr(part, "__module__", None) or "builtins").partition(".")[0]
    return None if package in SHARED or package in sys.stdlib_module_names else package
