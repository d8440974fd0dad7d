"""What decisions that were not made would have cost: a Bayesian regression of the totals that were seen.

The mean cost of coordinate ``i`` in the context ``x`` is ``f_i(x) = level + g(x) + h_i(x)``: ``g`` is common to all, ``h_i``
its own, and both are Gaussian processes that are constant, linear and smooth in ``x``. A total is ``f(x)·w`` plus noise.
With feature rows ``h_i`` is a constant and a linear function of the row. Noise and scale are those that make the totals most
likely; totals far off are cut back. ``difference`` gives posterior means of ``f(x)·v`` and the deviation of their average.
"""

from typing import NamedTuple

import numpy as np

FREE = 10.0
"""Variance of the level, in those of the other parts: it is as good as free."""

LINEAR, SMOOTH = 1.0, 0.5
"""Variance of the linear and of the smooth part, in those of the constant one."""

NOISES = np.geomspace(0.01, 5.0, 9)
FARTHEST = 4.0
RARE = (0.025, 0.975)
"""Quantiles of the totals that are believed: those outside by more than their distance are cut back to it."""

CLIPPING = 5.0
"""Usual errors beyond which an error is cut back."""

NORMAL = 1.4826
"""Median absolute deviations of a normal number in a standard deviation."""


class Rounds(NamedTuple):
    """Contexts with decisions ``[n, d]``, or differences of decisions.

    Contexts are vectors ``[n, p]``; of feature rows the sums ``Σ w_i x_i``, weighted by the decision, of the same shape.
    """

    features: np.ndarray
    w: np.ndarray


class Cover(NamedTuple):
    """Covariances of totals, in units that were found on the rounds that were fitted."""

    centre: np.ndarray
    spread: np.ndarray
    columns: int  # that vary
    size: float  # mean of ‖w‖²
    squares: float  # mean of (Σ w)²
    by_row: bool

    def shown(self, features: np.ndarray) -> np.ndarray:
        """Features in spreads from their centre; sums over rows have no centre."""
        scaled = (features - self.centre) / self.spread
        return scaled if self.by_row else np.clip(scaled, -FARTHEST, FARTHEST)

    def alike(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """How much the costs in some contexts tell of those in others, from their features."""
        a, b = self.shown(one), self.shown(other)
        inner = a @ b.T
        far = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1)[None] - 2.0 * inner
        return 1.0 + LINEAR * inner / self.columns + SMOOTH * np.exp(-0.5 * np.maximum(far, 0.0) / self.columns)

    def between(self, one: Rounds, other: Rounds) -> np.ndarray:
        """Covariances of the totals of some rounds with those of others."""
        own = one.w @ other.w.T / self.size
        common = np.outer(one.w.sum(axis=1), other.w.sum(axis=1)) / self.squares
        if self.by_row:
            rows = self.shown(one.features) @ self.shown(other.features).T / self.columns
            return own + (1.0 + FREE) * common + LINEAR * rows
        alike = self.alike(one.features, other.features)
        return own * alike + common * (alike + FREE)


class Model(NamedTuple):
    """The posterior."""

    cover: Cover
    rounds: Rounds
    level: float
    weights: np.ndarray
    values: np.ndarray  # eigenvalues of the covariances, with noise
    vectors: np.ndarray
    scale: float

    def difference(self, rounds: Rounds) -> tuple[np.ndarray, float]:
        """The means of ``f(x)·v`` in each of ``rounds``, and the standard deviation of their average."""
        across = self.cover.between(rounds, self.rounds)
        known = np.square(self.vectors.T @ across.mean(axis=0)) / self.values
        variance = self.scale * (self.cover.between(rounds, rounds).mean() - known.sum())
        return across @ self.weights + self.level * rounds.w.sum(axis=1), float(np.sqrt(max(variance, 0.0)))

    def mean_costs(self, contexts: np.ndarray) -> np.ndarray:
        """The mean of ``f`` over contexts, ``[n, p]`` or ``[n, d, p]``: for every coordinate."""
        cover, w = self.cover, self.rounds.w
        total = w.sum(axis=1) / cover.squares
        if cover.by_row:
            slopes = self.weights @ cover.shown(self.rounds.features) * (LINEAR / cover.columns)
            own = self.weights @ w / cover.size + cover.shown(contexts.mean(axis=0)) @ slopes
            return np.asarray(own + (1.0 + FREE) * (self.weights @ total) + self.level)
        alike = cover.alike(contexts, self.rounds.features).mean(axis=0)
        return np.asarray(
            (self.weights * alike) @ w / cover.size + self.weights @ (total * (alike + FREE)) + self.level
        )


def fitted(rounds: Rounds, totals: np.ndarray, by_row: bool) -> Model | None:
    """The model of these totals; None where they tell nothing."""
    sums = rounds.w.sum(axis=1)
    low, high = np.quantile(totals, RARE)
    believed = np.clip(totals, low - (high - low), high + (high - low))
    spread, squares = float(np.std(believed)), float(np.mean(np.square(sums)))
    if not (0.0 < spread < np.inf and 0.0 < squares < np.inf):
        return None
    level = float(np.sum(believed * sums) / np.sum(np.square(sums)))
    cover = _cover(rounds, squares, by_row)
    values, vectors = np.linalg.eigh(cover.between(rounds, rounds))
    values, off = np.maximum(values, 0.0), (believed - level * sums) / spread
    seen = vectors.T @ off
    noise = min(NOISES, key=lambda noise: _unlikely(seen, values + noise))
    values = values + noise
    for _ in range(3):
        errors = noise * (vectors @ (vectors.T @ off / values))
        limit = CLIPPING * NORMAL * np.median(np.abs(errors))
        off = off - errors + np.clip(errors, -limit, limit)
    seen = vectors.T @ off / values
    scale = float(np.mean(np.square(vectors.T @ off) / values)) * spread**2
    return Model(cover, rounds, level, spread * (vectors @ seen), values, vectors, scale)


def _cover(rounds: Rounds, squares: float, by_row: bool) -> Cover:
    """The units of the covariances."""
    features = rounds.features
    if by_row:
        centre, spread = np.zeros(features.shape[1]), np.sqrt(np.mean(np.square(features), axis=0))
    else:
        centre = np.median(features, axis=0)
        spread = NORMAL * np.median(np.abs(features - centre), axis=0)
        spread = np.where(spread > 0, spread, np.std(features, axis=0))
    varies = spread > 0
    size = float(np.mean(np.sum(np.square(rounds.w), axis=1)))
    return Cover(centre, np.where(varies, spread, np.inf), max(1, int(varies.sum())), size, squares, by_row)


def _unlikely(seen: np.ndarray, values: np.ndarray) -> float:
    """Minus the logarithm of the likelihood, but for a constant; the scale is the likeliest one."""
    return float(len(seen) * np.log(np.mean(np.square(seen) / values)) + np.sum(np.log(values)))
