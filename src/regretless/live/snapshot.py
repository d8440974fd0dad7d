"""Many trees of arrays as named arrays and back, for checkpoints; instances keep their form as plain JSON."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import CheckpointError, SettingsError
from regretless.trees import named, require_no_more, restored

MOST = 10**7
"""Numbers that an instance of a checkpoint may have."""


def stacked(prefix: str, trees: Sequence[Any]) -> dict[str, np.ndarray]:
    """Trees of one shape as named arrays with a leading axis; nothing for no trees."""
    return named(prefix, jax.tree.map(lambda *leaves: np.stack(leaves), *trees)) if trees else {}


def unstacked(prefix: str, template: Any, count: int, arrays: dict[str, np.ndarray]) -> list[Any]:
    """What ``stacked`` was given."""
    if not count:
        require_no_more(prefix, [], arrays)
        return []
    lead = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype), template)
    together = restored(prefix, lead, arrays)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], together) for i in range(count)]


def describe(tree: Any) -> Any:
    """The form of an instance (None, an array, or dictionaries, lists and tuples of them) as plain JSON."""
    if tree is None:
        return None
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": {key: describe(value) for key, value in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [describe(value) for value in tree]}
    if isinstance(tree, np.ndarray | jax.Array):
        return {"array": [list(tree.shape), np.dtype(tree.dtype).str]}
    raise SettingsError(
        f"instance: expected arrays, or lists, tuples and dictionaries (by text) of them, got a {type(tree).__name__}, which "
        "no checkpoint could keep"
    )


def rebuilt(description: Any) -> Any:
    """An instance of the described form, without its numbers."""
    if description is None:
        return None
    try:
        ((kind, content),) = description.items()
        if kind == "dict":
            return {key: rebuilt(value) for key, value in content.items()}
        if kind in ("list", "tuple"):
            values = [rebuilt(value) for value in content]
            return values if kind == "list" else tuple(values)
        shape, dtype = content
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) > MOST:
            raise ValueError(f"shape {shape}")
        if dtype not in ("|b1", "<i8", "<f8"):
            raise ValueError(f"type {dtype}")
        return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"the form of its instances cannot be understood: {error}") from None
