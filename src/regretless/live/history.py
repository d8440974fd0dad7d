"""Past rounds of any decision maker: contexts, decisions, and what was observed of their cost."""

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, overload

import numpy as np

from regretless import extras, files
from regretless.columns import Columns
from regretless.errors import SettingsError, StoreError, short_repr
from regretless.formatting import count_text
from regretless.live.feedback_parser import parse_integer, parse_numbers
from regretless.registry import require_known

if TYPE_CHECKING:
    import pandas as pd

    from regretless.problem import Problem

OBSERVED = {"totals": 1, "costs": 2, "values": 2, "times": 1, "propensities": 1}
"""Optional parts of a history with their number of axes; NaN means not known."""

COSTS = ("totals", "costs", "values")
"""Parts that say what a round cost; rewards if the sense is "max"."""

SINGLE = {"totals": "total", "times": "time", "propensities": "propensity"}
"""Parts with one number for each round, with the name of their column."""

SEVERAL = {"contexts": "context", "decisions": "decision", "costs": "cost", "values": "value", "instances": "instance"}
"""Parts with several numbers for each round, with the beginning of the names of their columns."""

Names = str | Sequence[str]


class HistoryRound(NamedTuple):
    """One round of a history; None for what is not known of it."""

    context: np.ndarray
    decision: np.ndarray
    total: float | None = None
    costs: np.ndarray | None = None
    values: np.ndarray | None = None
    instance: Any = None
    time: float | None = None
    propensity: float | None = None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class History:
    """Immutable table of past rounds of any decision maker.

    Parameters
    ----------
    contexts : array of shape ``[n, p]`` or ``[n, d, p]``
        What was known before deciding. With ``columns``, a DataFrame or dictionaries by name, or an array of encoded
        columns.
    decisions : array of shape ``[n, d]``
        What was decided.
    totals : array of shape ``[n]``, optional
        Total cost of each round. NaN means not known, here and in the following parts.
    costs : array of shape ``[n, d]``, optional
        Costs of single coordinates.
    values : array of shape ``[n, m]``, optional
        Rows of a learner's own measurement.
    instances : sequence of length n, optional
        What changed in the feasible set: what the oracle understands, such as a mask or a dictionary of arrays.
    times : array of shape ``[n]``, optional
        Seconds.
    propensities : array of shape ``[n]``, optional
        Probability with which each decision was drawn.
    sense : {"min", "max"}, default "min"
        ``"max"`` if the numbers are rewards.
    columns : Columns, optional
        Names of the context's columns.

    Raises
    ------
    SettingsError
        If the parts do not fit together; the message names the row.

    Examples
    --------
    >>> import regretless as rg
    >>> history = rg.History([[0.5], [1.0], [2.0]], [[1, 0], [0, 1], [1, 0]], totals=[3.0, 4.0, float("nan")])
    >>> history
    History(3 rounds, contexts of shape (1,), decisions of 2 numbers, totals of 2 rounds)
    >>> history[1].total, history[2].total, len(history[:2])
    (4.0, None, 2)
    """

    contexts: np.ndarray
    decisions: np.ndarray
    totals: np.ndarray | None = None
    costs: np.ndarray | None = None
    values: np.ndarray | None = None
    instances: Sequence[Any] | None = None
    times: np.ndarray | None = None
    propensities: np.ndarray | None = None
    sense: Literal["min", "max"] = "min"
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.sense not in ("min", "max"):
            raise SettingsError(
                f"history: sense: expected 'min' (costs) or 'max' (rewards), got {short_repr(self.sense)}"
            )
        decisions = _numbers("decisions", self.decisions, (2,))
        contexts = _numbers("contexts", _encode(self.contexts, self.columns, decisions.shape[1]), (2, 3))
        parts: dict[str, Any] = {"contexts": contexts, "decisions": decisions}
        parts |= {name: _numbers(name, table, (OBSERVED[name],)) for name, table in self._tables(OBSERVED).items()}
        if self.instances is not None:
            parts["instances"] = tuple(self.instances)
        lengths = {name: len(table) for name, table in parts.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
            raise SettingsError(f"history: expected a row for each round in every part, got {counts}")
        if "costs" in parts and parts["costs"].shape != decisions.shape:
            got = parts["costs"].shape
            raise SettingsError(f"history: costs: expected the shape of the decisions, {decisions.shape}, got {got}")
        if "propensities" in parts:
            chances = parts["propensities"]
            expected = "a probability above 0 and at most 1 (NaN: not known)"
            _require_rows("propensities", chances, (chances <= 0) | (chances > 1), expected)
        for name, table in parts.items():
            object.__setattr__(self, name, table)

    def __len__(self) -> int:
        return len(self.contexts)

    def __iter__(self) -> Iterator[HistoryRound]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        known = []
        for name, table in self._tables(OBSERVED).items():
            count = int(_known_rows(table).sum())
            known.append(name if count == len(self) else f"{name} of {count_text(count, 'round')}")
        known += ["instances"] if self.instances is not None else []
        known += ["named columns"] if self.columns is not None else []
        known += ["rewards"] if self.sense == "max" else []
        shape, dim, rounds = self.contexts.shape[1:], self.decisions.shape[1], count_text(len(self), "round")
        described = [rounds, f"contexts of shape {shape}", f"decisions of {dim} numbers", *known]
        return f"History({', '.join(described)})"

    @overload
    def __getitem__(self, rows: int) -> HistoryRound: ...
    @overload
    def __getitem__(self, rows: slice | Sequence[Any] | np.ndarray) -> Self: ...
    def __getitem__(self, rows: Any) -> HistoryRound | Self:
        """Return one round by its number, or a part of the history by a slice, numbers or booleans."""
        if isinstance(rows, int | np.integer):
            known = {SINGLE.get(name, name): _known(table[rows]) for name, table in self._tables(OBSERVED).items()}
            return HistoryRound(self.contexts[rows], self.decisions[rows], instance=self.instance(int(rows)), **known)
        chosen = np.arange(len(self))[rows]
        parts = {name: table[chosen] for name, table in self._tables(("contexts", "decisions", *OBSERVED)).items()}
        instances = None if self.instances is None else [self.instances[i] for i in chosen]
        return dataclasses.replace(self, instances=instances, **parts)

    def _tables(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the parts that there are."""
        return {name: table for name in names if (table := getattr(self, name)) is not None}

    def instance(self, row: int) -> Any:
        """Return what had changed in the feasible set in a round, None if there are no instances.

        Parameters
        ----------
        row : int
            The round, from 0.
        """
        return None if self.instances is None else self.instances[row]

    def seen(self) -> np.ndarray:
        """Return a boolean for each round: whether anything of its cost is known.

        Returns
        -------
        numpy.ndarray of bool
        """
        seen = np.zeros(len(self), bool)
        for table in self._tables(COSTS).values():
            seen |= _known_rows(table)
        return seen

    def as_costs(self) -> Self:
        """Return the same history with every reward as a negative cost.

        Returns
        -------
        History
        """
        if self.sense == "min":
            return self
        return dataclasses.replace(self, sense="min", **{name: -table for name, table in self._tables(COSTS).items()})

    @classmethod
    def from_pandas(
        cls,
        frame: "pd.DataFrame",
        *,
        contexts: Sequence[str] | Sequence[Sequence[str]] | Columns | None = None,
        decisions: Sequence[str] | None = None,
        total: str | None = None,
        costs: Sequence[str] | None = None,
        values: Sequence[str] | None = None,
        instance: Names | Mapping[str, Names] | None = None,
        time: str | None = None,
        propensity: str | None = None,
        sense: Literal["min", "max"] = "min",
    ) -> Self:
        """Return the history in a table with a row for each round.

        If no columns are given, they are found by the names that ``to_pandas`` writes (``context_0``, …,
        ``decision_0``, …, ``total``, …), in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            The table.
        contexts : list of str, list of lists of str, or Columns
            Columns of numbers; for feature rows a list of columns for each coordinate; or declared columns.
        decisions : list of str
            Columns with one number for each coordinate.
        total : str, optional
            Column with the total cost; empty cells are not known.
        costs, values : list of str, optional
            Columns with the costs of single coordinates, or with the rows of a measurement.
        instance : list of str, mapping of str to columns, or str, optional
            Columns that make an array for each round, such as a mask; or by key for oracles whose instances are
            dictionaries, with one column for a number and a list of columns for an array; or a column of JSON texts.
        time, propensity : str, optional
            Columns with times (seconds or dates) and with the probability of the decision.
        sense : {"min", "max"}, default "min"
            ``"max"`` if the numbers are rewards.

        Returns
        -------
        History

        Raises
        ------
        SettingsError
            If a column is missing or a cell cannot be used; the message names row and column.
        """
        pandas = extras.require("pandas", extra="data")
        if not isinstance(frame, pandas.DataFrame):
            raise SettingsError(f"history: expected a pandas DataFrame, got a {type(frame).__name__}")
        named: dict[str, Any] = {"totals": total, "costs": costs, "values": values, "times": time}
        named |= {"contexts": contexts, "decisions": decisions, "instances": instance, "propensities": propensity}
        if all(names is None for names in named.values()):
            named = _standard_names([str(name) for name in frame.columns])
        elif contexts is None or decisions is None:
            raise SettingsError("history: expected the columns of both contexts and decisions")
        columns = contexts if isinstance(contexts, Columns) else None
        named = {part: names for part, names in named.items() if names is not None and names is not columns}
        parts: dict[str, Any] = {part: _read(frame, part, names) for part, names in named.items()}
        if columns is not None:
            parts["contexts"] = _read_named(frame, columns, len(decisions or ()))
        return cls(**parts, sense=sense, columns=columns)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], **columns: Any) -> Self:
        """Return the history in a CSV file with a line of column names.

        Parameters
        ----------
        path : path
            The file.
        **columns
            As in ``from_pandas``.

        Returns
        -------
        History
        """
        frame = _load(extras.require("pandas", extra="data").read_csv, path, "CSV file with a line of column names")
        return cls.from_pandas(frame, **columns)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], **columns: Any) -> Self:
        """Return the history in a Parquet file.

        Parameters
        ----------
        path : path
            The file.
        **columns
            As in ``from_pandas``.

        Returns
        -------
        History
        """
        extras.require("pyarrow", extra="data")
        frame = _load(extras.require("pandas", extra="data").read_parquet, path, "Parquet file")
        return cls.from_pandas(frame, **columns)

    @classmethod
    def from_store(cls, path: str | os.PathLike[str], until: int | None = None) -> Self:
        """Return the decisions in a learner's store with what came back, in the order in which they were made.

        Parameters
        ----------
        path : path
            The store; its learner may be running.
        until : int, optional
            Last record to read.

        Returns
        -------
        History

        Raises
        ------
        StoreError
            If the store is damaged; the message says which records are good.

        Examples
        --------
        >>> import tempfile, pathlib, regretless as rg
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "plant.db"
        >>> learner = rg.Learner(rg.oracles.top_k(4, 2), context=3, policy="linear_thompson", store=path)
        >>> learner.learn(learner.decide([0.5, -1.0, 2.0]).id, total=17.2).new
        True
        >>> rg.History.from_store(path).totals
        array([17.2])
        """
        from regretless.live.store import MAX_NUMBER, read_rounds

        if until is not None:
            parse_integer("history: until", until, 0, MAX_NUMBER)
        try:
            return cls(**read_rounds(path, until))
        except StoreError:
            raise
        except Exception as error:  # a forged file can hold anything
            raise StoreError(f"{path}: its records cannot be understood ({type(error).__name__}: {error})") from error

    def to_pandas(self) -> "pd.DataFrame":
        """Return a table with a row for each round, which ``from_pandas`` reads again.

        Returns
        -------
        pandas.DataFrame
            With columns ``context_0``, … (``context_0_0``, … with feature rows; declared columns by their names),
            ``decision_0``, …, and where they are known ``total``, ``cost_0``, …, ``value_0``, …, ``time``,
            ``propensity`` and ``instance_0``, …, or ``instance`` with JSON texts if instances are no rows of numbers.
        """
        return extras.require("pandas", extra="data").DataFrame(self.to_columns())

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of ``to_pandas`` by name, without pandas."""
        parts: dict[str, Any] = {}
        if self.columns is None:
            parts |= _numbered("context", self.contexts)
        else:
            cells = [self.columns.decode(context) for context in self.contexts]
            if self.columns.per_coordinate:
                places = [(name, i) for name in self.columns.names for i in range(self.contexts.shape[1])]
                parts |= {f"{name}_{i}": [table[i][name] for table in cells] for name, i in places}
            else:
                parts |= {name: [row[name] for row in cells] for name in self.columns.names}
        for part, table in self._tables(("decisions", *OBSERVED)).items():
            parts |= _numbered(SINGLE.get(part) or SEVERAL[part], table)
        if self.instances is not None:
            parts |= _instance_columns(self.instances)
        return parts


def _encode(given: Any, columns: Any, dim: int) -> Any:
    """Return contexts as numbers."""
    if columns is None:
        return given
    if not isinstance(columns, Columns):
        raise SettingsError(f"history: expected columns to be rg.Columns(...), got {short_repr(columns)}")
    shape = (dim, columns.width) if columns.per_coordinate else (columns.width,)
    if not isinstance(given, np.ndarray):
        encoded, several = columns.contexts(given, shape, "history")
        if not several:
            raise SettingsError("history: contexts: expected one for each round, got a single one")
        return encoded
    if given.shape[1:] != shape:
        raise SettingsError(f"history: contexts: expected encoded columns of shape {('n', *shape)}, got {given.shape}")
    return given


def _known(entry: Any) -> Any:
    """Return a number, None for NaN; a row of numbers, None if none of them is known."""
    if np.all(np.isnan(entry)):
        return None
    return float(entry) if np.ndim(entry) == 0 else entry


def _known_rows(table: np.ndarray) -> np.ndarray:
    """Return in which rounds any number of a part is known."""
    return ~np.all(np.isnan(table), axis=tuple(range(1, table.ndim)))


def _numbers(name: str, given: Any, axes: tuple[int, ...]) -> np.ndarray:
    """Return a part as numbers with one of these numbers of axes."""
    array = parse_numbers(f"history: {name}", given)
    if array.ndim not in axes:
        expected = {1: "one number", 2: "a row of numbers"}[axes[0]] if len(axes) == 1 else "a vector or feature rows"
        raise SettingsError(f"history: {name}: expected {expected} for each round, got shape {array.shape}")
    if name in OBSERVED:
        _require_rows(name, array, np.isinf(array), "finite numbers (NaN: not known)")
    else:
        _require_rows(name, array, ~np.isfinite(array), "finite numbers (leave other rounds out)")
    array.flags.writeable = False
    return array


def _require_rows(name: str, table: np.ndarray, wrong: np.ndarray, expected: str) -> None:
    """Refuse a part in which any row is wrong."""
    rows = np.flatnonzero(np.any(wrong, axis=tuple(range(1, wrong.ndim))))
    if len(rows):
        got = short_repr(table[rows[0]].tolist())
        raise SettingsError(f"history: {name}, row {rows[0]}: expected {expected}, got {got}")


def require_fitting(history: History, problem: "Problem", caller: str = "") -> None:
    """Refuse a history whose columns, contexts or decisions are not those of a problem."""
    columns = problem.columns
    if columns is not None and history.columns != columns:
        raise SettingsError(
            f"{caller}expected a history with the learner's columns (History(..., columns=learner.columns)): "
            f"{columns.difference(history.columns)}"
        )
    expected, got = (problem.context_shape, problem.dim), (history.contexts.shape[1:], history.decisions.shape[1])
    if got != expected:
        raise SettingsError(
            f"{caller}expected a history with contexts of shape {expected[0]} and decisions of {expected[1]} numbers, "
            f"got {got[0]} and {got[1]}"
        )


# Tables: columns by name, and errors that say which row and which column.


def _load(read: Callable[..., Any], path: str | os.PathLike[str], kind: str) -> Any:
    """Return the table in a file."""
    try:
        if os.path.exists(path):  # pandas reads addresses, too
            files.refuse_device(path)
        return read(path)
    except OSError as error:
        raise SettingsError(f"history: cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # pandas and pyarrow have their own errors; also text that is not UTF-8
        raise SettingsError(f"history: {path} is not a {kind}: {error}") from None


def _standard_names(names: list[str]) -> dict[str, Any]:
    """Return the columns of each part by the names that ``to_pandas`` writes, whatever their order."""
    parts: dict[str, Any] = {part: name for part, name in SINGLE.items() if name in names}
    if "instance" in names:
        parts["instances"] = "instance"
    for part, head in SEVERAL.items():
        if columns := [name for name in names if name.startswith(f"{head}_")]:
            parts[part] = _ordered_names(head, columns)
        elif part in ("contexts", "decisions"):
            raise SettingsError(f"history: expected columns {head}_0, {head}_1, …, got {', '.join(names[:8])}")
    known = [*SINGLE.values(), *(f"{head}_0" for head in SEVERAL.values())]
    for name in names:  # one that was probably meant for a history is refused, any other is ignored
        near = difflib.get_close_matches(name.partition(".")[0].lower(), known, n=1, cutoff=0.7)
        if near and name not in known and name.partition("_")[0] not in SEVERAL.values():
            raise SettingsError(
                f"history: unknown column {name!r}; did you mean {near[0]!r}? rename it, or leave it out"
            )
    return parts


def _ordered_names(head: str, names: Sequence[str]) -> list[Any]:
    """Return ``head_0``, ``head_1``, … by number, and ``context_0_0``, ``context_0_1``, … as a list for each row."""
    groups: dict[str, list[str]] = {}
    for name in names:
        match = re.fullmatch(rf"({re.escape(head)}_(?:0|[1-9][0-9]*))(_.*)?", name)
        if match is None or (match[2] and head != "context") or name in groups.get(match[1], ()):
            raise SettingsError(
                f"history: column {name!r} is ambiguous: expected {head}_0, {head}_1, …, each once; rename it, or name "
                "the columns of each part (History.from_csv(..., decisions=[...]))"
            )
        groups.setdefault(match[1], []).append(name)
    numbered = [f"{head}_{i}" for i in range(len(groups))]
    for name in numbered:
        if name not in groups:
            raise SettingsError(f"history: column {name!r} is missing: expected {head}_0, {head}_1, … without gaps")
    if all(groups[name] == [name] for name in numbered):
        return numbered
    return [_ordered_names(name, groups[name]) for name in numbered]


def _read(frame: "pd.DataFrame", part: str, names: Any) -> Any:
    """Return a part of a history from its columns."""
    if part == "instances" and isinstance(names, Mapping):
        arrays = {key: _read_columns(frame, part, chosen) for key, chosen in names.items()}
        return [{key: array[row] for key, array in arrays.items()} for row in range(len(frame))]
    if part == "instances" and isinstance(names, str):
        return _read_json(frame, names)
    single = part in SINGLE
    if single != isinstance(names, str):
        argument = {**SINGLE, "instances": "instance"}.get(part, part)
        expected = "the name of one column" if single else "a list of column names"
        raise SettingsError(f"history: {argument}: expected {expected}, got {short_repr(names)}")
    return _read_columns(frame, part, names)


def _read_columns(frame: "pd.DataFrame", part: str, names: Any) -> np.ndarray:
    """Return columns as an array: one, several, or several for each coordinate."""
    if isinstance(names, str | int):
        return _read_column(frame, names, part)
    columns = [_read_columns(frame, part, name) for name in names]
    if len({column.shape for column in columns}) > 1:
        raise SettingsError(f"history: {part}: expected as many columns for every coordinate")
    return np.stack(columns, axis=1) if columns else np.zeros((len(frame), 0))


def _column(frame: "pd.DataFrame", name: Any) -> "pd.Series[Any]":
    if name not in frame.columns:
        require_known("column", str(name), [str(column) for column in frame.columns], " of the table")
    column = frame[name]
    if column.ndim != 1:
        raise SettingsError(f"history: expected one column {name!r}, got {column.shape[1]} of that name")
    return column


def _read_json(frame: "pd.DataFrame", name: str) -> list[Any]:
    """Return a column of JSON texts as objects, in which lists are arrays."""

    def to_arrays(mapping: dict[str, Any]) -> dict[str, Any]:
        return {key: np.asarray(value) if isinstance(value, list) else value for key, value in mapping.items()}

    try:
        return [json.loads(text, object_hook=to_arrays) for text in _column(frame, name)]
    except (TypeError, ValueError) as error:
        raise SettingsError(f"history: column {name!r}: expected JSON in every row: {error}") from None


def _read_column(frame: "pd.DataFrame", name: Any, part: str) -> np.ndarray:
    """Return a column as numbers, times as seconds; NaN where a cell is empty."""
    pandas, column = extras.require("pandas", extra="data"), _column(frame, name)
    dates = part == "times" and not pandas.api.types.is_numeric_dtype(column)
    options: dict[str, Any] = {"utc": True} if dates else {}
    read = (pandas.to_datetime if dates else pandas.to_numeric)(column, errors="coerce", **options)
    wrong = np.flatnonzero((read.isna() & ~column.isna()).to_numpy())
    if len(wrong):
        expected = "seconds or a date" if dates else "a number"
        hint = "" if dates else "; categories are declared by contexts=rg.Columns(...)"
        raise SettingsError(
            f"history: column {name!r}, row {wrong[0]}: expected {expected}, got {column.iloc[wrong[0]]!r}{hint}"
        )
    if dates:
        read = (read - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(seconds=1)
    return np.asarray(read.to_numpy(np.float64, na_value=np.nan))


def _read_named(frame: "pd.DataFrame", columns: Columns, dim: int) -> np.ndarray:
    """Return contexts by their declared columns; ``name_0``, ``name_1``, … where there is one for each coordinate."""

    def encode(names: Mapping[str, str]) -> np.ndarray:
        for name in names:
            require_known("column", name, map(str, frame.columns), " of the table")
        return columns.encode(frame[list(names)].rename(columns=dict(names)), "history")

    if not columns.per_coordinate:
        return encode({name: name for name in columns.names})
    return np.stack([encode({f"{name}_{i}": name for name in columns.names}) for i in range(dim)], axis=1)


def _numbered(name: str, table: np.ndarray) -> dict[str, np.ndarray]:
    places = np.ndindex(*table.shape[1:])
    return {"_".join(map(str, (name, *place))): table[(slice(None), *place)] for place in places}


def _instance_columns(instances: Sequence[Any]) -> dict[str, Any]:
    """Return a column for each number if instances are rows of numbers, one with JSON texts if they are not."""
    try:
        table = np.array(instances, float)
    except (TypeError, ValueError):  # dictionaries, or rows of different lengths
        table = np.zeros(0)
    if table.ndim == 2:
        return _numbered("instance", table)
    return {"instance": [json.dumps(instance, default=lambda array: array.tolist()) for instance in instances]}
