"""Tuning: search for settings of a policy by mean final regret on validation seeds.

Candidates that share their static choices run next to each other in one program. Trials live in a storage of Optuna, so
that a search can be continued and shared by several workers. A publication's package may bring its protocol and search
spaces; otherwise a policy declares a ``search_space``, or is searched around its defaults.
"""

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import json
import math
import os
import time
import typing
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from regretless import files, models, policies
from regretless.errors import SettingsError, WriteError
from regretless.experiments.experiment import Experiment
from regretless.experiments.extension import Progress, TuningProtocol, find_tuning
from regretless.experiments.runner import SCALING, WORLD, resolve, share_progress
from regretless.experiments.store import Claim
from regretless.extras import require
from regretless.policies import Policy, PolicySpec
from regretless.simulation.programs import make_room, no_progress
from regretless.simulation.simulator import Execution, Monitor, simulate
from regretless.spec import Spec, merge_names

if TYPE_CHECKING:
    import optuna

REPORTED_SEEDS = (range(30), range(1000, 1030))
"""Seeds of reported runs, which no candidate is ranked on."""

FIRST_VALIDATION_SEED = 100_000
RANDOM = "random"
MAX_WIDTH = 6
"""Candidates in one program, at most."""

PROGRAMS_TOGETHER = 4
"""Programs per simulation: they compile at the same time."""

RANDOM_BLOCK, ADAPTIVE_BLOCK = 256, 16
"""Trials that a worker takes at once: few if the sampler learns from them."""

SCREEN_SEEDS = 3
PATIENCE_SECONDS = 1.0
"""Seconds between looks at trials of other workers."""

CLAIM = ".worker-"
"""What the name of a claim has between the name of the storage and that of the worker."""

LOST_SECONDS = 3600.0
"""After this time a running trial counts as lost in a storage that has no file of this machine."""

WIDTH = 30.0
"""A number without a declared range is searched up to this factor above and below its default."""

MAX_FRACTION = 0.999
"""The largest share of a bound that is searched, because the bound itself may be excluded."""

Range = tuple[Any, ...]


