"""Specifications: small typed, frozen objects that hold the settings of a policy, surrogate, model or benchmark.

A setting has one spelling everywhere: its field's name, and for a field of a part the part's name, a dot and the
field's name. ``surrogate`` chooses a surrogate, ``surrogate.lam`` is a number of the chosen one, ``alpha.max`` one of
the mixing weight.
"""

import contextlib
import inspect
import re
import reprlib
import typing
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from regretless.errors import SettingsError, short_repr
from regretless.registry import SpecRegistry, load_attribute, names_have, require_known

PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=\n\n|\Z)", re.M | re.S)
"""The section of a docstring that describes the settings."""

PARAMETER = re.compile(r"^(\w+(?:, \w+)*) : (.+)\n((?:    .*\n?)+)", re.M)
"""One or several settings there: names, type and description."""

PART_NAME = ""
"""The key of a part's name in a mapping of its settings."""


ACCEPTS_TEXT: ContextVar[bool] = ContextVar("accepts_text", default=False)
"""Whether a text such as "0.3" may stand for a number: while names from a file or the command line are parsed."""


class Spec(BaseModel):
    """Base class of all specifications.

    A subclass lists its settings as fields and describes them under ``Parameters`` in its docstring. Its instances are
    immutable, compare by value, print as the expression that makes them, and can be copied and pickled. The constructor
    also takes dotted names, ``Spec(**{"alpha.max": 0.3})``.

    Raises
    ------
    SettingsError
        If a name is unknown or a value cannot be used; the message says what was expected and what was given.

    Examples
    --------
    >>> class Oven(Spec):
    ...     heat: float = 180.0
    >>> Oven(heat=200)
    Oven(heat=200.0)
    >>> Oven(heet=200)
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: unknown setting 'heet' of Oven; did you mean 'heat'?
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    registry: ClassVar[SpecRegistry[Any] | None] = None
    """The registry of the family; None for a specification that is only a part of others."""

    namespace: ClassVar[str] = ""
    """Where the library's own classes of the family are public, for ``repr``."""

    if not TYPE_CHECKING:  # type checkers see the fields as keyword arguments

        def __init__(self, /, **values: Any) -> None:
            given = _nest(values)
            for name, value in given.items():
                self._require_field(name)
                default = type(self).model_fields[name].default
                if isinstance(value, str) and not ACCEPTS_TEXT.get() and self._is_number(name):
                    raise SettingsError(f"{self.describe_class()}, setting {name!r}: expected a number, got {value!r}")
                if isinstance(default, Spec) and isinstance(value, Mapping) and PART_NAME not in value:
                    given[name] = default.replace(**value)
            try:
                super().__init__(**given)
            except ValidationError as error:
                owner = type(self).describe_class()
                raise SettingsError("; ".join(_explain(problem, owner) for problem in error.errors())) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Complete the docstring with the settings of the base classes, whose docstrings are complete already."""
        text, described = inspect.cleandoc(cls.__doc__ or ""), cls.describe_settings()
        inherited = {entry.group().rstrip(): entry[1] for base in cls.__bases__ for entry in _parameters(base.__doc__)}
        missing = [entry for entry, names in inherited.items() if not described.keys() & set(names.split(", "))]
        if missing:
            section = PARAMETERS.search(text)
            end = len(text) if section is None else section.end()
            heading = ["", "", "Parameters", "----------"] if section is None else [""]
            cls.__doc__ = text[:end].rstrip() + "\n".join([*heading, *missing]) + text[end:]

    @classmethod
    def describe_settings(cls) -> dict[str, str]:
        """Return the descriptions of the settings by name, from the docstring or else from the fields."""
        described = {name: field.description or "" for name, field in cls.model_fields.items() if field.description}
        for entry in _parameters(cls.__doc__):
            described |= dict.fromkeys(entry[1].split(", "), " ".join(entry[3].split()))
        return described

    @classmethod
    def from_text(cls, settings: Mapping[str, Any]) -> Self:
        """Return the specification with settings by dotted name, in which numbers may be text such as ``"0.3"``.

        Parameters
        ----------
        settings : mapping of str to object
            Values by dotted name.
        """
        token = ACCEPTS_TEXT.set(True)
        try:
            return cls(**settings)
        finally:
            ACCEPTS_TEXT.reset(token)

    @classmethod
    def _is_number(cls, name: str) -> bool:
        annotation = cls.model_fields[name].annotation
        kinds = typing.get_args(annotation) or (annotation,)
        return bool({int, float, bool} & set(kinds)) and str not in kinds

    @classmethod
    def _require_field(cls, name: str) -> None:
        """Refuse a setting that does not exist; say which other parts of the family have it."""
        if name in cls.model_fields:
            return
        owner = cls.describe_class()
        if cls.registry is not None:
            others = [other for other, spec in cls.registry.usable().items() if name in spec.model_fields]
            if others:
                raise SettingsError(f"{owner} has no setting {name!r}; {names_have(others)} it")
        require_known("setting", name, cls.model_fields, f" of {owner}")

    @classmethod
    def describe_class(cls) -> str:
        """Return what this class is called in messages."""
        name = None if cls.registry is None else cls.registry.name_of(cls)
        return cls.__name__ if cls.registry is None or name is None else f"{cls.registry.kind} {name!r}"

    @property
    def registered_name(self) -> str:
        """The name in the family's registry, or where the class is defined."""
        cls = type(self)
        name = None if cls.registry is None else cls.registry.name_of(cls)
        return f"{cls.__module__}:{cls.__qualname__}" if name is None else name

    def names(self) -> dict[str, Any]:
        """Return every setting by its dotted name, those of chosen parts included.

        >>> import regretless as rg
        >>> rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0)).names()["surrogate.lam"]
        5.0
        """
        settings: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if not isinstance(value, Spec):
                settings[name] = f"{value.__module__}:{value.__qualname__}" if callable(value) else value
                continue
            if value.registry is not None:
                settings[name] = value.registered_name
            settings |= {f"{name}.{inner}": setting for inner, setting in value.names().items()}
        return settings

    def changed_names(self) -> list[str]:
        """Return the dotted names of the settings that differ from their defaults."""
        changed = []
        for name, field in type(self).model_fields.items():
            value, default = getattr(self, name), field.default
            if isinstance(value, Spec) and type(value) is type(default):
                before, after = default.names(), value.names()
                changed += [f"{name}.{inner}" for inner in after if after[inner] != before.get(inner)]
            elif value != default:
                inner_names = value.changed_names() if isinstance(value, Spec) else ()
                changed += [name, *(f"{name}.{inner}" for inner in inner_names)]
        return changed

    def replace(self, /, **changes: Any) -> Self:
        """Return a copy with some settings replaced, by dotted name, checked again.

        Parameters
        ----------
        **changes : object
            Values by dotted name.

        Examples
        --------
        >>> import regretless as rg
        >>> rg.policies.DFHPG().replace(**{"alpha.max": 0.5}).alpha.max
        0.5
        """
        values = {name: getattr(self, name) for name in type(self).model_fields}
        for name, value in _nest(changes).items():
            before = values.get(name)
            if isinstance(before, Spec) and isinstance(value, Mapping):
                settings = dict(value)
                same = settings.pop(PART_NAME, before.registered_name) == before.registered_name
                values[name] = before.replace(**settings) if same else value
            elif not (isinstance(before, Spec) and value == before.registered_name):
                values[name] = value
        return type(self)(**values)

    def hyperparameters(self) -> dict[str, Any]:
        """Return the fields by name, floats as array leaves that a compiled program takes as inputs."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: number(value) if isinstance(value, float) else value for name, value in values.items()}

    def unused(self, problem: Any) -> dict[str, str]:
        """Return settings without effect on a problem, with the reason.

        Parameters
        ----------
        problem : Problem
            What the policy is built for.

        Returns
        -------
        dict of str to str
            Reasons by dotted name; a name that ends in ``.`` stands for all settings of a part.
        """
        return {}

    def unused_settings(self, problem: Any) -> dict[str, str]:
        """Return every single setting without effect on a problem, with the reason.

        Parameters
        ----------
        problem : Problem
            What the policy is built for.
        """
        reasons = self.unused(problem).items()
        parts = {name: why for name in self.names() for key, why in reasons if key[-1] == "." and name.startswith(key)}
        return {**parts, **self.unused(problem)}

    @classmethod
    def coerce(cls, value: Any) -> Any:
        """Return a specification of this family from an object of it, its name, or a mapping of its settings.

        Parameters
        ----------
        value : object
            What is to become a specification.

        Raises
        ------
        SettingsError
            If it is none of these; the message lists the names.
        """
        registry = cls.registry
        assert registry is not None
        spec, settings = value, {}
        if isinstance(value, Mapping) and PART_NAME in value:
            settings = dict(value)
            spec = settings.pop(PART_NAME)
        if isinstance(spec, str):
            spec = registry.parse(spec, settings)
        elif isinstance(spec, cls):
            spec = spec.replace(**settings) if settings else spec
        if isinstance(spec, cls):
            return spec
        got = f"an object of type {type(value).__name__}"
        if isinstance(value, Spec | str | int | float | Mapping | None):
            got = repr(spec.registered_name) if isinstance(spec, Spec) else reprlib.repr(value)
        valid = ", ".join(name for name, known in registry.usable().items() if issubclass(known, cls))
        raise SettingsError(
            f"expected a {registry.kind} of regretless.{registry.family}, or the name of one ({valid}), got {got}"
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls.registry is not None and inspect.isabstract(cls):  # the type of a field that chooses a part
            return core_schema.no_info_plain_validator_function(cls.coerce)
        return handler(source)

    def __repr_name__(self) -> str:
        is_ours = type(self).__module__.partition(".")[0] == "regretless"
        return f"{self.namespace if is_ours else ''}{type(self).__name__}"

    def __repr_args__(self) -> Any:
        return [
            (name, _Plain(value.__qualname__) if callable(value := getattr(self, name)) else value)
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.get_default(call_default_factory=True)
        ]

    __str__ = BaseModel.__repr__


class _Plain(str):
    """Text that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _load_factory(value: Any) -> Any:
    """Return a function or class, given as such or by its place."""
    made = value
    if isinstance(value, str):
        with contextlib.suppress(ImportError, AttributeError, ValueError):
            made = load_attribute(value)
    if isinstance(made, type) or inspect.isroutine(made):
        return made
    got = repr(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"
    raise ValueError(f"expected a function or class that makes the part, or its place as 'module:name', got {got}")


Factory = Annotated[Callable[..., Any], BeforeValidator(_load_factory)]
"""The type of a setting that is a function or class, or where it is as "module:name"."""


def _parameters(docstring: str | None) -> list[re.Match[str]]:
    """Return the entries of the ``Parameters`` section of a docstring."""
    section = PARAMETERS.search(inspect.cleandoc(docstring or ""))
    return [] if section is None else list(PARAMETER.finditer(section[1] + "\n"))


def number(value: float) -> Any:
    """Return a hyper-parameter as an array leaf: its value may change without a new compilation."""
    return np.asarray(value, np.float64)


def merge_names(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted settings with changes; where a part is replaced, the settings of the old part are dropped."""
    swapped = [f"{name}." for name in changes if name in base and changes[name] != base[name]]
    kept = {name: value for name, value in base.items() if not name.startswith(tuple(swapped))}
    return {**kept, **changes}


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"a.b": 1}`` as ``{"a": {"b": 1}}``; the name of a part is kept under ``PART_NAME``."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        if dot:
            before = nested.get(head, {})
            nested[head] = {**(before if isinstance(before, Mapping) else {PART_NAME: before}), rest: value}
        elif name in nested:
            nested[name] = {**nested[name], PART_NAME: value}
        else:
            nested[name] = value
    return nested


def _explain(problem: Any, owner: str) -> str:
    """Return one validation error of pydantic as a sentence."""
    place = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{owner}, setting {place!r}: {message}" if message.startswith("expected a ") and place else message
    return f"setting {place!r}: {message}, got {reprlib.repr(problem['input'])}" if place else message


class FactorySpec(Spec):
    """Base class of specifications around a user's function or class that makes the part.

    Parameters
    ----------
    make : callable, or where it is as "module:name"
        Makes the part; settings that a subclass adds are passed as keyword arguments.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    """Methods of what the factory makes."""

    make: Factory

    def create(self, *arguments: Any, **more: Any) -> Any:
        """Return what the factory makes; refuse an object without the methods that it needs.

        Parameters
        ----------
        *arguments : object
            What every factory of the family receives.
        **more : object
            Keyword arguments in place of settings.
        """
        own = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("regretless."))
        added = type(self).model_fields.keys() - own.model_fields.keys()  # type: ignore[attr-defined]
        made = self.make(*arguments, **{**{name: getattr(self, name) for name in added}, **more})
        if not all(hasattr(made, name) for name in self.needs):
            expected = f"make: expected a function that returns an object with {' and '.join(self.needs)}"
            raise SettingsError(f"{expected}, got one that returns {short_repr(made)}")
        return made

    def attempt(self, use: Callable[[], Any], expected: str) -> Any:
        """Return what a first use of the part returns; refuse a factory whose part fails.

        Parameters
        ----------
        use : callable
            Makes and uses the part.
        expected : str
            What the factory should return.
        """
        try:
            return use()
        except Exception as error:
            reason = f"it fails with {type(error).__name__}: {error}"
            raise SettingsError(f"make: expected a function that returns {expected}; {reason}") from error
