"""Feedback as users tell it (RawFeedback), and as policies learn from it (Arrival)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import FeedbackError
from regretless.live import inputs

TOLERANCE = 1e-6
"""Relative difference up to which two ways to tell the same total agree."""


class Arrival(NamedTuple):
    """Values of the regime's rows, and which of them arrived; where rows are told with the feedback, they and their linkage."""

    values: np.ndarray
    seen: np.ndarray
    matrix: np.ndarray | None = None
    linkage: np.ndarray | None = None

    def signature(self) -> np.ndarray:
        """Everything that was told, as one vector: two arrivals are the same feedback if these agree."""
        parts = [np.where(self.seen, self.values, 0.0), self.seen.astype(float)]
        if self.matrix is not None:
            parts.append(self.matrix.reshape(-1))
        return np.concatenate(parts)


class RawFeedback(NamedTuple):
    """What the user said, in at most two of these ways (a total beside another one is checked against it)."""

    total: float | None = None
    components: Mapping[Hashable, float] | None = None
    costs: Sequence[float] | None = None
    linear: tuple[Any, Any] | None = None
    values: Sequence[float] | None = None

    def form(self) -> str:
        """The one way that says most."""
        forms = [name for name in ("components", "costs", "linear", "values") if getattr(self, name) is not None]
        if len(forms) > 1 or (not forms and self.total is None):
            raise FeedbackError(
                "expected one of total=, components={coordinate: cost}, costs=vector, linear=(H, v), values=vector, "
                f"got {' and '.join(forms) or 'none of them'}"
            )
        return forms[0] if forms else "total"

    def agreed(self, y: float) -> float:
        """``y``, unless a total was told that it contradicts."""
        if self.total is None:
            return y
        total = number("total", self.total)
        if not abs(total - y) <= TOLERANCE * max(1.0, abs(y)):
            raise FeedbackError(
                f"feedback contradicts its own linkage: the parts add up to {y:g}, the total says {total:g}"
            )
        return y

    def items(self) -> list[tuple[Hashable, float]]:
        """The single costs by coordinate."""
        if not isinstance(self.components, Mapping):
            raise FeedbackError(
                f"feedback: expected components={{coordinate: cost}}, a dictionary, got {inputs.said(self.components)}"
            )
        return [(name, number(f"components[{inputs.said(name)}]", cost)) for name, cost in self.components.items()]

    def vector(self, name: str, length: int) -> np.ndarray:
        """``costs`` or ``values``, so many numbers, NaN for what was not seen."""
        found = inputs.numbers(f"feedback: {name}", getattr(self, name), FeedbackError)
        if found.shape != (length,):
            raise FeedbackError(f"feedback: expected {name} of shape ({length},), got {found.shape}")
        if np.any(np.isinf(found)):
            raise FeedbackError(f"feedback: expected finite {name} (NaN for what was not seen), got infinity")
        return found

    def rows(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """``H`` and ``v`` of linear rows."""
        if not isinstance(self.linear, tuple | list) or len(self.linear) != 2:
            raise FeedbackError(f"feedback: expected linear to be the pair (H, v), got {inputs.said(self.linear)}")
        matrix, values = (
            inputs.numbers(f"feedback: linear: {name}", part, FeedbackError)
            for name, part in zip("Hv", self.linear, strict=True)
        )
        if values.ndim != 1 or matrix.shape != (len(values), dim):
            raise FeedbackError(
                f"feedback: expected linear=(H, v) with H of shape (rows, {dim}) and v of shape (rows,), "
                f"got {matrix.shape} and {values.shape}"
            )
        if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(values))):
            raise FeedbackError("feedback: expected finite numbers in linear=(H, v)")
        if not len(values):
            raise FeedbackError("feedback: expected at least one row, got none; leave the decision waiting instead")
        return matrix, values


def number(what: str, given: Any) -> float:
    """One finite number."""
    array = inputs.numbers(f"feedback: {what}", given, FeedbackError)
    if array.shape != ():
        raise FeedbackError(f"feedback: {what}: expected one number, got shape {array.shape}")
    if not np.isfinite(array):
        raise FeedbackError(f"feedback: {what}: expected a finite number, got {array}")
    return float(array)


def least_squares(matrix: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """The least-squares solution of ``matrix · x = values``, and the largest distance that is left."""
    try:
        solution, *_ = np.linalg.lstsq(matrix, values)
    except np.linalg.LinAlgError as error:
        raise FeedbackError(
            f"feedback: these rows cannot be solved for a cost ({error}); are their numbers of a usable size?"
        ) from None
    return solution, float(np.max(np.abs(matrix @ solution - values), initial=0.0))


def recover(matrix: np.ndarray, w: np.ndarray) -> np.ndarray | None:
    """``e`` with ``Hᵀe = w``, or None if there is none."""
    linkage, error = least_squares(matrix.T, w)
    return linkage if error <= TOLERANCE * max(1.0, float(np.max(np.abs(w)))) else None