def validation_experiment(
    benchmark: str,
    policy: str = "dfhpg",
    *,
    feedback: str = "bandit",
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    first_seed: int = FIRST_VALIDATION_SEED,
    horizon: int | None = None,
) -> Experiment:
    """Return the experiment that candidates are ranked in, by the protocol of a publication if one is installed.

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
    experiment = Experiment(benchmark, policy, feedback=feedback, settings=settings or {})
    protocol = find_tuning(benchmark, policy, experiment.model)
    validation = range(first_seed, first_seed + (seeds or protocol.seeds))
    fixed = {**protocol.settings, **experiment.settings}
    return experiment.replace(seeds=validation, horizon=horizon or protocol.horizon, settings=fixed)


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
        """Write the preset as a JSON file.

        Parameters
        ----------
        path : path
            The file, as ``run --preset`` reads it.
        """
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
        How many of the best of three seeds are played on all seeds; 0 for one stage. By default what a publication's
        protocol says (10 for generative models with the DFHPG paper's package), otherwise 0.
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
        finalists = search.protocol.finalists if len(seeds) > SCREEN_SEEDS else 0
    if finalists and len(seeds) <= SCREEN_SEEDS:
        raise SettingsError(f"two stages: expected more than {SCREEN_SEEDS} seeds, got {len(seeds)}")
    began = time.perf_counter()
    screen = search if not finalists else _Search(experiment.replace(seeds=seeds[:SCREEN_SEEDS]), seed)
    chosen_block = block or (RANDOM_BLOCK if sampler == RANDOM else ADAPTIVE_BLOCK)
    with _Trials(storage, screen.name, screen.space, make_sampler(sampler, seed)) as known:
        spent = _evaluate_trials(screen, trials, known, progress, chosen_block)
        finished = known.finished()
    about: dict[str, Any] = dict(spent)
    if finalists:
        about["screen"] = screen.result(finished, about).record
        finished = sorted((trial for trial in finished if trial["value"] is not None), key=_rank)[:finalists]
        for done, trial in enumerate(finished):
            progress("finalists", done, len(finished))
            result = search.evaluate({"finalist": search.build(trial["params"])})["finalist"]
            trial["value"] = None if result.diverged else result.mean()
    return search.result(finished, {**about, "seconds": round(time.perf_counter() - began, 1)})


class _Search:
    """What is searched: an experiment of one arm, the space around it, and how a candidate is built."""

    def __init__(self, experiment: Experiment, seed: int):
        is_experiment = isinstance(experiment, Experiment)
        if not is_experiment or len(experiment.arms) != 1 or not isinstance(experiment.arms[0].policy, str):
            raise SettingsError("tune: expected an experiment with one policy, by name")
        for used in experiment.seed_list:
            if any(used in reported for reported in REPORTED_SEEDS):
                raise SettingsError(f"validation seeds overlap the reported runs, which use seed {used}: choose others")
        self.experiment, self.seed, self.policy = experiment, seed, experiment.arms[0].policy
        (self.run,) = resolve(experiment)
        self.benchmark = self.run.parts[1]
        self.protocol = find_tuning(experiment.benchmark_name, self.policy, experiment.model)
        given = {**experiment.settings, **experiment.arms[0].settings}
        fixed = {name: value for name, value in given.items() if not name.startswith(WORLD) and name != SCALING}
        self.fixed = {**self.protocol.fixed, **fixed}
        self.space = search_space(self.policy, self.protocol, self.fixed)

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
        monitor, execution = Monitor(progress=progress), Execution(chunk=chunk)
        return simulate(candidates, self.benchmark, **self.run.conditions, monitor=monitor, execution=execution)

    def result(self, trials: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> TuningResult:
        """Return the best of finished trials as a preset, with the record of all of them."""
        complete = [trial for trial in trials if trial["value"] is not None]
        if not complete:
            raise SettingsError(f"none of {len(trials)} candidates stayed finite: nothing to choose from")
        best = min(complete, key=_rank)
        spec = self.spec(best["params"])
        idle = {"model", *spec.unused_settings(self.run.parts[0].problem)}
        preset = {name: value for name, value in spec.names().items() if value is not None and name not in idle}
        record = {
            "benchmark": self.experiment.benchmark_name,
            "policy": self.policy,
            "model": self.experiment.model,
            "feedback": self.experiment.feedback,
            "degree": getattr(self.run.benchmark, "degree", None),
            "seeds": len(self.run.seeds),
            "first_seed": self.run.seeds[0],
            "horizon": self.run.horizon,
            "seed": self.seed,
            "settings": dict(self.experiment.settings),
            "best": best,
            "trials": list(trials),
            **about,
        }
        return TuningResult({**preset, SCALING: self.run.scaling}, record)


def _rank(trial: Mapping[str, Any]) -> tuple[float, int]:
    return trial["value"], trial["number"]


def _evaluate_trials(search: _Search, trials: int, known: "_Trials", progress: Progress, block: int) -> dict[str, Any]:
    """Claim and evaluate blocks of trials until all are finished; return where the time went."""
    compiling, programs, structures = 0.0, 0, set[Any]()
    widths: dict[Any, int] = {}
    while True:
        claimed, running = known.claim(trials, block, progress)
        if not claimed and not running:
            break
        if not claimed:
            progress("waiting for other workers", trials - running, trials)
            time.sleep(PATIENCE_SECONDS)
        candidates = {number: search.build(values) for number, values in claimed.items()}
        done = 0
        for batch in make_programs(candidates, widths):
            here = {jax.tree.structure(candidates[program[0]]) for program in batch}
            if not here & structures:  # no program that is in use would be dropped
                make_room()
            structures |= here
            places = {f"{number} at {place}": number for program in batch for place, number in enumerate(program)}
            together = {name: candidates[number] for name, number in places.items()}
            count = len(set(places.values()))
            results = search.evaluate(together, share_progress(progress, done, count, len(candidates)))
            for name, number in places.items():
                known.tell(number, results[name])  # what fills empty places has the same result once more
            compiling += results.seconds["compile"]
            programs += results.programs
            done += count
    return {"combinations": len(structures), "programs": programs, "compile_seconds": round(compiling, 1)}


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


# Search spaces


def search_space(policy: str, protocol: TuningProtocol, fixed: Mapping[str, Any]) -> dict[str, Range]:
    """Return what is searched for a policy: the protocol's ranges, its own, or ranges around its defaults.

    A name such as ``alpha.max+alpha.min`` stands for several settings, whose values are separated by ``/``. Settings
    in ``fixed`` are left out.
    """
    spec = policies.REGISTRY[policy]
    declared = protocol.space if protocol.space is not None else spec.search_space
    space = _space_around(spec()) if declared is None else declared
    free = {name: tuple(values) for name, values in space.items() if not fixed.keys() & set(name.split("+"))}
    if not free:
        raise SettingsError(f"policy {policy!r} has no setting that is not fixed: there is nothing to search")
    return free


def candidate_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a candidate's settings by dotted name.

    >>> candidate_settings({"policy_lr": 0.1, "alpha.max+alpha.min": "0.3/0.02"})
    {'policy_lr': 0.1, 'alpha.max': 0.3, 'alpha.min': 0.02}
    """
    settings: dict[str, Any] = {}
    for name, value in values.items():
        names = name.split("+")
        settings |= {name: value} if len(names) == 1 else dict(zip(names, map(float, value.split("/")), strict=True))
    return settings


