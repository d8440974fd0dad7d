"""Portfolio: the highest return within a limit on the variance, traced along the efficient frontier."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import BROKEN, TraceableOracle, check_finite
from regretless.types import SOLVED, Cost, Instance, Solution

Rows = tuple[tuple[float, ...], ...]

TOLERANCE = 1e-5
"""Relative violation of a constraint that counts as feasible; what is solved in single precision needs it."""


class PortfolioOracle(TraceableOracle):
    """``S = {w ≥ 0 : 1·w = 1, w·covariance·w ≤ risk}``; for returns to maximise, costs are the negative returns.

    The critical line algorithm (Markowitz, 1956): from the portfolio with the lowest variance along the efficient
    frontier, one asset enters or leaves at a time, to the point where the variance is ``risk`` or the cost is lowest.
    Pure JAX, exact up to rounding. The feasible set never changes: there are no instances.

    Parameters
    ----------
    covariance : array of shape (d, d)
        Covariance matrix of the returns, symmetric and positive definite.
    risk : float
        Largest variance, at least that of the portfolio with the lowest one.

    Examples
    --------
    >>> import jax.numpy as jnp, regretless as rg
    >>> oracle = rg.oracles.portfolio([[1.0, 0.0], [0.0, 1.0]], risk=0.625)
    >>> oracle.solve_one(jnp.array([-2.0, -1.0])).w.tolist()
    [0.75, 0.25]
    """

    covariance: Rows = eqx.field(static=True)
    risk: float = eqx.field(static=True)

    def __init__(self, covariance: Any, risk: float):
        matrix = check_finite("portfolio: covariance", covariance).astype(np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise SettingsError(f"portfolio: expected a covariance matrix of shape (d, d), got {matrix.shape}")
        if not np.allclose(matrix, matrix.T) or np.min(np.linalg.eigvalsh(matrix)) <= 0:
            raise SettingsError(
                "portfolio: expected a symmetric, positive definite covariance matrix; a small multiple of the "
                "identity on top makes a matrix with dependent assets one"
            )
        self.risk = float(check_finite("portfolio: risk", risk, ()))
        self.covariance, self.dim = tuple(tuple(row) for row in ((matrix + matrix.T) / 2).tolist()), len(matrix)
        lowest = _start(self.covariance, 1.0).variance
        if self.risk < lowest:
            raise SettingsError(f"portfolio: expected a risk of at least the lowest variance {lowest:.6g}, got {risk}")

    @property
    def convex(self) -> bool:
        return True

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        start = _start(self.covariance, self.risk)
        table, level, by_cost = (jnp.asarray(part, cost.dtype) for part in (start.table, start.level, start.by_cost))
        relative = cost - jnp.min(cost)
        size = jnp.max(relative)
        relative = relative / jnp.where(size > 0, size, 1.0)
        slope = -_sum(by_cost * relative)
        tie = 100.0 * float(jnp.finfo(cost.dtype).eps)
        still = tie * start.size
        begin = _Frontier(table, level, slope, jnp.asarray(start.held), jnp.zeros((), cost.dtype), jnp.asarray(0))

        def end(now: _Frontier) -> Array:
            """Return where the variance along the present line, ``−ν + μ² (−c·slope)``, is 1; inf if it stays."""
            held, along = now.held[:-1], jnp.where(now.held, now.slope, 0.0)[:-1]
            centre = _sum(jnp.where(held, relative, 0.0)) / _sum(held.astype(cost.dtype))
            spread = -_sum(along * (relative - centre))  # the slopes add up to 0
            moves = (jnp.max(jnp.abs(along)) > still) & (spread > 0)
            until = jnp.sqrt(jnp.maximum(1.0 + now.level[-1], 0.0) / jnp.where(moves, spread, 1.0))
            return jnp.where(moves, until, jnp.inf)

        def events(now: _Frontier) -> Array:
            """Return where each asset leaves (its share is 0) or enters (its reduced cost is 0)."""
            leaves = now.held & (now.slope < 0) & jnp.isfinite(end(now))
            changes = (leaves | (~now.held & (now.slope > tie))).at[-1].set(False)
            when = -now.level / jnp.where(changes, now.slope, 1.0)
            return jnp.where(changes, jnp.maximum(when, now.mu), jnp.inf)

        def step(now: _Frontier) -> _Frontier:
            when = events(now)
            k = jnp.argmin(when)
            return _exchange(now, k, when[k])

        def continues(now: _Frontier) -> Array:
            return (jnp.min(events(now)) < end(now)) & (now.steps < 8 * (self.dim + 1))

        last = jax.lax.while_loop(continues, step, begin)
        mu = jnp.where(jnp.isfinite(end(last)), end(last), last.mu)
        shares = jnp.where(last.held, jnp.maximum(last.level + mu * last.slope, 0.0), 0.0)[:-1]
        return Solution(shares / _sum(shares), jnp.where(continues(last), BROKEN, SOLVED))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        self._converted(instance)
        variance = jnp.sum(w * jnp.sum(jnp.asarray(np.array(self.covariance), w.dtype) * w, axis=1))
        whole = (jnp.min(w) >= -TOLERANCE) & (jnp.abs(jnp.sum(w) - 1.0) <= TOLERANCE)
        return whole & (variance <= self.risk * (1.0 + TOLERANCE))

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        if given is not None:
            raise SettingsError(f"{name}: expected None, a portfolio's feasible set never changes, got {given!r}")
        return None


class _Frontier(NamedTuple):
    """A place on the efficient frontier: minimise ``x·Σx / 2 + μ c·x``; row ``d`` is the multiplier ν of ``1·x = 1``.

    Of the assets that are held, ``level + μ slope`` is the share, of the others minus the reduced cost. ``table``
    is the matrix ``[[Σ, 1], [1, 0]]`` after exchanging the rows that are held for their columns.
    """

    table: Float[Array, "d+1 d+1"]
    level: Float[Array, " d+1"]
    slope: Float[Array, " d+1"]
    held: Bool[Array, " d+1"]
    mu: Float[Array, ""]
    steps: Array


def _sum(terms: Array) -> Array:
    """Add up the last axis in a fixed order, so that a row has the same answer in every batch to the last bit."""
    while terms.shape[-1] > 1:
        even, odd = terms[..., ::2], terms[..., 1::2]
        pad = [(0, 0)] * (terms.ndim - 1) + [(0, even.shape[-1] - odd.shape[-1])]
        terms = even + jnp.pad(odd, pad)
    return terms[..., 0]


def _exchange(now: _Frontier, k: Array, mu: Array) -> _Frontier:
    """Let asset ``k`` enter or leave: one exchange step of Gauss and Jordan, the same in both directions."""
    row, column = now.table[k], now.table[:, k]
    pivot = row[k]
    here = jnp.arange(len(row)) == k
    table = now.table - column[:, None] * (row / pivot)[None, :]
    table = jnp.where(here[None, :], (-column / pivot)[:, None], table)
    table = jnp.where(here[:, None], jnp.where(here, 1.0 / pivot, row / pivot)[None, :], table)
    level, slope = (jnp.where(here, part / pivot, part - column * (part[k] / pivot)) for part in (now.level, now.slope))
    return _Frontier(table, level, slope, now.held ^ here, mu, now.steps + 1)


class _Start(NamedTuple):
    """The portfolio with the lowest variance, for a covariance in units of the risk."""

    table: np.ndarray
    level: np.ndarray
    by_cost: np.ndarray  # [d + 1, d] minus the slope, as a function of the cost
    held: np.ndarray
    variance: float
    size: float  # of the inverse covariance


@functools.lru_cache(maxsize=16)
def _start(covariance: Rows, risk: float) -> _Start:
    from scipy.optimize import nnls  # a third of a second: not before it is needed

    matrix = np.array(covariance) / risk
    dim = len(matrix)
    lower = np.linalg.cholesky(matrix)
    held = np.append(nnls(lower.T, np.linalg.solve(lower, np.ones(dim)))[0] > 0, True)
    full = np.block([[matrix, np.ones((dim, 1))], [np.ones((1, dim)), np.zeros((1, 1))]])
    inside, outside = np.flatnonzero(held), np.flatnonzero(~held)
    inverse = np.linalg.inv(full[np.ix_(inside, inside)])
    crossed = full[np.ix_(outside, inside)]
    table, by_cost = full.copy(), np.eye(dim + 1)
    table[np.ix_(inside, inside)] = by_cost[np.ix_(inside, inside)] = inverse
    table[np.ix_(inside, outside)] = inverse @ crossed.T
    table[np.ix_(outside, inside)] = by_cost[np.ix_(outside, inside)] = -crossed @ inverse
    table[np.ix_(outside, outside)] -= crossed @ inverse @ crossed.T
    level = by_cost[:, dim]
    return _Start(table, level, by_cost[:, :dim], held, float(-level[dim]), float(np.max(np.diag(inverse)[:-1])))
