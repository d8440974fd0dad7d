"""The test statistics of the claims: differences and ratios over the same seeds, with 95 % intervals.

Every test says in which range a quantity has to be. It **agrees** if the whole interval is in the range and
**disagrees** if the whole interval is outside, whatever the kind of claim. A difference that is claimed and turns out
to be smaller than ``EQUIVALENCE`` makes the claim **equivalent**. Everything else is **open**, with the number of seeds
at which an interval of the same centre would decide.
"""

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
    """Every first group has lower regret than the second; differences within ``EQUIVALENCE`` are equivalent."""

    pairs: tuple[tuple[ArmGroup, ArmGroup], ...]


class NotHigherRegret(NamedTuple):
    """No first group has higher regret than the second by more than ``EQUIVALENCE``."""

    pairs: tuple[tuple[ArmGroup, ArmGroup], ...]


class NoDifference(NamedTuple):
    """No two groups differ by more than ``EQUIVALENCE``."""

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
    """Regret varies no more over the first groups (standard deviation / mean) than over the second."""

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


AGREES, DISAGREES, EQUIVALENT, OPEN, NOT_RUN = "agrees", "disagrees", "equivalent", "open", "not run"
CONFIDENCE = 0.95
RESAMPLES = 2000

EQUIVALENCE = 5.0
"""Differences of regret, in %, that count as equal; set before the additional replications were computed."""

SPREAD_EQUIVALENCE = 0.05
"""The same for differences of relative spreads."""

Curves = Callable[[ClaimArm], np.ndarray]
"""Cumulative regret of an arm, ``[replications, rounds]``, replications in the order of their seeds."""

Diagnostics = Callable[[ClaimArm], Mapping[str, np.ndarray]]
"""Diagnostics of an arm by name, ``[replications, every tenth round]``."""


Estimate = tuple[float, float, float]
"""A value with the ends of its interval."""


class Finding(NamedTuple):
    """A measured quantity with its interval, and the verdict; an open one has the seeds that would decide it."""

    quantity: str
    value: float
    low: float
    high: float
    verdict: str
    seeds: int = 0
    seeds_needed: int | None = None


def evaluate_test(test: ClaimTest, curves: Curves, diagnostics: Diagnostics = lambda arm: {}) -> Finding:
    """Return the finding of a test; all its arms must be there."""
    if isinstance(test, LowerRegret | NotHigherRegret | NoDifference):
        return _differences(test, curves)
    if isinstance(test, RegretRatio):
        first, second = _final(curves, test.first), _final(curves, test.second)
        estimate = _resampled(lambda rows: first[rows].mean() / second[rows].mean(), len(first))
        return _in_range("ratio", estimate, test.low, test.high, len(first))
    if isinstance(test, CurveCrossing):
        first, second = _average(curves(test.first)), _average(curves(test.second))
        estimate = _resampled(lambda rows: _crossing(first[rows].mean(axis=0) - second[rows].mean(axis=0)), len(first))
        return _in_range("round of the crossing", estimate, test.low, test.high, len(first))
    if isinstance(test, LowerSpread):
        one, other = ([_final(curves, group) for group in groups] for groups in (test.first, test.second))
        estimate = _resampled(lambda rows: _spread(one, rows) - _spread(other, rows), len(one[0]))
        return _in_range("difference of relative spreads", estimate, -np.inf, SPREAD_EQUIVALENCE, len(one[0]))
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
    return _in_range("ratio of standard errors", estimate, test.factor, np.inf, len(first))


def _in_range(quantity: str, estimate: Estimate, least: float, most: float, count: int) -> Finding:
    """Compare an interval with the range that a claim gives."""
    value, low, high = estimate
    if least <= low and high <= most:
        return Finding(quantity, value, low, high, AGREES, count)
    if high < least or low > most:
        return Finding(quantity, value, low, high, DISAGREES, count)
    return Finding(quantity, value, low, high, OPEN, count, _seeds_needed(estimate, least, most, count))


