"""Parse what a user gives, contexts, instances and feedback in any form, into checked arrays."""

import decimal
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from regretless.errors import FeedbackError, RegretlessError, SettingsError, short_repr
from regretless.oracles.base import Oracle, check_numbers
from regretless.problem import Problem
from regretless.types import Instance

TOLERANCE = 1e-6
"""Relative difference up to which two ways to report the same total agree."""

MAX_ID = 2**31 - 1
"""The largest id of a decision."""

MAX_KEY_LENGTH = 500
"""Characters of a caller's key."""

_PLAIN: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}


def parse_numbers(name: str, given: Any, error: type[RegretlessError] = SettingsError) -> np.ndarray:
    """Return real numbers as a new float64 array; refuse masked arrays, dates, complex numbers, text and booleans."""
    try:
        array = check_numbers(name, _without_decimals(name, given))
    except SettingsError as problem:
        raise error(str(problem)) from None
    if array.dtype.kind == "b" or _has_boolean(given):
        raise error(f"{name}: expected numbers, got True or False")
    return array.astype(np.float64)


def parse_vector(name: str, given: Any, length: int) -> np.ndarray:
    """Return ``length`` finite numbers."""
    array = parse_numbers(name, given)
    if array.shape != (length,) or not np.all(np.isfinite(array)):
        raise SettingsError(f"learner: expected {name} to be {length} finite numbers, got {short_repr(given)}")
    return array


