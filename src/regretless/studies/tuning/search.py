"""Tuning: random search on validation seeds; candidates that share their static choices run side by side in one program."""

import functools
import hashlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

from regretless import benchmarks, models, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import SettingsError
from regretless.policies import Policy, Problem
from regretless.registry import require_known
from regretless.settings import Settings
from regretless.simulate.programs import Progress, make_room
from regretless.simulate.simulation import Simulation, simulate_all
from regretless.studies.experiment import Experiment, build_benchmark, settle
from regretless.studies.tuning import spaces
from regretless.studies.tuning.trials import Trials, drawn
from regretless.studies.verdicts import SECOND_RANGE

BLOCK = 256
WIDEST = 6
"""Candidates in one program, at most."""

SIDE_BY_SIDE = 4
"""Programs per call: they compile at the same time."""

REPORTED = (range(30), range(SECOND_RANGE, SECOND_RANGE + 30))


class Task(NamedTuple):
    """What is tuned, and how candidates are ranked."""

    benchmark: str
    model: str = "gaussian_linear"
    feedback: str = "bandit"
    degree: int | None = None
    seeds: int | None = None
    first_seed: int = spaces.FIRST_VALIDATION_SEED
    horizon: int | None = None
    seed: int = 0

    def resolved(self) -> "Task":
        """With the paper's protocol where nothing else is said; refuses seeds of reported runs."""
        require_known("benchmark", self.benchmark, benchmarks.REGISTRY)
        require_known("model", self.model, models.REGISTRY)
        protocol = spaces.protocol(self.benchmark, self.model)
        task = self._replace(seeds=self.seeds or protocol.seeds, horizon=self.horizon or protocol.horizon)
        assert task.seeds is not None
        used = range(task.first_seed, task.first_seed + task.seeds)
        for reported in REPORTED:
            if used.start < reported.stop and reported.start < used.stop:
                raise SettingsError(
                    f"validation seeds {used.start} to {used.stop - 1} overlap the reported runs' {reported.start} to "
                    f"{reported.stop - 1}: choose another --first-seed"
                )
        return task

    @property
    def name(self) -> str:
        """The name under which its trials are in the database."""
        degree = "" if self.degree is None else f" degree {self.degree}"
        return (
            f"{self.benchmark} {self.model} {self.feedback}{degree}: {self.seeds} seeds from {self.first_seed}, "
            f"{self.horizon} rounds, drawn with {self.seed}"
        )


class Tuning(NamedTuple):
    """The outcome: the best settings, every trial, and where the time went."""

    task: Task
    settings: Settings
    record: dict[str, Any]


def tune(
    task: Task, trials: int, database: Path, progress: Progress = lambda what, done, total: None, block: int = BLOCK
) -> Tuning:
    """Evaluates random candidates until there are ``trials`` of them, whoever computed them, and names the best."""
    task = task.resolved()
    assert task.horizon is not None
    began = time.perf_counter()
    bench, problem = problem_of(task)
    known = Trials(database, task.name, spaces.space(task.benchmark, task.model), task.seed)
    sizes = widths(task, trials, block, problem)
    compiling, programs, seen = 0.0, 0, set[Any]()
    while mine := known.claim(trials, block):
        built = {
            number: policies.build("dfhpg", spaces.settings(task.benchmark, task.model, values), problem)
            for number, values in mine.items()
        }
        done = 0
        for batch in batches(built, sizes):
            structures = {jax.tree.structure(built[program[0]]) for program in batch}
            if not structures & seen:  # no program that is in use would be dropped
                make_room()
            seen |= structures
            numbers = sum(map(len, batch))
            told = functools.partial(_tell, progress, done, numbers, len(built))
            simulation = _evaluate(batch, built, sizes, bench, task, known, told)
            compiling += simulation.seconds["compile"]
            programs += simulation.compiled
            done += numbers
    spent = {"seconds": time.perf_counter() - began, "compile_seconds": compiling, "programs": programs}
    return _outcome(task, known, spent)


