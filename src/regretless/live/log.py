"""A log on disk: records are only ever added, each is in the file before the call that made it returns.

A log is the file at its path, then ``path.1``, ``path.2``, …, in this order; a new one is begun when the last has reached its
size. A process that dies while it writes leaves a torn tail: the call that wrote it never returned, and the next writer cuts it
off. Bits that changed are noticed and told with their place.
"""

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regretless.errors import LogError
from regretless.live import framing
from regretless.live.framing import BEGINNING, HEAD_SIZE, Position, Record

SIZE = 64 * 2**20
"""Bytes of one file of a log."""


def file_of(path: Path, place: int) -> Path:
    """The file that is ``place`` files behind the first."""
    return path.with_name(f"{path.name}.{place}") if place else path


def places(path: Path) -> list[int]:
    """Which files of a log there are, in order; earlier ones may have been removed, none in between."""
    if not path.parent.is_dir():
        return []
    ends = (name.removeprefix(path.name) for name in os.listdir(path.parent) if name.startswith(path.name))
    found = sorted(int(end[1:] or 0) for end in ends if not end or (end[:1] == "." and end[1:].isdecimal()))
    for one, other in itertools.pairwise(found):
        if other != one + 1:
            raise LogError(f"{path}: expected the file {file_of(path, one + 1).name} of this log, but it is missing")
    return found


class Reader:
    """The records of a log in order. ``problem`` says afterwards why it ended early; ``torn``: by a tail that a killed writer
    left, not by damage. ``position`` is the place behind the last good record, ``file`` and ``offset`` where that is.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.places = places(self.path)
        if not self.places:
            raise LogError(f"cannot read log {path}: no such file")
        self.problem: str | None = None
        self.torn = False
        self.position: Position | None = None
        self.file, self.offset = self.places[0], 0

    def __iter__(self) -> Iterator[tuple[Position, Record]]:
        for place in self.places:
            self.file, self.offset = place, 0
            try:
                with file_of(self.path, place).open("rb") as file:
                    yield from self._records(file, os.fstat(file.fileno()).st_size)
            except OSError as error:
                raise LogError(f"cannot read log {file_of(self.path, place)}: {error.strerror or error}") from None
            if self.problem is not None:
                return

    def _records(self, file: Any, size: int) -> Iterator[tuple[Position, Record]]:
        while self.offset < size:
            data = file.read(HEAD_SIZE)
            head = framing.head_of(data) if len(data) == HEAD_SIZE else None
            if head is None:
                rest = data + file.read()
                torn = len(data) < HEAD_SIZE or not any(rest)  # a file system may lengthen a file before it fills it
                return self._stop("ends in the middle of a record" if torn else "its bits have changed", torn)
            if self.offset + HEAD_SIZE + head.length > size:
                return self._stop("ends in the middle of a record", True)
            payload = file.read(head.length)
            if not framing.fits(head, payload):
                return self._stop("its bits have changed", False)
            before = self.position
            if before is not None and (head.number, head.before) != (before.records + 1, before.checksum):
                return self._stop(
                    f"expected record {before.records + 1}, got {head.number} or one of another log", False
                )
            record = framing.decode(payload)
            self.position = head.position
            self.offset += HEAD_SIZE + head.length
            yield head.position, record
        return None

    def _stop(self, why: str, torn: bool) -> None:
        torn = torn and self.file == self.places[-1]
        good = 0 if self.position is None else self.position.records
        name = file_of(self.path, self.file)
        tail = "the tail was torn off by a crash" if torn else "the log is damaged"
        self.problem = f"{name}: {tail} at byte {self.offset} ({why}); the records up to {good} are good"
        self.torn = torn

    def require_sound(self) -> None:
        """Raises LogError if the log is damaged; a torn tail is no damage."""
        if self.problem is not None and not self.torn:
            raise LogError(self.problem)


class Writer:
    """Adds records behind ``position``, the end of what ``reader`` has read; without one begins a new log.

    The file that is written is locked: one process at a time owns a log.
    """

    def __init__(self, path: str | os.PathLike[str], size: int, sync: bool, reader: Reader | None = None):
        self.path, self.size, self.sync = Path(path), size, sync
        self.position = BEGINNING if reader is None or reader.position is None else reader.position
        self.place, self.end = (0, 0) if reader is None else (reader.file, reader.offset)
        self.broken = True  # whether there may be something behind the end
        self.last = (self.end, self.position)  # the same before the last record
        self.file = -1
        try:
            self.file = self._opened(self.place)
        except OSError as error:
            raise self._failed(error) from None

    def append(self, kind: str, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Position:
        """Writes a record and returns the place behind it; raises LogError, and leaves the log as it was, if that fails."""
        if self.file < 0:
            raise LogError(f"the log {self.path} was closed: a learner goes on by Learner.replay(..., append=True)")
        frame, position = framing.framed(framing.encode(kind, data, arrays), self.position)
        try:
            if self.end and self.end + len(frame) > self.size:
                self._begin_next()
            if self.broken:
                os.ftruncate(self.file, self.end)
            self.broken = True
            self._write(frame)
            if self.sync:
                os.fsync(self.file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self.file, self.end)
            raise self._failed(error) from None
        self.last = (self.end, self.position)
        self.end, self.position, self.broken = self.end + len(frame), position, False
        return position

    def require_at(self, position: Position | None) -> None:
        """Takes the last record back if the call that wrote it was interrupted before it had any effect."""
        if position != self.position and position == self.last[1]:
            (self.end, self.position), self.broken = self.last, True

    def close(self) -> None:
        """Lets go of the file."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def __del__(self) -> None:
        if getattr(self, "file", -1) >= 0:
            self.close()

    def _write(self, frame: bytes) -> None:
        view, place = memoryview(frame), self.end
        while view:
            written = os.pwrite(self.file, view, place)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            view, place = view[written:], place + written

    def _opened(self, place: int) -> int:
        file = os.open(file_of(self.path, place), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise LogError(f"the log {self.path} is being written by another learner; one learner owns a log") from None
        except OSError:
            pass  # a file system that knows no locks
        return file

    def _begin_next(self) -> None:
        file = self._opened(self.place + 1)
        if self.sync:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        os.close(self.file)
        self.file, self.place, self.end, self.broken = file, self.place + 1, 0, True

    def _failed(self, error: OSError) -> LogError:
        return LogError(f"cannot write log {self.path}: {error.strerror or error}; nothing was changed")
