"""How good policies are: regret beside that of random and of the best fixed decision, on each world and over all of them."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.studies.arena.world import World

REFERENCE = "linear_old"
"""The policy that ratios are taken to, where it was played."""

RESAMPLED = 1000
FLOOR = 1e-3
"""A regret below this share of random's counts as this share: no world decides a geometric mean alone."""

FIXED_MATTERS = 0.1
"""Best fixed decisions with more than this share of random's regret are worth being beaten."""

BY_MEDIAN = " (median)"


def label(world: World) -> str:
    """A world's name, with how it is judged where that is not by the mean."""
    return world.name if world.judge == "mean" else world.name + BY_MEDIAN


class Score(NamedTuple):
    """One policy on one world."""

    world: str  # as ``label`` tells it
    policy: str
    finals: np.ndarray  # final regret of each replication; one that diverged counts as random's
    random: float
    fixed: float | None  # regret of the best fixed decision; None where the feasible set changes
    microseconds: float  # per replication and round, without compiling
    diverged: int

    @property
    def regret(self) -> float:
        """The mean final regret, or the median where the world is judged by it."""
        return float(self.judged(self.finals))

    @property
    def error(self) -> float:
        """Standard error of the regret: of the mean, or for a median from resampled replications."""
        n = len(self.finals)
        if n < 2:
            return math.nan
        if self.world.endswith(BY_MEDIAN):
            return float(np.std(self.resampled(), ddof=1))
        return float(np.std(self.finals, ddof=1) / n**0.5)

    @property
    def relative(self) -> float:
        """Regret over that of random decisions."""
        return self.regret / self.random

    @property
    def below_fixed(self) -> bool | None:
        """Whether the regret is below that of the best fixed decision; None where there is none."""
        return None if self.fixed is None else self.regret < self.fixed

    @property
    def fixed_matters(self) -> bool:
        """Whether the best fixed decision is bad enough to be worth beating."""
        return self.fixed is not None and self.fixed > FIXED_MATTERS * self.random

    def judged(self, finals: np.ndarray) -> np.ndarray:
        """Mean or median over the last axis."""
        return np.asarray((np.median if self.world.endswith(BY_MEDIAN) else np.mean)(finals, axis=-1))

    def resampled(self) -> np.ndarray:
        """The regret of resampled replications, the same ones for every policy on this world."""
        n = len(self.finals)
        places = np.random.default_rng(zlib.crc32(self.world.encode())).integers(0, n, (RESAMPLED, n))
        return self.judged(self.finals[places])

    def logs(self, regret: Any) -> np.ndarray:
        """Logarithm of regrets over random's, kept above the floor."""
        return np.log(np.maximum(np.asarray(regret) / self.random, FLOOR))


class Overall(NamedTuple):
    """One policy on all worlds that it was played on; intervals are from resampled replications, 95 %."""

    policy: str
    worlds: int
    relative: float  # geometric mean of regret over random's
    interval: tuple[float, float]
    worst: str  # the world with the highest relative regret
    worst_relative: float
    below_fixed: int
    fixed_matters: int  # of how many worlds
    microseconds: float  # median over the worlds
    ratio: float | None  # geometric mean of regret over the reference's, on the worlds that both were played on
    ratio_interval: tuple[float, float] | None


def score(world: str, policy: str, finals: np.ndarray, diverged: int, record: Mapping[str, Any]) -> Score | None:
    """The score of a stored result; ``finals`` are those of replications that stayed finite. None without a random line."""
    lines = {line["name"]: line["mean"] for line in record.get("references", [])}
    random = lines.get("random")
    if random is None or not random > 0 or not len(finals) + diverged:
        return None
    every = np.concatenate([finals, np.full(diverged, float(random))])
    spent = (record.get("seconds") or {}).get("run", math.nan)
    microseconds = 1e6 * spent / (len(every) * record["horizon"])
    return Score(world, policy, every, random, lines.get("best_fixed"), microseconds, diverged)


def overall(scores: Iterable[Score]) -> list[Overall]:
    """Every policy over its worlds, in the order in which they come."""
    by_policy: dict[str, list[Score]] = {}
    for each in scores:
        by_policy.setdefault(each.policy, []).append(each)
    reference = {each.world: each for each in by_policy.get(REFERENCE, [])}
    return [_overall(policy, mine, reference) for policy, mine in by_policy.items()]


def _overall(policy: str, mine: Sequence[Score], reference: Mapping[str, Score]) -> Overall:
    worst = max(mine, key=lambda each: each.relative)
    matters = [each for each in mine if each.fixed_matters]
    pairs = [(each, reference[each.world]) for each in mine if each.world in reference]
    ratio = _geometric([a.logs(a.regret) - b.logs(b.regret) for a, b in pairs])
    return Overall(
        policy=policy,
        worlds=len(mine),
        relative=float(_geometric([each.logs(each.regret) for each in mine])),
        interval=_interval([each.logs(each.resampled()) for each in mine]),
        worst=worst.world,
        worst_relative=worst.relative,
        below_fixed=sum(bool(each.below_fixed) for each in matters),
        fixed_matters=len(matters),
        microseconds=float(np.median([each.microseconds for each in mine])),
        ratio=float(ratio) if pairs else None,
        ratio_interval=_interval([a.logs(a.resampled()) - b.logs(b.resampled()) for a, b in pairs]) if pairs else None,
    )


def _geometric(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.exp(np.mean(logs, axis=0))) if logs else np.asarray(math.nan)


def _interval(logs: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = np.quantile(_geometric(logs), [0.025, 0.975])
    return float(low), float(high)
