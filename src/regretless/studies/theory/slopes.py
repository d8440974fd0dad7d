"""How fast something falls with the horizon: slopes in double logarithmic scale, with intervals from the bootstrap."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, stdtrit

CONFIDENCE = 0.95
RESAMPLES = 4000


class Interval(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def slope(horizons: Sequence[float], values: np.ndarray) -> np.ndarray:
    """Least-squares slope of ``log values`` over ``log horizons`` along the first axis.

    >>> float(slope([1, 10, 100], np.array([5.0, 0.5, 0.05])).round(12))
    -1.0
    """
    times = np.log(np.asarray(horizons, float))
    centred = times - times.mean()
    return np.tensordot(centred, np.log(values), axes=1) / np.sum(centred**2)


def fitted_slope(horizons: Sequence[float], samples: Sequence[np.ndarray], seed: int = 0) -> Interval:
    """Slope of the means of ``samples`` (one array of independent replications per horizon) over the horizons.

    The interval holds the middle 95 % of the slopes of resampled data, replications drawn with replacement by horizon.
    """
    if len(horizons) != len(samples) or len(horizons) < 2:
        raise ValueError(f"expected samples for each of at least two horizons, got {len(samples)} for {len(horizons)}")
    means = np.array([np.mean(sample) for sample in samples])
    drawn = resampled_means(samples, seed)
    if np.any(means <= 0) or np.any(drawn <= 0):
        raise ValueError("expected positive averages: a slope in logarithmic scale has no meaning for others")
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(slope(horizons, drawn), [tail, 1.0 - tail])
    return Interval(float(slope(horizons, means)), float(low), float(high))


def two_terms(samples: Sequence[np.ndarray], rate: np.ndarray, following: np.ndarray) -> float | None:
    """p-value of "averages are ``a · rate + b · following``" (χ² of the weighted fit); None for fewer than three horizons."""
    if len(samples) < 3:
        return None
    means = np.array([np.mean(sample) for sample in samples])
    errors = np.array([np.std(sample, ddof=1) / len(sample) ** 0.5 for sample in samples])
    design = np.stack([rate, following], axis=1) / errors[:, None]
    weights, *_ = np.linalg.lstsq(design, means / errors, rcond=None)
    return float(chdtrc(len(means) - 2, np.sum(np.square(means / errors - design @ weights))))


def resampled_means(samples: Sequence[np.ndarray], seed: int = 0) -> np.ndarray:
    """``[horizons, resamples]`` means of replications drawn with replacement."""
    draw = np.random.default_rng(seed)
    rows = []
    for sample in samples:
        size = len(sample)
        counts = draw.multinomial(size, np.full(size, 1.0 / size), size=RESAMPLES)
        rows.append(counts @ np.asarray(sample, float) / size)
    return np.array(rows)


def mean_interval(sample: np.ndarray) -> Interval:
    """Mean of independent replications with its interval (Student's t)."""
    size = len(sample)
    mean = float(np.mean(sample))
    margin = float(stdtrit(size - 1, 0.5 + 0.5 * CONFIDENCE) * np.std(sample, ddof=1) / size**0.5)
    return Interval(mean, mean - margin, mean + margin)
