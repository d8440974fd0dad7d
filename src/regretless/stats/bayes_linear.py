"""Bayesian linear regression ``v = φ·β + ε`` with a Gaussian prior on ``β``, robust to outliers.

``LinearPosterior`` conditions on new rows in square-root form, ``RunningRegression`` keeps fading sums, and
``fit_dual`` solves in the space of the observed values; where more than one applies, they give the same posterior.
Errors that are far beyond their usual size (``ErrorScale``) are cut off before they are learned.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

ROW_GROUP = 4
"""Rows that condition a posterior in one step; more are taken group by group, because ``S`` is factorised."""

LEVEL_VARIANCE = 1e4
"""Prior variance of a flat level, in units of the noise: as good as unknown, and still safe in single precision."""

MIN_SCALE_ROWS = 5
"""Measured rows before which the usual size of errors is unknown and nothing is cut off."""

MIN_SCALE_STEP = 0.03
"""Smallest relative step of the running median: it follows a change of size within some hundred rows."""

FIRST_BLOCK = 16
"""Largest size of the blocks of a triangular matrix that are inverted by a triangular solve."""

NORMAL_MEDIAN = 1.4826
"""Standard deviation of a normal variable over the median of its absolute value."""


class Projection(NamedTuple):
    """Measurement rows as a posterior sees them; ``S = I + Φ P Φᵀ`` is kept by its eigenvalues and eigenvectors."""

    loads: Float[Array, "b m n"]  # F = Φ L
    gains: Float[Array, "b m n"]  # G = Φ P
    variances: Float[Array, "b m"]  # eigenvalues of S; S itself for a single row
    vectors: Float[Array, "b m m"] | None  # None for a single row
    level: Float[Array, "b m"] | None  # what each row shows of a flat level
    inflation: Array | float  # of the factor

    def divide(self, values: Array, divisors: Float[Array, "b m"]) -> Array:
        """Return ``Q diag(1 / divisors) Qᵀ values`` for values ``[b, m]`` or ``[b, m, n]``."""
        divisors = divisors.reshape(divisors.shape + (1,) * (values.ndim - 2))
        if self.vectors is None:
            return values / divisors
        rotated = jnp.einsum("bij,bi...->bj...", self.vectors, values)
        return jnp.einsum("bij,bj...->bi...", self.vectors, rotated / divisors)

    def inner(self, first: Float[Array, "b m"], second: Float[Array, "b m"]) -> Float[Array, ""]:
        """Return ``Σ firstᵀ S⁻¹ second`` over all blocks."""
        if self.vectors is None:
            return jnp.sum(first * second / self.variances)
        return jnp.sum(self.divide(first, self.variances) * second)


class FlatLevel(eqx.Module):
    """A direction of the coefficients about which the prior knows nothing, learned jointly by all blocks.

    Parameters
    ----------
    loading : array of shape ``[blocks, n]``
        How far each coefficient still follows the level.
    information : array
        Precision of the level, in units of the noise precision.
    """

    loading: Float[Array, "b n"]
    information: Float[Array, ""]


class LinearPosterior(eqx.Module):
    """Gaussian posterior of linear coefficients in independent blocks, with its covariance in square-root form.

    With a factor ``L`` of the covariance, ``P = L Lᵀ``, and measurement rows ``Φ`` of unit noise, the new factor is
    (Potter for one row, Andrews for several)

        ``L ← L (I − Fᵀ (S + S^½)⁻¹ F)``,  ``F = Φ L``,  ``S = I + F Fᵀ``,

    a change of rank ``m`` that costs ``O(m n²)``. Nothing is subtracted from a covariance, so rounding cannot make it
    indefinite, and the condition of the factor is the root of the covariance's.

    Parameters
    ----------
    mean : array of shape ``[blocks, n]``
        Coefficients, a flat level included.
    factor : array of shape ``[blocks, n, n]``
        ``L``, with ``L Lᵀ`` the covariance in units of the noise variance.
    level : FlatLevel, optional
        A direction without a prior; None if every coefficient has one.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> prior = LinearPosterior(jnp.zeros((1, 1)), jnp.ones((1, 1, 1)))
    >>> posterior = prior.condition(jnp.array([[[3.0]]]), jnp.array([[10.0]]))
    >>> round(float(posterior.mean[0, 0]), 6), round(float(posterior.factor[0, 0, 0] ** 2), 6)
    (3.0, 0.1)
    """

    mean: Float[Array, "b n"]
    factor: Float[Array, "b n n"]
    level: FlatLevel | None = None

    def variances(self) -> Float[Array, "b n"]:
        """Return the variance of each coefficient, in units of the noise variance."""
        return jnp.sum(jnp.square(self.factor), axis=2)

    def draw(self, noise: Float[Array, "b n"]) -> Float[Array, "b n"]:
        """Return deviations from the mean, ``L noise``, for standard normal noise.

        Parameters
        ----------
        noise : array of shape ``[blocks, n]``
            Standard normal numbers.
        """
        return jnp.einsum("bnk,bk->bn", self.factor, noise)

    def condition(
        self,
        rows: Float[Array, "b m n"],
        values: Float[Array, "b m"],
        loads: Float[Array, "b m n"] | None = None,
        inflation: Array | float = 1.0,
    ) -> "LinearPosterior":
        """Return the posterior after values were measured along rows.

        Parameters
        ----------
        rows : array of shape ``[blocks, m, n]``
            Measurement rows of unit noise; a row of zeros with value zero changes nothing.
        values : array of shape ``[blocks, m]``
            What was measured.
        loads : array of shape ``[blocks, m, n]``, optional
            ``Φ L`` if the caller has it at lower cost; for at most ``ROW_GROUP`` rows.
        inflation : array, default 1
            Factor of all standard deviations before the rows are taken in; more than 1 forgets.
        """
        blocks, m, n = rows.shape
        if m <= ROW_GROUP:
            errors = values - jnp.einsum("bmn,bn->bm", rows, self.mean)
            return self.update(self.project(rows, loads, inflation), errors)
        start = LinearPosterior(self.mean, inflation * self.factor, self.level)
        padding = -m % ROW_GROUP
        rows = jnp.pad(rows, ((0, 0), (0, padding), (0, 0))).reshape(blocks, -1, ROW_GROUP, n)
        values = jnp.pad(values, ((0, 0), (0, padding))).reshape(blocks, -1, ROW_GROUP)
        groups = jnp.moveaxis(rows, 1, 0), jnp.moveaxis(values, 1, 0)
        return jax.lax.scan(lambda posterior, group: (posterior.condition(*group), None), start, groups)[0]

    def project(
        self, rows: Float[Array, "b m n"], loads: Float[Array, "b m n"] | None = None, inflation: Array | float = 1.0
    ) -> Projection:
        """Return how rows load on the posterior, which is what ``update`` needs besides the errors.

        Parameters
        ----------
        rows, loads, inflation
            As in ``condition``.
        """
        m = rows.shape[1]  # products of a matrix and a vector are quicker than those of matrices, if there are few rows
        if loads is None:
            loads = jnp.stack([jnp.einsum("bn,bnk->bk", rows[:, i], self.factor) for i in range(m)], axis=1)
        F = inflation * loads
        G = inflation * jnp.stack([jnp.einsum("bnk,bk->bn", self.factor, F[:, i]) for i in range(m)], axis=1)
        level = None if self.level is None else jnp.sum(rows * self.level.loading[:, None], axis=2)
        if m == 1:
            return Projection(F, G, 1.0 + jnp.sum(jnp.square(F), axis=2), None, level, inflation)
        S, vectors = jnp.linalg.eigh(jnp.eye(m, dtype=F.dtype) + jnp.einsum("bik,bjk->bij", F, F))
        return Projection(F, G, jnp.maximum(S, 1.0), vectors, level, inflation)

    def spread(self, projection: Projection) -> Float[Array, "b m"]:
        """Return the predicted standard deviation of the error of each projected row, in units of the noise's.

        It is exact for a single row, and an upper bound for several.

        Parameters
        ----------
        projection : Projection
            What ``project`` returned for the rows.
        """
        variance = projection.variances
        if projection.vectors is not None:
            variance = 1.0 + jnp.sum(jnp.square(projection.loads), axis=2)
        if self.level is not None and projection.level is not None:
            variance = variance + jnp.square(projection.level) / (self.level.information + 1.0 / LEVEL_VARIANCE)
        return jnp.sqrt(variance)

    def update(self, projection: Projection, errors: Float[Array, "b m"]) -> "LinearPosterior":
        """Return the posterior after projected rows showed ``errors``, values minus predictions.

        Parameters
        ----------
        projection : Projection
            What ``project`` returned for the rows.
        errors : array of shape ``[blocks, m]``
            Values minus predictions.
        """
        F, G, S, a = projection.loads, projection.gains, projection.variances, projection.level
        mean, level = self.mean, self.level
        shift: Array | float = 0.0
        if level is not None and a is not None:
            information = level.information + projection.inner(a, a)
            height = projection.inner(a, errors) / (information + 1.0 / LEVEL_VARIANCE)
            errors, shift = errors - a * height, level.loading * height
            loading = level.loading - jnp.sum(G * projection.divide(a, S)[..., None], axis=1)
            level = FlatLevel(loading, information)
        mean = mean + jnp.sum(G * projection.divide(errors, S)[..., None], axis=1) + shift
        K = projection.divide(G, S + jnp.sqrt(S))
        factor = projection.inflation * self.factor
        for k in range(F.shape[1]):
            factor = factor - K[:, k, :, None] * F[:, k, None, :]
        return LinearPosterior(mean, factor, level)


def inverse_of_lower(factor: Float[Array, "*b n n"]) -> Float[Array, "*b n n"]:
    """Return the inverse of lower triangular matrices, by blocks of growing size.

    On a CPU, XLA's solve with a batch of triangular matrices takes twenty to thirty times as long for large ones.

    Parameters
    ----------
    factor : array of shape ``[…, n, n]``
        Lower triangular matrices, such as Cholesky factors.
    """
    n = factor.shape[-1]
    count = 2 ** max(0, math.ceil(math.log2(n / FIRST_BLOCK)))
    size = -(-n // count)
    total = count * size
    padded = jnp.pad(factor, [(0, 0)] * (factor.ndim - 2) + [(0, total - n)] * 2)
    padded = padded + jnp.diag((jnp.arange(total) >= n).astype(factor.dtype))

    def blocks(rows: Array, columns: Array) -> Array:
        """Return the blocks of the present size in these block rows and columns."""
        grid = padded.reshape(*factor.shape[:-2], total // size, size, total // size, size)
        return jnp.moveaxis(grid[..., rows, :, columns, :], 0, -3)

    places = jnp.arange(count)
    diagonal = blocks(places, places)
    unit = jnp.broadcast_to(jnp.eye(size, dtype=factor.dtype), diagonal.shape)
    inverse = jax.scipy.linalg.solve_triangular(diagonal, unit, lower=True)
    while size < total:
        even = jnp.arange(0, total // size, 2)
        upper, lower = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
        below = -lower @ blocks(even + 1, even) @ upper
        top = jnp.concatenate([upper, jnp.zeros_like(upper)], axis=-1)
        inverse = jnp.concatenate([top, jnp.concatenate([below, lower], axis=-1)], axis=-2)
        size *= 2
    return inverse[..., 0, :n, :n]


class ErrorScale(eqx.Module):
    """Usual size of prediction errors: a running median that no single absurd error can move by much.

    Parameters
    ----------
    median : array
        Running median of the absolute errors.
    rows : array
        Measured rows so far.
    """

    median: Float[Array, ""]
    rows: Float[Array, ""]

    def clip(
        self, errors: Float[Array, "..."], clipping: Float[Array, ""], spread: Float[Array, "..."] | float = 1.0
    ) -> Float[Array, "..."]:
        """Return the errors cut off at ``clipping`` times their usual size; zero cuts nothing off.

        Parameters
        ----------
        errors : array
            Values minus predictions.
        clipping : array
            Largest size that is believed, in usual sizes.
        spread : array, optional
            Predicted standard deviation of each error, in the unit in which ``median`` is counted.
        """
        limit = clipping * self.median * spread
        known = (clipping > 0) & (self.rows >= MIN_SCALE_ROWS) & (self.median > 0)
        return jnp.where(known, jnp.clip(errors, -limit, limit), errors)

    def update(
        self, sizes: Float[Array, "..."], used: Bool[Array, "..."], first_rows: int = MIN_SCALE_ROWS
    ) -> "ErrorScale":
        """Return the scale after errors of these sizes: the largest of the ``first_rows``, then a running median.

        Parameters
        ----------
        sizes : array
            Absolute errors.
        used : boolean array
            Which of them count.
        first_rows : int, optional
            Rows from which the largest error, not the running median, is taken.
        """
        count = jnp.sum(used)
        largest = jnp.maximum(jnp.max(jnp.where(used, sizes, 0.0)), self.median)
        above = jnp.sum(jnp.where(used, jnp.sign(sizes - self.median), 0.0)) / jnp.maximum(count, 1)
        step = jnp.maximum(MIN_SCALE_STEP, 1.0 / (2.0 + self.rows))
        median = jnp.where(self.rows < first_rows, largest, self.median * jnp.exp(step * above))
        return ErrorScale(jnp.where(jnp.any(used), median, self.median), self.rows + count)


def initial_scale(dtype: jnp.dtype | type | None = None) -> ErrorScale:
    """Return the scale before anything was measured."""
    return ErrorScale(jnp.zeros((), dtype), jnp.zeros((), dtype))


class RunningRegression(eqx.Module):
    """Ridge regression on fading means of its sufficient statistics, for features in any unit.

    The prior of each slope is worth a number of observations of its feature's own variance, so that scaling a feature
    changes no prediction. The intercept has no prior.
    """

    moments: Float[Array, "k k"]  # mean of z zᵀ, z = (1, x)
    products: Float[Array, " k"]  # mean of z v, v the value
    coefficients: Float[Array, " k"]

    @property
    def level(self) -> Float[Array, ""]:
        """The mean value, which needs no features."""
        return self.products[0] / jnp.maximum(self.moments[0, 0], 1e-30)

    def predict(self, z: Float[Array, " k"]) -> Float[Array, ""]:
        """Return the predicted value for features ``z = (1, x)``."""
        return z @ self.coefficients

    def update(
        self, z: Float[Array, " k"], value: Array, *, rate: Array, rounds: Array, prior_rounds: float
    ) -> "RunningRegression":
        """Return the regression with one more value.

        Parameters
        ----------
        z : array of shape ``[k]``
            Features with the constant 1 first.
        value : array
            What was measured.
        rate : array
            Weight of this value in the means, 1 for the first one.
        rounds : array
            Number of observations that the means stand for.
        prior_rounds : float
            Observations that the belief in slopes of zero is worth.
        """
        moments = self.moments + rate * (jnp.outer(z, z) - self.moments)
        products = self.products + rate * (z * value - self.products)
        return RunningRegression(moments, products, solve_ridge(moments, products, rounds, prior_rounds))


def initial_regression(features: int) -> RunningRegression:
    """Return a regression on ``features`` features, the constant included, before any value."""
    return RunningRegression(jnp.zeros((features, features)), jnp.zeros(features), jnp.zeros(features))


def solve_ridge(
    moments: Float[Array, "k k"], products: Float[Array, " k"], rounds: Float[Array, ""], prior_rounds: float
) -> Float[Array, " k"]:
    """Return ridge coefficients from mean moments of ``(1, x)``, the mean value alone if the moments are singular."""
    variances = jnp.diag(moments) - jnp.square(moments[0])  # of the constant: zero
    unit = jnp.sqrt(jnp.maximum(jnp.diag(moments), 1e-30))
    ridge = prior_rounds / rounds * variances + 1e-9 * jnp.square(unit)
    scaled = (moments + jnp.diag(ridge)) / jnp.outer(unit, unit)
    coefficients = jnp.linalg.solve(scaled, products / unit) / unit
    level_only = jnp.zeros_like(coefficients).at[0].set(products[0])
    return jnp.where(jnp.all(jnp.isfinite(coefficients)), coefficients, level_only)


class DualPosterior(NamedTuple):
    """Posterior of a linear model in the space of its ``n`` observed values, from their prior covariances (NumPy).

    With prior covariance ``K`` of the noiseless values and noise ``σ²``, a functional with prior covariances ``k`` to
    the values has the mean ``k·weights`` and the variance ``scale · (k₀ − kᵀ (K + σ²)⁻¹ k)``, ``k₀`` its own prior
    variance.

    Parameters
    ----------
    weights : array of shape ``[n]``
        ``(K + σ²)⁻¹ values``.
    factor : array of shape ``[n, n]``
        Lower Cholesky factor of ``K + σ²``.
    noise : float
        ``σ²``.
    scale : float
        Variance of the values in units of the covariances.
    """

    weights: np.ndarray
    factor: np.ndarray
    noise: float
    scale: float

    def predict(self, cross: np.ndarray) -> np.ndarray:
        """Return the means of functionals from their covariances ``[m, n]`` to the observed values.

        Parameters
        ----------
        cross : array of shape ``[m, n]``
            Prior covariances of the functionals to the observed values.
        """
        return np.asarray(cross @ self.weights)

    def deviation(self, cross: np.ndarray, prior: float) -> float:
        """Return the standard deviation of one functional with covariances ``[n]`` and its own prior variance.

        Parameters
        ----------
        cross : array of shape ``[n]``
            Prior covariances of the functional to the observed values.
        prior : float
            Its own prior variance.
        """
        known = np.square(_solve_lower(self.factor, cross))
        return float(np.sqrt(max(self.scale * (prior - known.sum()), 0.0)))


def fit_dual(
    covariance: np.ndarray, values: np.ndarray, noises: Sequence[float], *, clipping: float = 5.0, passes: int = 3
) -> DualPosterior | None:
    """Return the posterior of values with a prior covariance, or None if the values do not vary.

    Parameters
    ----------
    covariance : array of shape ``[n, n]``
        Prior covariance of the noiseless values, up to a scale that is estimated.
    values : array of shape ``[n]``
        Observed values, as deviations from their prior mean.
    noises : sequence of float
        Candidate noise variances in units of the covariance; the one of the highest likelihood is taken.
    clipping : float, default 5
        Usual errors (standard deviations by the median) beyond which an error is cut off.
    passes : int, default 3
        How often outlying values are cut back.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the covariance is not positive semi-definite, or holds numbers that are not finite.
    """
    from scipy.linalg import cho_solve

    spread = float(np.std(values))
    if not 0.0 < spread < np.inf:
        return None
    targets, diagonal = values / spread, np.eye(len(values))

    def fit(noise: float) -> tuple[float, float, np.ndarray]:
        """Return the negative log likelihood, the noise and the Cholesky factor."""
        factor = np.linalg.cholesky(covariance + noise * diagonal)
        size = np.mean(np.square(_solve_lower(factor, targets)))
        return float(len(targets) * np.log(size) + 2.0 * np.sum(np.log(np.diag(factor)))), noise, factor

    _, noise, factor = min(map(fit, noises), key=lambda fitted: fitted[0])
    for _ in range(passes):
        errors = noise * cho_solve((factor, True), targets, check_finite=False)
        limit = clipping * NORMAL_MEDIAN * np.median(np.abs(errors))
        targets = targets - errors + np.clip(errors, -limit, limit)
    scale = float(np.mean(np.square(_solve_lower(factor, targets)))) * spread**2
    return DualPosterior(spread * cho_solve((factor, True), targets, check_finite=False), factor, noise, scale)


def _solve_lower(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, values, lower=True, check_finite=False))
