"""Feedback as it arrives: a total, single costs, a whole vector or linear rows become what the learner's regime shows."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from regretless.errors import FeedbackError
from regretless.feedback import Bandit, Full, Measurement, Rows, SemiBandit
from regretless.types import Operator

TOLERANCE = 1e-6
"""Relative difference up to which two ways to tell the same total agree."""


class FreeRows(Measurement):
    """Rows that are told with every feedback; the total stands for them until then."""

    @property
    def name(self) -> str:
        return "linear"

    def measure(self, w: Any, aux: Any) -> tuple[Operator, Any]:
        return Rows(w[None]), jnp.ones(1)


class Arrival(NamedTuple):
    """Values of the regime's rows, and which of them arrived; with free rows, the rows and their linkage too."""

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


class Told(NamedTuple):
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


class Reader:
    """Turns what was told about a decision ``w`` into an Arrival; refuses what contradicts itself or the decision.

    ``measure(w, aux)`` gives ``H(w)`` and ``e(w)`` of a regime that is not one of the three named ones, ``rows`` is the most
    rows that feedback without a fixed regime may have (None: the regime fixes them), ``names`` the names of the coordinates.
    """

    def __init__(
        self, rule: Measurement, dim: int, may_miss: bool, rows: int | None, names: Sequence[Hashable] | None,
        measure: Callable[..., tuple[np.ndarray, np.ndarray]],
    ):  # fmt: skip
        self.rule, self.dim, self.may_miss, self.rows, self.measure = rule, dim, may_miss, rows, measure
        self.places = {} if names is None else {name: i for i, name in enumerate(names)}
        self.doubled = set() if names is None else {name for name in names if list(names).count(name) > 1}

    def read(self, told: Told, w: np.ndarray, aux: Any) -> Arrival:
        """The arrival that this feedback on ``w`` is."""
        form = told.form()
        w = np.asarray(w, np.float64)
        if self.rows is not None:
            arrival = self._free(form, told, w)
        elif isinstance(self.rule, Bandit):
            arrival = Arrival(np.array([self._total(form, told, w)]), np.ones(1, bool))
        elif isinstance(self.rule, SemiBandit | Full):
            arrival = self._coordinates(form, told, w)
        else:
            arrival = self._fixed_rows(form, told, w, aux)
        if not np.all(np.isfinite(arrival.values[arrival.seen])):
            raise FeedbackError(f"feedback: expected finite numbers, got {arrival.values[arrival.seen].tolist()}")
        if not arrival.seen.any():
            raise FeedbackError("feedback: expected at least one cost, got none; leave the decision waiting instead")
        return arrival

    def _total(self, form: str, told: Told, w: np.ndarray) -> float:
        if form == "total":
            return _number(told.total)
        if form == "linear":
            matrix, values = self._rows(told)
            linkage = _recover(matrix, w)
            if linkage is None:
                raise FeedbackError("feedback: the total cannot be recovered from these rows (no e with Hᵀe = w)")
            y = float(linkage @ values)
        elif form == "values":
            y = float(self._vector(told.values, 1, "values")[0])
        else:
            costs = self._costs(form, told)
            missing = np.flatnonzero((w != 0) & np.isnan(costs))
            if len(missing):
                raise FeedbackError(
                    f"feedback: a bandit learner needs the total, but the cost of {self._say(missing)} is missing; "
                    "give total=, or build the learner with feedback='semi_bandit'"
                )
            y = float(np.sum(np.where(w != 0, w * costs, 0.0)))
        return _agree(y, told.total)

    def _coordinates(self, form: str, told: Told, w: np.ndarray) -> Arrival:
        semi = isinstance(self.rule, SemiBandit)
        if form == "total":
            raise FeedbackError(
                f"feedback: a {self.rule.name} learner needs components= or costs=, got the total alone; "
                "build the learner with feedback='bandit' to learn from totals"
            )
        if form == "values":
            values = self._vector(told.values, self.dim, "values")
        elif form == "linear":
            matrix, measured = self._rows(told)
            values = self._matched(np.diag(w) if semi else np.eye(self.dim), matrix, measured)
        else:
            values = self._costs(form, told)
            if form == "components" and semi and np.any(~np.isnan(values) & (w == 0)):
                wrong = np.flatnonzero(~np.isnan(values) & (w == 0))
                raise FeedbackError(
                    f"feedback: {self._say(wrong)} was not chosen, so its cost cannot have been seen; "
                    "build the learner with feedback='full' if it can"
                )
            values = np.where(w != 0, w * values, np.nan) if semi else values
        relevant = w != 0 if semi else np.ones(self.dim, bool)
        arrived = ~np.isnan(values) & relevant
        self._complete(arrived | ~relevant)
        values = np.where(arrived, values, 0.0)
        if np.all(arrived | (w == 0)):
            _agree(float(np.sum(values) if semi else values @ w), told.total)
        return Arrival(values, arrived | ~relevant if arrived.any() else arrived)

    def _fixed_rows(self, form: str, told: Told, w: np.ndarray, aux: Any) -> Arrival:
        matrix, linkage = self.measure(w, aux)
        if form == "values":
            values = self._vector(told.values, len(matrix), "values")
        elif form == "linear":
            values = self._matched(matrix, *self._rows(told))
        elif form == "total":
            raise FeedbackError(
                f"feedback: expected values= of the {len(matrix)} rows of {self.rule.name!r}, got total="
            )
        else:
            costs = self._costs(form, told)
            hidden = np.any((matrix != 0) & np.isnan(costs), axis=1)
            values = np.where(hidden, np.nan, matrix @ np.nan_to_num(costs))
        seen = ~np.isnan(values)
        self._complete(seen | ~matrix.any(axis=1))
        values = np.where(seen, values, 0.0)
        if np.all(seen | (linkage == 0)):
            _agree(float(linkage @ values), told.total)
        return Arrival(values, seen)

    def _free(self, form: str, told: Told, w: np.ndarray) -> Arrival:
        """Rows that differ from decision to decision, padded; a hidden last row stands for a total that is not known."""
        assert self.rows is not None
        if form == "total":
            matrix, values = w[None], np.array([_number(told.total)])
        elif form == "linear":
            matrix, values = self._rows(told)
        elif form == "values":
            raise FeedbackError(
                "feedback: this learner's rows differ by decision: give linear=(H, v) instead of values="
            )
        else:
            costs = self._costs(form, told)
            known = np.flatnonzero(~np.isnan(costs))
            matrix, values = np.eye(self.dim)[known], costs[known]
        if len(values) > self.rows:
            raise FeedbackError(f"feedback: expected at most {self.rows} rows, got {len(values)}; raise rows=")
        solution, *_ = np.linalg.lstsq(matrix, values)
        worst = float(np.max(np.abs(matrix @ solution - values), initial=0.0))
        if worst > TOLERANCE * max(1.0, float(np.max(np.abs(values), initial=0.0))):
            raise FeedbackError(
                f"feedback: no cost vector explains all of these rows, the nearest misses by {worst:.3g}"
            )
        linkage = _recover(matrix, w)
        padding = self.rows + 1 - len(values)
        full = np.concatenate([matrix, np.zeros((padding - 1, self.dim)), w[None]])
        seen = np.concatenate([np.ones(len(values), bool), np.zeros(padding, bool)])
        weights = np.zeros(self.rows + 1)
        if linkage is None:
            weights[-1] = 1.0
        else:
            _agree(float(linkage @ values), told.total)
            weights[: len(values)] = linkage
        return Arrival(np.concatenate([values, np.zeros(padding)]), seen, full, weights)

    def _complete(self, arrived: np.ndarray) -> None:
        if not self.may_miss and not arrived.all():
            raise FeedbackError(
                "feedback: some rows are missing; build the learner with may_miss=True to learn from the rest"
            )

    def _costs(self, form: str, told: Told) -> np.ndarray:
        """Single costs as a vector, NaN where nothing was told."""
        if form == "costs":
            return self._vector(told.costs, self.dim, "costs")
        costs = np.full(self.dim, np.nan)
        for name, cost in (told.components or {}).items():
            costs[self._place(name)] = _number(cost)
        return costs

    def _place(self, name: Hashable) -> int:
        if name in self.doubled:
            raise FeedbackError(
                f"feedback: there are several coordinates {name!r}: give their numbers 0 to {self.dim - 1}"
            )
        if name in self.places:
            return self.places[name]
        if isinstance(name, int | np.integer) and 0 <= name < self.dim:
            return int(name)
        example = f" or one of its names, such as {next(iter(self.places))!r}" if self.places else ""
        raise FeedbackError(f"feedback: expected a coordinate from 0 to {self.dim - 1}{example}, got {name!r}")

    def _vector(self, values: Any, length: int, what: str) -> np.ndarray:
        vector = _array(values, what)
        if vector.shape != (length,):
            raise FeedbackError(f"feedback: expected {what} of shape ({length},), got {vector.shape}")
        if np.any(np.isinf(vector)):
            raise FeedbackError(f"feedback: expected finite {what} (NaN for what was not seen), got {vector.tolist()}")
        return vector

    def _rows(self, told: Told) -> tuple[np.ndarray, np.ndarray]:
        assert told.linear is not None
        matrix, values = _array(told.linear[0], "H"), _array(told.linear[1], "v")
        if matrix.ndim != 2 or matrix.shape != (len(values), self.dim):
            raise FeedbackError(
                f"feedback: expected linear=(H, v) with H of shape (rows, {self.dim}) and v of shape (rows,), "
                f"got {matrix.shape} and {values.shape}"
            )
        if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(values))):
            raise FeedbackError("feedback: expected finite numbers in linear=(H, v)")
        return matrix, values

    def _matched(self, expected: np.ndarray, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The values in the order of the regime's own rows; a row that is none of them contradicts the regime."""
        found = np.full(len(expected), np.nan)
        for row, value in zip(matrix, values, strict=True):
            same = np.flatnonzero(np.all(np.isclose(expected, row), axis=1) & np.isnan(found))
            if not len(same):
                raise FeedbackError(
                    f"feedback: {row.tolist()} is not a row of H(w) of {self.rule.name!r} for this decision"
                )
            found[same[0]] = value
        return found

    def _say(self, places: np.ndarray) -> str:
        names = {i: name for name, i in self.places.items()}
        return ", ".join(f"{names.get(i, i)}" for i in places[:5].tolist()) + (" …" if len(places) > 5 else "")


def _recover(matrix: np.ndarray, w: np.ndarray) -> np.ndarray | None:
    """``e`` with ``Hᵀe = w``, or None if there is none."""
    linkage, *_ = np.linalg.lstsq(matrix.T, w)
    error = np.max(np.abs(matrix.T @ linkage - w), initial=0.0)
    return linkage if error <= TOLERANCE * max(1.0, float(np.max(np.abs(w)))) else None


def _agree(y: float, total: float | None) -> float:
    """``y``, unless a total was told that it contradicts."""
    if total is not None and abs(_number(total) - y) > TOLERANCE * max(1.0, abs(y)):
        raise FeedbackError(
            f"feedback contradicts its own linkage: the parts add up to {y:g}, the total says {total:g}"
        )
    return y


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise FeedbackError(f"feedback: expected a number, got {value!r}") from None
    if not np.isfinite(number):
        raise FeedbackError(f"feedback: expected a finite number, got {number}")
    return number


def _array(values: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise FeedbackError(f"feedback: expected numbers in {what}, got {values!r}") from None
