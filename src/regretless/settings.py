"""Settings belong to their owner: each policy, surrogate, model and benchmark declares its own, checked before anything runs.

A setting has one spelling everywhere: its name, and for a part of its owner the part's name, a dot and the name there.
``surrogate`` chooses a surrogate, ``surrogate.strength`` is a number of the chosen one, ``alpha.max`` one of the mixing weight.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from regretless.errors import SettingsError
from regretless.registry import Registry, have, require_known

if TYPE_CHECKING:
    from regretless.problem import Problem

OWN_NAME = ""
"""The key under which a chosen part's own name stands among its settings."""


class Settings(BaseModel):
    """What one owner lets you set; subclasses list the fields. Takes dotted names: ``Owner.Settings(**{"alpha.max": 0.3})``.

    >>> class Oven(Settings):
    ...     heat: float = 180.0
    >>> Oven(heat="200").names()
    {'heat': 200.0}
    >>> Oven(heet=200)
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: unknown setting 'heet' of Oven; did you mean 'heat'?
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        given = _nested(values)
        for name in given:
            require_known("setting", name, type(self).model_fields, f" of {type(self).owner()}")
        for name, value in given.items():
            default = type(self).model_fields[name].default
            if isinstance(default, Choice) and isinstance(value, Mapping) and OWN_NAME not in value:
                given[name] = {OWN_NAME: default.name, **value}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None

    @classmethod
    def owner(cls) -> str:
        """Whose settings these are."""
        return cls.__qualname__.removesuffix("Settings").rstrip(".").rpartition(".")[2] or cls.__qualname__

    def names(self) -> dict[str, Any]:
        """Every setting by its dotted name, those of chosen parts included."""
        found: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Choice):
                found[name] = value.name
                value = value.settings
            if isinstance(value, Settings):
                found |= {f"{name}.{inner}": each for inner, each in value.names().items()}
            else:
                found[name] = value
        return found

    def updated(self, values: Mapping[str, Any]) -> Self:
        """These settings with some of them replaced, by dotted name, checked again."""
        return type(self)(**merged(self.names(), values))

    def unused(self, problem: "Problem") -> dict[str, str]:
        """Settings without effect on this problem, with the reason; a name ending in ``.`` stands for a whole part."""
        return {}


class Choice(BaseModel):
    """A part chosen by name, with its own settings."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    settings: Any


def chosen_from(registry: Registry[Any]) -> Any:
    """The type of a field that chooses a part: a name, a mapping of dotted names, or the part's own settings object."""

    def choose(value: Any) -> Any:
        if isinstance(value, Choice):
            return Choice(name=value.name, settings=_checked(registry, value.name, value.settings.names()))
        if isinstance(value, Settings):
            names = [name for name, part in registry.usable().items() if part.Settings is type(value)]
            if len(names) != 1:
                raise SettingsError(
                    f"expected the name of a {registry.kind}, got settings of {names or 'another part'}"
                )
            return Choice(name=names[0], settings=value)
        if isinstance(value, Mapping):
            own = {key: each for key, each in value.items() if key != OWN_NAME}
            return Choice(name=value[OWN_NAME], settings=_checked(registry, value[OWN_NAME], own))
        if not isinstance(value, str):
            raise SettingsError(f"expected the name of a {registry.kind}, got {value!r}")
        return Choice(name=value, settings=_checked(registry, value, {}))

    return Annotated[Choice, BeforeValidator(choose)]


def choice(registry: Registry[Any], name: str) -> Choice:
    """A part as it is chosen by default."""
    return Choice(name=name, settings=registry[name].Settings())


def _checked(registry: Registry[Any], name: str, values: Mapping[str, Any]) -> Settings:
    """The settings of the part called ``name``; a name that another part has is told apart from one that none has."""
    settings = registry[name].Settings
    for key in values:
        if key.split(".")[0] not in settings.model_fields:
            others = [
                other for other, part in registry.usable().items() if key.split(".")[0] in part.Settings.model_fields
            ]
            if others:
                raise SettingsError(f"{registry.kind} {name!r} has no setting {key!r}; {have(others)} it")
            require_known("setting", key, settings.model_fields, f" of {registry.kind} {name!r}")
    return settings(**values)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted settings with changes; where a change chooses another part, the former one's own settings go."""
    swapped = [f"{name}." for name in changes if name in base and changes[name] != base[name]]
    kept = {name: value for name, value in base.items() if not name.startswith(tuple(swapped))}
    return {**kept, **changes}


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"a.b": 1}`` as ``{"a": {"b": 1}}``; a part that is also chosen by name keeps its name under the empty key."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        if not dot and name not in found:
            found[name] = value
        elif not dot:
            found[name] = {**found[name], OWN_NAME: value}
        else:
            before = found.get(head, {})
            found[head] = {**(before if isinstance(before, Mapping) else {OWN_NAME: before}), rest: value}
    return found


def _explain(problem: Any) -> str:
    place = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message
    return f"setting {place!r}: {message}, got {problem['input']!r}" if place else message
