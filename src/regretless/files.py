"""Write files atomically.

A file appears whole or not at all, and an error leaves the old one unchanged. The new content is written next to its
target, into a part called ``.NAME.PID-random.part``, which is flushed to the disk and renamed. The writer holds a
lock on the part; the operating system releases it when the process ends, however it ends. A part without a lock was
left by a killed writer, and the next writer of the same target removes it.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from regretless.errors import WriteError

SUFFIX = ".part"
MAX_STEM_BYTES = 200
"""Bytes of a target's name that its parts repeat; a part's name must not become too long for the file system."""

_unfinished: set[Path] = set()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of an empty part; at the end of the block it becomes the file at ``path``.

    Any error in the block removes the part. An OSError becomes a WriteError that names ``path`` and the reason.
    """
    target = Path(path)
    try:
        target = Path(os.path.realpath(target))  # a link stays a link
        mode = permissions(target)
        _remove_parts(target.parent, _stem(target))
        part, file = _create(target)
        try:
            _unfinished.add(part)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield part
            _into_place(part, target)
        finally:
            part.unlink(missing_ok=True)  # by now it was renamed, or is not needed
            _unfinished.discard(part)
            file.close()
    except OSError as error:
        kept = "the old file is unchanged" if os.path.isfile(target) else "nothing was written"
        raise WriteError(f"cannot write {path}: {_reason(error)}; {kept}") from None


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "wb") -> Iterator[IO[Any]]:
    r"""Open a file for writing, UTF-8 if it is text; it takes its place at the end of the block or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "greeting.txt"
    >>> with atomic(path, "w") as file:
    ...     _ = file.write("hello")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('hello', 1)
    """
    with replacing(path) as part, part.open(mode, encoding="utf-8" if mode == "w" else None) as file:
        yield file


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a small text file in one step."""
    with atomic(path, "w") as file:
        file.write(text)


def refuse_device(path: str | os.PathLike[str]) -> None:
    """Raise OSError for a device, whose content may never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "it is a device, expected a file")


def sync_folder(path: Path) -> None:
    """Bring the names of a folder's files to the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_unfinished() -> None:
    """Remove the parts this process is writing, for a program that exits without unwinding its blocks."""
    for part in list(_unfinished):
        with contextlib.suppress(OSError):
            part.unlink()


def remove_left_behind(folder: Path) -> None:
    """Remove every part in ``folder`` whose writer is gone, whatever its target was."""
    with contextlib.suppress(OSError):
        _remove_parts(folder, "")


def _create(target: Path) -> tuple[Path, IO[bytes]]:
    """Return a new part, and the open file that holds its lock."""
    while True:
        part = target.with_name(f"{_stem(target)}{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}")
        file = part.open("xb")
        if _try_lock(file) and os.fstat(file.fileno()).st_nlink:
            return part, file
        file.close()  # removed as a dead writer's, in the moment between creating and locking it
        part.unlink(missing_ok=True)


def _try_lock(file: IO[bytes]) -> bool:
    """Lock an open file unless another process has; return True as well if the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _remove_parts(folder: Path, stem: str) -> None:
    """Remove the parts of dead writers, which hold no lock."""
    pattern = re.compile(rf"{re.escape(stem) or '[.].+[.]'}[0-9]+-[0-9a-f]{{8}}{re.escape(SUFFIX)}", re.DOTALL)
    for part in folder.iterdir():
        if pattern.fullmatch(part.name):
            with contextlib.suppress(OSError), part.open("rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()


def _stem(target: Path) -> str:
    """Return how the names of a target's parts begin."""
    name = os.fsencode(target.name)
    return f".{target.name if len(name) <= MAX_STEM_BYTES else hashlib.sha256(name).hexdigest()}."


def permissions(target: Path) -> int | None:
    """Return the permissions of an existing file, None without one; refuse what renaming must not replace."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")
    return stat.S_IMODE(mode)


def _into_place(part: Path, target: Path) -> None:
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(part, target)
    with contextlib.suppress(OSError):  # if a folder cannot be synced, the file system does it later
        sync_folder(target.parent)


def _reason(error: OSError) -> str:
    """Return the system's text for an error; libraries add their own."""
    if error.errno and error.errno != errno.EINVAL:
        return os.strerror(error.errno)
    return error.strerror or str(error)
