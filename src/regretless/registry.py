"""Names of parts: one registry per family, open to other packages through entry points."""

import contextlib
import difflib
import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from regretless.errors import SettingsError

T = TypeVar("T")


class Later(Generic[T]):
    """A part of our own that is imported when it is used: the ``attribute`` of a ``module``."""

    def __init__(self, module: str, attribute: str):
        self.module, self.attribute = module, attribute

    def load(self) -> T:
        """The part itself."""
        part: T = getattr(importlib.import_module(self.module), self.attribute)
        return part


def late_name(package: str, names: Mapping[str, Later[Any]], name: str) -> Any:
    """What a package's ``__getattr__`` answers: one of its public names that is loaded when it is first asked for."""
    if name not in names:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return names[name].load()


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one family by name; ``kind`` is what one of them is called, such as ``surrogate``.

    A package that offers parts lists them in its entry points under ``regretless.<family>``; they are imported when they are
    used, so that a broken package harms nobody who does not need it; so are those of our own that are entered as ``Later``.
    Our own names cannot be taken. ``register`` adds a part by hand. ``needs`` names what every part must have, and
    ``expected`` says in words what such a part is.

    >>> shapes = Registry("shape", "shapes", {"round": 1, "square": 2})
    >>> shapes.register("flat", 3)
    >>> list(shapes), shapes["square"]
    (['round', 'square', 'flat'], 2)
    >>> shapes["rund"]
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: unknown shape 'rund'; did you mean 'round'?
    """

    def __init__(
        self,
        kind: str,
        family: str,
        entries: Mapping[str, T | Later[T]],
        needs: tuple[str, ...] = (),
        expected: str = "",
    ):
        self.kind, self.family, self._needs, self._expected = kind, family, needs, expected
        self._built_in = frozenset(entries)
        self._own: dict[str, T | Later[T]] = dict(entries)
        self._offered: dict[str, list[importlib.metadata.EntryPoint]] | None = None

    def register(self, name: str, part: T) -> None:
        """Makes ``part`` known as ``name``; a name that is taken may only be given to the same part again."""
        if name in self and not _same(self[name], part):
            raise SettingsError(f"{self.kind} {name!r} exists already: choose another name")
        if not name.isidentifier():
            raise SettingsError(f"expected a name of letters, digits and underscores for a {self.kind}, got {name!r}")
        self._own[name] = self._checked(name, part)

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            part = self._own[name]
            if isinstance(part, Later):
                self._own[name] = part = part.load()
            return part
        require_known(self.kind, name, self)
        entry, *others = self._plug_ins()[name]
        if others:
            packages = have(map(_package, (entry, *others)))
            raise SettingsError(
                f"the {self.kind} {name!r} is not one: {packages} one of that name; uninstall all but one"
            )
        try:
            loaded = entry.load()
        except Exception as error:
            raise SettingsError(
                f"{self.kind} {name!r} of the package {_package(entry)} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        self._own[name] = part = self._checked(name, loaded)
        return part

    def _checked(self, name: str, part: T) -> T:
        """The part, if it has what it needs."""
        for needed in self._needs:
            if not hasattr(part, needed):
                got = getattr(part, "__qualname__", type(part).__name__)
                raise SettingsError(
                    f"{self.kind} {name!r}: expected {self._expected}, got {got}, which has no {needed!r}"
                )
        return part

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._plug_ins() if name not in self._own)

    def __len__(self) -> int:
        return len({*self._own, *self._plug_ins()})

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._plug_ins()

    def built_in(self, name: str) -> bool:
        """Whether a part is our own."""
        return name in self._built_in

    def origin(self, name: str) -> str:
        """The package that offers a part by entry point; empty for our own and for registered ones."""
        entries = [] if self.built_in(name) else self._plug_ins().get(name, [])
        return ", ".join(map(_package, entries))

    def usable(self) -> dict[str, T]:
        """The parts that can be loaded, by name: for looking through all of them, where a broken one does not matter."""
        found = {}
        for name in self:
            with contextlib.suppress(SettingsError):
                found[name] = self[name]
        return found

    def _plug_ins(self) -> dict[str, list[importlib.metadata.EntryPoint]]:
        if self._offered is None:
            self._offered = {}
            found = importlib.metadata.entry_points(group=f"regretless.{self.family}")
            for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
                same = self._offered.setdefault(entry.name, [])
                same += [] if any(entry.value == other.value for other in same) else [entry]
        return self._offered


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _same(one: Any, other: Any) -> bool:
    """Whether two parts are the same thing, one of them perhaps from a module that was imported again."""
    return one is other or (_place(one) == _place(other) is not None)


def _place(part: Any) -> tuple[str, str] | None:
    """Where the class or function that a part is, or is built by, is defined; None for any other object."""
    named = part if hasattr(part, "__qualname__") else getattr(part, "build", None)
    return None if named is None else (named.__module__, named.__qualname__)


def have(names: Iterable[str]) -> str:
    """Who has something, in words.

    >>> have(["dbb"]), have(["dbb", "imle"])
    ('dbb has', 'dbb and imle have')
    """
    *most, last = names
    return f"{', '.join(most)} and {last} have" if most else f"{last} has"


def require_known(kind: str, name: str, valid: Iterable[str], whose: str = "") -> None:
    """Raises SettingsError unless ``name`` is one of ``valid``; names the nearest one."""
    choices = sorted(valid)
    if name in choices:
        return
    near, listed = nearest(name, choices), f"choose from {', '.join(choices)}" if choices else "there is none"
    hint = listed if near is None else f"did you mean {near!r}?"
    raise SettingsError(f"unknown {kind} {name!r}{whose}; {hint}")


def nearest(name: Any, valid: Iterable[str]) -> str | None:
    """The one of ``valid`` that may have been meant; None if none is like it."""
    return next(iter(difflib.get_close_matches(str(name), list(valid), n=1)), None)
