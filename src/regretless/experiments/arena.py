"""The arena: policies without tuning on many worlds, each timed alone, and their score over all of them.

The worlds are data in ``arena_worlds.toml``; no choice is made by those that are held out.
"""

import dataclasses
import itertools
import math
import tomllib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from regretless import benchmarks, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import DamagedError, SettingsError
from regretless.experiments.campaign import Plan
from regretless.experiments.experiment import Arm, Experiment
from regretless.experiments.runner import code_version, resolve
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Cell, Panel, Scale, Study
from regretless.formatting import count_text, format_number
from regretless.registry import Registry, require_known
from regretless.results import Result, without_nan

NAME = "arena"
REPLICATIONS = 16
QUICK_ARENA = Scale(4, 0, 300)
ABOUT = (
    "Every policy with its default settings, on the same worlds and seeds. Relative regret is final regret over that "
    "of random decisions. The geometric mean over worlds has a 95 % interval from resampled replications: it describes "
    "what other seeds would give, not other worlds."
)

REFERENCE = "eb_thompson"
"""The policy that ratios are taken to, where it was played."""

CONTENDERS = ("adaptive", "linear_thompson", REFERENCE, "linucb")
"""What is played if no policy is named: the default policy and what is often used instead."""

RESAMPLES = 1000
MIN_RELATIVE_REGRET = 1e-3
"""A smaller share of random's regret counts as this share: no world decides a geometric mean alone."""

MIN_FIXED_REGRET = 0.1
"""A best fixed decision with more than this share of random's regret is worth beating."""

MAX_OVER_BEST_PEER = 1.15
"""A regret above this many times that of the best other policy is named as a loss."""

MEDIAN_SUFFIX = " (median)"
"""Ends the label of a world that is judged by the median."""

PARTS = {"development": "Development worlds", "held_out": "Held-out worlds"}
"""Parts of the arena with their titles."""

SIZED = "world_"
"""Benchmarks whose name begins like this take the number of rounds: a drift must know when half of them are over."""


class ArenaWorld(NamedTuple):
    """One problem that policies are played on.

    Parameters
    ----------
    name, group, about : str
        What it is called, what kind of world it is, and one line about it.
    benchmark : str
        The name of the benchmark.
    settings : mapping
        The benchmark's settings.
    feedback : str
        What a decision reveals.
    delay, missing : int, float
        How feedback arrives.
    horizon : int, optional
        The number of rounds; by default the benchmark's own.
    judge : {"mean", "median"}
        How replications are summed up: by the median where few of them decide the mean.
    held_out : bool
        Whether no setting, default or algorithm may be selected with it.
    """

    name: str
    group: str
    benchmark: str
    settings: Mapping[str, Any] = {}
    about: str = ""
    feedback: str = "bandit"
    delay: int = 0
    missing: float = 0.0
    horizon: int | None = None
    judge: Literal["mean", "median"] = "mean"
    held_out: bool = False

    @property
    def part(self) -> str:
        """The part of the arena that it belongs to."""
        return "held_out" if self.held_out else "development"

    def benchmark_settings(self, horizon: int | None = None) -> dict[str, Any]:
        """Return the benchmark's settings for a run of ``horizon`` rounds instead of the world's own."""
        rounds = horizon or self.horizon
        return {**self.settings, **({"rounds": rounds} if self.benchmark.startswith(SIZED) and rounds else {})}

    def make(self) -> Benchmark:
        """Return the benchmark."""
        return benchmarks.parse(self.benchmark, self.benchmark_settings()).build()


def _read_worlds() -> dict[str, ArenaWorld]:
    tables = tomllib.loads(Path(__file__).with_name("arena_worlds.toml").read_text(encoding="utf-8"))["worlds"]
    return {table["name"]: ArenaWorld(**table) for table in tables}


WORLDS: Registry[ArenaWorld] = Registry("world", "worlds", _read_worlds(), ("judge",), "an ArenaWorld")
"""Every world by name."""

QUICK_WORLDS = ("topk", "relu30out", "lin30drift", "rows_lin", "assignment8")
"""Five worlds that stand for the others in a quick run."""


