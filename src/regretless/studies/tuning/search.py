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

from regretless import models, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import SettingsError
from regretless.policies import Policy, PolicySpec, Scaled
from regretless.problem import Problem
from regretless.results import Results
from regretless.simulation.programs import Progress, make_room
from regretless.simulation.simulator import Execution, Monitor, no_progress, simulate
from regretless.spec import merge_names
from regretless.studies.experiment import Experiment
from regretless.studies.preparing import build_world
from regretless.studies.settling import SCALING, require_effect, settle
from regretless.studies.tuning import spaces
from regretless.studies.tuning.trials import Trials, drawn
from regretless.studies.verdicts import SECOND_RANGE

BLOCK = 256
WIDEST = 6
"""Candidates in one program, at most."""

SIDE_BY_SIDE = 4
"""Programs per call: they compile at the same time."""

REPORTED = (range(30), range(SECOND_RANGE, SECOND_RANGE + 30))
PATIENCE = 1.0
"""Seconds between looks at trials that other workers are at."""


class Search(NamedTuple):
    """What is tuned: an experiment of one arm, whose settings are fixed, on seeds that no reported run uses."""

    experiment: Experiment
    seed: int = 0

    @property
    def policy(self) -> str:
        """The policy whose settings are searched."""
        return str(self.experiment.arms[0].policy)

    @property
    def name(self) -> str:
        """The name under which its trials are in the database."""
        own, seeds = self.experiment, self.experiment.seeds
        degree = "" if own.degree is None else f" degree {own.degree}"
        fixed = "".join(f" {name}={value}" for name, value in sorted(own.settings.items()))
        return (
            f"{own.benchmark_name} {self.policy} {own.model} {own.feedback}{degree}{fixed}: {len(seeds)} seeds from "
            f"{seeds[0]}, {own.horizon} rounds, drawn with {self.seed}"
        )

    @property
    def fixed(self) -> dict[str, Any]:
        """Settings of the policy that are not searched."""
        constants = spaces.constants(self.policy, self.experiment.benchmark_name, self.experiment.model)
        own = {name: each for name, each in self.experiment.settings.items() if not name.startswith("benchmark.")}
        return {**constants, **{name: each for name, each in own.items() if name != SCALING}}

    def space(self) -> dict[str, Any]:
        """What is searched."""
        own = self.experiment
        return spaces.space(self.policy, own.benchmark_name, own.model, self.fixed)


def task(
    benchmark: str,
    policy: str = "dfhpg",
    *,
    model: str = "gaussian_linear",
    feedback: str = "bandit",
    degree: int | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    first_seed: int = spaces.FIRST_VALIDATION_SEED,
    horizon: int | None = None,
    data_dir: str | None = None,
    seed: int = 0,
) -> Search:
    """A tuning by the paper's protocol where nothing else is said; refuses seeds of reported runs."""
    usual = spaces.protocol(benchmark, model)
    used = range(first_seed, first_seed + (seeds or usual.seeds))
    for reported in REPORTED:
        if used.start < reported.stop and reported.start < used.stop:
            raise SettingsError(
                f"validation seeds {used.start} to {used.stop - 1} overlap the reported runs' {reported.start} to "
                f"{reported.stop - 1}: choose another --first-seed"
            )
    experiment = Experiment(
        benchmark=benchmark, policies=(policy,), feedback=feedback, degree=degree, model=model, seeds=used,
        horizon=horizon or usual.horizon, settings={**usual.settings, **(settings or {})}, data_dir=data_dir,
    )  # fmt: skip
    return Search(experiment, seed)


class Setup(NamedTuple):
    """The world that candidates are ranked in, the problem that they are built for, and whether they are scaled."""

    benchmark: Benchmark
    problem: Problem
    scaling: bool


def setup(task: Search) -> Setup:
    """Builds the world of a tuning; refuses a fixed setting without effect."""
    (settled,) = settle(task.experiment)
    benchmark = build_world(settled.world)
    problem = benchmark.problem(task.experiment.feedback)
    require_effect([settled], {settled.arm.label: problem}, task.experiment)
    return Setup(benchmark, problem, settled.scaling)


def chosen(task: Search, values: Mapping[str, Any]) -> PolicySpec:
    """The settings of a candidate."""
    model = {"model": task.experiment.model} if "model" in policies.REGISTRY[task.policy].model_fields else {}
    return policies.parse(task.policy, merge_names({**model, **task.fixed}, spaces.candidate(values)))


def built(task: Search, values: Mapping[str, Any], place: Setup) -> Policy:
    """A candidate."""
    policy = chosen(task, values).build(place.problem)
    return Scaled(place.problem, policy) if place.scaling else policy


class Tuning(NamedTuple):
    """The outcome: the best settings as a preset, every trial, and where the time went."""

    task: Search
    preset: dict[str, Any]
    record: dict[str, Any]


def tune(task: Search, trials: int, database: Path, progress: Progress = no_progress, block: int = BLOCK) -> Tuning:
    """Evaluates random candidates until there are ``trials`` of them, whoever computed them, and names the best."""
    began = time.perf_counter()
    place = setup(task)
    sizes = widths(task, trials, block, place)
    known = Trials(database, task.name, task.space(), task.seed)
    try:
        return _search(task, trials, known, place, sizes, progress, block, began)
    finally:
        known.leave()


