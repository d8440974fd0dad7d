"""The address of a result: a hash of its configuration, its seeds, the code that computes it and how that is compiled.

The code is the import closure of some root modules, within their own packages and this one. Comments, docstrings and the
layout of a file do not count. Data files beside the modules do. A registry's late parts are no imports: whoever uses one has
its module among the roots.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import os
import types
from pathlib import Path
from typing import Any, NamedTuple

from regretless.array_files import canonical
from regretless.errors import SettingsError
from regretless.studies import sources
from regretless.studies.sources import Source

PACKAGE = "regretless"
SIMULATION, THEORY = "regretless.studies.outcome", "regretless_dfhpg.theory.check"
"""The modules that compute the two kinds of cells."""

FAMILIES = (
    "regretless.benchmarks", "regretless.models", "regretless.oracles", "regretless.policies.building",
    "regretless.surrogates",
)  # fmt: skip
"""The modules whose registries name parts of ours that are imported when they are used."""

SHOWN = ("regretless.show.", "regretless.plots.", "regretless.formatting.")
"""How results look: no number depends on it."""

DATA = (".csv", ".json", ".txt")
IN_THE_SETTINGS = {"presets.csv", "feedback_presets.csv", "published.csv"}
"""Data files whose values are part of a cell's own settings, or no number depends on."""

ROUNDING = ("optimization_level", "fast_math", "excess_precision", "fusion")
"""Parts of the names of XLA's flags that change how a program rounds."""

Stamp = tuple[tuple[str, int, int], ...]


class _Known(NamedTuple):
    stamp: Stamp
    version: str


_known: dict[tuple[tuple[str, ...], ...], _Known] = {}


def late_parts() -> tuple[str, ...]:
    """The modules of our own parts that are imported when they are used."""
    families = [sources.find(family) for family in FAMILIES]
    return tuple(sorted({module for family in families if family for module in family.later}))


def everything() -> tuple[str, ...]:
    """The roots of all that computes results, whatever a cell may name."""
    return (SIMULATION, THEORY, *late_parts())


def code_version(roots: tuple[str, ...] | None = None) -> str:
    """The package's version and a hash of everything that the modules ``roots`` import (default: of all that computes results).

    SettingsError if one is not found. A file that has changed since the last call is noticed, within one process too.
    """
    roots = tuple(sorted(set(everything() if roots is None else roots)))
    places = tuple(str(sources.locate(root)) for root in roots)
    known = _known.get((roots, places))
    if known is None or known.stamp != _stamp(known.stamp):
        closure = _closure(roots)
        stamp = _stamp(tuple((path, 0, 0) for path in _watched(closure)))
        known = _Known(stamp, f"{importlib.metadata.version(PACKAGE)}+{_digest(closure)[:12]}")
        _known[roots, places] = known
    return known.version


def roots_of(*things: Any) -> tuple[str, ...]:
    """The modules in which classes, functions or the classes of objects are defined.

    >>> roots_of(Path, code_version, Path("here"))
    ('pathlib', 'regretless.studies.identity')
    """
    found = set()
    for thing in things:
        while isinstance(thing, functools.partial):
            thing = thing.func
        module = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
        found.add(module or type(thing).__module__)
    return tuple(sorted(found))


def address(identity: dict[str, Any], code: str) -> str:
    """The key of a result.

    >>> address({"seeds": 3}, "1") == address({"seeds": 3}, "1") != address({"seeds": 4}, "1")
    True
    """
    return hashlib.sha256(canonical({"cell": identity, "code": code, **_compiled()})).hexdigest()


def _compiled() -> dict[str, list[str]]:
    """What the environment tells the compiler that changes how results round; what it is told otherwise stands in the code."""
    flags = sorted(word for word in os.environ.get("XLA_FLAGS", "").split() if any(part in word for part in ROUNDING))
    return {"compiler": flags} if flags else {}


def _closure(roots: tuple[str, ...]) -> dict[str, Source]:
    """The modules that are imported, directly or not, by the roots; by name.

    Importing a part of this package runs its front door, which shows users all there is; it is followed only by those who
    take something from it.
    """
    importlib.invalidate_caches()
    inside = sources.Surroundings(roots, PACKAGE)
    found: dict[str, Source] = {}
    followed: set[str] = set()
    waiting = [(root, True) for root in roots]
    while waiting:
        name, used = waiting.pop()
        if name in followed or not inside.holds(name) or f"{name}.".startswith(SHOWN):
            continue
        source = found.get(name) or sources.find(name)
        if source is None:
            if name in roots:
                raise SettingsError(f"the module {name} cannot be found: install its package, or start where it lies")
            continue
        found[name] = source
        waiting += [(each, False) for each in sources.parents(name)]
        if used or name != PACKAGE:
            followed.add(name)
            waiting += [(_target(*each), True) for each in source.imports if inside.holds(each[0])]
        if used and name == PACKAGE:
            waiting += [(home, True) for home in importlib.import_module(PACKAGE).HOMES.values()]
    return found


def _target(module: str, name: str) -> str:
    """What ``from module import name`` loads: the module of that name, or the one that defines it."""
    return f"{module}.{name}" if name and sources.locate(f"{module}.{name}") else module


def _digest(closure: dict[str, Source]) -> str:
    digest = hashlib.sha256()
    for name, source in sorted(closure.items()):
        digest.update(f"{name}\0{source.digest}\n".encode())
        for folder in source.folders:
            for path in _data_files(Path(folder), source.path is not None):
                inside = path.relative_to(folder).as_posix()
                digest.update(f"{name}/{inside}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _data_files(folder: Path, below: bool) -> list[Path]:
    """Data in a package's folder, and with ``below`` in folders of it that hold no code."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if below and path.name != "__pycache__" and not any(path.glob("*.py")):
                found += _data_files(path, below)
        elif path.suffix in DATA and path.name not in IN_THE_SETTINGS:
            found.append(path)
    return found


def _watched(closure: dict[str, Source]) -> list[str]:
    """Every file and folder that the hash was made from."""
    paths: set[str] = set()
    for source in closure.values():
        if source.path is not None:
            paths.add(source.path)
        for folder in source.folders:
            data = _data_files(Path(folder), source.path is not None)
            paths.update([folder, *map(str, data), *(str(path.parent) for path in data)])
    return sorted(paths)


def _stamp(before: Stamp) -> Stamp:
    """Time of the last change and size of the same paths now; zeros for what is gone."""
    found = []
    for path, _, _ in before:
        try:
            about = os.stat(path)
            found.append((path, about.st_mtime_ns, about.st_size))
        except OSError:
            found.append((path, 0, 0))
    return tuple(found)