class Score(NamedTuple):
    """One policy on one world."""

    world: str  # its label
    policy: str
    finals: np.ndarray  # final regret of each replication; one that diverged counts as random's
    random: float
    fixed: float | None  # regret of the best fixed decision; None where the feasible set changes
    microseconds: float  # per replication and round, without compiling
    diverged: int

    @property
    def regret(self) -> float:
        """The mean final regret, or the median where the world is judged by it."""
        return float(self.summarise(self.finals))

    @property
    def standard_error(self) -> float:
        """Standard error of the regret: of the mean, or for a median from resampled replications."""
        n = len(self.finals)
        if n < 2:
            return math.nan
        if self.world.endswith(MEDIAN_SUFFIX):
            return float(np.std(self.resample(), ddof=1))
        return float(np.std(self.finals, ddof=1) / n**0.5)

    @property
    def relative(self) -> float:
        """Regret over that of random decisions."""
        return self.regret / self.random

    @property
    def below_best_fixed(self) -> bool | None:
        """Whether the regret is below that of the best fixed decision; None where there is none."""
        return None if self.fixed is None else self.regret < self.fixed

    @property
    def fixed_matters(self) -> bool:
        """Whether the best fixed decision is bad enough to be worth beating."""
        return self.fixed is not None and self.fixed > MIN_FIXED_REGRET * self.random

    def summarise(self, finals: np.ndarray) -> np.ndarray:
        """Return the mean or median over the last axis."""
        return np.asarray((np.median if self.world.endswith(MEDIAN_SUFFIX) else np.mean)(finals, axis=-1))

    def resample(self) -> np.ndarray:
        """Return the regret of resampled replications, the same ones for every policy on this world."""
        n = len(self.finals)
        rows = np.random.default_rng(zlib.crc32(self.world.encode())).integers(0, n, (RESAMPLES, n))
        return self.summarise(self.finals[rows])

    def logs(self, regret: Any) -> np.ndarray:
        """Return logarithms of regrets over random's."""
        return np.log(np.maximum(np.asarray(regret) / self.random, MIN_RELATIVE_REGRET))


SCORE_FIELDS = ("policy", "regret", "standard_error", "relative", "below_best_fixed", "microseconds", "diverged")
"""What the summary of a world says of every policy."""


class OverallScore(NamedTuple):
    """One policy on all worlds that it was played on; intervals are from resampled replications, 95 %."""

    policy: str
    worlds: int
    relative: float  # geometric mean of regret over random's
    interval: tuple[float, float]
    worst_world: str  # with the highest relative regret
    worst_relative: float
    below_best_fixed: int
    of_worlds_where_it_matters: int
    microseconds: float  # median over the worlds
    ratio_to_reference: float | None  # geometric mean of regret over that of ``REFERENCE``, on the worlds of both
    ratio_interval: tuple[float, float] | None
    best_on: int  # worlds on which no other policy has a lower regret


def score(world: str, policy: str, result: Result) -> Score | None:
    """Return the score of a stored result; None without the reference line of random decisions."""
    lines = {line.name: line.mean for line in result.references}
    random, fixed = lines.get("random", math.nan), lines.get("best_fixed", math.nan)
    if not random > 0:
        return None
    finals = np.concatenate([result.final(), np.full(result.diverged, float(random))])
    rounds = len(finals) * result.regret.shape[1]
    microseconds = 1e6 * result.seconds.get("run", math.nan) / rounds
    return Score(world, policy, finals, random, None if math.isnan(fixed) else fixed, microseconds, result.diverged)


class ScoreRatio(NamedTuple):
    """Geometric mean of one policy's regret over another's, on the worlds of both, with its 95 % interval."""

    value: float
    interval: tuple[float, float]


def score_ratio(scores: Iterable[Score], others: Iterable[Score]) -> ScoreRatio | None:
    """Return the ratio of two policies' regrets; None if no world was played by both."""
    by_world = {entry.world: entry for entry in others}
    pairs = [(entry, by_world[entry.world]) for entry in scores if entry.world in by_world]
    if not pairs:
        return None
    ratio = _geometric_mean([a.logs(a.regret) - b.logs(b.regret) for a, b in pairs])
    return ScoreRatio(float(ratio), _interval([a.logs(a.resample()) - b.logs(b.resample()) for a, b in pairs]))


def _group_by_policy(scores: Iterable[Score]) -> dict[str, list[Score]]:
    by_policy: dict[str, list[Score]] = {}
    for entry in scores:
        by_policy.setdefault(entry.policy, []).append(entry)
    return by_policy


def overall_scores(scores: Iterable[Score]) -> list[OverallScore]:
    """Return every policy over its worlds, the lowest geometric mean first.

    Policies that were played on fewer worlds than others come last: their means are of other worlds.
    """
    by_policy = _group_by_policy(scores)
    lowest: dict[str, float] = {}
    for entry in itertools.chain(*by_policy.values()):
        lowest[entry.world] = min(lowest.get(entry.world, math.inf), entry.regret)
    reference = by_policy.get(REFERENCE, [])
    totals = [_overall_score(policy, members, reference, lowest) for policy, members in by_policy.items()]
    most = max((total.worlds for total in totals), default=0)
    return sorted(totals, key=lambda total: (total.worlds < most, total.relative))


