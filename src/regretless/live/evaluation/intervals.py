"""Means of scores with 95 % intervals that stay honest where rounds are few, or alike one after the other."""

from typing import NamedTuple

import numpy as np

LEVEL = 0.95


class Interval(NamedTuple):
    """A mean cost per round, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def times(self, sign: float) -> "Interval":
        """The interval of rewards, with ``sign`` −1."""
        return self if sign > 0 else Interval(-self.mean, -self.high, -self.low)


def interval(scores: np.ndarray, effective: float) -> Interval:
    """Mean ± t · standard error, the quantile t for the effective number of rounds."""
    from scipy.special import stdtrit

    half = float(stdtrit(max(effective - 1.0, 1.0), 0.5 + LEVEL / 2)) * standard_error(scores)
    mean = float(np.mean(scores))
    return Interval(mean, mean - half, mean + half)


def standard_error(scores: np.ndarray) -> float:
    """Of the mean: the larger of two, as if rounds were independent, and with neighbouring ones alike (Newey and West).

    >>> import numpy as np
    >>> float(round(standard_error(np.array([0.0, 2.0] * 50)), 3))
    0.101
    """
    count = len(scores)
    off = scores - np.mean(scores)
    variance = float(off @ off) / count
    together = variance
    lags = min(int(4 * (count / 100) ** (2 / 9)), count - 1)
    for lag in range(1, lags + 1):
        together += 2 * (1 - lag / (lags + 1)) * float(off[lag:] @ off[:-lag]) / count
    return float(np.sqrt(max(variance, together) / max(count - 1, 1)))
