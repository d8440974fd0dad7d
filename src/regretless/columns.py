"""Named columns of a context, declared once and encoded to numbers."""

import copy
import dataclasses
import math
import numbers
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless import extras
from regretless.errors import SettingsError, short_repr
from regretless.registry import nearest, require_known

if TYPE_CHECKING:
    import pandas as pd

OTHER = "other"
"""How a level that was not declared is shown."""

MAX_LISTED_LEVELS = 12
"""Levels that an error message lists."""

KINDS = {"numbers": "number", "booleans": "boolean", "categories": "category"}
"""Kinds of columns by the arguments that declare them."""

Names = Collection[str]

Cell = Any
"""A number, a level, True or False; None, NaN and the missing values of pandas mean that the cell is missing."""


class Columns:
    """Named columns of a context: numbers, booleans and categories.

    The order of names and levels does not matter. A number that may be missing and a boolean or category that may be
    missing get one more encoded number each, which is 1 where the cell is missing.

    Parameters
    ----------
    numbers : collection of str
        Columns of finite numbers.
    booleans : collection of str
        Columns of True and False (or 1 and 0).
    categories : mapping of str to levels
        Columns of categories with their levels, all text or all integers.
    fill : mapping of str to float
        Numbers that may be missing, each with the value that replaces a missing one, such as the mean.
    may_miss : collection of str
        Booleans and categories that may be missing.
    other : collection of str
        Categories that may have levels which were not declared. All of these are encoded as one level. A value whose
        type is not that of the declared levels is still refused.
    per_coordinate : bool, default False
        If True, a context is a table with one row for each coordinate of the decision.

    Raises
    ------
    SettingsError
        If a name is declared twice, or a level or an option does not fit.

    Examples
    --------
    >>> import regretless as rg
    >>> sky = {"sky": ["clear", "rain"]}
    >>> columns = rg.Columns(numbers=["hour", "load"], categories=sky, fill={"load": 40.0}, other=["sky"])
    >>> columns.encode([{"hour": 6.0, "load": 35.0, "sky": "rain"}, {"hour": 7.5, "sky": "hail"}]).tolist()
    [[6.0, 35.0, 0.0, 0.0, 1.0, 0.0], [7.5, 40.0, 1.0, 0.0, 0.0, 1.0]]
    >>> columns.decode(columns.encode([{"hour": 7.5, "sky": "hail"}])[0])
    {'hour': 7.5, 'load': None, 'sky': 'other'}
    """

    def __init__(
        self,
        *,
        numbers: Names = (),
        booleans: Names = (),
        categories: Mapping[str, Collection[str] | Collection[int]] | None = None,
        fill: Mapping[str, float] | None = None,
        may_miss: Names = (),
        other: Names = (),
        per_coordinate: bool = False,
    ):
        levels = {name: _check_levels(name, given) for name, given in _check_mapping("categories", categories).items()}
        fills = _check_mapping("fill", fill)
        fills = {name: _real(value, f"columns: fill of {name!r}: ") for name, value in fills.items()}
        lists = {"numbers": numbers, "booleans": booleans, "categories": levels, "may_miss": may_miss, "other": other}
        names = {part: _check_names(part, given) for part, given in lists.items()}
        every = names["numbers"] + names["booleans"] + names["categories"]
        _require_unique(every)
        if not every:
            raise SettingsError("columns: expected at least one of numbers, booleans and categories, got none")
        _require_declared("fill", list(fills), names["numbers"], "number")
        _require_declared("may_miss", names["may_miss"], names["booleans"] + names["categories"], "boolean or category")
        _require_declared("other", names["other"], names["categories"], "category")
        for name in names["other"]:
            if OTHER in levels[name]:
                raise SettingsError(f"columns: {name!r} has a level {OTHER!r} already: remove that level, or other=")
        if not isinstance(per_coordinate, bool):
            raise SettingsError(f"columns: per_coordinate: expected True or False, got {short_repr(per_coordinate)}")
        self.per_coordinate = per_coordinate
        optional, others = {*fills, *names["may_miss"]}, names["other"]
        self._columns = {
            name: ColumnEncoder(kind, name in optional, fills.get(name, 0.0), levels.get(name, {}), name in others)
            for part, kind in KINDS.items()
            for name in names[part]
        }
        self._declaration = {
            **names,
            "categories": {name: list(levels[name]) for name in names["categories"]},
            "fill": dict(sorted(fills.items())),
            "per_coordinate": per_coordinate,
        }

    @classmethod
    def from_pandas(
        cls, frame: "pd.DataFrame", *, may_miss: Names = (), other: Names = (), per_coordinate: bool = False
    ) -> "Columns":
        """Declare the columns of a table by their types.

        Text and pandas categories become categories with the levels of the table. A column with missing cells may be
        missing; a number's mean then replaces a missing one.

        Parameters
        ----------
        frame : pandas.DataFrame
            A table of contexts.
        may_miss : collection of str
            Further columns that may be missing.
        other, per_coordinate
            As in ``Columns``.

        Returns
        -------
        Columns
        """
        pandas = extras.require("pandas", extra="data")
        if not isinstance(frame, pandas.DataFrame):
            raise SettingsError(f"columns: expected a pandas DataFrame, got a {type(frame).__name__}")
        for name in may_miss:
            require_known("column", name, map(str, frame.columns), " of the table")
        _require_unique(list(frame.columns))
        parts: dict[str, Any] = {"numbers": [], "booleans": [], "categories": {}, "fill": {}, "may_miss": []}
        for name in frame.columns:
            column, has_gaps = frame[name], name in may_miss or bool(frame[name].isna().any())
            kind = pandas.api.types.infer_dtype(column, skipna=True)
            if kind != "boolean" and pandas.api.types.is_numeric_dtype(column):
                parts["numbers"].append(name)
                parts["fill"] |= {name: float(column.mean())} if has_gaps else {}
                continue
            parts["may_miss"] += [name] if has_gaps else []
            if kind == "boolean":
                parts["booleans"].append(name)
            elif kind in ("string", "categorical"):
                levels = column.cat.categories if kind == "categorical" else column.dropna().unique()
                parts["categories"][name] = levels.tolist()
            else:
                expected = "expected numbers, booleans or text"
                raise SettingsError(f"columns: column {name!r}: {expected}, got {kind}; convert or drop it")
        return cls(**parts, other=other, per_coordinate=per_coordinate)

    @property
    def names(self) -> list[str]:
        """Names of the columns in the order in which they are encoded."""
        return list(self._columns)

    @property
    def width(self) -> int:
        """Length of an encoded row."""
        return sum(column.width for column in self._columns.values())

    def declaration(self) -> dict[str, Any]:
        """Return the arguments that make equal columns, as JSON data.

        Returns
        -------
        dict
            For ``Columns(**declaration)``.
        """
        return copy.deepcopy(self._declaration)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.declaration() == other.declaration()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        arguments = (f"{part}={value!r}" for part, value in self.declaration().items() if value)
        return f"Columns({', '.join(arguments)})"

    def difference(self, other: "Columns | None") -> str:
        """Describe how another declaration differs.

        Parameters
        ----------
        other : Columns or None
            The columns to compare with.

        Returns
        -------
        str
            A description; empty if the declarations are equal.
        """
        if other is None:
            return f"expected {self}, got no columns"
        expected, actual = self.declaration(), other.declaration()
        return "; ".join(
            f"{part}: expected {expected[part]!r}, got {actual[part]!r}"
            for part in expected
            if expected[part] != actual[part]
        )

    def encode(self, rows: "Sequence[Mapping[str, Any]] | pd.DataFrame", name: str = "context") -> np.ndarray:
        """Encode rows as numbers.

        Parameters
        ----------
        rows : sequence of mappings, or pandas.DataFrame
            Cells by the names of the columns. A column that may be missing may be left out.
        name : str, default "context"
            What an error message calls the rows.

        Returns
        -------
        numpy.ndarray of shape ``(n, width)``

        Raises
        ------
        SettingsError
            If a column is unknown, or a cell does not fit its column.
        """
        cells = self._cells(rows, name)
        encoded = np.zeros((len(rows), self.width))
        start = 0
        for column_name, column in self._columns.items():
            for row, cell in enumerate(cells[column_name]):
                try:
                    encoded[row, start : start + column.width] = column.encode(cell)
                except SettingsError as error:
                    place = f", row {row}" if len(rows) > 1 else ""
                    raise SettingsError(f"{name}: column {column_name!r}{place}: {error}") from None
            start += column.width
        return encoded

    def decode(self, context: np.ndarray) -> Any:
        """Return the cells of an encoded context.

        Parameters
        ----------
        context : numpy.ndarray of shape ``(width,)`` or ``(d, width)``
            An encoded context.

        Returns
        -------
        dict, or list of dict
            Cells by name; a list if the context has a row for each coordinate.
        """
        if context.ndim > 1:
            return [self.decode(row) for row in context]
        cells, start = {}, 0
        for name, column in self._columns.items():
            cells[name] = column.decode(context[start : start + column.width])
            start += column.width
        return cells

    def contexts(self, given: Any, shape: tuple[int, ...], name: str = "context") -> tuple[np.ndarray, bool]:
        """Encode one or several contexts.

        Parameters
        ----------
        given : mapping, sequence of mappings, or pandas.DataFrame
            One context or several; with ``per_coordinate`` a table is one context.
        shape : tuple of int
            Shape of one encoded context.
        name : str, default "context"
            What an error message calls the contexts.

        Returns
        -------
        contexts : numpy.ndarray of shape ``(n, *shape)``
        several : bool
            Whether several contexts were given.
        """
        if not self.per_coordinate:
            several = not _is_row(given)
            return self.encode(given if several else [given], name), several
        several = isinstance(given, list | tuple) and not any(_is_row(table) for table in given)
        tables = given if several else [given]
        for table in tables:
            if not _is_row(table) and hasattr(table, "__len__") and len(table) != shape[0]:
                raise SettingsError(f"{name}: expected {shape[0]} rows, one for each coordinate, got {len(table)}")
        if not tables:
            return np.zeros((0, *shape)), several
        return np.stack([self.encode(table, name) for table in tables]), several

    def _cells(self, rows: Any, name: str) -> dict[str, Sequence[Any]]:
        """Return the cells of each column; refuse columns that were not declared."""
        if _is_pandas(rows, "DataFrame"):
            self._require_columns(rows.columns, name)
            rows = rows.to_dict("records")
        if not isinstance(rows, list | tuple) or not all(_is_row(row) for row in rows):
            raise SettingsError(
                f"{name}: expected a dictionary of the columns {', '.join(self._columns)}; a list of them, or a "
                f"DataFrame, for several rows; got {short_repr(rows)}"
            )
        for row in rows:
            self._require_columns(row.keys(), name)
        return {column: [row.get(column) for row in rows] for column in self._columns}

    def _require_columns(self, given: Collection[Any], name: str) -> None:
        for column in given:
            if column not in self._columns:
                near = nearest(column, self._columns)
                hint = f"expected {', '.join(self._columns)}" if near is None else f"did you mean {near!r}?"
                raise SettingsError(f"{name}: unknown column {column!r}; {hint}")
        if len(set(given)) != len(given):
            raise SettingsError(f"{name}: expected each column once, got {', '.join(map(str, given))}")