def conclude(scores: Iterable[Score]) -> str:
    """Return one sentence about the policy with the lowest geometric mean and the next one; empty without scores."""
    by_policy = _group_by_policy(scores)
    totals = overall_scores(itertools.chain(*by_policy.values()))
    if not totals:
        return ""
    best = totals[0]
    regret = "the lowest regret" if len(totals) > 1 else "a regret"
    share = f"{format_number(best.relative)} of random's (geometric mean)"
    sentence = f"{best.policy} has {regret} over {count_text(best.worlds, 'world')}: {share}"
    if len(totals) > 1:
        ratio = score_ratio(by_policy[best.policy], by_policy[totals[1].policy])
        if ratio is not None:
            low, high = ratio.interval
            doubt = ", which is inconclusive" if low <= 1.0 <= high else ""
            interval = f"95 % interval {format_number(low)} to {format_number(high)}"
            sentence += f", {format_number(ratio.value)} times that of {totals[1].policy} ({interval}){doubt}"
        sentence += f"; it is the best on {best.best_on} of them"
    return f"{sentence}. Its worst world is {best.worst_world}, with {format_number(best.worst_relative)}."


def _overall_score(
    policy: str, scores: Sequence[Score], reference: Sequence[Score], lowest: Mapping[str, float]
) -> OverallScore:
    worst = max(scores, key=lambda entry: entry.relative)
    matters = [entry for entry in scores if entry.fixed_matters]
    ratio = score_ratio(scores, reference)
    return OverallScore(
        policy=policy,
        worlds=len(scores),
        relative=float(_geometric_mean([entry.logs(entry.regret) for entry in scores])),
        interval=_interval([entry.logs(entry.resample()) for entry in scores]),
        worst_world=worst.world,
        worst_relative=worst.relative,
        below_best_fixed=sum(bool(entry.below_best_fixed) for entry in matters),
        of_worlds_where_it_matters=len(matters),
        microseconds=float(np.median([entry.microseconds for entry in scores])),
        ratio_to_reference=None if ratio is None else ratio.value,
        ratio_interval=None if ratio is None else ratio.interval,
        best_on=sum(entry.regret <= lowest[entry.world] for entry in scores),
    )


def _geometric_mean(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.exp(np.mean(logs, axis=0))) if logs else np.asarray(math.nan)


