"""A run as a file: after a kill it continues where it was, bit for bit; a finished one is read instead of run again.

The file holds the request, which must equal the present one on the same devices with the same versions, the finished
segments, and the carries of the chunk that is being played.
"""

import importlib.metadata
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from regretless.array_files import canonical, flatten_tree, read_arrays, restore_tree, write_arrays
from regretless.errors import CheckpointError, DamagedError, SettingsError
from regretless.formatting import shorten
from regretless.results import PACKAGES
from regretless.simulation.run import Chunk, SegmentData
from regretless.simulation.stream import ReferenceTally

KIND = "simulation"
MIN_INTERVAL_RATIO = 20.0
"""A file is written when this many times the duration of the last write has passed: writing costs 5 % of the time."""


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
        except (OSError, DamagedError) as error:
            raise CheckpointError(f"cannot read {self.path}: {error}") from None
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
            now, then = shorten(str(self.request[differ[0]])), shorten(str(saved.get(differ[0])))
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
    whole = jax.tree.map(lambda *parts: np.stack(parts), *chunk.tallies)
    arrays |= {f"{place}/tally/{name}": part for name, part in whole._asdict().items() if isinstance(part, np.ndarray)}
    arrays |= {f"{place}/predicted/{name}": values for name, values in whole.predicted.items()}
    for group, carry in enumerate(chunk.carries):
        arrays |= flatten_tree(f"{place}/{group}/carry", carry)
    return list(arrays.items())


def _chunk(
    place: int, about: dict[str, Any], groups: int, arrays: dict[str, np.ndarray], carries: Callable[[], Any]
) -> Chunk:
    chunk = Chunk(tuple(about["seeds"]))
    if not about["segments"]:
        return chunk
    chunk.records = [
        [
            SegmentData(
                arrays[f"{place}/{group}/regret"],
                _below(f"{place}/{group}/info/", arrays),
                arrays.get(f"{place}/{group}/w"),
            )
        ]
        for group in range(groups)
    ]
    sums: dict[str, Any] = {"clairvoyant": None, "cost": None, "predicted": _below(f"{place}/predicted/", arrays)}
    whole = ReferenceTally(**{**sums, **_below(f"{place}/tally/", arrays)})
    chunk.tallies = [jax.tree.map(lambda part, i=i: part[i], whole) for i in range(about["segments"])]
    chunk.totals = [record.regret.sum(axis=-1, dtype=np.float64) for (record,) in chunk.records]
    chunk.diverged_at = [arrays[f"{place}/{group}/diverged_at"] for group in range(groups)]
    chunk.segments = about["segments"]
    if any(name.startswith(f"{place}/0/carry") for name in arrays):
        chunk.carries = [
            restore_tree(f"{place}/{group}/carry", template, arrays) for group, template in enumerate(carries())
        ]
    return chunk


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
