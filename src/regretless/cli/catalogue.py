"""What the program itself brings, by name, in a file: lists and completion need not import JAX to tell it.

The file is written by ``python -m regretless.cli.catalogue`` and a test compares it with the registries.
"""

import functools
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

FILE = Path(__file__).with_name("catalogue.json")


@functools.cache
def rows(kind: str) -> list[tuple[str, str]]:
    """The names of one kind with a line about each."""
    return [(name, about) for name, about in json.loads(FILE.read_text(encoding="utf-8"))[kind]]


def is_all() -> bool:
    """Whether no other package offers parts, so that the file holds all there is."""
    offered = importlib.metadata.entry_points().groups
    return not any(f"regretless.{family}" in offered for family in (*json.loads(FILE.read_text()), "nuisances"))


def complete(kind: str) -> Callable[[str], list[tuple[str, str]]]:
    """What a shell offers for the beginning of a name."""
    return lambda incomplete: [(name, about) for name, about in rows(kind) if name.startswith(incomplete)]


def text() -> str:
    """What the file must hold."""
    from regretless.cli.list import KINDS, entries

    return json.dumps({kind: entries(kind) for kind in KINDS}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
