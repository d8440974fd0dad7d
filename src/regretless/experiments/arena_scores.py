"""Scores of the arena: regret relative to random decisions and to the best fixed decision, per world and over all."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.results import Result

REFERENCE = "linear_old"
"""The policy that ratios are taken to, where it was played."""

RESAMPLES = 1000
MIN_RELATIVE_REGRET = 1e-3
"""A smaller share of random's regret counts as this share: no world decides a geometric mean alone."""

MIN_FIXED_REGRET = 0.1
"""A best fixed decision with more than this share of random's regret is worth beating."""

MEDIAN_SUFFIX = " (median)"
"""Ends the label of a world that is judged by the median."""


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
    def error(self) -> float:
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
    def below_fixed(self) -> bool | None:
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


class OverallScore(NamedTuple):
    """One policy on all worlds that it was played on; intervals are from resampled replications, 95 %."""

    policy: str
    worlds: int
    relative: float  # geometric mean of regret over random's
    interval: tuple[float, float]
    worst: str  # the world with the highest relative regret
    worst_relative: float
    below_fixed: int
    fixed_matters: int  # number of worlds where the best fixed decision matters
    microseconds: float  # median over the worlds
    ratio: float | None  # geometric mean of regret over the reference's, on the worlds that both were played on
    ratio_interval: tuple[float, float] | None


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


def overall_scores(scores: Iterable[Score]) -> list[OverallScore]:
    """Return every policy over its worlds, in the order in which they come."""
    by_policy: dict[str, list[Score]] = {}
    for each in scores:
        by_policy.setdefault(each.policy, []).append(each)
    reference = {each.world: each for each in by_policy.get(REFERENCE, [])}
    return [_overall_score(policy, members, reference) for policy, members in by_policy.items()]


def _overall_score(policy: str, scores: Sequence[Score], reference: Mapping[str, Score]) -> OverallScore:
    worst = max(scores, key=lambda each: each.relative)
    matters = [each for each in scores if each.fixed_matters]
    pairs = [(each, reference[each.world]) for each in scores if each.world in reference]
    ratio = _geometric_mean([a.logs(a.regret) - b.logs(b.regret) for a, b in pairs])
    ratio_interval = _interval([a.logs(a.resample()) - b.logs(b.resample()) for a, b in pairs]) if pairs else None
    return OverallScore(
        policy=policy,
        worlds=len(scores),
        relative=float(_geometric_mean([each.logs(each.regret) for each in scores])),
        interval=_interval([each.logs(each.resample()) for each in scores]),
        worst=worst.world,
        worst_relative=worst.relative,
        below_fixed=sum(bool(each.below_fixed) for each in matters),
        fixed_matters=len(matters),
        microseconds=float(np.median([each.microseconds for each in scores])),
        ratio=float(ratio) if pairs else None,
        ratio_interval=ratio_interval,
    )


def _geometric_mean(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.exp(np.mean(logs, axis=0))) if logs else np.asarray(math.nan)


def _interval(logs: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = np.quantile(_geometric_mean(logs), [0.025, 0.975])
    return float(low), float(high)
