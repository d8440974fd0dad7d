"""What may be declared of named columns, checked: names, levels, and numbers that stand in for missing ones."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.columns_kinds import missing, real
from regretless.live.inputs import said


def mapping(part: str, given: Any) -> dict[str, Any]:
    """A dictionary by names of columns; empty for None."""
    if given is not None and not isinstance(given, Mapping):
        raise SettingsError(f"columns: {part}: expected a dictionary by the names of columns, got {said(given)}")
    return dict(given or {})


def names(part: str, given: Any) -> list[str]:
    """Names in a fixed order, each once."""
    if (
        isinstance(given, str)
        or not isinstance(given, Collection)
        or not all(type(name) is str and name for name in given)
    ):
        raise SettingsError(f"columns: {part}: expected a list of names, got {said(given)}")
    require_each_once(list(given))
    return sorted(given)


def levels(name: Any, given: Any) -> Any:
    """The levels of a category in a fixed order."""
    plain = [] if isinstance(given, str) or not isinstance(given, Collection) else [_plain(level) for level in given]
    if not plain or len({type(level) for level in plain}) > 1 or type(plain[0]) not in (str, int):
        raise SettingsError(f"columns: levels of {name!r}: expected a list of texts, or of integers, got {said(given)}")
    if len(set(plain)) != len(plain):
        raise SettingsError(f"columns: levels of {name!r}: expected each once, got {said(given)}")
    return tuple(sorted(plain))


def _plain(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level


def fill(name: Any, given: Any) -> float:
    """The number that stands in for a missing one."""
    if missing(given):
        raise SettingsError(f"columns: fill of {name!r}: expected a number, got {said(given)}")
    try:
        return real(given)
    except SettingsError as error:
        raise SettingsError(f"columns: fill of {name!r}: {error}") from None


def require_each_once(names: Sequence[str]) -> None:
    """Refuses a name that comes twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise SettingsError(f"columns: expected each name once, got {', '.join(map(repr, twice))} twice")


def require_among(part: str, names: Sequence[str], declared: Sequence[str], kind: str) -> None:
    """Refuses names that are not declared, or not as this kind."""
    for name in names:
        if name not in declared:
            hint = "; a number may be missing by fill={name: number}" if part == "may_miss" else ""
            raise SettingsError(
                f"columns: {part}: expected the name of a {kind} ({', '.join(declared) or 'there is none'}), got {name!r}{hint}"
            )