def _space_around(spec: Spec, prefix: str = "") -> dict[str, Range]:
    """Return a range around the default of every setting that is a number, and every choice among words."""
    space: dict[str, Range] = {}
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if isinstance(value, Spec):
            space |= {} if value.registry is not None else _space_around(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            space[prefix + name] = ("choice", True, False)
        elif typing.get_origin(field.annotation) is typing.Literal:
            space[prefix + name] = ("choice", *typing.get_args(field.annotation))
        elif isinstance(value, int | float):
            space[prefix + name] = _range_around(value, field)
    return space


def _range_around(value: float, field: Any) -> Range:
    """Return a range around a default within the bounds that its field declares."""
    lows = [getattr(limit, name, None) for limit in field.metadata for name in ("ge", "gt")]
    highs = [getattr(limit, name, None) for limit in field.metadata for name in ("le", "lt")]
    low = max((float(bound) for bound in lows if bound is not None), default=-math.inf)
    high = min((float(bound) for bound in highs if bound is not None), default=math.inf)
    if isinstance(value, int):
        return "int", int(max(1 if value > 0 else value, low)), int(min(max(4 * value, 4), high))
    if value > 0:
        lower = max(value / WIDTH, low) if low > 0 else value / WIDTH
        return "log", lower, min(value * WIDTH, MAX_FRACTION * high)
    return "uniform", max(low, -1.0), min(MAX_FRACTION * high, 1.0)


# Trials


def make_distribution(name: str, values: Any) -> Any:
    """Return a declared range as a distribution of Optuna; refuse what is none."""
    distributions = require("optuna", extra="tune").distributions
    try:
        match tuple(values):
            case ("choice", *choices):
                return distributions.CategoricalDistribution(choices)
            case ("int", low, high):
                return distributions.IntDistribution(low, high)
            case ("log" | "uniform" as scale, low, high):
                return distributions.FloatDistribution(low, high, log=scale == "log")
        raise ValueError("no such range")
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"search_space of {name!r}: expected ('log', low, high), ('uniform', low, high), ('int', low, high) or "
            f"('choice', …), got {values!r} ({error})"
        ) from None


def make_sampler(sampler: Any, seed: int) -> Any:
    """Return a sampler of Optuna by its name; a sampler is returned as it is."""
    samplers = require("optuna", extra="tune").samplers
    if not isinstance(sampler, str):
        return sampler
    random = functools.partial(_counter_sampler, samplers.RandomSampler)
    tpe = functools.partial(samplers.TPESampler, constant_liar=True)
    known = {RANDOM: random, "tpe": tpe, "gp": samplers.GPSampler, "qmc": samplers.QMCSampler}
    if sampler not in known:
        raise SettingsError(f"expected a sampler of Optuna, or one of {', '.join(known)}, got {sampler!r}")
    return known[sampler](seed=seed)


def _counter_sampler(base: Any, seed: int) -> Any:
    """Return a random sampler whose draws depend on the seed, the trial's number and the parameter's name only.

    Workers and interrupted searches then draw the same candidates, which Optuna's own random sampler does not promise.
    """

    class CounterSampler(base):
        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            digest = hashlib.sha256(f"{seed}/{trial.number}/{param_name}".encode()).digest()
            drawing = base(int.from_bytes(digest[:4], "big"))
            return drawing.sample_independent(study, trial, param_name, param_distribution)

    return CounterSampler()


