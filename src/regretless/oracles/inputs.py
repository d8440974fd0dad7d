"""Check and convert numbers, masks and instances as users and their solvers give them; NumPy only."""

from typing import Any

import jax
import numpy as np

from regretless.errors import SettingsError

_KIND_NAMES = {"U": "text", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "spans of time", "V": "records"}


def numbers(name: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a new array of real numbers or booleans; check its shape if one is given.

    >>> numbers("prices", [1, 2.5], (2,)).tolist()
    [1.0, 2.5]
    >>> numbers("prices", ["1", "2.5"])
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: prices: expected numbers, got text
    """
    if _has_mask(given):
        raise SettingsError(f"{name}: expected plain numbers, got a masked array; fill in the values that it hides")
    try:
        array = np.array(given)
    except Exception:
        raise SettingsError(f"{name}: expected numbers, got a {type(given).__name__} that is no array") from None
    if array.dtype.kind not in "biuf":
        kind = _KIND_NAMES.get(array.dtype.kind) or f"an object of type {type(given).__name__}"
        raise SettingsError(f"{name}: expected numbers, got {kind}")
    if shape is not None and array.shape != shape:
        raise SettingsError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def rows(name: str, given: Any, dim: int) -> np.ndarray:
    """Return a batch of vectors ``[b, dim]`` in float64."""
    array = numbers(name, given)
    if array.ndim != 2 or array.shape[1] != dim:
        raise SettingsError(f"{name}: expected rows of {dim} numbers, shape (b, {dim}), got shape {array.shape}")
    return array.astype(np.float64)


def finite(name: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return ``numbers`` without NaN and infinity; floating-point numbers in float64."""
    array = numbers(name, given, shape)
    if array.dtype.kind != "f":
        return array
    if not np.all(np.isfinite(array)):
        raise SettingsError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)].flat[0]}")
    return array.astype(np.float64)


def mask(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return booleans of this shape, given as such or as numbers that are exactly 0 or 1.

    >>> mask("open edges", [1, 0], (2,)).tolist()
    [True, False]
    >>> mask("open edges", [2, 0], (2,))
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: open edges: expected True and False, or exactly 1 and 0, got 2
    """
    array = numbers(name, given, shape)
    other = array[(array != 0) & (array != 1)]
    if other.size:
        raise SettingsError(f"{name}: expected True and False, or exactly 1 and 0, got {other.flat[0]}")
    return array.astype(bool)


def tree(name: str, given: Any, length: int | None = None) -> Any:
    """Return a pytree of finite numbers as new arrays; with ``length``, each has a leading axis of it."""
    leaves, structure = jax.tree.flatten(given)
    arrays = [finite(name, leaf) for leaf in leaves]
    for array in arrays:
        if length is not None and array.shape[:1] != (length,):
            raise SettingsError(
                f"{name}: expected arrays with a leading axis of {length} rows, got shape {array.shape}"
            )
    return jax.tree.unflatten(structure, arrays)


def _has_mask(given: Any) -> bool:
    if isinstance(given, np.ma.MaskedArray):
        return True
    return isinstance(given, list | tuple) and any(_has_mask(part) for part in given)