def parse_contexts(given: Any, problem: Problem, *, many: bool) -> np.ndarray:
    """Return contexts ``[n, …]``, one if not ``many``; refuse other shapes and numbers that are not finite."""
    shape, columns = problem.context_shape, problem.columns
    if columns is not None:
        array, several = columns.contexts(given, shape)
    else:
        array = parse_numbers("context", given)
        if array.shape[-len(shape) :] != shape or array.ndim not in (len(shape), len(shape) + 1):
            raise SettingsError(f"context: expected shape {('n', *shape) if many else shape}, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise SettingsError("context: expected finite numbers, got NaN or infinity")
        several = array.ndim > len(shape)
    if several and not len(array):
        raise SettingsError("context: expected at least one context, got none")
    if several != many:
        hint = "decide_batch takes several (learn_from a History)" if several else "decide takes a single one"
        raise SettingsError(
            f"context: expected {'several contexts' if many else 'one context'}, got "
            f"{'several' if several else 'one'}; {hint}"
        )
    return array if several else array.reshape(1, *shape)


def parse_instances(oracle: Oracle, given: Any, count: int) -> list[Instance]:
    """Return one instance for each of ``count`` contexts, in the form that the oracle's programs expect."""
    if given is None:
        return [parse_instance(oracle, None)] * count
    sized = isinstance(given, list | tuple | np.ndarray)
    if not sized or len(given) != count:
        got = len(given) if sized else short_repr(given)
        raise SettingsError(f"instance: expected a list with one for each of {count} contexts, got {got}")
    return [parse_instance(oracle, instance) for instance in given]


def parse_instance(oracle: Oracle, given: Any) -> Instance:
    """Return what changes in the feasible set, checked by the oracle; integers as int64, other numbers as float64."""
    try:
        return jax.tree.map(_plain_leaf, oracle.instance(given))
    except RegretlessError:
        raise
    except Exception as error:
        raise SettingsError(f"instance: expected arrays of numbers, got {short_repr(given)} ({error})") from None


def parse_flag(name: str, given: Any) -> bool:
    """Return True or False."""
    if not isinstance(given, bool):
        raise SettingsError(f"{name} to be True or False, got {short_repr(given)}")
    return given


def parse_integer(name: str, given: Any, low: int, high: int) -> int:
    """Return an integer within limits."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not low <= given <= high:
        raise SettingsError(f"{name}: expected an integer from {low} to {high}, got {short_repr(given)}")
    return int(given)


def parse_id(given: Any) -> int:
    """Return the id of a decision."""
    try:
        id = None if isinstance(given, bool | np.bool) else operator.index(given)
    except Exception:
        id = None
    if id is None:
        raise FeedbackError(f"expected the id of a decision (an integer) or its key (a text), got {short_repr(given)}")
    if abs(id) > MAX_ID:
        raise FeedbackError(f"unknown decision: expected an id of at most {MAX_ID}, got a larger number")
    return id


def parse_key(given: Any) -> str | None:
    """Return a caller's key, None for none."""
    if given is None or (isinstance(given, str) and 0 < len(given) <= MAX_KEY_LENGTH and given.isprintable()):
        return given
    raise SettingsError(f"key: expected a printable text of 1 to {MAX_KEY_LENGTH} characters, got {short_repr(given)}")


def known_number(value: Any) -> float | None:
    """Return a number, None for NaN."""
    return float(value) if math.isfinite(value) else None


def _plain_leaf(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if array.dtype.kind == "u" and np.any(array > np.iinfo(np.int64).max):
        raise SettingsError(f"instance: expected integers below 2⁶³, got {array.max()}")
    return array.astype(_PLAIN[array.dtype.kind])


def _has_boolean(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(_has_boolean(part) for part in given)
    return isinstance(given, bool | np.bool) or (isinstance(given, np.ndarray) and given.dtype == bool)


def _without_decimals(name: str, given: Any, place: tuple[int, ...] = ()) -> Any:
    """Return the same with decimal numbers as floats; the position of a None is named."""
    if isinstance(given, list | tuple):
        return [_without_decimals(name, part, (*place, i)) for i, part in enumerate(given)]
    if isinstance(given, np.ndarray) and given.dtype == object:
        return _without_decimals(name, given.tolist(), place)
    if given is None and place:
        position = ", ".join(map(str, place))
        raise SettingsError(
            f"{name}: expected a number at position {position}, got None; leave out or fill what is missing"
        )
    return float(given) if isinstance(given, decimal.Decimal) else given


class Arrival(NamedTuple):
    """Values of the measurement's rows and which of them arrived; rows that came with them, and their linkage."""

    values: np.ndarray
    seen: np.ndarray
    matrix: np.ndarray | None = None
    linkage: np.ndarray | None = None

    def signature(self) -> np.ndarray:
        """Return everything that was reported as one vector: equal for two reports of the same feedback."""
        parts = [np.where(self.seen, self.values, 0.0), self.seen.astype(float)]
        if self.matrix is not None:
            parts.append(self.matrix.reshape(-1))
        return np.concatenate(parts)


class RawFeedback(NamedTuple):
    """Feedback as the user gives it, in one of these forms; a total next to another form is checked against it."""

    total: Any = None
    components: Mapping[Hashable, float] | None = None
    costs: Sequence[float] | None = None
    linear: tuple[Any, Any] | None = None
    values: Sequence[float] | None = None

    def form(self) -> str:
        """Return the form that was given; the total may be given next to another form."""
        forms = [name for name in ("components", "costs", "linear", "values") if getattr(self, name) is not None]
        if len(forms) > 1 or (not forms and self.total is None):
            raise FeedbackError(
                "expected one of total=, components={coordinate: cost}, costs=vector, linear=(H, v), values=vector, "
                f"got {' and '.join(forms) or 'none of them'}"
            )
        return forms[0] if forms else "total"

    def check_total(self, y: float) -> float:
        """Return ``y`` unless it contradicts a total that was given."""
        if self.total is None:
            return y
        total = _parse_number("total", self.total)
        if not abs(total - y) <= TOLERANCE * max(1.0, abs(y)):
            raise FeedbackError(f"feedback contradicts itself: the parts add up to {y:g}, the total is {total:g}")
        return y

    def items(self) -> list[tuple[Hashable, float]]:
        """Return the single costs by coordinate."""
        if not isinstance(self.components, Mapping):
            raise FeedbackError(
                f"feedback: expected components={{coordinate: cost}}, a dictionary, got {short_repr(self.components)}"
            )
        return [(name, _parse_number(f"components[{short_repr(name)}]", c)) for name, c in self.components.items()]

    def vector(self, name: str, length: int) -> np.ndarray:
        """Return ``costs`` or ``values``, NaN for what was not seen."""
        array = parse_numbers(f"feedback: {name}", getattr(self, name), FeedbackError)
        if array.shape != (length,):
            raise FeedbackError(f"feedback: expected {name} of shape ({length},), got {array.shape}")
        if np.any(np.isinf(array)):
            raise FeedbackError(f"feedback: expected finite {name} (NaN for what was not seen), got infinity")
        return array

    def rows(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ``H`` and ``v`` of linear rows."""
        if not isinstance(self.linear, tuple | list) or len(self.linear) != 2:
            raise FeedbackError(f"feedback: expected linear to be the pair (H, v), got {short_repr(self.linear)}")
        matrix = parse_numbers("feedback: linear: H", self.linear[0], FeedbackError)
        values = parse_numbers("feedback: linear: v", self.linear[1], FeedbackError)
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


Measure = Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]
"""``Engine.measure``: ``H(w)`` row by row, or its diagonal if rows measure single coordinates, and ``e(w)``."""


class FeedbackParser:
    """Turn feedback on a decision ``w`` into an Arrival; refuse what contradicts itself or the decision."""

    def __init__(self, problem: Problem, measure: Measure):
        self.rule, self.dim, self.measure = problem.feedback, problem.dim, measure
        self.may_miss = bool(problem.may_miss)
        names = problem.oracle.names or ()
        self.places = {name: i for i, name in enumerate(names)}
        self.ambiguous = {name for name, count in Counter(names).items() if count > 1}

    def parse(self, raw: RawFeedback, w: np.ndarray, aux: Any, *, partial: bool = False) -> Arrival:
        """Return the arrival of this feedback on ``w``; ``partial``: rows may be missing even if they never should."""
        form = raw.form()
        w = np.asarray(w, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            if self.rule.max_rows is not None:
                arrival = self._varying_rows(form, raw, w, self.rule.max_rows)
            elif self.rule.total_only:
                arrival = Arrival(np.array([self._total(form, raw, w)]), np.ones(1, bool))
            else:
                arrival = self._fixed_rows(form, raw, w, aux, self.may_miss or partial)
        if not np.all(np.isfinite(arrival.values[arrival.seen])):
            raise FeedbackError(f"feedback: expected finite numbers, got {arrival.values[arrival.seen].tolist()}")
        if not arrival.seen.any():
            raise FeedbackError("feedback: expected at least one cost, got none; leave the decision waiting instead")
        return arrival

    def _total(self, form: str, raw: RawFeedback, w: np.ndarray) -> float:
        if form == "total":
            return _parse_number("total", raw.total)
        if form == "linear":
            matrix, values = raw.rows(self.dim)
            linkage = _recover_linkage(matrix, w)
            if linkage is None:
                raise FeedbackError("feedback: the total cannot be recovered from these rows (no e with Hᵀe = w)")
            y = float(linkage @ values)
        elif form == "values":
            y = float(raw.vector("values", 1)[0])
        else:
            costs = self._costs(form, raw)
            missing = np.flatnonzero((w != 0) & np.isnan(costs))
            if len(missing):
                raise FeedbackError(
                    f"feedback: a bandit learner needs the total, but the cost of {self._list(missing)} is missing; "
                    "give total=, or build the problem with feedback='semi_bandit'"
                )
            y = float(np.sum(np.where(w != 0, w * costs, 0.0)))
        return raw.check_total(y)

    def _fixed_rows(self, form: str, raw: RawFeedback, w: np.ndarray, aux: Any, may_miss: bool) -> Arrival:
        """Parse the rows of the measurement, NaN if not reported; a row that shows nothing arrives with any other.

        Separable rows measure one coordinate each with weights ``h``: ``v_i = h_i c_i``; weight 0 shows nothing.
        """
        rows, linkage = self.measure(w, aux)
        separable, name = self.rule.separable, self.rule.name
        shown = rows != 0 if separable else np.any(rows != 0, axis=1)
        if form == "total" and separable:
            raise FeedbackError(
                f"feedback: a {name} learner needs components= or costs=, got the total alone; "
                "build the problem with feedback='bandit' to learn from totals"
            )
        if form == "total":
            raise FeedbackError(f"feedback: expected values= of the {len(rows)} rows of {name!r}, got a total")
        if form == "values":
            values = raw.vector("values", len(rows))
        elif form == "linear":
            values = self._match_rows(np.diag(rows) if separable else rows, *raw.rows(self.dim))
        else:
            costs = self._costs(form, raw)
            if form == "components" and separable and np.any(never := ~np.isnan(costs) & ~shown):
                raise FeedbackError(
                    f"feedback: {self._list(np.flatnonzero(never))} was not chosen, so its cost cannot have been seen; "
                    "build the problem with feedback='full' if it can"
                )
            missing, known = (rows != 0) & np.isnan(costs), np.nan_to_num(costs)
            values = rows * known if separable else rows @ known
            values[missing if separable else np.any(missing, axis=1)] = np.nan
        arrived = ~np.isnan(values) & shown
        seen = arrived | ~shown
        if not may_miss and not seen.all():
            raise FeedbackError(
                "feedback: some rows are missing; build the problem with may_miss=True to learn from the rest"
            )
        values = np.where(arrived, values, 0.0)
        if np.all(seen | (linkage == 0)):
            raw.check_total(float(linkage @ values))
        return Arrival(values, seen if arrived.any() else arrived)

    def _varying_rows(self, form: str, raw: RawFeedback, w: np.ndarray, most: int) -> Arrival:
        """Parse rows that differ from decision to decision, padded; a hidden last row stands for an unknown total."""
        if form == "total":
            matrix, values = w[None], np.array([_parse_number("total", raw.total)])
        elif form == "linear":
            matrix, values = raw.rows(self.dim)
        elif form == "values":
            raise FeedbackError("feedback: the rows differ by decision: give linear=(H, v) instead of values=")
        else:
            costs = self._costs(form, raw)
            known = np.flatnonzero(~np.isnan(costs))
            matrix, values = (np.arange(self.dim) == known[:, None]).astype(float), costs[known]
        count = len(values)
        if count > most:
            raise FeedbackError(f"feedback: expected at most {most} rows, got {count}; raise the limit of ReportedRows")
        error = _least_squares(matrix, values)[1]
        if not error <= TOLERANCE * max(1.0, float(np.max(np.abs(values), initial=0.0))):
            raise FeedbackError(f"feedback: no cost vector explains all of these rows: the nearest is {error:.3g} off")
        linkage = _recover_linkage(matrix, w)
        full = np.concatenate([matrix, np.zeros((most - count, self.dim)), w[None]])
        padded, weights = np.zeros((2, most + 1))
        padded[:count] = values
        if linkage is None:
            weights[-1] = 1.0
        else:
            raw.check_total(float(linkage @ values))
            weights[:count] = linkage
        return Arrival(padded, np.arange(most + 1) < count, full, weights)

    def _costs(self, form: str, raw: RawFeedback) -> np.ndarray:
        """Return single costs as a vector, NaN for what was not reported."""
        if form == "costs":
            return raw.vector("costs", self.dim)
        costs = np.full(self.dim, np.nan)
        for name, cost in raw.items():
            place = self._place(name)
            if not np.isnan(costs[place]):
                raise FeedbackError(f"feedback: coordinate {place} was given twice, once by its name; give it once")
            costs[place] = cost
        return costs

    def _place(self, name: Hashable) -> int:
        if name in self.ambiguous:
            raise FeedbackError(f"feedback: there are several coordinates {name!r}: give their numbers")
        if name in self.places:
            return self.places[name]
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < self.dim:
            return int(name)
        names = f" or one of its names, such as {next(iter(self.places))!r}" if self.places else ""
        raise FeedbackError(f"feedback: expected a coordinate from 0 to {self.dim - 1}{names}, got {short_repr(name)}")

    def _match_rows(self, expected: np.ndarray, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the values in the order of the measurement's rows; a row that is none of them is refused."""
        matched = np.full(len(expected), np.nan)
        for row, value in zip(matrix, values, strict=True):
            same = np.flatnonzero(np.all(np.isclose(expected, row), axis=1) & np.isnan(matched))
            if not len(same):
                raise FeedbackError(
                    f"feedback: {row.tolist()} is not a row of H(w) of {self.rule.name!r} for this decision"
                )
            matched[same[0]] = value
        return matched

    def _list(self, places: np.ndarray) -> str:
        names = {i: name for name, i in self.places.items()}
        return ", ".join(f"{names.get(i, i)}" for i in places[:5].tolist()) + (" …" if len(places) > 5 else "")


def _parse_number(name: str, given: Any) -> float:
    """Return one finite number."""
    array = parse_numbers(f"feedback: {name}", given, FeedbackError)
    if array.shape != ():
        raise FeedbackError(f"feedback: {name}: expected one number, got shape {array.shape}")
    if not np.isfinite(array):
        raise FeedbackError(f"feedback: {name}: expected a finite number, got {array}")
    return float(array)


def _least_squares(matrix: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the least-squares solution of ``matrix · x = values``, and the largest remaining distance."""
    try:
        solution, *_ = np.linalg.lstsq(matrix, values)
    except np.linalg.LinAlgError as error:
        raise FeedbackError(f"feedback: these rows cannot be solved for a cost ({error})") from None
    return solution, float(np.max(np.abs(matrix @ solution - values), initial=0.0))


def _recover_linkage(matrix: np.ndarray, w: np.ndarray) -> np.ndarray | None:
    """Return ``e`` with ``Hᵀe = w``, or None if none exists."""
    linkage, error = _least_squares(matrix.T, w)
    return linkage if error <= TOLERANCE * max(1.0, float(np.max(np.abs(w)))) else None
