"""Confidence intervals of means, tails, and a confidence sequence that holds at all times together."""

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


BATCHES = (24, 12, 6)
"""Numbers of batches from which dependence between rounds is estimated."""

DEPENDENCE_LEVEL, GROWTH_LEVEL = 0.3, 0.02
"""Levels at which a larger variance of batches counts as dependence, and at which it is extrapolated to longer ones: an
interval that is a little too wide is the smaller error."""

MAX_BOOTSTRAP_PARTS, BOOTSTRAP_DRAWS = 500, 999
"""Rounds, or batches if there are more, that are drawn by the bootstrap, and how often."""


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


def mean_interval(scores: np.ndarray) -> Interval:
    """Return the mean with an interval for skewed, heavy-tailed and dependent rounds.

    The quantiles are those of a studentised bootstrap (bootstrap-t, with fixed seed), so that the interval is longer on
    the side of the heavier tail. It is widened by the growth of the standard error in batches of neighbouring rounds,
    ``dependence_factor``.

    Parameters
    ----------
    scores : array of shape ``[n]``
        One value per round, in the order of time.

    Examples
    --------
    >>> import numpy as np
    >>> interval = mean_interval(np.random.default_rng(0).exponential(size=400))
    >>> [round(value, 2) for value in interval]
    [1.13, 0.98, 1.29]
    """
    mean, factor = float(np.mean(scores)), dependence_factor(scores)
    size = -(-len(scores) // MAX_BOOTSTRAP_PARTS)
    parts = batch_means(scores - mean, len(scores) // size)
    count = len(parts)
    if count < 2 or not np.any(parts):
        return Interval(mean, mean, mean)
    drawn = parts[np.random.default_rng(0).integers(count, size=(BOOTSTRAP_DRAWS, count))]
    error, errors = (part.std(axis=-1, ddof=1) / count**0.5 for part in (parts, drawn))
    ratios = drawn.mean(axis=1) / np.maximum(errors, error / count)
    low, high = np.quantile(ratios, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]) * error * factor
    return Interval(mean, mean - float(high), mean - float(low))


def batch_means(values: np.ndarray, count: int) -> np.ndarray:
    """Return the means of this number of batches of neighbouring values; the first values are left out if need be.

    Parameters
    ----------
    values : array of shape ``[n]``
        One value per round, in the order of time.
    count : int
        Number of batches.
    """
    size = len(values) // count
    return np.asarray(values[len(values) - count * size :].reshape(count, size).mean(axis=1))


def dependence_factor(scores: np.ndarray) -> float:
    """Return by how much dependence between rounds lengthens an interval of the mean, at least 1.

    The variance of the mean is estimated from few long batches. It counts where it is larger than that of independent
    rounds (level 30 %); where it certainly is (2 %), and still grows with the batches, it is extrapolated to longer
    ones. Student's quantile of the number of batches accounts for its error.

    Parameters
    ----------
    scores : array of shape ``[n]``
        One value per round, in the order of time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> dependence_factor(rng.normal(size=800)), dependence_factor(np.repeat(rng.normal(size=40), 20)) > 4
    (1.0, True)
    """
    from scipy.special import chdtri, stdtrit

    independent = float(np.var(scores, ddof=1)) / len(scores) if len(scores) >= 2 * max(BATCHES) else 0.0
    if independent <= 0.0:
        return 1.0
    factor, shorter = 1.0, independent
    for count in BATCHES:
        variance = float(np.var(batch_means(scores, count), ddof=1)) / count
        certain, likely = independent * chdtri(count - 1, [GROWTH_LEVEL, DEPENDENCE_LEVEL]) / (count - 1)
        if variance > likely:
            extrapolated = variance + (max(variance - shorter, 0.0) if variance > certain else 0.0)
            quantiles = float(stdtrit(count - 1, 0.5 + LEVEL / 2) / stdtrit(len(scores) - 1, 0.5 + LEVEL / 2))
            factor = max(factor, quantiles * (extrapolated / independent) ** 0.5)
        shorter = variance
    return factor


def tail_index(errors: np.ndarray) -> float:
    """Return Hill's estimate of the tail index from the largest tenth of the errors; below 2 the variance is infinite.

    Parameters
    ----------
    errors : array of shape ``[n]``
        Errors; their sizes are measured from the median. Where the largest ones are equal, as with 0/1 outcomes, it is
        infinite.

    Examples
    --------
    >>> import numpy as np
    >>> round(tail_index(1.0 + np.random.default_rng(0).pareto(1.5, size=20_000)), 1)
    1.2
    """
    sizes = np.sort(np.abs(errors - np.median(errors)))[::-1]
    sizes = sizes[sizes > 0]
    count = len(sizes) // 10
    logs = float(np.sum(np.log(sizes[:count] / sizes[count]))) if count else 0.0
    return count / logs if logs > 0 else float("inf")


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