@dataclasses.dataclass(frozen=True)
class ColumnEncoder:
    """Encode the cells of one column; if it may be missing, a last number is 1 for a missing cell.

    A number is itself, a boolean 1 or 0, and a category has a 1 in the place of its level. If other levels are allowed,
    all of them have one more place.
    """

    kind: str  # of KINDS
    may_miss: bool
    fill: float  # replaces a missing number; 0 for other kinds
    levels: Mapping[Any, int]  # of a category, with their places
    other: bool

    @property
    def width(self) -> int:
        return (len(self.levels) + self.other if self.kind == "category" else 1) + self.may_miss

    def encode(self, cell: Cell) -> list[float]:
        encoded = [0.0] * self.width
        if _is_missing(cell):
            if not self.may_miss:
                option = "fill={name: number}" if self.kind == "number" else "may_miss=[name]"
                raise SettingsError(f"expected a {self.kind}, got none; declare that it may be missing by {option}")
            encoded[0], encoded[-1] = self.fill, 1.0
        elif self.kind == "number":
            encoded[0] = _real(cell)
        elif self.kind == "boolean":
            if not isinstance(cell, bool | np.bool | numbers.Real) or cell not in (0, 1):
                raise SettingsError(f"expected True or False, or 1 or 0, got {short_repr(cell)}")
            encoded[0] = float(cell)
        elif self._has_right_type(cell) and (cell in self.levels or self.other):
            encoded[self.levels.get(cell, len(self.levels))] = 1.0
        else:
            raise SettingsError(self._refusal(cell))
        return encoded

    def decode(self, encoded: np.ndarray) -> Cell:
        if self.may_miss and encoded[-1] == 1.0:
            return None
        if self.kind == "category":
            return [*self.levels, OTHER][int(np.argmax(encoded))]
        return float(encoded[0]) if self.kind == "number" else bool(encoded[0])

    @property
    def _is_text(self) -> bool:
        return isinstance(next(iter(self.levels)), str)

    def _has_right_type(self, cell: Cell) -> bool:
        """Return whether a cell can be a level; integers are floats in a table where other cells are missing."""
        if self._is_text or isinstance(cell, bool | np.bool):
            return self._is_text and isinstance(cell, str)
        is_integer = isinstance(cell, float | np.floating) and float(cell).is_integer()
        return isinstance(cell, int | np.integer) or is_integer or (self.other and type(cell) is str and cell == OTHER)

    def _refusal(self, cell: Cell) -> str:
        texts = {str(level): repr(level) for level in self.levels}
        more = f" and {len(texts) - MAX_LISTED_LEVELS} more" if len(texts) > MAX_LISTED_LEVELS else ""
        near = nearest(cell, texts)
        if near is not None:
            hint = f"did you mean {texts[near]}?"
        elif self._has_right_type(cell):
            hint = "allow other levels by other=[name]"
        else:
            hint = f"levels are {'text' if self._is_text else 'integers'}"
        listed = ", ".join(list(texts.values())[:MAX_LISTED_LEVELS])
        return f"expected one of {listed}{more}, got {short_repr(cell)}; {hint}"


