"""Results on disk: one file per cell under the hash of what it depends on.

A file appears whole or not at all: it is written beside its place, flushed and renamed. It carries checksums of its record
and of its numbers, so that damage is noticed when it is read. Who computes a cell holds a lock on its claim, which the
operating system releases when that process ends, however it ends.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from regretless.errors import DamagedError, SettingsError
from regretless.studies.archive import Result, read_record, read_result, write_result

DEFAULT = Path("results")


class Entry(NamedTuple):
    """A stored result, without its numbers."""

    key: str
    path: Path
    record: dict[str, Any] | None  # None: the file is damaged
    size: int


class Failure(NamedTuple):
    """What went wrong when a cell was last tried."""

    name: str
    error: str
    when: float


class Claim:
    """The right to compute one cell, held by at most one living process."""

    def __init__(self, path: Path):
        self.path = path
        self.file: int | None = None

    def acquire(self) -> bool:
        """Takes the claim if nobody alive holds it."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            try:
                same = os.fstat(file).st_ino == os.stat(self.path).st_ino
            except FileNotFoundError:
                same = False
            if same:  # not a file that its last holder has just removed
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
                self.file = file
                return True
            os.close(file)

    def release(self) -> None:
        """Gives the claim back and leaves no file behind."""
        if self.file is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.file)
            self.file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Store:
    """A folder of results, claims, failures and plans.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.has("0" * 64), list(store.entries())
    (False, [])
    """

    def __init__(self, folder: Path = DEFAULT):
        self.folder = folder
        self.cells, self.claims = folder / "cells", folder / "claims"
        self.failures, self.plans = folder / "failures", folder / "plans"

    def create(self) -> None:
        """Makes the folders; refuses a place that cannot be written to."""
        try:
            for each in (self.cells, self.claims, self.failures, self.plans):
                each.mkdir(parents=True, exist_ok=True)
                if not os.access(each, os.W_OK | os.X_OK):
                    raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise SettingsError(
                f"cannot write to the store {self.folder}: {error.strerror}; choose another with --store"
            ) from None

    def path(self, key: str) -> Path:
        """Where the result with this key is, or will be."""
        return self.cells / key[:2] / f"{key}.parquet"

    def claim(self, key: str) -> Claim:
        """The claim on a cell, not taken yet."""
        return Claim(self.claims / key)

    def running(self, key: str) -> bool:
        """Whether a living process holds the claim on this cell."""
        try:
            file = os.open(self.claims / key, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def has(self, key: str) -> bool:
        """Whether the result is there and its record is sound; ``load`` checks the numbers too."""
        return self.record(key) is not None

    def record(self, key: str) -> dict[str, Any] | None:
        """The record of a result; None if there is none, or a damaged one."""
        try:
            return read_record(self.path(key))
        except (FileNotFoundError, DamagedError):
            return None

    def load(self, key: str) -> Result:
        """The result with this key; FileNotFoundError without one, DamagedError if its checksums do not fit."""
        return read_result(self.path(key))

    def sound(self, key: str) -> bool:
        """Whether the result is there and every number of it is as it was written."""
        try:
            self.load(key)
        except (FileNotFoundError, DamagedError):
            return False
        return True

    def put(self, key: str, result: Result) -> None:
        """Stores a result, and forgets the cell's earlier failure; the caller holds the claim, or is alone."""
        with self._beside(key) as place:
            write_result(result, place)

    def put_file(self, key: str, content: bytes) -> None:
        """Stores a result that another machine has written; DamagedError if it did not arrive whole."""
        with self._beside(key) as place:
            place.write_bytes(content)
            read_result(place)

    @contextlib.contextmanager
    def _beside(self, key: str) -> Iterator[Path]:
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{key}.*"):  # by a writer that was killed
            left.unlink(missing_ok=True)
        place = path.with_name(f".{key}.{os.getpid()}")
        try:
            yield place
            _into_place(place, path)
        finally:
            place.unlink(missing_ok=True)
        (self.failures / f"{key}.json").unlink(missing_ok=True)

    def fail(self, key: str, name: str, error: str) -> None:
        """Writes down why a cell could not be computed."""
        self.write_text(
            self.failures / f"{key}.json", json.dumps({"name": name, "error": error, "when": time.time()}, indent=1)
        )

    def failure(self, key: str) -> Failure | None:
        """Why the cell failed when it was last tried; None if it did not."""
        try:
            return Failure(**json.loads((self.failures / f"{key}.json").read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            return None

    def write_text(self, path: Path, text: str) -> None:
        """Writes a small file as one step."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
        _into_place(beside, path)

    def entries(self) -> Iterator[Entry]:
        """Everything that is stored, with what damaged files there are."""
        for path in sorted(self.cells.glob("??/*.parquet")):
            try:
                record: dict[str, Any] | None = read_record(path)
            except DamagedError:
                record = None
            except FileNotFoundError:  # removed by another process
                continue
            yield Entry(path.stem, path, record, path.stat().st_size)

    def written_plans(self) -> list[dict[str, Any]]:
        """The plans of every campaign, oldest first; one that cannot be read is left out, its command writes it anew."""
        found = []
        for path in self.plans.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                found.append(json.loads(path.read_text(encoding="utf-8")))
        return sorted(found, key=lambda plan: plan["written"])

    def old(self, code: str) -> list[Entry]:
        """Results that this code would not use: damaged, or computed by another version."""
        return [entry for entry in self.entries() if entry.record is None or entry.record.get("code") != code]

    def remove(self, entry: Entry) -> None:
        """Deletes one result."""
        entry.path.unlink(missing_ok=True)


def _into_place(beside: Path, path: Path) -> None:
    """Flushes ``beside`` and renames it to ``path``, so that no crash can leave half a file there."""
    with beside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(beside, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
