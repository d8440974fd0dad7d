"""Tuning: search for settings of a policy by mean final regret on validation seeds.

Candidates that share their static choices run next to each other in one program. Trials live in a storage of Optuna, so
that a search can be continued and shared by several workers. The default sampler is the random search of the DFHPG
paper, whose draws depend on the seed, the trial's number and the setting's name only; any sampler of Optuna can take
its place.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import math
import os
import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from regretless import files, models, policies
from regretless.errors import SettingsError, WriteError
from regretless.experiments import tuning_spaces
from regretless.experiments.experiment import Experiment
from regretless.experiments.extension import Progress
from regretless.experiments.resolve import SCALING, WORLD, resolve
from regretless.experiments.tuning_spaces import Range, candidate_settings
from regretless.extras import require
from regretless.policies import Policy, PolicySpec
from regretless.simulation.programs import make_room
from regretless.simulation.simulator import Execution, Monitor, no_progress, simulate
from regretless.spec import merge_names

if TYPE_CHECKING:
    import optuna

REPORTED_SEEDS = (range(30), range(1000, 1030))
"""Seeds of reported runs, which no candidate is ranked on."""

RANDOM = "random"
MAX_WIDTH = 6
"""Candidates in one program, at most."""

PROGRAMS_TOGETHER = 4
"""Programs per simulation: they compile at the same time."""

RANDOM_BLOCK, ADAPTIVE_BLOCK = 256, 16
"""Trials that a worker takes at once: few if the sampler learns from them."""

SCREEN_SEEDS, FINALISTS = 3, 10
PATIENCE_SECONDS = 1.0
"""Between looks at trials of other workers."""

LOST_SECONDS = 3600.0
"""After this time a running trial of another machine counts as lost."""

NAMELESS_SECONDS = 10.0
"""After this time a running trial counts as lost if its worker has not written its name, because its disk is full."""

MIN_TRIALS_FOR_IMPORTANCE = 10


def validation_experiment(
    benchmark: str,
    policy: str = "dfhpg",
    *,
    feedback: str = "bandit",
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    first_seed: int = tuning_spaces.FIRST_VALIDATION_SEED,
    horizon: int | None = None,
) -> Experiment:
    """Return the experiment that candidates are ranked in by the DFHPG paper's protocol.

    Parameters
    ----------
    benchmark, policy : str
        What is tuned, and for what.
    feedback : str, default "bandit"
        What a decision reveals.
    settings : mapping, optional
        Settings that are fixed instead of searched, by dotted name; ``model`` and ``benchmark.…`` among them.
    seeds, horizon : int, optional
        The number of replications and rounds instead of the protocol's.
    first_seed : int, default 100000
        The first validation seed.

    Returns
    -------
    Experiment
        With one policy and seeds that no reported run uses.
    """
    model = str((settings or {}).get("model", "gaussian_linear"))
    usual = tuning_spaces.protocol(benchmark, model)
    return Experiment(
        benchmark,
        policy,
        feedback=feedback,
        seeds=range(first_seed, first_seed + (seeds or usual.seeds)),
        horizon=horizon or usual.horizon,
        settings={**usual.settings, **(settings or {})},
    )


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """The best settings of a search.

    Parameters
    ----------
    preset : dict
        The best candidate's settings by dotted name, for ``Experiment(preset=...)`` or ``run --preset``.
    record : dict
        Every trial, what was searched, and where the time went, as JSON data.
    """

    preset: dict[str, Any]
    record: dict[str, Any]

    def __repr__(self) -> str:
        best, trials = self.record["best"], self.record["trials"]
        return f"TuningResult: best of {len(trials)} trials has mean final regret {best['value']:.4g}: {self.preset}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the preset as a JSON file."""
        files.write_text(path, json.dumps(self.preset, indent=2) + "\n")