def _is_missing(cell: Cell) -> bool:
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _real(cell: Cell, prefix: str = "") -> float:
    """Return a finite number; refuse text, dates, complex numbers and booleans."""
    if isinstance(cell, bool | np.bool) or not isinstance(cell, numbers.Real):
        raise SettingsError(f"{prefix}expected a number, got {short_repr(cell)}")
    try:
        value = float(cell)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise SettingsError(f"{prefix}expected a finite number, got {short_repr(cell)}")
    return value


def _check_mapping(part: str, given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise SettingsError(f"columns: {part}: expected a dictionary by the names of columns, got {short_repr(given)}")
    return dict(given or {})


def _check_names(part: str, given: Any) -> list[str]:
    if not _is_list(given) or not all(type(name) is str and name for name in given):
        raise SettingsError(f"columns: {part}: expected a list of names, got {short_repr(given)}")
    _require_unique(list(given))
    return sorted(given)


def _check_levels(name: str, given: Any) -> dict[Any, int]:
    """Return the levels of a category with their places."""
    levels = [level.item() if isinstance(level, np.generic) else level for level in given] if _is_list(given) else []
    if not levels or len({type(level) for level in levels}) > 1 or type(levels[0]) not in (str, int):
        raise SettingsError(
            f"columns: levels of {name!r}: expected a list of texts, or of integers, got {short_repr(given)}"
        )
    _require_unique(levels)
    return {level: place for place, level in enumerate(sorted(levels))}


def _require_unique(names: list[Any]) -> None:
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise SettingsError(f"columns: expected each name and each level once, got {repeated!r} twice")


def _require_declared(part: str, names: Sequence[str], declared: Sequence[str], kind: str) -> None:
    for name in names:
        if name not in declared:
            hint = "; a number may be missing by fill={name: number}" if part == "may_miss" else ""
            choices = ", ".join(declared) or "there is none"
            raise SettingsError(f"columns: {part}: expected the name of a {kind} ({choices}), got {name!r}{hint}")


def _is_list(given: Any) -> bool:
    return isinstance(given, Collection) and not isinstance(given, str)


def _is_pandas(given: Any, kind: str) -> bool:
    return "pandas" in sys.modules and isinstance(given, getattr(sys.modules["pandas"], kind))


def _is_row(given: Any) -> bool:
    return isinstance(given, Mapping) or _is_pandas(given, "Series")
