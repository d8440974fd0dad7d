"""A plain NumPy model of a live learner's books: ids, rows and totals that were taken, what waits, what expired,
the scales.

It shares no code with ``regretless``: the numbers of ``policies/scaling.py`` are stated here again.
"""

from typing import Any, NamedTuple

import numpy as np

GROUPS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
"""What the regime called ``groups`` sums up."""


class Taken(NamedTuple):
    """Feedback as it must have been taken: rows ``H``, their values and linkage, and which of them arrived."""

    matrix: np.ndarray
    values: np.ndarray
    seen: np.ndarray
    linkage: np.ndarray
    complete: bool
    varying: bool = False  # whether the rows came with the feedback

    def signature(self) -> np.ndarray:
        """Return everything that distinguishes one piece of feedback from another, as one vector."""
        rows = [self.matrix.ravel()] if self.varying else []
        return np.concatenate([np.where(self.seen, self.values, 0.0), self.seen.astype(float), *rows])


def measured(regime: str, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``H(w)`` and ``e(w)`` of a regime whose rows are known beforehand."""
    return {
        "bandit": lambda: (w[None], np.ones(1)),
        "semi_bandit": lambda: (np.diag(w), np.ones(len(w))),
        "full": lambda: (np.eye(len(w)), w),
        "groups": lambda: (GROUPS * w, np.ones(2)),
    }[regime]()


def taken(regime: str, w: np.ndarray, cost: np.ndarray, arrived: np.ndarray) -> Taken | None:
    """The rows of a fixed regime when those in ``arrived`` were reported; None if that says nothing at all."""
    matrix, linkage = measured(regime, w)
    informative = matrix.any(axis=1)
    if not np.any(arrived & informative):
        return None
    seen = arrived | ~informative
    values = np.where(seen, matrix @ cost, 0.0)
    return Taken(matrix, values, seen, linkage, bool(np.all(seen | (linkage == 0))))


def taken_rows(matrix: np.ndarray, values: np.ndarray, w: np.ndarray, most: int) -> Taken:
    """Rows that came with the feedback, padded with zeros; the last row is ``w``, which stands for an unknown total."""
    count, dim = matrix.shape
    complete = np.linalg.matrix_rank(np.vstack([matrix, w])) == np.linalg.matrix_rank(matrix)
    linkage = np.zeros(most + 1)
    if complete:
        linkage[:count] = np.linalg.pinv(matrix.T) @ w
    else:
        linkage[-1] = 1.0
    full = np.vstack([matrix, np.zeros((most - count, dim)), w])
    padded = np.concatenate([values, np.zeros(most + 1 - count)])
    return Taken(full, padded, np.arange(most + 1) < count, linkage, bool(complete), varying=True)


class Scale:
    """Centre and spread of the first 64 rows: the median, and the deviation of the nine tenths nearest to it."""

    def __init__(self, columns: int, centred: bool):
        self.rows: list[np.ndarray] = []
        self.centred = centred
        self.centre, self.spread = np.zeros(columns), np.zeros(columns)

    def add(self, row: np.ndarray) -> None:
        """One row more; those after the 64th change nothing."""
        if len(self.rows) == 64:
            return
        self.rows.append(np.array(row, float))
        rows, n = np.array(self.rows), len(self.rows)
        if self.centred:
            ordered = np.sort(rows, axis=0)
            self.centre = 0.5 * ordered[(n - 1) // 2] + 0.5 * ordered[n // 2]
        kept = n if n < 3 else min(int(np.ceil(0.9 * n)), n - 1)
        factor = max(1 + 2 / n, 1.27) if self.centred else 1.27
        with np.errstate(over="ignore"):
            near = np.sort(np.abs(rows - self.centre), axis=0)[:kept]
        top = near.max(axis=0)
        shares = near / np.where(top > 0, top, 1.0)
        deviation = factor * top * np.sqrt(np.mean(shares**2, axis=0))
        varied = (deviation > 1e-12 * (1e-300 + np.abs(self.centre))) & np.isfinite(deviation)
        self.spread = np.where(varied, deviation, 0.0)


class Model:
    """What the learner must say of itself after the calls that it accepted."""

    def __init__(self, limit: int, max_age: int | None, columns: int, scaling: bool, offset: np.ndarray | None):
        self.limit, self.max_age, self.scaling, self.offset = limit, max_age, scaling, offset
        self.made = self.expired = self.count = 0
        self.waiting: dict[int, Any] = {}  # id -> choice
        self.learned: dict[int, tuple[Taken, dict[str, Any]]] = {}  # id -> what was taken, and how it was reported
        self.last: np.ndarray | None = None
        self.contexts, self.costs = Scale(columns, centred=True), Scale(1, centred=False)

    def decide(self, choice: Any) -> None:
        """A decision was made."""
        self.made += 1
        self.waiting[self.made] = choice
        if not choice.fallback:
            self.last = choice.w
        while len(self.waiting) > self.limit or (
            self.max_age is not None and self.made - min(self.waiting) > self.max_age
        ):
            del self.waiting[min(self.waiting)]
            self.expired += 1

    def learn(self, id: int, found: Taken, report: dict[str, Any]) -> tuple[float | None, bool]:
        """Feedback was taken; the total (None: it is not known), and whether any of it was too absurd to be
        believed.
        """
        choice = self.waiting.pop(id)
        self.learned[id] = (found, report)
        self.count += 1
        known = np.zeros(found.matrix.shape[1]) if self.offset is None else self.offset
        values = np.where(found.seen, found.values, 0.0) - found.matrix @ known
        absurd = self.scaling and self._is_absurd(choice.context, values, found)
        total = float(np.sum(np.where(found.seen, found.linkage * values, 0.0)) + known @ choice.w)
        return (total if found.complete else None), absurd

    def remembered(self) -> list[int]:
        """Learned decisions whose feedback is still known."""
        return list(self.learned)[-self.limit :]

    def _described(self, x: np.ndarray) -> np.ndarray:
        """What the scale gets of a context: itself, of feature rows one, or their means and deviations from them."""
        if x.ndim == 1:
            return x
        if len(self.contexts.centre) == x.shape[1]:
            return np.asarray(x[len(self.contexts.rows) % len(x)])
        return np.concatenate([x.mean(axis=0), x.std(axis=0)])

    def _is_absurd(self, x: np.ndarray, values: np.ndarray, found: Taken) -> bool:
        """Moves the scales on; whether a value is beyond a thousand units then."""
        norms = np.sqrt(np.sum(found.matrix**2, axis=1))
        used = found.seen & (norms > 0)
        self.contexts.add(self._described(x))
        if used.any():
            self.costs.add(np.array([np.sum(np.abs(values[used]) / norms[used] / np.sum(used))]))
        return bool(np.any(np.abs(values) > 1000.0 * (self.costs.spread[0] or 1.0) * norms))
