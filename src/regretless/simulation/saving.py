"""A run as a file: after a kill it continues where it was, bit for bit; a finished one is read instead of run again.

The file holds the request, which must equal the present one on the same devices with the same versions, the finished
segments, and the carries of the chunk that is being played.
"""

import importlib.metadata
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regretless.array_files import canonical, flatten_tree, read_arrays, restore_tree, write_arrays
from regretless.errors import CheckpointError, DamagedError, SettingsError
from regretless.results import PACKAGES
from regretless.simulation.run import Chunk, SegmentData
from regretless.simulation.stream import ReferenceTally

KIND = "simulation"
MIN_INTERVAL_RATIO = 20.0
"""A file is written when this many times the duration of the last write has passed: writing costs 5 % of the time."""

MAX_TEXT = 60
"""Characters of a value in an error message."""


class Saving:
    """Where a run is kept; ``request`` is what was asked for, as plain data."""

    def __init__(self, path: str | os.PathLike[str], request: dict[str, Any]):
        self.path = path
        self.request = {**request, "versions": {name: importlib.metadata.version(name) for name in PACKAGES}}
        self.next = 0.0

    def save(self, chunks: Sequence[Chunk], last: int, now: bool = False) -> None:
        """Write the run if it is due, or ``now``; ``last`` is how many segments count."""
        began = time.monotonic()
        if not now and began < self.next:
            return
        arrays = {name: array for place, chunk in enumerate(chunks) for name, array in _arrays(place, chunk)}
        progress = [{"seeds": list(chunk.seeds), "segments": chunk.segments} for chunk in chunks]
        write_arrays(self.path, arrays, {"kind": KIND, "request": self.request, "chunks": progress, "last": last})
        done = time.monotonic()
        self.next = done + MIN_INTERVAL_RATIO * (done - began)

    def load(self, groups: int, carries: Callable[[], Any]) -> tuple[list[Chunk], int] | None:
        """Return the chunks and how many segments count; None without a file. ``carries`` gives shapes by group."""
        if not os.path.exists(self.path):
            return None
        try:
            arrays, record = read_arrays(self.path)
        except OSError as error:
            raise CheckpointError(f"cannot read {self.path}: {error.strerror or error}") from None
        except DamagedError as error:
            raise CheckpointError(str(error)) from None
        if record.get("kind") != KIND:
            raise CheckpointError(
                f"{self.path}: expected a saved simulation, got another file of this program: choose another file"
            )
        try:
            self._require_same(record["request"])
            chunks = [_chunk(place, about, groups, arrays, carries) for place, about in enumerate(record["chunks"])]
            return chunks, int(record["last"])
        except SettingsError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.path}: the saved simulation cannot be understood: {error!r}") from None

    def _require_same(self, saved: dict[str, Any]) -> None:
        differ = [name for name in self.request if canonical(self.request[name]) != canonical(saved.get(name))]
        if differ:
            now, then = _shorten(self.request[differ[0]]), _shorten(saved.get(differ[0]))
            raise SettingsError(
                f"{self.path} holds another run: {', '.join(differ)} differ ({differ[0]}: {now} now, {then} in the "
                "file); choose another file, or remove this one to begin again"
            )


def _arrays(place: int, chunk: Chunk) -> list[tuple[str, np.ndarray]]:
    if not chunk.segments:
        return []
    arrays: dict[str, np.ndarray] = {}
    for group in range(len(chunk.records)):
        record, prefix = chunk.joined(group), f"{place}/{group}"
        arrays |= {f"{prefix}/regret": record.regret, f"{prefix}/diverged_at": chunk.diverged_at[group]}
        arrays |= {f"{prefix}/info/{name}": values for name, values in record.info.items()}
        arrays |= {} if record.w is None else {f"{prefix}/w": record.w}
    for name in ("best", "random", "clairvoyant", "cost"):
        if getattr(chunk.tallies[0], name) is not None:
            arrays[f"{place}/tally/{name}"] = np.stack([getattr(tally, name) for tally in chunk.tallies])
    for name in chunk.tallies[0].predicted:
        arrays[f"{place}/predicted/{name}"] = np.stack([tally.predicted[name] for tally in chunk.tallies])
    for group, carry in enumerate(chunk.carries):
        arrays |= flatten_tree(f"{place}/{group}/carry", carry)
    return list(arrays.items())


def _chunk(
    place: int, about: dict[str, Any], groups: int, arrays: dict[str, np.ndarray], carries: Callable[[], Any]
) -> Chunk:
    chunk = Chunk(tuple(about["seeds"]))
    if not about["segments"]:
        return chunk
    records = []
    for group in range(groups):
        prefix = f"{place}/{group}"
        info = _below(f"{prefix}/info/", arrays)
        records.append(SegmentData(arrays[f"{prefix}/regret"], info, arrays.get(f"{prefix}/w")))
    sums, predicted = _below(f"{place}/tally/", arrays), _below(f"{place}/predicted/", arrays)
    pick: Any = lambda i, name: sums[name][i] if name in sums else None  # noqa: E731
    chunk.tallies = [
        ReferenceTally(
            best=sums["best"][i],
            random=sums["random"][i],
            clairvoyant=pick(i, "clairvoyant"),
            cost=pick(i, "cost"),
            predicted={name: values[i] for name, values in predicted.items()},
        )
        for i in range(about["segments"])
    ]
    chunk.records = [[record] for record in records]
    chunk.totals = [record.regret.sum(axis=-1, dtype=np.float64) for record in records]
    chunk.diverged_at = [arrays[f"{place}/{group}/diverged_at"] for group in range(groups)]
    chunk.segments = about["segments"]
    if any(name.startswith(f"{place}/0/carry") for name in arrays):
        chunk.carries = [
            restore_tree(f"{place}/{group}/carry", template, arrays) for group, template in enumerate(carries())
        ]
    return chunk


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
