"""Arrays and a JSON record in one ``.npz`` file without pickle, written atomically; trees of arrays by name.

The members of the archive are not compressed, so that a small file cannot unfold into a large one, and are checked
against their CRC when they are read. ``numpy.load`` reads the arrays.
"""

import functools
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regretless import files
from regretless.errors import CheckpointError, DamagedError

FORMAT, VERSION = "regretless arrays", 2
RECORD = "record.json"


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
    """Write arrays of numbers and a record of JSON data; after a crash there is the old file or the new one."""
    content = {"format": FORMAT, "version": VERSION, "arrays": list(arrays), "record": dict(record)}
    with files.atomic(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getbuffer())
        archive.writestr(zipfile.ZipInfo(RECORD), canonical(content))


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the record of a file.

    Raises
    ------
    OSError
        If the file cannot be read.
    DamagedError
        If it is damaged, or not a file that ``write_arrays`` wrote.
    """
    return _read(path, with_arrays=True)


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record without reading the arrays; errors are those of ``read_arrays``."""
    return _read(path, with_arrays=False)[1]


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and without spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _read(path: str | os.PathLike[str], with_arrays: bool) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                    raise ValueError("a member is compressed")
                content = json.loads(archive.read(RECORD))
                kind = content.get("format"), content.get("version")
                if kind != (FORMAT, VERSION):
                    raise ValueError(f"expected the format {FORMAT!r} {VERSION}, got {kind[0]!r} {kind[1]}")
                # Members are read as a whole first: the CRC is checked, and no header can promise more than there is.
                members = {name: io.BytesIO(archive.read(f"{name}.npy")) for name in content["arrays"] if with_arrays}
                arrays = {name: np.load(member, allow_pickle=False) for name, member in members.items()}
                return arrays, dict(content["record"])
        except Exception as error:  # a damaged file can make the libraries that read it fail in any way
            raise DamagedError(f"{path} is damaged, or of another program: {type(error).__name__}: {error}") from error


def flatten_tree(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """Return every array of a tree by its path."""
    import jax

    leaves, structure = jax.tree.flatten(tree)
    return dict(zip(_leaf_names(prefix, structure), map(np.asarray, leaves), strict=True))


@functools.lru_cache(maxsize=64)  # a learner asks often, for few structures
def _leaf_names(prefix: str, structure: Any) -> list[str]:
    import jax

    paths, _ = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(structure, [0] * structure.num_leaves))
    return [prefix + jax.tree_util.keystr(path) for path, _ in paths]


def restore_tree(prefix: str, template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the tree of the template's form from its named arrays; refuse other shapes, types or names."""
    import jax

    leaves, structure = jax.tree.flatten(template)
    names = _leaf_names(prefix, structure)
    require_no_extra(prefix, names, arrays)
    restored = []
    for name, leaf in zip(names, leaves, strict=True):
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