def tune(
    experiment: Experiment,
    trials: int = 200,
    *,
    sampler: "str | optuna.samplers.BaseSampler" = RANDOM,
    seed: int = 0,
    storage: "str | os.PathLike[str] | optuna.storages.BaseStorage | None" = None,
    finalists: int | None = None,
    block: int | None = None,
    progress: Progress = no_progress,
) -> TuningResult:
    """Search for the settings of a policy with the lowest mean final regret.

    Parameters
    ----------
    experiment : Experiment
        One policy by name on validation seeds; settings of the experiment are fixed. ``validation_experiment`` makes
        one.
    trials : int, default 200
        How many candidates are evaluated, over all workers and runs.
    sampler : str or optuna sampler, default "random"
        "random", "tpe", "gp", "qmc", or a sampler of Optuna.
    seed : int, default 0
        Seed of the sampler.
    storage : path, URL or optuna storage, optional
        Where trials are kept: a file for SQLite, a file that ends in ``.log`` for Optuna's journal (which also works on
        network file systems), or a URL. By default in memory.
    finalists : int, optional
        How many of the best of three seeds are played on all seeds; 0 for one stage. By default 10 for generative
        models and 0 for others.
    block : int, optional
        Trials that are drawn at once.
    progress : callable, optional
        Receives what is being done, how much of it is finished and how much there is.

    Returns
    -------
    TuningResult
        The best settings as a preset, and the record of all trials.

    Raises
    ------
    SettingsError
        If the experiment has more than one policy, uses seeds of reported runs, or no candidate stays finite.
    MissingExtraError
        If Optuna is not installed.

    Examples
    --------
    >>> seeds = range(100_000, 100_002)
    >>> fixed = {"surrogate": "nid", "alpha.max": 0.1, "alpha.min": 0.0, "baseline": "moving_average"}
    >>> experiment = Experiment("topk", "dfhpg", seeds=seeds, horizon=10, settings=fixed)
    >>> len(tune(experiment, trials=2).record["trials"])
    2
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise SettingsError(f"expected a number of trials, at least 1, got {trials!r}")
    search = _Search(experiment, seed)
    seeds = experiment.seed_list
    if finalists is None:
        finalists = FINALISTS if models.is_generative(experiment.model) and len(seeds) > SCREEN_SEEDS else 0
    if finalists and len(seeds) <= SCREEN_SEEDS:
        raise SettingsError(f"two stages: expected more than {SCREEN_SEEDS} seeds, got {len(seeds)}")
    began = time.perf_counter()
    screen = search if not finalists else _Search(experiment.replace(seeds=seeds[:SCREEN_SEEDS]), seed)
    chosen_block = block or (RANDOM_BLOCK if sampler == RANDOM else ADAPTIVE_BLOCK)
    with _Trials(storage, screen.name, screen.space, make_sampler(sampler, seed)) as known:
        spent = _search(screen, trials, known, progress, chosen_block)
        finished, importances = known.finished(), known.importances()
    record = {**spent, "importances": importances, "seconds": time.perf_counter() - began}
    first = screen.result(finished, record)
    if not finalists:
        return first
    return _play_finalists(search, first, finalists, progress, began)


class _Search:
    """What is searched: an experiment of one arm, the space around it, and how a candidate is built."""

    def __init__(self, experiment: Experiment, seed: int):
        if len(experiment.arms) != 1 or not isinstance(experiment.arms[0].policy, str):
            raise SettingsError("tune: expected an experiment with one policy, by name")
        used = experiment.seed_list
        for reported in REPORTED_SEEDS:
            if any(seed in reported for seed in used):
                raise SettingsError(
                    f"validation seeds {used[0]} to {used[-1]} overlap the reported runs' {reported.start} to "
                    f"{reported.stop - 1}: choose another first seed"
                )
        self.experiment, self.seed, self.policy = experiment, seed, str(experiment.arms[0].policy)
        (self.run,) = resolve(experiment)
        self.benchmark = self.run.parts[1]
        asked = {**experiment.settings, **experiment.arms[0].settings}
        own = {name: value for name, value in asked.items() if not name.startswith(WORLD) and name != SCALING}
        fixed = tuning_spaces.fixed_settings(self.policy, experiment.benchmark_name, experiment.model)
        self.fixed = {**fixed, **own}
        self.space = tuning_spaces.search_space(
            self.policy, experiment.benchmark_name, experiment.model, {**fixed, **own}
        )

    @property
    def name(self) -> str:
        """The name under which the trials are stored."""
        experiment, seeds = self.experiment, self.experiment.seed_list
        fixed = "".join(f" {name}={value}" for name, value in sorted(experiment.settings.items()))
        return (
            f"{experiment.benchmark_name} {self.policy} {experiment.feedback}{fixed}: {len(seeds)} seeds from "
            f"{seeds[0]}, {self.run.horizon} rounds, drawn with {self.seed}"
        )

    def spec(self, values: Mapping[str, Any]) -> PolicySpec:
        """Return the specification of a candidate."""
        return policies.parse(self.policy, merge_names(self.fixed, candidate_settings(values)))

    def build(self, values: Mapping[str, Any]) -> Policy:
        """Return a candidate."""
        return dataclasses.replace(self.run, policy=self.spec(values)).build_policy(self.benchmark)

    def evaluate(self, candidates: Mapping[str, Policy], progress: Progress = no_progress) -> Any:
        """Return the results of candidates by name."""
        # Fixed for point models: shapes must not depend on the programs that run together.
        chunk = None if models.is_generative(self.experiment.model) else len(self.run.seeds)
        return simulate(
            candidates,
            self.benchmark,
            seeds=self.run.seeds,
            horizon=self.run.horizon,
            delay=self.run.delay,
            missing=self.run.missing,
            monitor=Monitor(progress=progress),
            execution=Execution(chunk=chunk),
        )

    def result(self, trials: Sequence[Mapping[str, Any]], more: Mapping[str, Any]) -> TuningResult:
        """Return the best of finished trials as a preset, with the record of all of them."""
        complete = [trial for trial in trials if trial["value"] is not None]
        if not complete:
            raise SettingsError(f"none of {len(trials)} candidates stayed finite: nothing to choose from")
        best = min(complete, key=lambda trial: (trial["value"], trial["number"]))
        spec = self.spec(best["params"])
        unused = tuple(spec.unused(self.run.parts[0].problem))
        groups = tuple(name for name in unused if name.endswith("."))
        preset = {
            name: value
            for name, value in spec.names().items()
            if value is not None and name not in ("model", *unused) and not name.startswith(groups)
        }
        experiment = self.experiment
        record = {
            "benchmark": experiment.benchmark_name,
            "policy": self.policy,
            "model": experiment.model,
            "feedback": experiment.feedback,
            "degree": getattr(self.run.benchmark, "degree", None),
            "seeds": len(self.run.seeds),
            "first_seed": self.run.seeds[0],
            "horizon": self.run.horizon,
            "seed": self.seed,
            "settings": dict(experiment.settings),
            "best": best,
            "trials": list(trials),
            **{name: round(value, 1) if isinstance(value, float) else value for name, value in more.items()},
        }
        return TuningResult({**preset, SCALING: self.run.scaling}, record)


def _search(search: _Search, trials: int, known: "_Trials", progress: Progress, block: int) -> dict[str, Any]:
    """Claim and evaluate blocks of trials until all are finished; return where the time went."""
    compiling, programs, structures = 0.0, 0, set[Any]()
    widths: dict[Any, int] = {}
    while True:
        claimed = known.claim(trials, block, progress)
        if not claimed:
            running = known.running_elsewhere()
            if not running:
                break
            progress("waiting for other workers", trials - running, trials)
            time.sleep(PATIENCE_SECONDS)
            continue
        candidates = {number: search.build(values) for number, values in claimed.items()}
        done = 0
        for batch in make_programs(candidates, widths):
            here = {jax.tree.structure(candidates[program[0]]) for program in batch}
            if not here & structures:  # no program that is in use would be dropped
                make_room()
            structures |= here
            count = len({number for program in batch for number in program})
            results = search.evaluate(_named(batch, candidates), _report(progress, done, count, len(candidates)))
            for number in sorted({number for program in batch for number in program}):
                result = results[f"{number}.0"]
                known.tell(number, result.mean(), result.diverged)
            compiling += results.seconds["compile"]
            programs += results.programs
            done += count
    return {"combinations": len(structures), "programs": programs, "compile_seconds": compiling}


def _named(programs: Sequence[Sequence[int]], candidates: Mapping[int, Policy]) -> dict[str, Policy]:
    """Return the candidates of programs by name; one that fills empty places comes again under further names."""
    seen: Counter[int] = Counter()
    named = {}
    for number in (number for program in programs for number in program):
        named[f"{number}.{seen[number]}"] = candidates[number]
        seen[number] += 1
    return named


def _report(progress: Progress, done: int, count: int, total: int) -> Progress:
    """Return the progress of a simulation as that of all trials."""

    def report(what: str, part: int, whole: int) -> None:
        if what == "running":
            progress("trials", done + count * part // max(whole, 1), total)
        else:
            progress(what, part, whole)

    return report


def make_programs(candidates: Mapping[int, Policy], widths: dict[Any, int]) -> Iterator[list[list[int]]]:
    """Iterate over programs of candidates by number, some programs at a time, no two of one structure.

    Every program of a structure has the same number of places, noted in ``widths``, so that it is compiled once; the
    first candidate of a program fills its empty places.
    """
    by_structure: dict[Any, list[int]] = {}
    for number, policy in candidates.items():
        by_structure.setdefault(jax.tree.structure(policy), []).append(number)
    queues = []
    for structure, members in by_structure.items():
        width = widths.setdefault(structure, program_width(len(members)))
        queue = [members[start : start + width] for start in range(0, len(members), width)]
        queues.append([program + [program[0]] * (width - len(program)) for program in queue])
    while queues:
        yield [queue.pop(0) for queue in queues[:PROGRAMS_TOGETHER]]
        queues = [queue for queue in queues if queue]


def program_width(count: int) -> int:
    """Return places per program for a number of candidates: few programs, as evenly filled as possible.

    >>> [program_width(count) for count in (1, 3, 6, 7, 13)]
    [1, 3, 6, 4, 5]
    """
    return math.ceil(count / math.ceil(count / MAX_WIDTH))


def _play_finalists(
    search: _Search, screen: TuningResult, finalists: int, progress: Progress, began: float
) -> TuningResult:
    """Play the best of a screen on all seeds.

    The paper (Appendix L.1) tunes generative models by "a two-stage generative screen" and says no more. Here the
    stages differ in the number of seeds alone, so that finalists are ranked by what the paper ranks by.
    """
    complete = [trial for trial in screen.record["trials"] if trial["value"] is not None]
    chosen = sorted(complete, key=lambda trial: (trial["value"], trial["number"]))[:finalists]
    played, compiling, programs = [], 0.0, 0
    for done, trial in enumerate(chosen):
        progress("finalists", done, len(chosen))
        results = search.evaluate({"finalist": search.build(trial["params"])})
        result = results["finalist"]
        played.append({**trial, "value": None if result.diverged else result.mean()})
        compiling, programs = compiling + results.seconds["compile"], programs + results.programs
    first = screen.record
    more = {
        "combinations": first["combinations"],
        "importances": first["importances"],
        "programs": first["programs"] + programs,
        "compile_seconds": first["compile_seconds"] + compiling,
        "seconds": time.perf_counter() - began,
        "screen": first,
    }
    return search.result(played, more)


# Trials


def _optuna() -> ModuleType:
    return require("optuna", extra="tune")


def make_sampler(sampler: Any, seed: int) -> Any:
    """Return a sampler of Optuna by its name; a sampler is returned as it is."""
    optuna = _optuna()
    if not isinstance(sampler, str):
        return sampler
    makers: dict[str, Callable[[], Any]] = {
        RANDOM: lambda: _counter_sampler(seed),
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, constant_liar=True),
        "gp": lambda: optuna.samplers.GPSampler(seed=seed),
        "qmc": lambda: optuna.samplers.QMCSampler(seed=seed),
    }
    if sampler not in makers:
        raise SettingsError(f"expected a sampler of Optuna, or one of {', '.join(makers)}, got {sampler!r}")
    return makers[sampler]()


def _counter_sampler(seed: int) -> Any:
    """Return a random sampler whose draws depend on the seed, the trial's number and the parameter's name only.

    Workers and interrupted searches then draw the same candidates, which Optuna's own random sampler does not promise.
    """
    base = _optuna().samplers.BaseSampler

    class CounterSampler(base):  # type: ignore[misc, valid-type]
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return draw(seed, trial.number, param_name, _range_of(param_distribution))

    return CounterSampler()


def draw(seed: int, number: int, name: str, values: Range) -> Any:
    """Return what random search tries for one setting in one trial."""
    digest = hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(digest, np.uint32))
    kind, *numbers = values
    if kind == "choice":
        return numbers[int(rng.integers(len(numbers)))]
    low, high = numbers
    if kind == "int":
        return int(rng.integers(low, high + 1))
    if kind == "log":
        return float(np.clip(np.exp(rng.uniform(np.log(low), np.log(high))), low, high))
    return float(rng.uniform(low, high))


def _distribution(values: Range) -> Any:
    """Return a range as a distribution of Optuna."""
    kind, *numbers = values
    distributions = _optuna().distributions
    if kind == "choice":
        return distributions.CategoricalDistribution(numbers)
    if kind == "int":
        return distributions.IntDistribution(*numbers)
    return distributions.FloatDistribution(*numbers, log=kind == "log")


def _range_of(distribution: Any) -> Range:
    """Return a distribution of Optuna as a range."""
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        return ("choice", *choices)
    kind = "int" if isinstance(distribution.low, int) else "log" if distribution.log else "uniform"
    return kind, distribution.low, distribution.high


_OPEN: set[str] = set()
"""Searches of this process that have not ended: the trials of one that failed are free."""


class _Trials:
    """The trials of one search in a storage that several workers may use."""

    def __init__(self, storage: Any, name: str, space: Mapping[str, Range], sampler: Any):
        self.space = {setting: _distribution(values) for setting, values in space.items()}
        self.id, self.storage = uuid.uuid4().hex, storage
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.path = Path(storage) if isinstance(storage, str | os.PathLike) and "://" not in str(storage) else None
        _OPEN.add(self.id)
        with self._readable_errors():
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._alone():
                self.study = optuna.create_study(
                    storage=self._open(), study_name=name, sampler=sampler, load_if_exists=True, direction="minimize"
                )

    def _open(self) -> Any:
        """Return the storage of Optuna."""
        storages = _optuna().storages
        if self.path is None:
            return self.storage
        if self.path.suffix == ".log":
            return storages.JournalStorage(storages.journal.JournalFileBackend(str(self.path)))
        return storages.RDBStorage(f"sqlite:///{self.path}", engine_kwargs={"connect_args": {"timeout": 60}})

    def __enter__(self) -> "_Trials":
        return self

    def __exit__(self, *exception: object) -> None:
        _OPEN.discard(self.id)

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Turn whatever fails in the storage, such as a full disk, into one sentence."""
        try:
            yield
        except Exception as error:
            cause = error.__cause__ or error
            message = f"cannot use the storage {self.storage}: {(str(cause) or type(cause).__name__).splitlines()[0]}"
            if type(cause).__name__ == "OperationalError":  # SQLite's name for what is not the fault of the file
                raise WriteError(f"{message}; finished trials are kept") from None
            raise SettingsError(message) from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other workers from making the database, or taking trials, at the same time."""
        if self.path is None:
            yield
            return
        with self.path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def claim(self, wanted: int, most: int, progress: Progress = no_progress) -> dict[int, dict[str, Any]]:
        """Take up to ``most`` trials: those that dead workers left, then new ones until there are ``wanted``."""
        optuna = _optuna()
        claimed: dict[int, dict[str, Any]] = {}
        with self._readable_errors(), self._alone():
            every = self.study.get_trials(deepcopy=False)
            lost = [trial for trial in every if trial.state == optuna.trial.TrialState.RUNNING and _is_lost(trial)]
            count = max(0, min(most - len(lost[:most]), wanted - len(every)))
            for frozen in lost[:most]:
                trial = optuna.trial.Trial(self.study, frozen._trial_id)
                claimed[trial.number] = self._mark(
                    {name: trial._suggest(name, d) for name, d in self.space.items()}, trial
                )
            for done in range(count):
                progress("drawing trials", done, count)
                trial = self.study.ask(self.space)
                claimed[trial.number] = self._mark(dict(trial.params), trial)
        return claimed

    def _mark(self, values: dict[str, Any], trial: Any) -> dict[str, Any]:
        trial.set_user_attr("worker", f"{platform.node()}:{os.getpid()}:{self.id}")
        return {name: values[name] for name in self.space}

    def tell(self, number: int, value: float, diverged: int) -> None:
        """Write the outcome of a trial; one with replications that diverged has failed."""
        failed = bool(diverged) or not np.isfinite(value)
        with self._readable_errors():
            state = _optuna().trial.TrialState.FAIL if failed else None
            self.study.tell(number, None if failed else float(value), state=state, skip_if_finished=True)

    def running_elsewhere(self) -> int:
        """Return how many trials living workers are at."""
        with self._readable_errors():
            running = self.study.get_trials(deepcopy=False, states=(_optuna().trial.TrialState.RUNNING,))
        return sum(not _is_lost(trial) for trial in running)

    def finished(self) -> list[dict[str, Any]]:
        """Return every trial with an outcome as JSON data."""
        states = _optuna().trial.TrialState
        with self._readable_errors():
            trials = self.study.get_trials(deepcopy=False, states=(states.COMPLETE, states.FAIL))
        return [{"number": trial.number, "value": trial.value, "params": trial.params} for trial in trials]

    def importances(self) -> dict[str, float]:
        """Return the share of the variation that each setting explains (PED-ANOVA); nothing for few trials."""
        optuna = _optuna()
        complete = self.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        if len(complete) < MIN_TRIALS_FOR_IMPORTANCE:
            return {}
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return dict(optuna.importance.get_param_importances(self.study, evaluator=evaluator))


def _is_lost(trial: Any) -> bool:
    """Return whether the worker of a running trial is gone."""
    worker = str(trial.user_attrs.get("worker", ""))
    host, process, search = (*worker.split(":"), "", "")[:3]
    if host != platform.node() or not process.isdigit():
        started, limit = trial.datetime_start, LOST_SECONDS if worker else NAMELESS_SECONDS
        return started is None or time.time() - started.timestamp() > limit
    if int(process) == os.getpid():
        return search not in _OPEN
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
