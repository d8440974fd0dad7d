"""Contexts and instances as users give them, checked before anything else happens."""

from typing import Any

import jax
import numpy as np

from regretless.errors import SettingsError
from regretless.live.snapshot import describe

OPEN = "open"
"""The form of instances before the first one was given."""


def contexts(context: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, bool]:
    """Contexts with a leading axis, and whether there were several; refuses other shapes and numbers that are none."""
    try:
        array = np.array(context, np.float64)
    except (TypeError, ValueError):
        raise SettingsError(f"context: expected numbers of shape {shape}, got {context!r}") from None
    if array.shape[-len(shape) :] != shape or array.ndim not in (len(shape), len(shape) + 1):
        raise SettingsError(f"context: expected shape {shape}, or {('n', *shape)} for several, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise SettingsError("context: expected finite numbers, got NaN or infinity")
    if not array.size:
        raise SettingsError("context: expected at least one context, got none")
    many = array.ndim > len(shape)
    return (array if many else array[None]), many


def instances(instance: Any, count: int, many: bool) -> list[Any]:
    """One instance for each context, as arrays of their own."""
    given = [instance] * count if not many or instance is None else list(instance)
    if len(given) != count:
        raise SettingsError(f"instance: expected one for each of {count} contexts, got {len(given)}")
    return [jax.tree.map(np.array, own) for own in given]


def require_form(given: list[Any], form: Any) -> None:
    """Refuses instances of another form than the earlier ones: programs are compiled for one."""
    for own in given:
        found = describe(own)
        form = found if form == OPEN else form
        if found != form:
            raise SettingsError(
                f"instance: expected the form of earlier ones, {form}, got {found}; give all of them, or none, an instance"
            )
