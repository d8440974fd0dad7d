"""Histories from tables and back: columns by name, and errors that say which row and which column."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from regretless.errors import SettingsError
from regretless.registry import require_known

if TYPE_CHECKING:
    from regretless.columns import Columns
    from regretless.live.history import History

WORDS = {"totals": "total", "instances": "instance", "times": "time", "propensities": "propensity"}
"""What the argument for a part of a history is called, where it is another word."""


def read(frame: Any, columns: Mapping[str, Any], context_shape: tuple[int, ...] | None) -> dict[str, Any]:
    """The parts of a history from the columns that are named for them."""
    if not isinstance(frame, pd.DataFrame):
        raise SettingsError(f"history: expected a pandas DataFrame, got a {type(frame).__name__}")
    found: dict[str, Any] = {}
    for part, names in columns.items():
        if names is None:
            continue
        single = part in ("totals", "times", "propensities")
        if single != isinstance(names, str):
            expected = "the name of one column" if single else "a list of column names"
            raise SettingsError(f"history: {WORDS.get(part, part)}: expected {expected}, got {names!r}")
        chosen: Sequence[str] = [names] if isinstance(names, str) else list(names)
        table = (
            np.stack([_column(frame, name, part) for name in chosen], axis=1) if chosen else np.zeros((len(frame), 0))
        )
        found[part] = table[:, 0] if single else table
    if context_shape is not None:
        if "contexts" not in found:
            raise SettingsError("history: expected context_shape for columns of numbers only; Columns know their shape")
        shape = (len(frame), *context_shape)
        if found["contexts"].size != np.prod(shape):
            raise SettingsError(
                f"history: contexts: expected {np.prod(context_shape)} columns for feature rows of shape {context_shape}, "
                f"got {found['contexts'].shape[1]}"
            )
        found["contexts"] = found["contexts"].reshape(shape)
    return found


def contexts(frame: pd.DataFrame, columns: "Columns", dim: int) -> np.ndarray:
    """The contexts in the columns that were declared; ``name_0``, ``name_1``, … where there is one for each coordinate."""
    if not columns.per_coordinate:
        return columns.encode(_chosen(frame, {name: name for name in columns.names}), "history")
    tables = [_chosen(frame, {f"{name}_{i}": name for name in columns.names}) for i in range(dim)]
    return np.stack([columns.encode(table, "history") for table in tables], axis=1)


def csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The table in a CSV file."""
    try:
        return pd.read_csv(path)
    except OSError as error:
        raise SettingsError(f"history: cannot read {path}: {error.strerror or error}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise SettingsError(f"history: {path} is no CSV file with a line of column names: {error}") from None


def parquet(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The table in a Parquet file."""
    try:
        return pd.read_parquet(path)
    except OSError as error:
        raise SettingsError(f"history: cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # pyarrow has errors of its own
        raise SettingsError(f"history: {path} is no Parquet file: {error}") from None


def frame(history: "History") -> pd.DataFrame:
    """A history as a table; instances are columns where each is one row of numbers."""
    parts: dict[str, Any] = {}
    if history.columns is not None:
        parts |= _named(history.contexts, history.columns)
    numbered = {"contexts": "context", "decisions": "decision", "costs": "cost", "values": "value"}
    for part, name in list(numbered.items())[history.columns is not None :]:
        table = getattr(history, part)
        if table is not None:
            parts |= _columns(name, table.reshape(len(history), -1))
    for part in ("totals", "times", "propensities"):
        if getattr(history, part) is not None:
            parts[WORDS[part]] = getattr(history, part)
    if history.instances is not None:
        parts |= _instances(history.instances)
    return pd.DataFrame(parts)


def _instances(instances: Sequence[Any]) -> dict[str, np.ndarray]:
    try:
        table = np.stack([np.asarray(instance, float) for instance in instances])
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2:
        raise SettingsError("history: expected instances that are one row of numbers each, to make columns of them")
    return _columns("instance", table)


def _named(contexts: np.ndarray, columns: "Columns") -> dict[str, list[Any]]:
    """The cells of encoded contexts by column."""
    rounds = [columns.decode(own) for own in contexts]
    if not columns.per_coordinate:
        return {name: [own[name] for own in rounds] for name in columns.names}
    return {f"{name}_{i}": [own[i][name] for own in rounds] for name in columns.names for i in range(contexts.shape[1])}


def _chosen(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """These columns of a table, under new names."""
    for name in names:
        require_known("column", name, map(str, frame.columns), " of the table")
    return frame[list(names)].rename(columns=names)


def _columns(name: str, table: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}_{i}": table[:, i] for i in range(table.shape[1])}


def _column(frame: pd.DataFrame, name: Any, part: str) -> np.ndarray:
    """A column as numbers, times as seconds; NaN where a cell is empty."""
    if name not in frame.columns:
        require_known("column", str(name), [str(column) for column in frame.columns], " of the table")
    column = frame[name]
    if column.ndim != 1:
        raise SettingsError(f"history: expected one column {name!r}, got {column.shape[1]} of that name")
    if part == "times" and not pd.api.types.is_numeric_dtype(column):
        column = _seconds(column, name)
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = np.flatnonzero((numbers.isna() & ~column.isna()).to_numpy())
    if len(wrong):
        raise SettingsError(
            f"history: column {name!r}, row {wrong[0]}: expected a number, got {column.iloc[wrong[0]]!r}; categories "
            "are declared by contexts=rg.Columns(...)"
        )
    return numbers.to_numpy(np.float64, na_value=np.nan)


def _seconds(column: Any, name: Any) -> Any:
    times = pd.to_datetime(column, errors="coerce", utc=True)
    wrong = np.flatnonzero((times.isna() & ~column.isna()).to_numpy())
    if len(wrong):
        raise SettingsError(
            f"history: column {name!r}, row {wrong[0]}: expected seconds or a date, got {column.iloc[wrong[0]]!r}"
        )
    return (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