class _Trials(contextlib.AbstractContextManager["_Trials"]):
    """The trials of one search in a storage that several workers may use.

    Next to a storage that is a file of this machine, every worker holds a claim: the operating system releases it when
    the worker ends, and the trials of that worker are free.
    """

    def __init__(self, storage: Any, name: str, space: Mapping[str, Range], sampler: Any):
        self.optuna = require("optuna", extra="tune")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        self.space = {setting: make_distribution(setting, values) for setting, values in space.items()}
        self.worker, self.storage = uuid.uuid4().hex, storage
        self.held: dict[int, Any] = {}
        self.claim_file: Claim | None = None
        self.path = Path(storage) if isinstance(storage, str | os.PathLike) and "://" not in str(storage) else None
        with self._readable_errors():
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                if self.path.exists():
                    files.refuse_device(self.path)
            with self._alone():
                self.study = self.optuna.create_study(
                    storage=self._open(), study_name=name, sampler=sampler, load_if_exists=True, direction="minimize"
                )
                if self.path is not None:
                    self.claim_file = Claim(self.path.with_name(self.path.name + CLAIM + self.worker))
                    self.claim_file.try_acquire()

    def _open(self) -> Any:
        """Return the storage of Optuna."""
        storages = self.optuna.storages
        if self.path is None:
            return self.storage
        if self.path.suffix == ".log":
            return storages.JournalStorage(storages.journal.JournalFileBackend(str(self.path)))
        return storages.RDBStorage(f"sqlite:///{self.path}", engine_kwargs={"connect_args": {"timeout": 60}})

    def __exit__(self, *exception: object) -> None:
        if self.claim_file is not None:
            self.claim_file.release()
            return
        for trial in self.held.values():  # what an error left undone is free
            with contextlib.suppress(Exception):
                trial.set_user_attr("worker", "")

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Turn any failure of the storage, such as a full disk, into one sentence."""
        try:
            yield
        except Exception as error:
            cause = error.__cause__ or error
            reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
            message = f"cannot use the storage {self.storage}: {reason.splitlines()[0]}"
            if type(cause).__name__ == "OperationalError":  # of SQLite, such as a full disk: the file itself is sound
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

    def claim(self, wanted: int, most: int, progress: Progress) -> tuple[dict[int, dict[str, Any]], int]:
        """Take up to ``most`` trials: those that dead workers left, then new ones until there are ``wanted``.

        Return their values by number, and how many trials living workers have.
        """
        with self._readable_errors(), self._alone():
            every = self.study.get_trials(deepcopy=False)
            running = [trial for trial in every if trial.state == self.optuna.trial.TrialState.RUNNING]
            living = self._find_living()
            lost = [trial for trial in running if self._is_lost(trial, living)]
            count = max(0, min(most - len(lost[:most]), wanted - len(every)))
            trials = [self.optuna.trial.Trial(self.study, trial._trial_id) for trial in lost[:most]]
            for done in range(count):
                progress("drawing trials", done, count)
                trials.append(self.study.ask())
            claimed = {}
            for trial in trials:
                trial.set_user_attr("worker", self.worker)
                self.held[trial.number] = trial
                claimed[trial.number] = {name: trial._suggest(name, d) for name, d in self.space.items()}
        return claimed, len(running) - len(lost)

    def _find_living(self) -> set[str]:
        """Return the workers that hold their claim next to a storage of this machine; remove the claims of others."""
        living = set()
        for path in [] if self.path is None else self.path.parent.glob(f"{self.path.name}{CLAIM}*"):
            claim = Claim(path)
            if claim.try_acquire():
                claim.release()
            else:
                living.add(path.name.rpartition(CLAIM)[2])
        return living

    def _is_lost(self, trial: Any, living: set[str]) -> bool:
        """Return whether the worker of a running trial is gone; one without a name ended before it wrote that."""
        worker, started = trial.user_attrs.get("worker", ""), trial.datetime_start
        if self.path is not None:
            return worker not in living
        return not worker or (started is not None and time.time() - started.timestamp() > LOST_SECONDS)

    def tell(self, number: int, result: Any) -> None:
        """Write the outcome of a trial; one with replications that diverged has failed."""
        value = float(result.mean())
        failed = bool(result.diverged) or not np.isfinite(value)
        with self._readable_errors():
            state = self.optuna.trial.TrialState.FAIL if failed else None
            self.study.tell(number, None if failed else value, state=state, skip_if_finished=True)
            self.held.pop(number, None)

    def finished(self) -> list[dict[str, Any]]:
        """Return every trial with an outcome as JSON data."""
        states = self.optuna.trial.TrialState
        with self._readable_errors():
            trials = self.study.get_trials(deepcopy=False, states=(states.COMPLETE, states.FAIL))
        return [{"number": trial.number, "value": trial.value, "params": trial.params} for trial in trials]
