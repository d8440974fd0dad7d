"""One file of arrays and a JSON record: an ``.npz`` archive with checksums, no pickle, written atomically.

Members are stored uncompressed, so that a small file cannot unfold into a large one. The manifest lists every array
with its shape, type and SHA-256 and holds the record; its SHA-256 is another member. ``numpy.load`` reads
the arrays.
"""

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regretless import files
from regretless.errors import DamagedError

FORMAT = "regretless arrays"
VERSION = 1
MANIFEST, DIGEST = "manifest.json", "manifest.sha256"

T = TypeVar("T")


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
    """Write arrays of numbers and a record of JSON data; after a crash there is the old file or the new one."""
    members, listing = [], {}
    for index, (name, array) in enumerate(arrays.items()):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(np.shape(array)), allow_pickle=False)
        data = buffer.getvalue()
        member = f"{name}.npy" if re.fullmatch(r"[A-Za-z0-9_]+", name) else f"arrays/{index:04d}.npy"
        members.append((member, data))
        listing[name] = {
            "file": member,
            "shape": list(np.shape(array)),
            "dtype": np.asarray(array).dtype.str,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    manifest = canonical({"format": FORMAT, "version": VERSION, "arrays": listing, "record": dict(record)})
    members += [(MANIFEST, manifest), (DIGEST, hashlib.sha256(manifest).hexdigest().encode())]
    with files.atomic(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the record of a file.

    Raises
    ------
    OSError
        If the file cannot be read.
    DamagedError
        If it is damaged, forged, or not such a file.
    """

    def arrays_of(archive: zipfile.ZipFile) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        manifest = _manifest(archive)
        entries = manifest["arrays"]
        members = [entry.get("file") for entry in entries.values() if isinstance(entry, dict)]
        if len(set(members)) != len(entries):
            raise DamagedError("the manifest cannot be understood: its arrays share files")
        return {name: _array(archive, name, entry) for name, entry in entries.items()}, manifest["record"]

    return _open(path, arrays_of)


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record without reading the arrays; errors are those of ``read_arrays``."""
    return _open(path, lambda archive: dict(_manifest(archive)["record"]))


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and without spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _open(path: str | os.PathLike[str], read: Callable[[zipfile.ZipFile], T]) -> T:
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _require_plain(archive, os.fstat(file.fileno()).st_size)
                return read(archive)
        except DamagedError as error:
            raise DamagedError(f"{path}: {error}") from None
        except OSError:
            raise
        except Exception as error:  # a forged file can make the libraries that read it fail in any way
            raise DamagedError(f"{path} is not such a file, or damaged: {type(error).__name__}: {error}") from error


def _require_plain(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive with compressed members, or with members that promise more bytes than the file has."""
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise DamagedError(f"damaged or forged: {info.filename} is compressed")
    if sum(info.file_size for info in archive.infolist()) > size:
        raise DamagedError(f"damaged or forged: its members promise more than the {size} bytes of the file")


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError:
        raise DamagedError(f"expected a member {name}, got none") from None


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    data = _member(archive, MANIFEST)
    if hashlib.sha256(data).hexdigest().encode() != _member(archive, DIGEST):
        raise DamagedError("the record is damaged: its checksum differs")
    try:
        manifest = dict(json.loads(data))
        kind, version = manifest["format"], manifest["version"]
        if not isinstance(manifest["arrays"], dict) or not isinstance(manifest["record"], dict):
            raise TypeError("expected objects")
    except Exception as error:
        raise DamagedError(f"the manifest cannot be understood: {error!r}") from None
    if (kind, version) != (FORMAT, VERSION):
        raise DamagedError(f"expected the format {FORMAT!r} {VERSION}, got {kind!r} {version}")
    return manifest


def _array(archive: zipfile.ZipFile, name: str, entry: Any) -> np.ndarray:
    try:
        member, shape, dtype, digest = entry["file"], tuple(entry["shape"]), entry["dtype"], entry["sha256"]
        data = _member(archive, member)
    except (KeyError, TypeError):
        raise DamagedError(f"the manifest cannot be understood: entry {name!r}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedError(f"array {name!r} is damaged: its checksum differs")
    try:
        stream = io.BytesIO(data)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("unknown version of the .npy format")
        header_shape, _, kind = np.lib.format.read_array_header_1_0(stream)
        # Checked before anything is allocated: a header may promise more than memory holds.
        if header_shape != shape or kind.str != dtype or math.prod(shape) * kind.itemsize != len(data) - stream.tell():
            raise ValueError("it differs from the manifest")
        if kind.kind not in "biuf":
            raise ValueError(f"expected numbers, got type {kind}")
        return np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # the header's parser fails in many ways
        raise DamagedError(f"array {name!r} cannot be read: {error}") from None
