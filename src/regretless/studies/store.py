"""Results on disk: one file per cell under the hash of what it depends on.

A file appears whole or not at all. It carries its own key, and checksums of its record and of its numbers, so that damage and
files in the wrong place are noticed when they are read. A file that the operating system does not let us read is not damaged:
it is never replaced and never removed. Who computes a cell holds a lock on its claim, which the operating system releases when
that process ends, however it ends.
"""

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from regretless import files
from regretless.errors import DamagedError, RegretlessError, SettingsError, WriteError
from regretless.studies import forms
from regretless.studies.cell_files import CellResult, read_record, read_result, write_result
from regretless.studies.forms import FailureForm, PlanFile
from regretless.studies.identity import code_version

DEFAULT = Path("results")


class Entry(NamedTuple):
    """A stored result, without its numbers."""

    key: str
    path: Path
    record: dict[str, Any] | None  # None: it is damaged, or cannot be read at the moment
    size: int
    problem: str = ""  # why there is no record
    damaged: bool = False


class Failure(NamedTuple):
    """What went wrong when a cell was last tried; every try that fails has an ``id`` of its own."""

    name: str
    error: str
    id: str


class CellLock:
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
            for each in (self.failures, self.plans, *self.cells.iterdir()):
                files.remove_left_behind(each)
        except OSError as error:
            raise SettingsError(
                f"cannot write to the store {self.folder}: {error.strerror}; choose another with --store"
            ) from None

    def path(self, key: str) -> Path:
        """Where the result with this key is, or will be."""
        return self.cells / key[:2] / f"{key}.parquet"

    def claim(self, key: str) -> CellLock:
        """The claim on a cell, not taken yet."""
        return CellLock(self.claims / key)

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
        """The record of a result; None if there is none, a damaged one, or one that cannot be read at the moment."""
        try:
            return read_record(self.path(key), key)
        except (OSError, DamagedError):
            return None

    def load(self, key: str) -> CellResult:
        """The result with this key; FileNotFoundError without one, DamagedError if it is damaged or another result's."""
        try:
            return read_result(self.path(key), key)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RegretlessError(f"cannot read {self.path(key)}: {error.strerror}; it was left as it is") from None

    def sound(self, key: str) -> bool:
        """Whether the result is there and every number of it is as it was written."""
        try:
            self.load(key)
        except (FileNotFoundError, DamagedError):
            return False
        return True

    def put(self, key: str, result: CellResult) -> None:
        """Stores a result, and forgets the cell's earlier failure; the caller holds the claim, or is alone."""
        keyed = result.with_key(key)
        with self._part(key) as part:
            write_result(keyed, part)

    def put_file(self, key: str, content: bytes) -> None:
        """Stores a result that another machine has written; DamagedError if it did not arrive whole, or is another's."""
        with self._part(key) as part:
            part.write_bytes(content)
            read_result(part, key)

    @contextlib.contextmanager
    def _part(self, key: str) -> Iterator[Path]:
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}; nothing was written") from None
        with files.replacing(path) as part:
            yield part
        (self.failures / f"{key}.json").unlink(missing_ok=True)

    def fail(self, key: str, name: str, error: str) -> None:
        """Writes down why a cell could not be computed."""
        failure = Failure(name, error, secrets.token_hex(8))
        files.write_text(self.failures / f"{key}.json", json.dumps(failure._asdict(), indent=1))

    def failure(self, key: str) -> Failure | None:
        """Why the cell failed when it was last tried; None if it did not."""
        found = forms.read(self.failures / f"{key}.json", FailureForm)
        return None if found is None else Failure(found.name, found.error, found.id)

    def entries(self) -> Iterator[Entry]:
        """Everything that is stored, with what cannot be used and why."""
        for path in sorted(self.cells.glob("??/*.parquet")):
            try:
                size = path.stat().st_size
                yield Entry(path.stem, path, read_record(path, path.stem), size)
            except DamagedError as error:
                yield Entry(path.stem, path, None, size, str(error).removeprefix(f"{path} is "), damaged=True)
            except FileNotFoundError:  # removed by another process
                continue
            except OSError as error:
                yield Entry(path.stem, path, None, 0, f"cannot be read: {error.strerror}")

    def written_plans(self) -> list[PlanFile]:
        """The plans of every campaign, oldest first; one that cannot be read is left out, its command writes it anew."""
        found = [forms.read(path, PlanFile) for path in self.plans.glob("*.json")]
        return sorted((plan for plan in found if plan is not None), key=lambda plan: plan.written)

    def old(self) -> list[Entry]:
        """Results that this code would not use: damaged, or computed by code that has changed since.

        Not what cannot be read at the moment, nor results of modules that are not installed here: nobody knows about those.
        """
        return [entry for entry in self.entries() if entry.damaged or _is_outdated(entry.record)]

    def remove(self, entry: Entry) -> None:
        """Deletes one result."""
        entry.path.unlink(missing_ok=True)


def _is_outdated(record: dict[str, Any] | None) -> bool:
    """Whether the code that computed a result is known to have changed."""
    if record is None or not isinstance(record.get("roots"), list):
        return False
    try:
        return bool(record.get("code_used") != code_version(tuple(map(str, record["roots"]))))
    except RegretlessError:
        return False
