"""How a report's files are written: whole or not at all."""

# A stand-in until regretless.files is there: write beside the target, then rename.
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A place beside ``path`` to write to; at the end of the block it becomes ``path``."""
    place = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield place
        os.replace(place, path)
    finally:
        place.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    with atomic_path(path) as place:
        place.write_text(text, encoding="utf-8")