def _tell(progress: Progress, done: int, size: int, total: int, what: str, part: int, whole: int) -> None:
    """Turns a batch's progress into that of all trials."""
    if what == "running":
        progress("trials", done + size * part // max(whole, 1), total)
    else:
        progress(what, part, whole)


def problem_of(task: Task) -> tuple[Benchmark, Problem]:
    """The benchmark that candidates are ranked on, and the problem that they are built for."""
    options = spaces.protocol(task.benchmark, task.model).options
    experiment = Experiment(
        benchmark=task.benchmark, policies=("dfhpg",), feedback=task.feedback, degree=task.degree, model=task.model,
        overrides=options,
    )  # fmt: skip
    bench, rule = build_benchmark(experiment, settle(experiment).options)
    return bench, Problem(bench.oracle, bench.context_shape, rule, task.model)


Sizes = Mapping[Any, int]
"""How many candidates run in one program, by the policy's structure."""


def widths(task: Task, trials: int, block: int, problem: Problem) -> Sizes:
    """Widths that leave few places of a program empty: for the candidates that a block of trials is expected to have.

    They follow from the draws of all trials, which depend on their numbers alone: an interrupted tuning, or another worker,
    compiles the same programs.
    """
    space = spaces.space(task.benchmark, task.model)
    counts: Counter[Any] = Counter()
    for number in range(trials):
        values = {name: drawn(task.seed, number, name, distribution) for name, distribution in space.items()}
        policy = policies.build("dfhpg", spaces.settings(task.benchmark, task.model, values), problem)
        counts[jax.tree.structure(policy)] += 1
    share = min(1.0, block / trials)
    sizes = {structure: width(math.ceil(share * count)) for structure, count in counts.items()}
    return defaultdict(lambda: 1, sizes)  # one: for a trial beyond these that a dead worker left


def width(count: int) -> int:
    """Places per program for so many candidates: as few programs as ``WIDEST`` allows, as evenly filled as possible.

    >>> [width(count) for count in (1, 3, 6, 7, 13)]
    [1, 3, 6, 4, 5]
    """
    programs = math.ceil(count / WIDEST)
    return math.ceil(count / programs)


def batches(built: Mapping[int, Policy], sizes: Sizes) -> Iterator[list[list[int]]]:
    """Candidates by number, in programs of their structure's width; some programs at a time, no two of one structure."""
    by_structure: dict[Any, list[int]] = {}
    for number, policy in built.items():
        by_structure.setdefault(jax.tree.structure(policy), []).append(number)
    queues = []
    for structure, members in by_structure.items():
        size = sizes[structure]
        queues.append([members[start : start + size] for start in range(0, len(members), size)])
    while queues:
        yield [queue.pop(0) for queue in queues[:SIDE_BY_SIDE]]
        queues = [queue for queue in queues if queue]


def _evaluate(
    programs: list[list[int]],
    built: Mapping[int, Policy],
    sizes: Sizes,
    bench: Benchmark,
    task: Task,
    known: Trials,
    progress: Progress,
) -> Simulation:
    """Plays some candidates and writes their outcomes down."""
    assert task.seeds is not None
    named: dict[str, Policy] = {}
    names: dict[int, str] = {}
    for numbers in programs:
        for slot, (name, number) in enumerate(filled(numbers, built, sizes)):
            named[name] = built[number]
            if slot < len(numbers):
                names[number] = name
    together = (
        task.seeds if task.model in models.POINT else None
    )  # fixed: shapes must not depend on the programs beside
    simulation = simulate_all(
        named,
        bench,
        feedback=task.feedback,
        seeds=range(task.first_seed, task.first_seed + task.seeds),
        horizon=task.horizon,
        hasty=True,
        chunk=together,
        progress=progress,
    )
    for number, name in names.items():
        trace = simulation.traces[name]
        known.tell(number, trace.mean(), trace.diverged)
    return simulation


def filled(numbers: list[int], built: Mapping[int, Policy], sizes: Sizes) -> list[tuple[str, int]]:
    """A program's candidates, the first repeated up to the full width, under names that its structure always has.

    Shapes and names are then the same for all candidates of one combination of static choices: it is compiled once.
    """
    structure = jax.tree.structure(built[numbers[0]])
    name = hashlib.sha256(str(structure).encode()).hexdigest()[:16]
    padded = numbers + [numbers[0]] * (sizes[structure] - len(numbers))
    return [(f"{name}.{slot}", number) for slot, number in enumerate(padded)]


def _outcome(task: Task, known: Trials, spent: dict[str, float]) -> Tuning:
    finished = known.finished()
    complete = [trial for trial in finished if trial.value is not None]
    if not complete:
        raise SettingsError(f"none of {len(finished)} candidates stayed finite: nothing to choose from")
    best = min(complete, key=lambda trial: (trial.value or 0.0, trial.number))
    settings = spaces.settings(task.benchmark, task.model, best.params)
    combinations = {tuple(trial.params.get(name) for name in spaces.STATIC) for trial in finished}
    record = {
        **task._asdict(),
        "best": {"number": best.number, "value": best.value, "params": best.params},
        "trials": [{"number": t.number, "value": t.value, "params": t.params} for t in finished],
        "combinations": len(combinations),
        "importances": known.importances(),
        **{key: round(value, 1) for key, value in spent.items()},
    }
    return Tuning(task, settings, record)
