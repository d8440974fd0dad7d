"""Names of parts: one registry per family, open to other packages through entry points."""

import ast
import contextlib
import difflib
import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from regretless.errors import SettingsError

T = TypeVar("T")


def load_attribute(location: str) -> Any:
    """Import the object at ``"module:attribute"``, or the module of that name."""
    module, _, attribute = location.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def lazy_exports(package: str, *defined: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package that imports public names when they are used.

    As for type checkers, a name is public if the package imports it by ``from module import name as name``, or defines
    it (``defined``). Imports under ``if TYPE_CHECKING`` are read from the source and done when the name is used.
    """
    loader: Any = sys.modules[package].__loader__
    locations: dict[str, str] = {}
    for node in ast.walk(ast.parse(loader.get_source(package))):
        if isinstance(node, ast.ImportFrom):
            locations |= {alias.asname: f"{node.module}:{alias.name}" for alias in node.names if alias.asname}
    names = sorted({*locations, *defined})

    def load(name: str) -> Any:
        if name not in locations:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load_attribute(locations[name].replace(f"{package}:", f"{package}."))  # a module of the package

    return names, load, lambda: names


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one family by name.

    Parts of this library are imported when they are used. So are the parts that a package lists in its entry points
    under ``regretless.<family>``: a package that cannot be imported only matters to those who ask for it. Built-in
    names cannot be taken by others.

    Parameters
    ----------
    kind : str
        What one part is called in messages, such as ``"surrogate"``.
    family : str
        What the family is called, such as ``"surrogates"``.
    entries : mapping
        The built-in parts by name: the parts themselves, or where they are as ``"module:attribute"``.
    needs : tuple of str, optional
        Attributes that every part must have.
    expected : str, optional
        A description of a valid part, for messages.

    Examples
    --------
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
        self, kind: str, family: str, entries: Mapping[str, T | str], needs: tuple[str, ...] = (), expected: str = ""
    ):
        self.kind, self.family, self.expected = kind, family, expected
        self._needs = needs
        self.built_in_names = frozenset(entries)
        self._parts: dict[str, T | str] = dict(entries)
        self._entry_points: dict[str, list[importlib.metadata.EntryPoint]] | None = None

    def register(self, name: str, part: T) -> None:
        """Add a part under a name.

        Parameters
        ----------
        name : str
            Letters, digits and underscores.
        part : object
            What this family holds, such as a subclass of ``SurrogateSpec``.

        Raises
        ------
        SettingsError
            If the name is taken by another part, is not an identifier, or the part lacks something.
        """
        if name in self and not _is_same(self[name], part):
            raise SettingsError(f"{self.kind} {name!r} exists already: choose another name")
        if not name.isidentifier():
            raise SettingsError(f"expected a name of letters, digits and underscores for a {self.kind}, got {name!r}")
        self._parts[name] = self._check(name, part)

    def name_of(self, part: Any) -> str | None:
        """Return the name under which a class is known, or None."""
        location = f"{part.__module__}:{part.__qualname__}"
        for name, known in self._parts.items():
            if known is part or known == location:
                return name
        offered = (name for name, entries in self._offered().items() if name not in self._parts and len(entries) == 1)
        return next((name for name in offered if self.usable().get(name) is part), None)

    def __getitem__(self, name: str) -> T:
        if name in self._parts:
            part = self._parts[name]
            if isinstance(part, str):
                self._parts[name] = part = load_attribute(part)
            return part
        require_known(self.kind, name, self)
        entry, *others = self._offered()[name]
        if others:
            packages = names_have(map(_package, (entry, *others)))
            raise SettingsError(
                f"the {self.kind} {name!r} is ambiguous: {packages} one of that name; uninstall all but one"
            )
        try:
            loaded = entry.load()
        except Exception as error:
            message = f"cannot be loaded: {type(error).__name__}: {error}"
            raise SettingsError(f"{self.kind} {name!r} of the package {_package(entry)} {message}") from error
        self._parts[name] = part = self._check(name, loaded)
        return part

    def _check(self, name: str, part: T) -> T:
        """Return the part if it has everything that it needs."""
        for needed in self._needs:
            if not hasattr(part, needed):
                got = getattr(part, "__qualname__", type(part).__name__)
                raise SettingsError(
                    f"{self.kind} {name!r}: expected {self.expected}, got {got}, which has no {needed!r}"
                )
        return part

    def __iter__(self) -> Iterator[str]:
        yield from self._parts
        yield from (name for name in self._offered() if name not in self._parts)

    def __len__(self) -> int:
        return len({*self._parts, *self._offered()})

    def __contains__(self, name: object) -> bool:
        return name in self._parts or name in self._offered()

    def origin(self, name: str) -> str:
        """Return the package that offers a part by entry point; empty for built-in and for registered parts."""
        entries = [] if name in self.built_in_names else self._offered().get(name, [])
        return ", ".join(map(_package, entries))

    def usable(self) -> dict[str, T]:
        """Return the parts that can be loaded, by name."""
        parts = {}
        for name in self:
            with contextlib.suppress(SettingsError):
                parts[name] = self[name]
        return parts

    def _offered(self) -> dict[str, list[importlib.metadata.EntryPoint]]:
        """Return the entry points of other packages by name."""
        if self._entry_points is None:
            self._entry_points = {}
            group = importlib.metadata.entry_points(group=f"regretless.{self.family}")
            for entry in sorted(group, key=lambda entry: (entry.name, entry.value)):
                same_name = self._entry_points.setdefault(entry.name, [])
                same_name += [] if any(entry.value == other.value for other in same_name) else [entry]
        return self._entry_points


class SpecRegistry(Registry[type[T]], Generic[T]):
    """The specifications of one family by name."""

    def parse(self, name: str, settings: Mapping[str, Any] | None = None) -> T:
        """Return a specification from its name.

        Parameters
        ----------
        name : str
            A key of the registry, such as ``"dfhpg"``.
        settings : mapping, optional
            Settings by dotted name: ``"surrogate"`` chooses a part, ``"surrogate.draws"`` is a setting of it.

        Raises
        ------
        SettingsError
            If the name or a setting is unknown, or a value cannot be used.

        Examples
        --------
        >>> import regretless as rg
        >>> rg.policies.parse("dfhpg", {"surrogate": "imle", "surrogate.draws": 20})
        rg.policies.DFHPG(surrogate=rg.surrogates.IMLE(draws=20))
        >>> rg.surrogates.parse("dbb", {"lam": 5}), rg.models.parse("flow"), rg.benchmarks.parse("topk", {"degree": 4})
        (rg.surrogates.DBB(lam=5.0), rg.models.Flow(), rg.benchmarks.TopK(degree=4))
        """
        part: Any = self[name]
        spec: T = part.from_text(settings or {})
        return spec


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two parts are the same, one of them perhaps from a module that was imported again."""
    return one is other or (_place(one) == _place(other) is not None)


def _place(part: Any) -> tuple[str, str] | None:
    """Return where a class or function is defined; None for any other object."""
    return (part.__module__, part.__qualname__) if hasattr(part, "__qualname__") else None


def names_have(names: Iterable[str]) -> str:
    """Return the names with "has" or "have".

    >>> names_have(["dbb"]), names_have(["dbb", "imle"])
    ('dbb has', 'dbb and imle have')
    """
    *most, last = names
    return f"{', '.join(most)} and {last} have" if most else f"{last} has"


def require_known(kind: str, name: str, valid: Iterable[str], owner: str = "") -> None:
    """Raise SettingsError with the nearest valid name unless ``name`` is valid; ``owner`` is text like " of topk"."""
    choices = sorted(valid)
    if name in choices:
        return
    near, listed = nearest(name, choices), f"choose from {', '.join(choices)}" if choices else "it has none"
    hint = listed if near is None else f"did you mean {near!r}?"
    raise SettingsError(f"unknown {kind} {name!r}{owner}; {hint}")


def nearest(name: Any, valid: Iterable[str]) -> str | None:
    """Return the name of ``valid`` that may have been meant; None if no name is similar."""
    return next(iter(difflib.get_close_matches(str(name), list(valid), n=1)), None)
