"""The test statistics of the claims: differences and ratios over the same seeds, with 95 % intervals."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit


class ClaimArm(NamedTuple):
    """An arm of a stored cell: which study, which cell of the panel, up to which round (None: all), on which benchmark.

    Without a benchmark it is that of the line.
    """

    label: str
    study: str = "main"
    cell: str = ""
    rounds: int | None = None
    benchmark: str = ""


ArmGroup = tuple[ClaimArm, ...]
"""Arms whose regrets are averaged, replication by replication."""


class LowerRegret(NamedTuple):
    """Every first group has lower regret than the second: agrees if all are, disagrees if one is higher."""

    pairs: tuple[tuple[ArmGroup, ArmGroup], ...]


class NotHigherRegret(NamedTuple):
    """The same, but "about equal" agrees too: disagrees if one difference is above zero."""

    pairs: tuple[tuple[ArmGroup, ArmGroup], ...]


class NoDifference(NamedTuple):
    """No two groups differ: disagrees if one difference excludes zero."""

    pairs: tuple[tuple[ArmGroup, ArmGroup], ...]


class RegretRatio(NamedTuple):
    """Mean regret of the first group over that of the second lies between two numbers."""

    first: ArmGroup
    second: ArmGroup
    low: float
    high: float


class CurveCrossing(NamedTuple):
    """The average regret of ``first`` is below that of ``second`` until about this round, and above it afterwards."""

    first: ClaimArm
    second: ClaimArm
    low: int
    high: int


class LowerSpread(NamedTuple):
    """Regret varies less over the first groups (standard deviation / mean) than over the second."""

    first: tuple[ArmGroup, ...]
    second: tuple[ArmGroup, ...]


class WiderErrors(NamedTuple):
    """The standard error of the first arm is at least ``factor`` times that of the second."""

    first: ClaimArm
    second: ClaimArm
    factor: float


class DifferentLeaders(NamedTuple):
    """The best group is not the same in every panel; each panel is a tuple of groups in the same order."""

    panels: tuple[tuple[ArmGroup, ...], ...]


class BaselineReducesVariance(NamedTuple):
    """Subtracting the baseline lowers the variance of an arm's score term, on the rounds that were played."""

    arm: ClaimArm


class BaselineVariesLess(NamedTuple):
    """The baseline of an arm varies no more from round to round than the total cost itself."""

    arm: ClaimArm


class CountsInRange(NamedTuple):
    """Numbers that follow from the code, by name, all of them in a range; a test compares them with the code."""

    quantity: str
    counts: tuple[tuple[str, int], ...]
    low: int
    high: int


class NoStudy(NamedTuple):
    """A claim that no study can test, and why."""

    why: str


ClaimTest = (
    LowerRegret
    | NotHigherRegret
    | NoDifference
    | RegretRatio
    | CurveCrossing
    | LowerSpread
    | WiderErrors
    | DifferentLeaders
    | BaselineReducesVariance
    | BaselineVariesLess
    | CountsInRange
    | NoStudy
)


class Claim(NamedTuple):
    """A claim: its line in the paper's source, the sentence in our words, the benchmark, the test."""

    line: int
    text: str
    benchmark: str
    test: ClaimTest


def arms_of(test: ClaimTest) -> list[ClaimArm]:
    """Return every arm that a test needs, each once."""
    arms: list[ClaimArm] = []

    def look(part: object) -> None:
        if isinstance(part, ClaimArm):
            arms.append(part)
        elif isinstance(part, tuple):
            for each in part:
                look(each)

    for part in test:
        look(part)
    return list(dict.fromkeys(arms))


AGREES, DISAGREES, INCONCLUSIVE, NOT_RUN = "agrees", "disagrees", "inconclusive", "not run"
CONFIDENCE = 0.95
RESAMPLES = 2000

Curves = Callable[[ClaimArm], np.ndarray]
"""Cumulative regret of an arm, ``[replications, rounds]``, replications in the order of their seeds."""

