"""The test statistics of the claims: differences and ratios over the same seeds, with 95 % intervals."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from regretless.studies.claims.forms import (
    Arm,
    Calmer,
    Counted,
    Crossing,
    Group,
    Indistinct,
    Leaders,
    Lower,
    NotHigher,
    Quieter,
    Ratio,
    Statistic,
    Steadier,
    Untested,
)

AGREES, DISAGREES, OPEN, NOT_RUN = "agrees", "disagrees", "cannot be told", "not run"
CONFIDENCE = 0.95
RESAMPLES = 2000

Curves = Callable[[Arm], np.ndarray]
"""Cumulative regret of an arm, ``[replications, rounds]``, replications in the order of their seeds."""

Told = Callable[[Arm], Mapping[str, np.ndarray]]
"""Diagnostics of an arm by name, ``[replications, every tenth round]``."""


class Finding(NamedTuple):
    """A number with its interval, in words what it is, and the verdict."""

    quantity: str
    value: float
    low: float
    high: float
    verdict: str


def judge(test: Statistic, curves: Curves, told: Told = lambda arm: {}) -> Finding:
    """The finding of a test; all arms must be there."""
    if isinstance(test, Lower | NotHigher | Indistinct):
        return _differences(test, curves)
    if isinstance(test, Ratio):
        first, second = _final(curves, test.first), _final(curves, test.second)
        return _within("ratio", _resampled(lambda rows: first[rows].mean() / second[rows].mean(), len(first)), test)
    if isinstance(test, Crossing):
        first, second = _average(curves(test.first)), _average(curves(test.second))
        found = _resampled(lambda rows: _crossing(first[rows].mean(axis=0) - second[rows].mean(axis=0)), len(first))
        return _within("round of the crossing", found, test)
    if isinstance(test, Steadier):
        one, other = ([_final(curves, group) for group in groups] for groups in (test.first, test.second))
        found = _resampled(lambda rows: _spread(one, rows) - _spread(other, rows), len(one[0]))
        return Finding("difference of relative spreads", *found, _sign(found, equal_agrees=True))
    if isinstance(test, Leaders):
        return _leaders(test, curves)
    if isinstance(test, Calmer | Quieter):
        return _baseline(test, told(test.arm))
    if isinstance(test, Counted):
        counts = [count for _, count in test.counts]
        verdict = AGREES if test.low <= min(counts) and max(counts) <= test.high else DISAGREES
        return Finding(test.quantity, float(np.median(counts)), min(counts), max(counts), verdict)
    if isinstance(test, Untested):
        raise ValueError("expected a claim that some study can test, got one that none can")
    first, second = _final(curves, (test.first,)), _final(curves, (test.second,))
    found = _resampled(lambda rows: np.std(first[rows]) / max(np.std(second[rows]), 1e-300), len(first))
    verdict = AGREES if found[1] >= test.factor else DISAGREES if found[2] < test.factor else OPEN
    return Finding("ratio of standard errors", *found, verdict)


def _leaders(test: Leaders, curves: Curves) -> Finding:
    """How many different groups are the best of a panel: agrees if more than one is in 95 % of the resamplings."""
    finals = np.array([[_final(curves, group) for group in panel] for panel in test.panels])
    best = lambda rows: float(len(set(finals[:, :, rows].mean(axis=2).argmin(axis=1))))  # noqa: E731
    found = _resampled(best, finals.shape[2])
    return Finding("different leaders", *found, AGREES if found[1] > 1 else DISAGREES if found[2] <= 1 else OPEN)


def _baseline(test: Calmer | Quieter, told: Mapping[str, np.ndarray]) -> Finding:
    """A ratio that is to be below 1: what the baseline leaves of ``E‖g_score‖²``, or its variance over the total's.

    ``‖g_score‖ = |y − b| ‖∇ log p‖`` is recorded with ``y`` and ``b``, so that what it would have been without ``b`` on the
    same round is known. The estimator's mean is the same with and without: if its square gets smaller, its variance does.
    """
    total, baseline = told["total"], told["baseline"]
    if isinstance(test, Calmer):
        quantity = "E‖g‖² with / without baseline"
        weight = total - baseline
        moved = weight != 0
        with_it = np.where(moved, np.square(told["score_norm"]), 0.0)
        without = with_it * np.square(total / np.where(moved, weight, 1.0))
        over, under = with_it.mean(axis=1), without.mean(axis=1)
    else:
        quantity, over, under = "variance of baseline / of total", baseline.var(axis=1), total.var(axis=1)
    found = _resampled(lambda rows: float(over[rows].mean() / max(under[rows].mean(), 1e-300)), len(over))
    return Finding(quantity, *found, AGREES if found[2] < 1 else DISAGREES if found[1] > 1 else OPEN)


def _differences(test: Lower | NotHigher | Indistinct, curves: Curves) -> Finding:
    """The pair that speaks most against the claim, in % of the second group; intervals hold together for all pairs."""
    tail = 0.5 * (1.0 - CONFIDENCE) / len(test.pairs)
    found = [_paired(_final(curves, first), _final(curves, second), tail) for first, second in test.pairs]
    if isinstance(test, Indistinct):
        apart = [one for one in found if one[1] > 0 or one[2] < 0]
        worst = max(apart or found, key=lambda one: abs(one[0]))
        return Finding("difference, %", *worst, DISAGREES if apart else AGREES)
    worst = max(found, key=lambda one: one[1])
    if worst[1] <= 0:
        worst = max(found, key=lambda one: one[2])
    return Finding("difference, %", *worst, _sign(worst, equal_agrees=isinstance(test, NotHigher)))


def _sign(found: tuple[float, float, float], equal_agrees: bool) -> str:
    """Agrees below zero, disagrees above it."""
    if found[1] > 0:
        return DISAGREES
    return AGREES if found[2] < 0 or equal_agrees else OPEN


def _paired(first: np.ndarray, second: np.ndarray, tail: float) -> tuple[float, float, float]:
    """Mean difference over the same seeds with its interval (Student's t), in % of the second mean."""
    scale = 100.0 / abs(float(second.mean()))
    difference = first - second
    mean = float(difference.mean())
    margin = float(stdtrit(len(first) - 1, 1.0 - tail) * difference.std(ddof=1) / len(first) ** 0.5)
    return scale * mean, scale * (mean - margin), scale * (mean + margin)


def _resampled(statistic: Callable[[np.ndarray], float], size: int) -> tuple[float, float, float]:
    """A statistic of replications with the middle 95 % of its values for replications drawn with replacement."""
    draw = np.random.default_rng(0)
    drawn = [statistic(draw.integers(0, size, size)) for _ in range(RESAMPLES)]
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return float(statistic(np.arange(size))), float(low), float(high)


def _within(quantity: str, found: tuple[float, float, float], test: Ratio | Crossing) -> Finding:
    """Agrees if the value lies in the claim's range, disagrees if the whole interval lies outside it."""
    value, low, high = found
    verdict = DISAGREES if high < test.low or low > test.high else AGREES if test.low <= value <= test.high else OPEN
    return Finding(quantity, value, low, high, verdict)


def _final(curves: Curves, group: Group) -> np.ndarray:
    """Regret at the end, or at the round that an arm names, averaged over a group; ``[replications]``."""
    return np.mean([curves(arm)[:, -1 if arm.rounds is None else arm.rounds - 1] for arm in group], axis=0)


def _average(curve: np.ndarray) -> np.ndarray:
    """Average regret per round up to each round."""
    return curve / np.arange(1, curve.shape[1] + 1)


def _crossing(difference: np.ndarray) -> float:
    """The first round from which a difference stays above zero; one beyond the last if it never does."""
    below = np.flatnonzero(difference <= 0)
    return float(below[-1] + 2) if len(below) else 1.0


def _spread(groups: Sequence[np.ndarray], rows: np.ndarray) -> float:
    """Standard deviation over groups of their mean regret, relative to its mean."""
    means = np.array([group[rows].mean() for group in groups])
    return float(means.std(ddof=1) / means.mean())
