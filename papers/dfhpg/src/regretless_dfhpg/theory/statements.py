"""The lines of the result: what a statement of the paper says, what was measured, and the verdict."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, stdtrit

CONFIDENCE = 0.95
RESAMPLES = 4000


class Interval(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def log_slope(horizons: Sequence[float], values: np.ndarray) -> np.ndarray:
    """Return the least-squares slope of ``log values`` over ``log horizons`` along the first axis.

    >>> float(log_slope([1, 10, 100], np.array([5.0, 0.5, 0.05])).round(12))
    -1.0
    """
    times = np.log(np.asarray(horizons, float))
    centred = times - times.mean()
    return np.tensordot(centred, np.log(values), axes=1) / np.sum(centred**2)


def fitted_slope(horizons: Sequence[float], samples: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Return the slope of the means of ``samples``, one array of independent replications per horizon.

    The interval holds the middle 95 % of the slopes of resampled data, replications drawn with replacement by horizon.
    """
    if len(horizons) != len(samples) or len(horizons) < 2:
        raise ValueError(f"expected samples for each of at least two horizons, got {len(samples)} for {len(horizons)}")
    means = np.array([np.mean(sample) for sample in samples])
    drawn = resampled_means(samples, seed)
    if np.any(means <= 0) or np.any(drawn <= 0):
        raise ValueError("expected positive averages: a slope in logarithmic scale has no meaning for others")
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(log_slope(horizons, drawn), [tail, 1.0 - tail])
    return Interval(float(log_slope(horizons, means)), float(low), float(high))


def two_term_pvalue(samples: Sequence[np.ndarray], rate: np.ndarray, following: np.ndarray) -> float | None:
    """Return the p-value of "averages are ``a · rate + b · following``" (χ² of a weighted fit).

    None for fewer than three horizons.
    """
    if len(samples) < 3:
        return None
    means = np.array([np.mean(sample) for sample in samples])
    errors = np.array([np.std(sample, ddof=1) / len(sample) ** 0.5 for sample in samples])
    design = np.stack([rate, following], axis=1) / errors[:, None]
    weights, *_ = np.linalg.lstsq(design, means / errors, rcond=None)
    return float(chdtrc(len(means) - 2, np.sum(np.square(means / errors - design @ weights))))


def resampled_means(samples: Sequence[np.ndarray], seed: int = 0) -> np.ndarray:
    """Return ``[horizons, resamples]`` means of replications drawn with replacement."""
    draw = np.random.default_rng(seed)
    rows = []
    for sample in samples:
        size = len(sample)
        counts = draw.multinomial(size, np.full(size, 1.0 / size), size=RESAMPLES)
        rows.append(counts @ np.asarray(sample, float) / size)
    return np.array(rows)


def mean_interval(sample: np.ndarray) -> Interval:
    """Return the mean of independent replications with its interval (Student's t)."""
    size = len(sample)
    mean = float(np.mean(sample))
    margin = float(stdtrit(size - 1, 0.5 + 0.5 * CONFIDENCE) * np.std(sample, ddof=1) / size**0.5)
    return Interval(mean, mean - margin, mean + margin)


HOLDS, FAILS, CONSISTENT, SHORT = "holds", "does not hold", "consistent, from above", "too short"


class Statement(NamedTuple):
    """One line of the result: a statement of the paper and its measurement.

    - ``=``: holds if the interval covers ``expected`` and the joint test of all coordinates does not reject.
    - ``≤``: holds if the upper limit is at most ``expected``. A rate whose slope is above the exponent is consistent
    with it if the averages follow "rate + next term" (``p_value``): the slope of two terms can be above the exponent
    at every length. If they do not follow that either, the line does not hold.

    Where the paper gives an explicit bound, ``bound`` is a verdict of its own.
    """

    name: str
    setting: str
    quantity: str
    measured: Interval
    relation: str  # "=" or "≤"
    expected: float
    p_value: float | None = None  # of the joint test, for an equality; of the law of two terms, for a rate
    bound_share: float | None = None  # largest upper limit of average / explicit bound, where there is one
    statement: str = ""  # its number in the paper
    family: int = 1  # lines that are tested together

    @property
    def verdict(self) -> str:
        """Return what the value or the exponent does: ``holds``, ``consistent, from above`` or ``does not hold``."""
        level = (1.0 - CONFIDENCE) / self.family
        if self.relation == "=":
            assert self.p_value is not None
            agrees = self.measured.low <= self.expected <= self.measured.high
            return HOLDS if agrees and self.p_value >= level else FAILS
        if self.measured.high <= self.expected:
            return HOLDS
        follows = self.p_value is not None and self.p_value >= level
        return CONSISTENT if follows or self.measured.low <= self.expected else FAILS

    @property
    def bound(self) -> str | None:
        """Return whether the explicit bound holds; None if the paper gives none."""
        if self.bound_share is None:
            return None
        return HOLDS if self.bound_share <= 1.0 else FAILS

    def to_dict(self, short: bool = False) -> dict[str, Any]:
        """Return the statement as a JSON object; a run that is too ``short`` gets no verdicts."""
        verdicts = {"verdict": SHORT if short else self.verdict, "bound": SHORT if short else self.bound}
        values = {**self._asdict(), **self.measured._asdict(), **verdicts}
        del values["measured"]
        return {"measured" if key == "value" else key: value for key, value in values.items()}


class Curve(NamedTuple):
    """Averages by horizon of one quantity, rule and α, with their intervals and the theorem's bound."""

    quantity: str
    rule: str
    alpha: float
    horizons: list[int]
    averages: list[Interval]
    bounds: list[float]
    variant: str = "plug_in"

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as a JSON object."""
        parts = {key: [getattr(one, key) for one in self.averages] for key in Interval._fields}
        return {**self._asdict(), "averages": parts}