def _search(
    task: Search, trials: int, known: Trials, place: Setup, sizes: "Sizes", progress: Progress, block: int, began: float
) -> Tuning:
    """Claims and evaluates blocks of trials until nobody has one left."""
    compiling, programs, seen = 0.0, 0, set[Any]()
    while True:
        mine = known.claim(trials, block)
        if not mine:
            left = known.others()
            if not left:
                break
            progress("waiting for other workers", trials - left, trials)
            time.sleep(PATIENCE)
            continue
        candidates = {number: built(task, values, place) for number, values in mine.items()}
        done = 0
        for batch in batches(candidates, sizes):
            structures = {jax.tree.structure(candidates[program[0]]) for program in batch}
            if not structures & seen:  # no program that is in use would be dropped
                make_room()
            seen |= structures
            numbers = sum(map(len, batch))
            told = functools.partial(_tell, progress, done, numbers, len(candidates))
            simulation = _evaluate(batch, candidates, sizes, place.benchmark, task, known, told)
            compiling += simulation.seconds["compile"]
            programs += simulation.programs
            done += numbers
    more = {"combinations": len(sizes), "importances": known.importances(), "programs": programs}
    spent = {"seconds": time.perf_counter() - began, "compile_seconds": compiling}
    return outcome(task, known.finished(), place, {**more, **spent})


def _tell(progress: Progress, done: int, size: int, total: int, what: str, part: int, whole: int) -> None:
    """Turns a batch's progress into that of all trials."""
    if what == "running":
        progress("trials", done + size * part // max(whole, 1), total)
    else:
        progress(what, part, whole)


Sizes = Mapping[Any, int]
"""How many candidates run in one program, by the policy's structure."""


def widths(task: Search, trials: int, block: int, place: Setup) -> Sizes:
    """Widths that leave few places of a program empty: for the candidates that a block of trials is expected to have.

    They follow from the draws of all trials, which depend on their numbers alone: an interrupted tuning, or another worker,
    compiles the same programs.
    """
    space = task.space()
    counts: Counter[Any] = Counter()
    for number in range(trials):
        values = {name: drawn(task.seed, number, name, distribution) for name, distribution in space.items()}
        counts[jax.tree.structure(built(task, values, place))] += 1
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


def batches(candidates: Mapping[int, Policy], sizes: Sizes) -> Iterator[list[list[int]]]:
    """Candidates by number, in programs of their structure's width; some programs at a time, no two of one structure."""
    by_structure: dict[Any, list[int]] = {}
    for number, policy in candidates.items():
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
    candidates: Mapping[int, Policy],
    sizes: Sizes,
    bench: Benchmark,
    task: Search,
    known: Trials,
    progress: Progress,
) -> Results:
    """Plays some candidates and writes their outcomes down."""
    own = task.experiment
    named: dict[str, Policy] = {}
    names: dict[int, str] = {}
    for numbers in programs:
        for slot, (name, number) in enumerate(filled(numbers, candidates, sizes)):
            named[name] = candidates[number]
            if slot < len(numbers):
                names[number] = name
    # Fixed for point models: shapes must not depend on the programs beside.
    together = None if models.is_generative(own.model) else len(own.seeds)
    simulation = simulate(
        named,
        bench,
        seeds=own.seeds,
        horizon=own.horizon,
        monitor=Monitor(progress=progress),
        execution=Execution(chunk=together),
    )
    for number, name in names.items():
        trace = simulation[name]
        known.tell(number, trace.mean(), trace.diverged)
    return simulation


def filled(numbers: list[int], candidates: Mapping[int, Policy], sizes: Sizes) -> list[tuple[str, int]]:
    """A program's candidates, the first repeated up to the full width, under names that its structure always has.

    Shapes and names are then the same for all candidates of one combination of static choices: it is compiled once.
    """
    structure = jax.tree.structure(candidates[numbers[0]])
    name = hashlib.sha256(str(structure).encode()).hexdigest()[:16]
    padded = numbers + [numbers[0]] * (sizes[structure] - len(numbers))
    return [(f"{name}.{slot}", number) for slot, number in enumerate(padded)]


def outcome(task: Search, finished: list[Any], place: Setup, more: dict[str, Any]) -> Tuning:
    """The best of the finished trials as a preset, and the record of all of them."""
    complete = [trial for trial in finished if trial.value is not None]
    if not complete:
        raise SettingsError(f"none of {len(finished)} candidates stayed finite: nothing to choose from")
    best = min(complete, key=lambda trial: (trial.value or 0.0, trial.number))
    names = {name: each for name, each in chosen(task, best.params).names().items() if name != "model"}
    idle = tuple(chosen(task, best.params).unused(place.problem))
    preset = {
        name: each for name, each in names.items()
        if each is not None and name not in idle and not name.startswith(tuple(key for key in idle if key[-1] == "."))
    }  # fmt: skip
    own = task.experiment
    record = {
        "benchmark": own.benchmark_name, "policy": task.policy, "model": own.model, "feedback": own.feedback,
        "degree": own.degree, "seeds": len(own.seeds), "first_seed": own.seeds[0], "horizon": own.horizon, "seed": task.seed,
        "settings": own.settings,
        "best": {"number": best.number, "value": best.value, "params": best.params},
        "trials": [{"number": t.number, "value": t.value, "params": t.params} for t in finished],
        **{key: round(value, 1) if isinstance(value, float) else value for key, value in more.items()},
    }  # fmt: skip
    return Tuning(task, {**preset, SCALING: place.scaling}, record)