Diagnostics = Callable[[ClaimArm], Mapping[str, np.ndarray]]
"""Diagnostics of an arm by name, ``[replications, every tenth round]``."""


class Finding(NamedTuple):
    """A measured quantity with its interval, and the verdict."""

    quantity: str
    value: float
    low: float
    high: float
    verdict: str


def evaluate_test(test: ClaimTest, curves: Curves, diagnostics: Diagnostics = lambda arm: {}) -> Finding:
    """Return the finding of a test; all its arms must be there."""
    if isinstance(test, LowerRegret | NotHigherRegret | NoDifference):
        return _differences(test, curves)
    if isinstance(test, RegretRatio):
        first, second = _final(curves, test.first), _final(curves, test.second)
        return _within("ratio", _resampled(lambda rows: first[rows].mean() / second[rows].mean(), len(first)), test)
    if isinstance(test, CurveCrossing):
        first, second = _average(curves(test.first)), _average(curves(test.second))
        estimate = _resampled(lambda rows: _crossing(first[rows].mean(axis=0) - second[rows].mean(axis=0)), len(first))
        return _within("round of the crossing", estimate, test)
    if isinstance(test, LowerSpread):
        one, other = ([_final(curves, group) for group in groups] for groups in (test.first, test.second))
        estimate = _resampled(lambda rows: _spread(one, rows) - _spread(other, rows), len(one[0]))
        return Finding("difference of relative spreads", *estimate, _sign(estimate, equal_agrees=True))
    if isinstance(test, DifferentLeaders):
        return _leaders(test, curves)
    if isinstance(test, BaselineReducesVariance | BaselineVariesLess):
        return _baseline(test, diagnostics(test.arm))
    if isinstance(test, CountsInRange):
        counts = [count for _, count in test.counts]
        verdict = AGREES if test.low <= min(counts) and max(counts) <= test.high else DISAGREES
        return Finding(test.quantity, float(np.median(counts)), min(counts), max(counts), verdict)
    if isinstance(test, NoStudy):
        raise ValueError("expected a claim that some study can test, got one that none can")
    first, second = _final(curves, (test.first,)), _final(curves, (test.second,))
    estimate = _resampled(lambda rows: np.std(first[rows]) / max(np.std(second[rows]), 1e-300), len(first))
    verdict = AGREES if estimate[1] >= test.factor else DISAGREES if estimate[2] < test.factor else INCONCLUSIVE
    return Finding("ratio of standard errors", *estimate, verdict)


def _leaders(test: DifferentLeaders, curves: Curves) -> Finding:
    """Count the different groups that are the best of a panel: agrees if more than one in 95 % of the resamples."""
    finals = np.array([[_final(curves, group) for group in panel] for panel in test.panels])
    best = lambda rows: float(len(set(finals[:, :, rows].mean(axis=2).argmin(axis=1))))  # noqa: E731
    estimate = _resampled(best, finals.shape[2])
    return Finding(
        "different leaders", *estimate, AGREES if estimate[1] > 1 else DISAGREES if estimate[2] <= 1 else INCONCLUSIVE
    )


def _baseline(test: BaselineReducesVariance | BaselineVariesLess, diagnostics: Mapping[str, np.ndarray]) -> Finding:
    """Return a ratio claimed to be below 1: the rest of ``E‖g_score‖²``, or the baseline's variance over the total's.

    ``‖g_score‖ = |y − b| ‖∇ log p‖`` is recorded with ``y`` and ``b``, so that what it would have been without ``b``
    on the same round is known. The estimator's mean is the same with and without: if its square gets smaller, its
    variance does.
    """
    total, baseline = diagnostics["total"], diagnostics["baseline"]
    if isinstance(test, BaselineReducesVariance):
        quantity = "E‖g‖² with / without baseline"
        weight = total - baseline
        moved = weight != 0
        with_it = np.where(moved, np.square(diagnostics["score_norm"]), 0.0)
        without = with_it * np.square(total / np.where(moved, weight, 1.0))
        over, under = with_it.mean(axis=1), without.mean(axis=1)
    else:
        quantity, over, under = "variance of baseline / of total", baseline.var(axis=1), total.var(axis=1)
    estimate = _resampled(lambda rows: float(over[rows].mean() / max(under[rows].mean(), 1e-300)), len(over))
    return Finding(quantity, *estimate, AGREES if estimate[2] < 1 else DISAGREES if estimate[1] > 1 else INCONCLUSIVE)


