"""Trees of arrays as named arrays and back, for checkpoints; instances keep their shape as plain JSON."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import CheckpointError


def named(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Every array of a tree by its path."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restored(prefix: str, template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of the template's shape from its named arrays; refuses other shapes, types or names."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [prefix + jax.tree_util.keystr(path) for path, _ in leaves]
    extra = sorted(name for name in arrays if name.startswith(prefix) and name not in names)
    if extra:
        raise CheckpointError(f"expected no array {extra[0]!r}: it belongs to another policy or oracle")
    found = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if name not in arrays:
            raise CheckpointError(f"expected an array {name!r}: it belongs to another policy or oracle")
        array = arrays[name]
        if array.shape != tuple(leaf.shape) or array.dtype != np.dtype(leaf.dtype):
            raise CheckpointError(
                f"array {name!r}: expected shape {tuple(leaf.shape)} and type {np.dtype(leaf.dtype)}, "
                f"got {array.shape} and {array.dtype}"
            )
        found.append(array)
    return jax.tree.unflatten(structure, found)


def stacked(prefix: str, trees: Sequence[Any]) -> dict[str, np.ndarray]:
    """Trees of one shape as named arrays with a leading axis; nothing for no trees."""
    return named(prefix, jax.tree.map(lambda *leaves: np.stack(leaves), *trees)) if trees else {}


def unstacked(prefix: str, template: Any, count: int, arrays: dict[str, np.ndarray]) -> list[Any]:
    """What ``stacked`` was given."""
    if not count:
        return []
    lead = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype), template)
    together = restored(prefix, lead, arrays)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], together) for i in range(count)]


def describe(tree: Any) -> Any:
    """The shape of an instance (None, an array, or dictionaries, lists and tuples of them) as plain JSON."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {"dict": {str(key): describe(value) for key, value in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [describe(value) for value in tree]}
    if isinstance(tree, np.ndarray | np.generic | jax.Array):
        return {"array": [list(tree.shape), np.dtype(tree.dtype).str]}
    raise CheckpointError(
        f"an instance of type {type(tree).__name__} cannot be kept in a checkpoint: use arrays, or dictionaries, lists and "
        "tuples of them"
    )


def rebuilt(description: Any) -> Any:
    """An instance of zeros with the described shape."""
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
        kind_of_number = np.dtype(dtype)
        if kind_of_number.kind not in "biuf" or int(np.prod(shape, dtype=np.float64)) > 10**7:
            raise ValueError(f"{dtype} {shape}")
        return np.zeros(tuple(shape), kind_of_number)
    except (AttributeError, ValueError, TypeError) as error:
        raise CheckpointError(f"the shape of its instances cannot be understood: {error}") from None