def _seeds_needed(estimate: Estimate, least: float, most: float, count: int) -> int | None:
    """Return the seeds at which an interval of the same centre has no end of the range in it; None: no number."""
    value, low, high = estimate
    needed = 0.0
    for end in (least, most):
        if low <= end <= high:
            width = high - value if end > value else value - low
            if end == value or not np.isfinite(width):
                return None
            needed = max(needed, count * (width / (end - value)) ** 2)
    return int(np.ceil(needed))


def _leaders(test: DifferentLeaders, curves: Curves) -> Finding:
    """Count the different groups that are the best of a panel: agrees if more than one in 95 % of the resamples."""
    finals = np.array([[_final(curves, group) for group in panel] for panel in test.panels])
    best = lambda rows: float(len(set(finals[:, :, rows].mean(axis=2).argmin(axis=1))))  # noqa: E731
    return _in_range("different leaders", _resampled(best, finals.shape[2]), 2.0, np.inf, finals.shape[2])


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
    return _in_range(quantity, estimate, -np.inf, 1.0, len(over))


SEVERITY = (DISAGREES, OPEN, EQUIVALENT, AGREES)
"""Verdicts on the pairs of a claim: the first of these that a pair has is the claim's."""


def _differences(test: LowerRegret | NotHigherRegret | NoDifference, curves: Curves) -> Finding:
    """Return the pair that contradicts the claim most, in % of the second group; the intervals hold jointly."""
    tail = 0.5 * (1.0 - CONFIDENCE) / len(test.pairs)
    finals = [(_final(curves, first), _final(curves, second)) for first, second in test.pairs]
    count = len(finals[0][0])
    findings = [_compare_pair(test, _paired(first, second, tail), count) for first, second in finals]
    verdict = next(verdict for verdict in SEVERITY if any(finding.verdict == verdict for finding in findings))
    alike = [finding for finding in findings if finding.verdict == verdict]
    size = (lambda finding: abs(finding.value)) if isinstance(test, NoDifference) else (lambda finding: finding.high)
    worst = max(alike, key=size)
    if verdict != OPEN:
        return worst
    needed = [finding.seeds_needed for finding in alike]
    return worst._replace(seeds_needed=None if None in needed else max(number for number in needed if number))


def _compare_pair(test: LowerRegret | NotHigherRegret | NoDifference, estimate: Estimate, count: int) -> Finding:
    """Return the finding on one pair of groups."""
    quantity = "difference, %"
    if isinstance(test, NoDifference):
        return _in_range(quantity, estimate, -EQUIVALENCE, EQUIVALENCE, count)
    if isinstance(test, NotHigherRegret):
        return _in_range(quantity, estimate, -np.inf, EQUIVALENCE, count)
    lower = _in_range(quantity, estimate, -np.inf, 0.0, count)
    equal = _in_range(quantity, estimate, -EQUIVALENCE, EQUIVALENCE, count)
    if equal.verdict == AGREES and lower.verdict != AGREES:
        return equal._replace(verdict=EQUIVALENT)
    if lower.verdict == OPEN and equal.verdict == OPEN and abs(estimate[0]) < EQUIVALENCE:
        needed = [number for number in (lower.seeds_needed, equal.seeds_needed) if number is not None]
        return lower._replace(seeds_needed=min(needed, default=None))
    return lower


def _paired(first: np.ndarray, second: np.ndarray, tail: float) -> Estimate:
    """Return the mean difference over the same seeds with its interval (Student's t), in % of the second mean."""
    scale = 100.0 / abs(float(second.mean()))
    difference = first - second
    mean = float(difference.mean())
    margin = float(stdtrit(len(first) - 1, 1.0 - tail) * difference.std(ddof=1) / len(first) ** 0.5)
    return scale * mean, scale * (mean - margin), scale * (mean + margin)


def _resampled(statistic: Callable[[np.ndarray], float], size: int) -> Estimate:
    """Return a statistic of replications with its bootstrap interval (95 %)."""
    draw = np.random.default_rng(0)
    drawn = [statistic(draw.integers(0, size, size)) for _ in range(RESAMPLES)]
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return float(statistic(np.arange(size))), float(low), float(high)


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
