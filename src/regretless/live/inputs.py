"""Numbers, contexts, instances and ids as users give them, checked before anything else happens."""

import operator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from regretless.errors import FeedbackError, RegretlessError, SettingsError, short_repr
from regretless.oracles import inputs
from regretless.oracles.base import Oracle
from regretless.types import Instance

if TYPE_CHECKING:
    from regretless.columns import Columns

said = short_repr

LAST_ID = 2**31 - 1

_PLAIN: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}


def numbers(what: str, given: Any, error: type[RegretlessError] = SettingsError) -> np.ndarray:
    """Real numbers as a float64 array of their own; masked arrays, dates, complex numbers, text and booleans are refused."""
    try:
        array = inputs.numbers(what, given)
    except SettingsError as problem:
        raise error(str(problem)) from None
    if array.dtype.kind == "b" or _has_boolean(given):
        raise error(f"{what}: expected numbers, got True or False")
    return array.astype(np.float64)


def vector(what: str, given: Any, length: int) -> np.ndarray:
    """Finite numbers, so many of them."""
    array = numbers(what, given)
    if array.shape != (length,) or not np.all(np.isfinite(array)):
        raise SettingsError(f"learner: expected {what} to be {length} finite numbers, got {said(given)}")
    return array


def contexts(context: Any, shape: tuple[int, ...], columns: "Columns | None" = None) -> tuple[np.ndarray, bool]:
    """Contexts with a leading axis, and whether there were several; refuses other shapes and non-finite numbers."""
    if columns is not None:
        array, many = columns.contexts(context, shape)
        if not len(array):
            raise SettingsError("context: expected at least one context, got none")
        return array, many
    array = numbers("context", context)
    if array.shape[-len(shape) :] != shape or array.ndim not in (len(shape), len(shape) + 1):
        raise SettingsError(f"context: expected shape {shape}, or {('n', *shape)} for several, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise SettingsError("context: expected finite numbers, got NaN or infinity")
    if not array.size:
        raise SettingsError("context: expected at least one context, got none")
    many = array.ndim > len(shape)
    return (array if many else array[None]), many


def one_context(context: Any, shape: tuple[int, ...], columns: "Columns | None" = None) -> np.ndarray:
    """A single context."""
    found, many = contexts(context, shape, columns)
    if many:
        raise SettingsError("record: expected one context; several rounds are a History, for learn_from")
    return found[0]


def instances(oracle: Oracle, given: Any, count: int, many: bool) -> list[Instance]:
    """One instance for each context, in the form that the oracle's programs expect."""
    if not many or given is None:
        return [instance(oracle, given)] * count
    if not isinstance(given, list | tuple | np.ndarray) or len(given) != count:
        got = len(given) if isinstance(given, list | tuple | np.ndarray) else f"a {type(given).__name__}"
        raise SettingsError(f"instance: expected a list with one for each of {count} contexts, got {got}")
    return [instance(oracle, own) for own in given]


def instance(oracle: Oracle, given: Any) -> Instance:
    """What changes in the feasible set, checked by the oracle; integers as int64, other numbers as float64."""
    try:
        return jax.tree.map(_plain, oracle.instance(given))
    except RegretlessError:
        raise
    except Exception as error:
        raise SettingsError(f"instance: expected arrays of numbers, got {said(given)} ({error})") from None


def flag(what: str, given: Any) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise SettingsError(f"{what} to be True or False, got {said(given)}")
    return given


def whole(given: Any) -> int:
    """The id of a decision."""
    try:
        id = None if isinstance(given, bool | np.bool) else operator.index(given)
    except Exception:
        id = None
    if id is None:
        raise FeedbackError(f"expected the id of a decision (a whole number), got {said(given)}")
    if abs(id) > LAST_ID:
        raise FeedbackError(f"unknown decision: expected an id of at most {LAST_ID}, got a larger number")
    return id


def _plain(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if array.dtype.kind == "u" and np.any(array > np.iinfo(np.int64).max):
        raise SettingsError(f"instance: expected integers below 2⁶³, got {array.max()}")
    return array.astype(_PLAIN[array.dtype.kind])


def _has_boolean(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return any(_has_boolean(part) for part in given)
    return isinstance(given, bool | np.bool) or (isinstance(given, np.ndarray) and given.dtype == bool)
