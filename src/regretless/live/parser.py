"""From what a user tells about a decision to the rows that the learner's feedback regime shows."""

from collections import Counter
from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from regretless.errors import FeedbackError
from regretless.live.arrivals import TOLERANCE, Arrival, RawFeedback, least_squares, number, recover
from regretless.live.inputs import said
from regretless.problem import Problem


class Measures(Protocol):
    """Who knows ``H(w)``."""

    def measure(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """``H(w)`` row by row and ``e(w)``."""

    def weights(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal of ``H(w)`` and ``e(w)``, where row ``i`` measures coordinate ``i`` alone."""


class FeedbackParser:
    """Turns what was told about a decision ``w`` into an Arrival; refuses what contradicts itself or the decision."""

    def __init__(self, problem: Problem, may_miss: bool, measures: Measures):
        self.rule, self.dim, self.may_miss, self.measures = problem.feedback, problem.dim, may_miss, measures
        names = problem.oracle.names or ()
        self.places = {name: i for i, name in enumerate(names)}
        self.doubled = {name for name, count in Counter(names).items() if count > 1}

    def parse(self, told: RawFeedback, w: np.ndarray, aux: Any) -> Arrival:
        """The arrival that this feedback on ``w`` is."""
        form = told.form()
        w = np.asarray(w, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            if self.rule.rows_told is not None:
                arrival = self._told_rows(form, told, w, self.rule.rows_told)
            elif self.rule.total_only:
                arrival = Arrival(np.array([self._total(form, told, w)]), np.ones(1, bool))
            elif self.rule.separable:
                arrival = self._coordinates(form, told, w, aux)
            else:
                arrival = self._fixed_rows(form, told, w, aux)
        if not np.all(np.isfinite(arrival.values[arrival.seen])):
            raise FeedbackError(f"feedback: expected finite numbers, got {arrival.values[arrival.seen].tolist()}")
        if not arrival.seen.any():
            raise FeedbackError("feedback: expected at least one cost, got none; leave the decision waiting instead")
        return arrival

    def _total(self, form: str, told: RawFeedback, w: np.ndarray) -> float:
        if form == "total":
            return number("total", told.total)
        if form == "linear":
            matrix, values = told.rows(self.dim)
            linkage = recover(matrix, w)
            if linkage is None:
                raise FeedbackError("feedback: the total cannot be recovered from these rows (no e with Hᵀe = w)")
            y = float(linkage @ values)
        elif form == "values":
            y = float(told.vector("values", 1)[0])
        else:
            costs = self._costs(form, told)
            missing = np.flatnonzero((w != 0) & np.isnan(costs))
            if len(missing):
                raise FeedbackError(
                    f"feedback: a bandit learner needs the total, but the cost of {self._say(missing)} is missing; "
                    "give total=, or build the learner with feedback='semi_bandit'"
                )
            y = float(np.sum(np.where(w != 0, w * costs, 0.0)))
        return told.agreed(y)

    def _coordinates(self, form: str, told: RawFeedback, w: np.ndarray, aux: Any) -> Arrival:
        """Rows that measure one coordinate each, with weights ``h``: ``v_i = h_i c_i``; a weight of zero shows nothing."""
        h, linkage = self.measures.weights(w, aux)
        shown = h != 0
        if form == "total":
            raise FeedbackError(
                f"feedback: a {self.rule.name} learner needs components= or costs=, got the total alone; "
                "build the learner with feedback='bandit' to learn from totals"
            )
        if form == "values":
            values = told.vector("values", self.dim)
        elif form == "linear":
            values = self._matched(np.diag(h), *told.rows(self.dim))
        else:
            costs = self._costs(form, told)
            hidden = np.flatnonzero(~np.isnan(costs) & ~shown)
            if form == "components" and len(hidden):
                raise FeedbackError(
                    f"feedback: {self._say(hidden)} was not chosen, so its cost cannot have been seen; "
                    "build the learner with feedback='full' if it can"
                )
            values = np.where(shown, h * costs, np.nan)
        return self._arrived(told, values, shown, linkage)

    def _fixed_rows(self, form: str, told: RawFeedback, w: np.ndarray, aux: Any) -> Arrival:
        matrix, linkage = self.measures.measure(w, aux)
        if form == "values":
            values = told.vector("values", len(matrix))
        elif form == "linear":
            values = self._matched(matrix, *told.rows(self.dim))
        elif form == "total":
            raise FeedbackError(
                f"feedback: expected values= of the {len(matrix)} rows of {self.rule.name!r}, got total="
            )
        else:
            costs = self._costs(form, told)
            hidden = np.any((matrix != 0) & np.isnan(costs), axis=1)
            values = np.where(hidden, np.nan, matrix @ np.nan_to_num(costs))
        return self._arrived(told, values, np.any(matrix != 0, axis=1), linkage)

    def _told_rows(self, form: str, told: RawFeedback, w: np.ndarray, most: int) -> Arrival:
        """Rows that differ from decision to decision, padded; a hidden last row stands for a total that is not known."""
        if form == "total":
            matrix, values = w[None], np.array([number("total", told.total)])
        elif form == "linear":
            matrix, values = told.rows(self.dim)
        elif form == "values":
            raise FeedbackError(
                "feedback: this learner's rows differ by decision: give linear=(H, v) instead of values="
            )
        else:
            costs = self._costs(form, told)
            known = np.flatnonzero(~np.isnan(costs))
            _require_few(len(known), most)
            matrix, values = np.zeros((len(known), self.dim)), costs[known]
            matrix[np.arange(len(known)), known] = 1.0
        _require_few(len(values), most)
        worst = least_squares(matrix, values)[1]
        if not worst <= TOLERANCE * max(1.0, float(np.max(np.abs(values), initial=0.0))):
            raise FeedbackError(
                f"feedback: no cost vector explains all of these rows, the nearest misses by {worst:.3g}"
            )
        linkage = recover(matrix, w)
        padding = most + 1 - len(values)
        full = np.concatenate([matrix, np.zeros((padding - 1, self.dim)), w[None]])
        seen = np.concatenate([np.ones(len(values), bool), np.zeros(padding, bool)])
        weights = np.zeros(most + 1)
        if linkage is None:
            weights[-1] = 1.0
        else:
            told.agreed(float(linkage @ values))
            weights[: len(values)] = linkage
        return Arrival(np.concatenate([values, np.zeros(padding)]), seen, full, weights)

    def _arrived(self, told: RawFeedback, values: np.ndarray, shown: np.ndarray, linkage: np.ndarray) -> Arrival:
        """Values, NaN for what was not told; a row that shows nothing of the cost has arrived as soon as another one has."""
        arrived = ~np.isnan(values) & shown
        seen = arrived | ~shown
        if not self.may_miss and not seen.all():
            raise FeedbackError(
                "feedback: some rows are missing; build the learner with may_miss=True to learn from the rest"
            )
        values = np.where(arrived, values, 0.0)
        if np.all(seen | (linkage == 0)):
            told.agreed(float(linkage @ values))
        return Arrival(values, seen if arrived.any() else arrived)

    def _costs(self, form: str, told: RawFeedback) -> np.ndarray:
        """Single costs as a vector, NaN where nothing was told."""
        if form == "costs":
            return told.vector("costs", self.dim)
        costs = np.full(self.dim, np.nan)
        for name, cost in told.items():
            place = self._place(name)
            if not np.isnan(costs[place]):
                raise FeedbackError(f"feedback: coordinate {place} was told twice, once by its name; tell it once")
            costs[place] = cost
        return costs

    def _place(self, name: Hashable) -> int:
        if name in self.doubled:
            raise FeedbackError(
                f"feedback: there are several coordinates {name!r}: give their numbers 0 to {self.dim - 1}"
            )
        if name in self.places:
            return self.places[name]
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < self.dim:
            return int(name)
        example = f" or one of its names, such as {next(iter(self.places))!r}" if self.places else ""
        raise FeedbackError(f"feedback: expected a coordinate from 0 to {self.dim - 1}{example}, got {said(name)}")

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


def _require_few(rows: int, most: int) -> None:
    if rows > most:
        raise FeedbackError(f"feedback: expected at most {most} rows, got {rows}; raise rows=")
