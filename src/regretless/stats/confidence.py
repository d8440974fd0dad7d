"""Confidence intervals of means, and a confidence sequence that holds at all times together."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LEVEL = 0.95
"""Confidence of every reported interval."""

NORMAL_QUANTILE = 1.96
"""Standard errors on each side of a normal 95 % interval."""

BATCH_ROUNDS = 10
"""Rounds whose mean counts as one observation, because neighbouring rounds may be alike."""


class Interval(NamedTuple):
    """A mean and the ends of its 95 % interval.

    Parameters
    ----------
    mean : float
        The estimate.
    low, high : float
        The ends of the interval.
    """

    mean: float
    low: float
    high: float

    def with_sign(self, sign: float) -> "Interval":
        """Return the interval of the values multiplied by ``sign``, 1 or −1.

        Parameters
        ----------
        sign : float
            1 or −1.
        """
        return self if sign > 0 else Interval(-self.mean, -self.high, -self.low)


def mean_interval(scores: np.ndarray, effective: float) -> Interval:
    """Return the mean with ± t · standard error.

    Parameters
    ----------
    scores : array of shape ``[n]``
        One value per round, in the order of time.
    effective : float
        Effective number of rounds, which sets the degrees of freedom of Student's t.
    """
    from scipy.special import stdtrit

    half = float(stdtrit(max(effective - 1.0, 1.0), 0.5 + LEVEL / 2)) * standard_error(scores)
    mean = float(np.mean(scores))
    return Interval(mean, mean - half, mean + half)


def standard_error(scores: np.ndarray) -> float:
    """Return the standard error of the mean: the larger of that of independent rounds and that of Newey and West.

    Parameters
    ----------
    scores : array of shape ``[n]``
        One value per round, in the order of time.

    Examples
    --------
    >>> import numpy as np
    >>> float(round(standard_error(np.array([0.0, 2.0] * 50)), 3))
    0.101
    """
    count = len(scores)
    deviations = scores - np.mean(scores)
    variance = float(deviations @ deviations) / count
    long_run = variance
    lags = min(int(4 * (count / 100) ** (2 / 9)), count - 1)
    for lag in range(1, lags + 1):
        long_run += 2 * (1 - lag / (lags + 1)) * float(deviations[lag:] @ deviations[:-lag]) / count
    return float(np.sqrt(max(variance, long_run) / max(count - 1, 1)))


def batch_interval(values: np.ndarray) -> Interval:
    """Return the mean with a normal interval from the means of batches of ``BATCH_ROUNDS`` neighbouring values.

    Parameters
    ----------
    values : array of shape ``[n]``
        One value per round, in the order of time; at least two batches.
    """
    count = len(values) // BATCH_ROUNDS
    batches = values[len(values) - count * BATCH_ROUNDS :].reshape(count, BATCH_ROUNDS).mean(axis=1)
    mean, half = float(np.mean(values)), NORMAL_QUANTILE * float(np.std(batches, ddof=1)) / count**0.5
    return Interval(mean, mean - half, mean + half)


def mixture_radius(
    variance: Float[Array, ""], prior_variance: Float[Array, ""], confidence: Float[Array, ""]
) -> Float[Array, ""]:
    """Return the radius of a one-sided confidence sequence for a sum of errors: a normal mixture over its drift.

    A martingale with the accumulated variance ``V`` stays below ``√((V + ρ) (log(1 + V/ρ) − 2 log(2 (1 −
    confidence))))`` at all times together, with at least the given confidence (Robbins, 1970; Howard et al., 2021).

    Parameters
    ----------
    variance : array
        ``V``, accumulated over the rounds so far.
    prior_variance : array
        ``ρ``, the accumulated variance at which the bound is tightest.
    confidence : array
        Probability with which the bound holds at all times, from 0.5 to below 1.

    Examples
    --------
    >>> round(float(mixture_radius(100.0, 10.0, 0.95)), 2)
    27.75
    """
    width = jnp.log1p(variance / jnp.maximum(prior_variance, 1e-300)) - 2.0 * jnp.log(2.0 * (1.0 - confidence))
    return jnp.sqrt((variance + prior_variance) * jnp.maximum(width, 0.0))
