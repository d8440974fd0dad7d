"""Checkpoints: a zip of ``.npy`` arrays and a JSON manifest. No pickle, so that a file from a stranger can do no harm.

Members are stored uncompressed, so that a small file cannot unfold into a large one. The manifest lists every array with its
shape, type and SHA-256, and holds the configuration; its own SHA-256 lies beside it.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from typing import Any

import numpy as np

from regretless import files
from regretless.errors import CheckpointError

FORMAT = "regretless checkpoint"
VERSION = 2
MANIFEST, DIGEST = "manifest.json", "manifest.sha256"


def write(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], config: dict[str, Any]) -> None:
    """Writes a checkpoint atomically: after a crash there is the old file or the new one, never half of one."""
    members, listing = [], {}
    for index, (name, array) in enumerate(arrays.items()):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(np.shape(array)), allow_pickle=False)
        data = buffer.getvalue()
        member = f"arrays/{index:04d}.npy"
        members.append((member, data))
        listing[name] = {
            "file": member,
            "shape": list(np.shape(array)),
            "dtype": np.asarray(array).dtype.str,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    manifest = json.dumps({"format": FORMAT, "version": VERSION, "arrays": listing, "config": config}).encode()
    members += [(MANIFEST, manifest), (DIGEST, hashlib.sha256(manifest).hexdigest().encode())]
    with files.atomic(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and configuration of a checkpoint; whatever is damaged, foreign, forged, older or newer is a CheckpointError."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            _require_plain(archive, os.fstat(file.fileno()).st_size)
            manifest = _manifest(archive)
            entries = manifest["arrays"]
            names = [entry.get("file") for entry in entries.values() if isinstance(entry, dict)]
            if len(set(names)) != len(entries):
                raise CheckpointError("the manifest cannot be understood: its arrays share files")
            return {name: _array(archive, name, entry) for name, entry in entries.items()}, manifest["config"]
    except OSError as error:
        raise CheckpointError(f"cannot read checkpoint {path}: {error.strerror or error}") from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except Exception as error:  # a forged file can make the libraries that read it fail in any way
        raise CheckpointError(f"{path} is no checkpoint, or a damaged one: {type(error).__name__}: {error}") from error


def _require_plain(archive: zipfile.ZipFile, size: int) -> None:
    """Refuses an archive with compressed members, or with members that promise more bytes than the file has."""
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise CheckpointError(f"{info.filename} is compressed, which no checkpoint is")
    if sum(info.file_size for info in archive.infolist()) > size:
        raise CheckpointError(f"damaged or forged: its members promise more than the {size} bytes of the file")


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError:
        raise CheckpointError(f"no checkpoint: it has no {name}") from None


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    data = _member(archive, MANIFEST)
    if hashlib.sha256(data).hexdigest().encode() != _member(archive, DIGEST):
        raise CheckpointError("the manifest is damaged: its checksum is another")
    try:
        manifest = json.loads(data)
        if manifest["format"] != FORMAT:
            raise CheckpointError(f"expected a {FORMAT}, got {manifest['format']!r}")
        _require_version(manifest["version"])
        if not isinstance(manifest["arrays"], dict) or not isinstance(manifest["config"], dict):
            raise TypeError("expected objects")
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"the manifest cannot be understood: {error!r}") from None
    return dict(manifest)


def _require_version(version: int) -> None:
    if version > VERSION:
        raise CheckpointError(
            f"written in format {version}, this program knows format {VERSION} only: update regretless"
        )
    if version < VERSION:
        raise CheckpointError(
            f"written in format {version} by regretless 0.1, whose policies had other settings, scales and states, so that it "
            "cannot be continued: go on with regretless 0.1, or make a new learner and let it decide and learn anew"
        )


def _array(archive: zipfile.ZipFile, name: str, entry: Any) -> np.ndarray:
    try:
        member, shape, dtype, digest = entry["file"], tuple(entry["shape"]), entry["dtype"], entry["sha256"]
        data = _member(archive, member)
    except (KeyError, TypeError):
        raise CheckpointError(f"the manifest cannot be understood: entry {name!r}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(f"array {name!r} is damaged: its checksum is another")
    try:
        stream = io.BytesIO(data)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("unknown version of the .npy format")
        found, _, kind = np.lib.format.read_array_header_1_0(stream)
        # Looked at before anything is allocated: a header may promise more than memory holds.
        if found != shape or kind.str != dtype or math.prod(shape) * kind.itemsize != len(data) - stream.tell():
            raise ValueError("it is not what the manifest says")
        if kind.kind not in "biuf":
            raise ValueError(f"expected numbers, got type {kind}")
        return np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # the header's parser fails in many ways
        raise CheckpointError(f"array {name!r} cannot be read: {error}") from None
