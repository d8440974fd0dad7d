"""Sizes of contexts and costs, estimated while they come in, so that a policy meets numbers of order one."""

import numpy as np

SETTLED = 200
"""Observations after which an estimate stays as it is: a unit that moved for ever would unlearn what was learnt in it."""


class ContextScale:
    """``(x − mean) / standard deviation`` per feature, over the first SETTLED contexts; feature rows share their columns.

    A feature that has not varied yet is only centred.
    """

    def __init__(self, features: int):
        self.count = np.zeros((), np.int64)
        self.mean = np.zeros(features)
        self.square = np.zeros(features)  # sum of squared deviations

    def __call__(self, context: np.ndarray) -> np.ndarray:
        """The context in the present units."""
        deviation = np.sqrt(self.square / max(int(self.count), 1))
        return (context - self.mean) / np.where(deviation > 1e-12 * (1e-300 + np.abs(self.mean)), deviation, 1.0)

    def after(self, context: np.ndarray) -> "ContextScale":
        """The estimate with one more context (or with all rows of one)."""
        rows = context.reshape(-1, len(self.mean))
        if self.count >= SETTLED * len(rows):
            return self
        later = ContextScale(len(self.mean))
        later.count = self.count + len(rows)
        shift = rows.mean(axis=0) - self.mean
        later.mean = self.mean + shift * len(rows) / later.count
        within = np.sum(np.square(rows - rows.mean(axis=0)), axis=0)
        later.square = self.square + within + np.square(shift) * self.count * len(rows) / later.count
        return later


class CostScale:
    """Root mean square of ``v / ‖h‖`` over the first SETTLED values ``v`` of measurement rows ``h``: the size of one cost."""

    def __init__(self) -> None:
        self.count = np.zeros((), np.int64)
        self.square = np.zeros(())

    @property
    def size(self) -> float:
        """The present unit of cost."""
        return float(np.sqrt(self.square / self.count)) if self.count and self.square > 0 else 1.0

    def after(self, values: np.ndarray, row_squares: np.ndarray) -> "CostScale":
        """The estimate with some more values of rows with these squared norms."""
        used = row_squares > 0
        if self.count >= SETTLED or not used.any():
            return self
        later = CostScale()
        later.count = self.count + int(used.sum())
        later.square = self.square + np.sum(np.square(values[used]) / row_squares[used])
        return later