def _differences(test: LowerRegret | NotHigherRegret | NoDifference, curves: Curves) -> Finding:
    """Return the pair that contradicts the claim most, in % of the second group; the intervals hold jointly."""
    tail = 0.5 * (1.0 - CONFIDENCE) / len(test.pairs)
    estimates = [_paired(_final(curves, first), _final(curves, second), tail) for first, second in test.pairs]
    if isinstance(test, NoDifference):
        apart = [one for one in estimates if one[1] > 0 or one[2] < 0]
        worst = max(apart or estimates, key=lambda one: abs(one[0]))
        return Finding("difference, %", *worst, DISAGREES if apart else AGREES)
    worst = max(estimates, key=lambda one: one[1])
    if worst[1] <= 0:
        worst = max(estimates, key=lambda one: one[2])
    return Finding("difference, %", *worst, _sign(worst, equal_agrees=isinstance(test, NotHigherRegret)))


def _sign(estimate: tuple[float, float, float], equal_agrees: bool) -> str:
    """Return "agrees" below zero, "disagrees" above it."""
    if estimate[1] > 0:
        return DISAGREES
    return AGREES if estimate[2] < 0 or equal_agrees else INCONCLUSIVE


def _paired(first: np.ndarray, second: np.ndarray, tail: float) -> tuple[float, float, float]:
    """Return the mean difference over the same seeds with its interval (Student's t), in % of the second mean."""
    scale = 100.0 / abs(float(second.mean()))
    difference = first - second
    mean = float(difference.mean())
    margin = float(stdtrit(len(first) - 1, 1.0 - tail) * difference.std(ddof=1) / len(first) ** 0.5)
    return scale * mean, scale * (mean - margin), scale * (mean + margin)


def _resampled(statistic: Callable[[np.ndarray], float], size: int) -> tuple[float, float, float]:
    """Return a statistic of replications with its bootstrap interval (95 %)."""
    draw = np.random.default_rng(0)
    drawn = [statistic(draw.integers(0, size, size)) for _ in range(RESAMPLES)]
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return float(statistic(np.arange(size))), float(low), float(high)


def _within(quantity: str, estimate: tuple[float, float, float], test: RegretRatio | CurveCrossing) -> Finding:
    """Return "agrees" if the value lies in the claim's range, disagrees if the whole interval lies outside it."""
    value, low, high = estimate
    verdict = (
        DISAGREES if high < test.low or low > test.high else AGREES if test.low <= value <= test.high else INCONCLUSIVE
    )
    return Finding(quantity, value, low, high, verdict)


def _final(curves: Curves, group: ArmGroup) -> np.ndarray:
    """Return regret at the end, or at the round that an arm names, averaged over a group; ``[replications]``."""
    return np.mean([curves(arm)[:, -1 if arm.rounds is None else arm.rounds - 1] for arm in group], axis=0)


def _average(curve: np.ndarray) -> np.ndarray:
    """Return the average regret per round up to each round."""
    return curve / np.arange(1, curve.shape[1] + 1)


def _crossing(difference: np.ndarray) -> float:
    """Return the first round from which a difference stays above zero; one beyond the last if it never does."""
    below = np.flatnonzero(difference <= 0)
    return float(below[-1] + 2) if len(below) else 1.0


def _spread(groups: Sequence[np.ndarray], rows: np.ndarray) -> float:
    """Return the standard deviation over groups of their mean regret, relative to its mean."""
    means = np.array([group[rows].mean() for group in groups])
    return float(means.std(ddof=1) / means.mean())
