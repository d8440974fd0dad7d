"""Trees of arrays as named arrays and back, for files."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import CheckpointError


def flatten_tree(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Return every array of a tree by its path."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restore_tree(prefix: str, template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the tree of the template's form from its named arrays; refuse other shapes, types or names."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [prefix + jax.tree_util.keystr(path) for path, _ in leaves]
    require_no_extra(prefix, names, arrays)
    restored = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if name not in arrays:
            raise CheckpointError(f"expected an array {name!r}: it belongs to another policy or oracle")
        array = arrays[name]
        if array.shape != tuple(leaf.shape) or array.dtype != np.dtype(leaf.dtype):
            raise CheckpointError(
                f"array {name!r}: expected shape {tuple(leaf.shape)} and type {np.dtype(leaf.dtype)}, "
                f"got {array.shape} and {array.dtype}"
            )
        restored.append(array)
    return jax.tree.unflatten(structure, restored)


def require_no_extra(prefix: str, names: Sequence[str], arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays of this prefix that are not expected."""
    extra = sorted(name for name in arrays if name.startswith(prefix) and name not in names)
    if extra:
        raise CheckpointError(f"expected no array {extra[0]!r}: it belongs to another policy or oracle")