def _interval(logs: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = np.quantile(_geometric_mean(logs), [0.025, 0.975])
    return float(low), float(high)


def contender(label: str) -> Arm:
    """Return the arm that plays a policy with its defaults."""
    require_known("policy", label, policies.REGISTRY)
    return Arm(label, label, preset={})


def choose_worlds(names: Iterable[str] = (), quick: bool = False) -> list[ArenaWorld]:
    """Return the worlds with these names, each once; without names all of them, or those of a quick run.

    The name of a part or a group stands for all of its worlds.
    """
    asked = list(names) or (QUICK_WORLDS if quick else list(WORLDS))
    chosen: dict[str, ArenaWorld] = {}
    for name in asked:
        members = [world for world in WORLDS.usable().values() if name in (world.part, world.group)]
        chosen |= {world.name: world for world in members or [WORLDS[name]]}
    return list(chosen.values())


def world_label(world: ArenaWorld) -> str:
    """Return a world's name, with how it is judged where that is not by the mean."""
    return world.name if world.judge == "mean" else world.name + MEDIAN_SUFFIX


def arena_experiment(world: ArenaWorld, arm: Arm, scale: Scale) -> Experiment:
    """Return one policy on one world; a shorter run is shorter for the world too, so that its drift ends in it."""
    horizon = world.horizon if scale.horizon is None else min(scale.horizon, world.horizon or scale.horizon)
    return Experiment(
        world.benchmark,
        arm,
        feedback=world.feedback,
        seeds=scale.seeds_or(REPLICATIONS),
        horizon=horizon,
        settings={f"benchmark.{name}": value for name, value in world.benchmark_settings(horizon).items()},
        delay=world.delay,
        missing=world.missing,
        title=world_label(world),
    )


def arena_study(worlds: Sequence[ArenaWorld], labels: Sequence[str], scale: Scale) -> Study:
    """Return these policies on these worlds as a study, with a cell for each pair."""
    arms = [contender(label) for label in dict.fromkeys(labels)]
    parts: dict[str, list[Cell]] = {}
    for world in worlds:
        cells = parts.setdefault(PARTS[world.part], [])
        cells += [Cell(world_label(world), arena_experiment(world, arm, scale)) for arm in arms]
    panels = tuple(Panel(title, tuple(cells)) for title, cells in parts.items())
    return Study(NAME, panels, "The arena: untuned policies on many worlds", ABOUT, "arena", axis="world")


def drop_unsupported(study: Study) -> tuple[Study, dict[str, str]]:
    """Return a study without the cells whose policy refuses its world, and the reason of each by its name."""
    skipped: dict[str, str] = {}

    def is_supported(cell: Cell) -> bool:
        experiment: Any = cell.work
        try:
            resolve(experiment)
        except Exception as error:  # a policy of the user's own may fail in any way
            skipped[f"{cell.label}, {experiment.arms[0].label}"] = str(error) or type(error).__name__
            return False
        return True

    panels = [dataclasses.replace(panel, cells=tuple(filter(is_supported, panel.cells))) for panel in study.panels]
    if skipped and not any(panel.cells for panel in panels):
        raise SettingsError(f"no policy can be played on any of these worlds; {next(iter(skipped.values()))}")
    return dataclasses.replace(study, panels=tuple(panel for panel in panels if panel.cells)), skipped


def arena_plan(
    worlds: Sequence[ArenaWorld], labels: Sequence[str], scale: Scale, store: ResultStore, *more: Any
) -> Plan:
    """Return a plan that keeps what an arena of the same seeds and rounds left in a store, and does not ask for now.

    Worlds that a policy refuses are left out; ``plan.skipped`` has the reasons.
    """
    study, skipped = drop_unsupported(arena_study(worlds, labels, scale))
    plan = Plan([study], scale, *more)
    plan.skipped = skipped
    earlier = store.read_campaign(plan.id)
    if earlier is None or earlier.code != code_version() or not earlier.studies:
        return plan
    (study,) = plan.studies
    panels = {panel.title: panel for panel in study.panels}
    for panel in earlier.studies[0].panels:
        known = panels.get(panel.title, Panel(panel.title, ()))
        kept = [cell for cell in panel.cells if all(a not in plan.tasks and store.has(a) for _, a in cell.arms)]
        panels[panel.title] = dataclasses.replace(known, cells=(*known.cells, *kept))
    plan.studies = (dataclasses.replace(study, panels=tuple(filter(lambda p: p.cells, panels.values()))),)
    return plan


def summarise_arena(worlds: Sequence[ArenaWorld], plan: Plan, store: ResultStore) -> dict[str, Any]:
    """Return what a store knows about the worlds and policies of a plan, as JSON data."""
    asked = [cell for cell in plan.studies[0].cells() if cell.work is not None]
    scores: dict[str, list[Score]] = {world_label(world): [] for world in worlds}
    failed: dict[str, str] = {}
    for cell in asked:
        ((policy, address),) = cell.arms
        try:
            entry = score(cell.label, policy, store.load(address))
        except (FileNotFoundError, DamagedError):
            failure = store.failure(address)
            failed[f"{cell.label}, {policy}"] = "not computed" if failure is None else failure.last_line
            continue
        scores[cell.label] += [] if entry is None else [entry]
    parts = {
        "all": worlds,
        **{part: [world for world in worlds if world.part == part] for part in PARTS},
    }
    summary = {
        "worlds": [_summarise_world(world, scores[world_label(world)]) for world in worlds],
        "overall": {
            part: [total._asdict() for total in overall_scores(s for world in of for s in scores[world_label(world)])]
            for part, of in parts.items()
        },
        "seeds": len(plan.scale.seeds_or(REPLICATIONS)),
        "first_seed": plan.scale.first_seed,
        "conclusion": conclude(entry for entries in scores.values() for entry in entries),
        "failed": failed,
        "skipped": plan.skipped,
    }
    return dict(without_nan(summary))


def _summarise_world(world: ArenaWorld, scores: Sequence[Score]) -> dict[str, Any]:
    """Return a world with the score of every policy."""
    return {
        "world": world.name,
        "group": world.group,
        "held_out": world.held_out,
        "about": world.about,
        "judge": world.judge,
        "random": scores[0].random if scores else None,
        "best_fixed": scores[0].fixed if scores else None,
        "results": [{name: getattr(entry, name) for name in SCORE_FIELDS} for entry in scores],
    }
