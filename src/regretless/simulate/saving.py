"""A run as a file and back: after a kill it goes on where it was, bit for bit; a finished one is read instead of played.

The file is a checkpoint. It holds what was asked for, which must be what is asked for now, on the same devices and with the
same versions, the finished segments, and the carries of the chunk that is being played.
"""

import hashlib
import importlib.metadata
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from regretless import checkpoint
from regretless.benchmarks.references import Tally
from regretless.errors import CheckpointError, SettingsError
from regretless.results import canonical
from regretless.simulate.chunks import Chunk, Kept
from regretless.trees import named, restored

KIND = "simulation"
PATIENCE = 20.0
"""A file is written when this many times as long has passed as the last writing took: it costs a twentieth of the time."""

PACKAGES = ("regretless", "jax", "jaxlib", "numpy", "equinox")


class Saving:
    """Where a run is kept; ``asked`` is what was asked for, as plain data."""

    def __init__(self, path: str | os.PathLike[str], asked: dict[str, Any]):
        self.path, self.asked = (
            path,
            {**asked, "versions": {name: importlib.metadata.version(name) for name in PACKAGES}},
        )
        self.next = 0.0

    def save(self, chunks: Sequence[Chunk], last: int, now: bool = False) -> None:
        """Writes the run if it is time, or ``now``; ``last`` is how many segments count."""
        began = time.monotonic()
        if not now and began < self.next:
            return
        arrays = {name: array for place, chunk in enumerate(chunks) for name, array in _arrays(place, chunk)}
        progress = [{"seeds": list(chunk.seeds), "segments": chunk.segments} for chunk in chunks]
        checkpoint.write(self.path, arrays, {"kind": KIND, "asked": self.asked, "chunks": progress, "last": last})
        done = time.monotonic()
        self.next = done + PATIENCE * (done - began)

    def load(self, groups: int, carries: Callable[[], Any]) -> tuple[list[Chunk], int] | None:
        """The chunks, and how many segments count; None if there is no file. ``carries`` gives shapes of carries, by group."""
        if not os.path.exists(self.path):
            return None
        arrays, config = checkpoint.read(self.path)
        if config.get("kind") != KIND:
            raise CheckpointError(
                f"{self.path}: expected a saved simulation, got another checkpoint: choose another file"
            )
        self._require_same(config["asked"])
        try:
            found = [_chunk(place, about, groups, arrays, carries) for place, about in enumerate(config["chunks"])]
            return found, int(config["last"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.path}: the saved simulation cannot be understood: {error!r}") from None

    def _require_same(self, saved: dict[str, Any]) -> None:
        differ = [name for name in self.asked if canonical(self.asked[name]) != canonical(saved.get(name))]
        if differ:
            now, then = _said(self.asked[differ[0]]), _said(saved.get(differ[0]))
            raise SettingsError(
                f"{self.path} holds another run: {', '.join(differ)} differ ({differ[0]}: {now} now, {then} in the file); "
                "give another file, or remove this one to begin anew"
            )


def fingerprint(tree: Any) -> str:
    """A hash of everything in a tree: its structure, its static choices and its numbers."""
    leaves, structure = jax.tree.flatten(tree)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(structure)).encode())
    for leaf in leaves:
        array = np.asarray(leaf)
        digest.update(f"{array.shape}{array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _arrays(place: int, chunk: Chunk) -> list[tuple[str, np.ndarray]]:
    if not chunk.segments:
        return []
    found: dict[str, np.ndarray] = {}
    for group in range(len(chunk.records)):
        record, prefix = chunk.joined(group), f"{place}/{group}"
        found |= {f"{prefix}/regret": record.regret, f"{prefix}/diverged_at": chunk.diverged_at[group]}
        found |= {f"{prefix}/info/{name}": values for name, values in record.info.items()}
        found |= {} if record.w is None else {f"{prefix}/w": record.w}
    for name in ("best", "random", "clairvoyant", "cost"):
        if getattr(chunk.tallies[0], name) is not None:
            found[f"{place}/tally/{name}"] = np.stack([getattr(tally, name) for tally in chunk.tallies])
    for name in chunk.tallies[0].predicted:
        found[f"{place}/predicted/{name}"] = np.stack([tally.predicted[name] for tally in chunk.tallies])
    for group, carry in enumerate(chunk.carries):
        found |= named(f"{place}/{group}/carry", carry)
    return list(found.items())


def _chunk(
    place: int, about: dict[str, Any], groups: int, arrays: dict[str, np.ndarray], carries: Callable[[], Any]
) -> Chunk:
    chunk = Chunk(tuple(about["seeds"]))
    if not about["segments"]:
        return chunk
    records = []
    for group in range(groups):
        prefix = f"{place}/{group}"
        records.append(Kept(arrays[f"{prefix}/regret"], _below(f"{prefix}/info/", arrays), arrays.get(f"{prefix}/w")))
    sums, predicted = _below(f"{place}/tally/", arrays), _below(f"{place}/predicted/", arrays)
    pick: Any = lambda i, name: sums[name][i] if name in sums else None  # noqa: E731
    chunk.tallies = [
        Tally(
            sums["best"][i], sums["random"][i], pick(i, "clairvoyant"), pick(i, "cost"),
            {name: values[i] for name, values in predicted.items()},
        )
        for i in range(about["segments"])
    ]  # fmt: skip
    chunk.records = [[record] for record in records]
    chunk.totals = [record.regret.sum(axis=-1, dtype=np.float64) for record in records]
    chunk.diverged_at = [arrays[f"{place}/{group}/diverged_at"] for group in range(groups)]
    chunk.segments = about["segments"]
    if any(name.startswith(f"{place}/0/carry") for name in arrays):
        chunk.carries = [
            restored(f"{place}/{group}/carry", template, arrays) for group, template in enumerate(carries())
        ]
    return chunk


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _said(value: Any) -> str:
    words = str(value)
    return words if len(words) <= 60 else f"{words[:59]}…"
