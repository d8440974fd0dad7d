"""Rounds that were decided before, by whomever: contexts, decisions, and what was seen of their cost."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, overload

import numpy as np

from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.live import inputs

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = {"totals": 1, "costs": 2, "values": 2, "times": 1, "propensities": 1}
"""What a history may hold beside contexts and decisions, with how many axes; NaN stands for what is not known."""


class Round(NamedTuple):
    """One round of a history; None for what is not known of it."""

    context: np.ndarray
    decision: np.ndarray
    total: float | None
    costs: np.ndarray | None
    values: np.ndarray | None
    instance: Any
    time: float | None
    propensity: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """A table of rounds that does not change: ``contexts[n, …]``, ``decisions[n, d]`` and what was seen of their cost.

    What was seen are ``totals[n]``, ``costs[n, d]`` of single coordinates or ``values[n, m]`` of a learner's own rows, NaN for
    what was not. ``instances`` are n descriptions of what changed in the feasible set, ``times[n]`` seconds,
    ``propensities[n]`` the probability with which the decision was drawn. With ``sense="maximise"`` all numbers are rewards.
    With ``columns`` contexts are a DataFrame or dictionaries by name (or the array that these are encoded to).

    >>> import regretless as rg
    >>> history = rg.History([[0.5], [1.0], [2.0]], [[1, 0], [0, 1], [1, 0]], totals=[3.0, 4.0, float("nan")])
    >>> len(history), history[1].total, history[2].total, len(history[:2])
    (3, 4.0, None, 2)
    """

    contexts: np.ndarray
    decisions: np.ndarray
    totals: np.ndarray | None = None
    costs: np.ndarray | None = None
    values: np.ndarray | None = None
    instances: Sequence[Any] | None = None
    times: np.ndarray | None = None
    propensities: np.ndarray | None = None
    sense: Literal["minimise", "maximise"] = "minimise"
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.sense not in ("minimise", "maximise"):
            raise SettingsError(f"history: expected sense 'minimise' or 'maximise', got {inputs.said(self.sense)}")
        decisions = _numbers("decisions", self.decisions, (2,))
        contexts = _numbers("contexts", _encoded(self.contexts, self.columns, decisions.shape[1]), (2, 3))
        _require_finite("contexts", contexts)
        _require_finite("decisions", decisions)
        found: dict[str, Any] = {"contexts": contexts, "decisions": decisions}
        for name, axes in ROUNDS.items():
            if getattr(self, name) is not None:
                found[name] = _numbers(name, getattr(self, name), (axes,))
                _require_no_infinity(name, found[name])
        if self.instances is not None:
            found["instances"] = tuple(self.instances)
        lengths = {name: len(array) for name, array in found.items()}
        if len(set(lengths.values())) > 1:
            raise SettingsError(
                "history: expected a row for each round in every table, got "
                + ", ".join(f"{n} {name}" for name, n in lengths.items())
            )
        if "costs" in found and found["costs"].shape != decisions.shape:
            raise SettingsError(
                f"history: expected costs of shape {decisions.shape}, one for each coordinate of a decision, got "
                f"{found['costs'].shape}"
            )
        _require_probabilities(found.get("propensities"))
        for name, table in found.items():
            object.__setattr__(self, name, table)

    def __len__(self) -> int:
        return len(self.contexts)

    def __iter__(self) -> Iterator[Round]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> Round: ...
    @overload
    def __getitem__(self, rows: slice | Sequence[Any] | np.ndarray) -> Self: ...
    def __getitem__(self, rows: Any) -> Round | Self:
        """One round by its number; a part of the history by a slice, numbers or booleans."""
        if isinstance(rows, int | np.integer):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"history: expected a row from 0 to {len(self) - 1}, got {rows}")
            one = lambda table: None if table is None else _known(table[rows])  # noqa: E731
            return Round(
                self.contexts[rows], self.decisions[rows], one(self.totals), one(self.costs), one(self.values),
                self.instance(int(rows)), one(self.times), one(self.propensities),
            )  # fmt: skip
        chosen = np.arange(len(self))[rows]
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[chosen] for name in ROUNDS
        }
        instances = None if self.instances is None else [self.instances[i] for i in chosen]
        return dataclasses.replace(
            self, contexts=self.contexts[chosen], decisions=self.decisions[chosen], instances=instances, **parts
        )

    def instance(self, row: int) -> Any:
        """What had changed in the feasible set in this round."""
        return None if self.instances is None else self.instances[row]

    def seen(self) -> np.ndarray:
        """Of which rounds anything was seen."""
        found = np.zeros(len(self), bool)
        for table in (self.totals, self.costs, self.values):
            if table is not None:
                found |= np.any(~np.isnan(table.reshape(len(self), -1)), axis=1)
        return found

    def as_costs(self) -> Self:
        """The same with every reward as a negative cost."""
        if self.sense == "minimise":
            return self
        less: dict[str, Any] = {
            name: None if getattr(self, name) is None else -getattr(self, name)
            for name in ("totals", "costs", "values")
        }
        return dataclasses.replace(self, sense="minimise", **less)

    @classmethod
    def from_pandas(
        cls,
        frame: "pd.DataFrame",
        *,
        contexts: Sequence[str] | Columns,
        decisions: Sequence[str],
        total: str | None = None,
        costs: Sequence[str] | None = None,
        values: Sequence[str] | None = None,
        instance: Sequence[str] | None = None,
        time: str | None = None,
        propensity: str | None = None,
        context_shape: tuple[int, ...] | None = None,
        sense: Literal["minimise", "maximise"] = "minimise",
    ) -> "History":
        """A history from a table with a row for each round, by the names of its columns.

        ``contexts`` are names of columns of numbers, or Columns that say what each one is. ``context_shape`` is ``(d, p)``
        where contexts are feature rows; their columns then go row by row. ``instance`` are columns that make one array for each
        round, such as a mask.
        """
        from regretless.live import tables

        named = contexts if isinstance(contexts, Columns) else None
        columns: dict[str, Any] = {"contexts": None if named is not None else contexts, "decisions": decisions, "totals": total,
                   "costs": costs, "values": values, "instances": instance, "times": time,
                   "propensities": propensity}  # fmt: skip
        parts = tables.read(frame, columns, context_shape)
        if named is not None:
            parts["contexts"] = tables.contexts(frame, named, len(decisions))
        return cls(**parts, sense=sense, columns=named)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], **columns: Any) -> "History":
        """``from_pandas`` of a CSV file with a line of column names."""
        from regretless.live import tables

        return cls.from_pandas(tables.csv(path), **columns)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], **columns: Any) -> "History":
        """``from_pandas`` of a Parquet file."""
        from regretless.live import tables

        return cls.from_pandas(tables.parquet(path), **columns)

    @classmethod
    def from_log(cls, path: str | os.PathLike[str], until: int | None = None) -> "History":
        """The decisions in a learner's log with what came back, in the order in which they were made; up to record ``until``.

        A tail that a crash tore off is left out with a warning; a damaged log is a LogError that says which records are good.
        """
        from regretless.live import replaying

        return cls(**replaying.rounds(path, until))

    def to_pandas(self) -> "pd.DataFrame":
        """A table with a row for each round; columns ``context_0``, … (or their names), ``decision_0``, …, ``total``, …"""
        from regretless.live import tables

        return tables.frame(self)


def _encoded(given: Any, columns: Any, dim: int) -> Any:
    """Contexts as numbers, by name or not."""
    if columns is None:
        return given
    if not isinstance(columns, Columns):
        raise SettingsError(f"history: expected columns to be rg.Columns(...), got {inputs.said(columns)}")
    shape = (dim, columns.width) if columns.per_coordinate else (columns.width,)
    if not isinstance(given, np.ndarray):
        found, many = columns.contexts(given, shape, "history")
        if not many:
            raise SettingsError("history: contexts: expected one for each round, got a single one")
        return found
    if given.shape[1:] != shape:
        raise SettingsError(f"history: contexts: expected encoded columns of shape {('n', *shape)}, got {given.shape}")
    return given


def _known(entry: Any) -> Any:
    """A number, None for NaN; a row of numbers, None if all of them are."""
    if np.all(np.isnan(entry)):
        return None
    return float(entry) if np.ndim(entry) == 0 else entry


def _numbers(name: str, given: Any, axes: tuple[int, ...]) -> np.ndarray:
    array = inputs.numbers(f"history: {name}", given)
    if array.ndim not in axes:
        words: dict[tuple[int, ...], str] = {(1,): "one number for each round", (2,): "a row of numbers for each round"}
        expected = words.get(axes, "a vector or feature rows for each round")
        raise SettingsError(f"history: {name}: expected {expected}, got shape {array.shape}")
    array.flags.writeable = False
    return array


def _require_finite(name: str, array: np.ndarray) -> None:
    rows: Any = np.flatnonzero(~np.all(np.isfinite(array.reshape(len(array), -1)), axis=1)) if len(array) else []
    if len(rows):
        raise SettingsError(
            f"history: {name}, row {rows[0]}: expected finite numbers, got NaN or infinity; leave such rounds out"
        )


def _require_no_infinity(name: str, array: np.ndarray) -> None:
    rows: Any = np.flatnonzero(np.any(np.isinf(array.reshape(len(array), -1)), axis=1)) if len(array) else []
    if len(rows):
        raise SettingsError(f"history: {name}, row {rows[0]}: expected finite numbers (NaN: not seen), got infinity")


def _require_probabilities(given: np.ndarray | None) -> None:
    rows: Any = [] if given is None else np.flatnonzero((given <= 0) | (given > 1))
    if given is not None and len(rows):
        raise SettingsError(
            f"history: propensities, row {rows[0]}: expected a probability above 0 and at most 1 (NaN: not known), got "
            f"{given[rows[0]]:g}"
        )
