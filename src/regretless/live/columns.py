"""Contexts by name: columns that are declared once, and encoded to numbers where they enter a Learner or a History."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live import columns_checks as checks
from regretless.live.columns_kinds import OTHER, Boolean, Category, Kind, Number
from regretless.live.inputs import said
from regretless.registry import nearest

if TYPE_CHECKING:
    import pandas as pd


class Columns:
    """The columns of a context: ``numbers``, ``booleans`` and ``categories`` with their levels (all text or all integers).

    ``fill`` are the numbers that may be missing (None, NaN or absent), each with what stands in for it, such as its mean; a
    further number then says that it was missing. ``may_miss`` are booleans and categories that may be: that is a level of its
    own. ``other`` are categories with levels that are not known yet: all of these are one level. With ``per_coordinate`` a
    context is a table with a row for each coordinate of the decision. The order of names and levels does not matter.

    >>> import regretless as rg
    >>> sky = {"sky": ["clear", "rain"]}
    >>> columns = rg.Columns(numbers=["hour", "load"], categories=sky, fill={"load": 40.0}, other=["sky"])
    >>> columns.encode([{"hour": 6.0, "load": 35.0, "sky": "rain"}, {"hour": 7.5, "sky": "hail"}]).tolist()
    [[6.0, 35.0, 0.0, 0.0, 1.0, 0.0], [7.5, 40.0, 1.0, 0.0, 0.0, 1.0]]
    >>> learner = rg.Learner(rg.oracles.top_k(4, 2), columns=columns, policy="linear_thompson")
    >>> learner.decide({"hour": 7.5, "sky": "hail"}).context
    {'hour': 7.5, 'load': None, 'sky': 'other'}
    """

    def __init__(
        self,
        *,
        numbers: Collection[str] = (),
        booleans: Collection[str] = (),
        categories: Mapping[str, Collection[str] | Collection[int]] | None = None,
        fill: Mapping[str, float] | None = None,
        may_miss: Collection[str] = (),
        other: Collection[str] = (),
        per_coordinate: bool = False,
    ):
        levels = {name: checks.levels(name, own) for name, own in checks.mapping("categories", categories).items()}
        fills = {name: checks.fill(name, number) for name, number in checks.mapping("fill", fill).items()}
        given = {"numbers": numbers, "booleans": booleans, "categories": levels}
        of = {part: checks.names(part, own) for part, own in given.items()}
        every = [name for own in of.values() for name in own]
        checks.require_each_once(every)
        if not every:
            raise SettingsError("columns: expected at least one of numbers, booleans and categories, got none")
        missing_ok, others = checks.names("may_miss", may_miss), checks.names("other", other)
        checks.require_among("fill", list(fills), of["numbers"], "number")
        checks.require_among("may_miss", missing_ok, of["booleans"] + of["categories"], "boolean or category")
        checks.require_among("other", others, of["categories"], "category")
        for name in others:
            if OTHER in levels[name]:
                raise SettingsError(f"columns: {name!r} has a level {OTHER!r} already: leave that out, or other=")
        if not isinstance(per_coordinate, bool):
            raise SettingsError(f"columns: expected per_coordinate to be True or False, got {said(per_coordinate)}")
        self.per_coordinate = per_coordinate
        self._kinds: dict[str, Kind] = {
            **{name: Number(fills.get(name)) for name in of["numbers"]},
            **{name: Boolean(name in missing_ok) for name in of["booleans"]},
            **{name: Category(levels[name], name in missing_ok, name in others) for name in of["categories"]},
        }

    @classmethod
    def from_pandas(
        cls, frame: "pd.DataFrame", *, may_miss: Collection[str] = (), other: Collection[str] = (), per_coordinate: bool = False
    ) -> "Columns":  # fmt: skip
        """The columns of a table: numbers, booleans, and text and pandas' categories with the levels that there are.

        What is missing somewhere may be missing; a number's mean stands in for it. ``may_miss`` are further ones.
        """
        from regretless.live import tables

        return cls(**tables.declared(frame, may_miss), other=other, per_coordinate=per_coordinate)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the order in which they are encoded."""
        return list(self._kinds)

    @property
    def width(self) -> int:
        """How many numbers a row is encoded to."""
        return sum(kind.width for kind in self._kinds.values())

    def declaration(self) -> dict[str, Any]:
        """The arguments that make the same columns, as JSON data."""
        kinds = self._kinds.items()
        categories = {name: kind for name, kind in kinds if isinstance(kind, Category)}
        booleans = {name: kind for name, kind in kinds if isinstance(kind, Boolean)}
        numbers = {name: kind for name, kind in kinds if isinstance(kind, Number)}
        return {
            "numbers": list(numbers),
            "booleans": list(booleans),
            "categories": {name: list(kind.levels) for name, kind in categories.items()},
            "fill": {name: kind.fill for name, kind in numbers.items() if kind.fill is not None},
            "may_miss": [name for name, kind in (booleans | categories).items() if kind.may_miss],
            "other": [name for name, kind in categories.items() if kind.other],
            "per_coordinate": self.per_coordinate,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.declaration() == other.declaration()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Columns({', '.join(f'{part}={own!r}' for part, own in self.declaration().items() if own)})"

    def difference(self, other: "Columns | None") -> str:
        """In what another declaration differs, in words; nothing where it is the same."""
        if other is None:
            return f"expected {self}, got no columns"
        mine, theirs = self.declaration(), other.declaration()
        return "; ".join(
            f"{part}: expected {mine[part]!r}, got {theirs[part]!r}" for part in mine if mine[part] != theirs[part]
        )

    def encode(self, rows: "Sequence[Mapping[str, Any]] | pd.DataFrame", what: str = "context") -> np.ndarray:
        """The numbers ``[n, width]`` of dictionaries, or of the rows of a table."""
        table = self._table(rows, what)
        found = np.zeros((len(rows), self.width))
        place = 0
        for name, kind in self._kinds.items():
            for row, cell in enumerate(table[name]):
                try:
                    found[row, place : place + kind.width] = kind.encode(cell)
                except SettingsError as error:
                    at = f", row {row}" if len(rows) > 1 else ""
                    raise SettingsError(f"{what}: column {name!r}{at}: {error}") from None
            place += kind.width
        return found

    def decode(self, context: np.ndarray) -> Any:
        """An encoded context as a dictionary; as a list of them, where there is a row for each coordinate."""
        if context.ndim > 1:
            return [self.decode(row) for row in context]
        shown, place = {}, 0
        for name, kind in self._kinds.items():
            shown[name] = kind.decode(context[place : place + kind.width])
            place += kind.width
        return shown

    def contexts(self, given: Any, shape: tuple[int, ...], what: str = "context") -> tuple[np.ndarray, bool]:
        """Contexts of this shape with a leading axis, and whether several were given."""
        if not self.per_coordinate:
            many = not _is_row(given)
            return self.encode(given if many else [given], what), many
        many = isinstance(given, list | tuple) and not any(_is_row(own) for own in given)
        tables = given if many else [given]
        for own in tables:
            if not _is_row(own) and hasattr(own, "__len__") and len(own) != shape[0]:
                raise SettingsError(f"{what}: expected {shape[0]} rows, one for each coordinate, got {len(own)}")
        return np.stack([self.encode(own, what) for own in tables]) if tables else np.zeros((0, *shape)), many

    def _table(self, rows: Any, what: str) -> dict[str, Sequence[Any]]:
        """The cells by column; refuses columns that were not declared."""
        if _is_frame(rows):
            self._require_declared(rows.columns, what)
            nothing = [None] * len(rows)
            return {name: rows[name].tolist() if name in rows.columns else nothing for name in self._kinds}
        if not isinstance(rows, list | tuple) or not all(_is_row(row) for row in rows):
            raise SettingsError(
                f"{what}: expected a dictionary of the columns {', '.join(self._kinds)}; a list of them, or a DataFrame, for "
                f"several rows; got {said(rows)}"
            )
        for row in rows:
            self._require_declared(row.keys(), what)
        return {name: [row.get(name) for row in rows] for name in self._kinds}

    def _require_declared(self, names: Iterable[Any], what: str) -> None:
        found = list(names)
        unknown = [name for name in found if name not in self._kinds]
        if unknown:
            near = nearest(unknown[0], self._kinds)
            hint = f"did you mean {near!r}?" if near is not None else f"expected {', '.join(self._kinds)}"
            several = "s" if len(unknown) > 1 else ""
            raise SettingsError(f"{what}: unknown column{several} {', '.join(map(repr, unknown))}; {hint}")
        if len(set(found)) != len(found):
            raise SettingsError(f"{what}: expected each column once, got {', '.join(map(str, found))}")


def _is_frame(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def _is_row(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return isinstance(given, Mapping) or (pandas is not None and isinstance(given, pandas.Series))
