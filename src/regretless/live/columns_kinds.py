"""Kinds of named columns: how a cell becomes numbers of the context, and how these are shown again."""

import dataclasses
import functools
import math
import numbers
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.inputs import said
from regretless.registry import nearest

OTHER = "other"
"""What a level that nobody declared is shown as."""

SHOWN = 12
"""Levels that an error lists."""

Cell = Any
"""A number, a level, True or False; None, NaN and pandas' marks are missing ones."""


@dataclasses.dataclass(frozen=True)
class Number:
    """A finite number; where it may be missing, ``fill`` stands in for it and a second number is 1."""

    fill: float | None = None

    @property
    def width(self) -> int:
        return 1 if self.fill is None else 2

    def encode(self, cell: Cell) -> list[float]:
        if missing(cell):
            if self.fill is None:
                raise SettingsError("expected a number, got none; declare what stands in for it by fill={name: number}")
            return [self.fill, 1.0]
        value = real(cell)
        return [value] if self.fill is None else [value, 0.0]

    def decode(self, numbers: np.ndarray) -> float | None:
        return None if self.fill is not None and numbers[1] == 1.0 else float(numbers[0])


@dataclasses.dataclass(frozen=True)
class Boolean:
    """1 for True, 0 for False; where it may be missing, a second number is 1 and the first 0."""

    may_miss: bool = False

    @property
    def width(self) -> int:
        return 1 + self.may_miss

    def encode(self, cell: Cell) -> list[float]:
        if missing(cell):
            if not self.may_miss:
                raise SettingsError(
                    "expected True or False, got none; declare that it may be missing by may_miss=[name]"
                )
            return [0.0, 1.0]
        if not isinstance(cell, bool | np.bool | numbers.Real) or cell not in (0, 1):
            raise SettingsError(f"expected True or False, or 1 or 0, got {said(cell)}")
        return [float(cell), 0.0][: self.width]

    def decode(self, numbers: np.ndarray) -> bool | None:
        return None if self.may_miss and numbers[1] == 1.0 else bool(numbers[0])


@dataclasses.dataclass(frozen=True)
class Category:
    """A number for each level, 1 for the one that it is; then one for other levels and one for none, where declared."""

    levels: tuple[str, ...] | tuple[int, ...]
    may_miss: bool = False
    other: bool = False

    @functools.cached_property
    def places(self) -> dict[Any, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @property
    def width(self) -> int:
        return len(self.levels) + self.other + self.may_miss

    def encode(self, cell: Cell) -> list[float]:
        found = [0.0] * self.width
        found[self._place(cell)] = 1.0
        return found

    def decode(self, numbers: np.ndarray) -> str | int | None:
        place = int(np.argmax(numbers))
        return (
            self.levels[place]
            if place < len(self.levels)
            else OTHER
            if self.other and place == len(self.levels)
            else None
        )

    def _place(self, cell: Cell) -> int:
        if missing(cell):
            if not self.may_miss:
                raise SettingsError("expected a level, got none; declare that it may be missing by may_miss=[name]")
            return self.width - 1
        try:
            place = None if isinstance(cell, bool | np.bool) else self.places.get(cell)
        except TypeError:  # no level is unhashable
            place = None
        if place is None and not self.other:
            raise SettingsError(self._unknown(cell))
        return len(self.levels) if place is None else place

    def _unknown(self, cell: Cell) -> str:
        words = {str(level): repr(level) for level in self.levels}
        near = nearest(cell, words)
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        hint = f"did you mean {words[near]}?" if near is not None else "let other levels in by other=[name]"
        return f"expected one of {', '.join(list(words.values())[:SHOWN])}{more}, got {said(cell)}; {hint}"


Kind = Number | Boolean | Category


def missing(cell: Cell) -> bool:
    """Whether a cell is None, NaN or one of pandas' marks for what is missing."""
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def real(cell: Cell) -> float:
    """A finite number; text, dates, complex numbers and booleans are none."""
    if isinstance(cell, bool | np.bool) or not isinstance(cell, numbers.Real):
        raise SettingsError(f"expected a number, got {said(cell)}")
    try:
        value = float(cell)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise SettingsError(f"expected a finite number, got {said(cell)}")
    return value
