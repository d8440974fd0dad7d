"""Data sets of contexts and costs with the decision that is best for each cost."""

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from regretless import extras, files
from regretless.array_files import read_arrays, write_arrays
from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.columns import Columns
from regretless.draws import ENVIRONMENT, STREAM, purpose_key
from regretless.errors import DamagedError, SettingsError
from regretless.formatting import count_text
from regretless.oracles.base import Oracle, check_finite, check_integer
from regretless.types import Key

if TYPE_CHECKING:
    import pandas as pd

    from regretless.live.history import History

KIND = "data set"
"""What a saved data set is called in its file."""


class Dataset:
    """Contexts and costs, row by row, with the best decision of each row.

    The best decisions are computed once, by one call of the oracle. Rows cannot be changed.

    Parameters
    ----------
    contexts : array of shape ``[n, p]`` or ``[n, d, p]``
        What is known before deciding. With ``columns``, a DataFrame or dictionaries by name.
    costs : array of shape ``[n, d]``
        The cost of each coordinate of a decision.
    oracle : Oracle
        The feasible set.
    instances : pytree or sequence of length n, optional
        What changes in the feasible set from row to row: arrays with a leading axis of rows, or one instance a row.
    columns : Columns, optional
        Names of the context's columns.
    sense : {"min", "max"}, default "min"
        ``"max"`` if the numbers are rewards; they are kept as negative costs.
    optima : array of shape ``[n, d]``, optional
        The best decisions, if they are known.

    Raises
    ------
    SettingsError
        If the parts do not fit together or hold a number that is not finite; the message names the row.
    OracleError
        If a row cannot be solved.

    Examples
    --------
    >>> import regretless as rg
    >>> data = rg.offline.Dataset([[0.5], [1.0], [2.0]], [[1, 4], [3, 2], [5, 6]], rg.oracles.top_k(2, 1))
    >>> data
    Dataset(3 rows, contexts of shape (1,), costs of 2 coordinates, feasible set TopK)
    >>> data.optima.tolist(), data.optimal_costs.tolist()
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 2.0, 5.0])
    """

    def __init__(
        self,
        contexts: Any,
        costs: Any,
        oracle: Oracle,
        *,
        instances: Any = None,
        columns: Columns | None = None,
        sense: Literal["min", "max"] = "min",
        optima: Any = None,
    ):
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"data set: expected an oracle (see rg.oracles), got a {type(oracle).__name__}")
        if sense not in ("min", "max"):
            raise SettingsError(f"data set: sense: expected 'min' (costs) or 'max' (rewards), got {sense!r}")
        self.oracle, self.columns, self.sense = oracle, columns, sense
        self.costs = _rows("costs", costs, oracle.dim) * (1.0 if sense == "min" else -1.0)
        count = len(self.costs)
        if count == 0:
            raise SettingsError("data set: expected at least one row, got none")
        if columns is not None:
            shape = (oracle.dim, columns.width) if columns.per_coordinate else (columns.width,)
            is_encoded = isinstance(contexts, np.ndarray)
            contexts = contexts if is_encoded else columns.contexts(contexts, shape, "data set: contexts")[0]
        self.contexts = _rows("contexts", contexts, None)
        if len(self.contexts) != count:
            raise SettingsError(f"data set: expected a cost for each context, got {len(self.contexts)} and {count}")
        self.instances = _stacked(oracle, instances, count)
        self.estimated = ""
        solved = oracle.answer(self.costs, self.instances).w if optima is None else _rows("optima", optima, oracle.dim)
        if len(solved) != count:
            raise SettingsError(f"data set: expected a best decision for each of {count} rows, got {len(solved)}")
        self.optima = np.asarray(solved, np.float64)

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self) -> str:
        parts = [count_text(len(self), "row"), f"contexts of shape {self.context_shape}"]
        parts += [f"costs of {self.oracle.dim} coordinates", f"feasible set {self.oracle.kind}"]
        parts += ["instances"] if self.instances is not None else []
        parts += ["named columns"] if self.columns is not None else []
        parts += ["rewards"] if self.sense == "max" else []
        parts += [f"costs estimated by {self.estimated}"] if self.estimated else []
        return f"Dataset({', '.join(parts)})"

    def __getitem__(self, rows: slice | Sequence[Any] | np.ndarray) -> Self:
        """Return some of the rows, by a slice, numbers or booleans."""
        chosen = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        if chosen.ndim != 1 or not len(chosen):
            raise SettingsError("data set: expected rows by a slice, numbers or booleans, at least one")
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.contexts, part.costs, part.optima = self.contexts[chosen], self.costs[chosen], self.optima[chosen]
        part.instances = jax.tree.map(lambda leaf: leaf[chosen], self.instances)
        return part

    @property
    def context_shape(self) -> tuple[int, ...]:
        """The shape of one context."""
        return tuple(self.contexts.shape[1:])

    @property
    def optimal_costs(self) -> np.ndarray:
        """The lowest cost of each row, ``min c·w``."""
        return np.einsum("nd,nd->n", self.costs, self.optima)

    def encode(self, contexts: Any) -> np.ndarray:
        """Return contexts as numbers, checked: with named columns from tables or dictionaries.

        Parameters
        ----------
        contexts : array-like, DataFrame or dictionaries
            One or several contexts as in this data set.

        Returns
        -------
        array of shape ``[n, …]``
        """
        return encode_contexts(contexts, self.columns, self.context_shape)

    def split(self, *shares: float, seed: int | None = 0) -> tuple[Self, ...]:
        """Return parts without common rows.

        Parameters
        ----------
        *shares : float
            The share of the rows in each part; together at most 1.
        seed : int or None, default 0
            For the order in which rows are drawn; None keeps the order of the rows, as for data with a time.

        Examples
        --------
        >>> import numpy as np, regretless as rg
        >>> data = rg.offline.Dataset(np.ones((10, 1)), np.ones((10, 2)), rg.oracles.top_k(2, 1))
        >>> [len(part) for part in data.split(0.6, 0.2, 0.2)]
        [6, 2, 2]
        """
        if not shares or min(shares) <= 0 or sum(shares) > 1 + 1e-9:
            raise SettingsError(f"split: expected shares above 0 that sum to at most 1, got {shares}")
        ends = np.round(np.cumsum((0.0, *shares)) * len(self)).astype(int)
        if np.any(np.diff(ends) < 1):
            raise SettingsError(f"split: expected at least one row in each part, got {shares} of {len(self)} rows")
        order = np.arange(len(self)) if seed is None else np.random.default_rng(seed).permutation(len(self))
        return tuple(self[np.sort(order[first:last])] for first, last in itertools.pairwise(ends))

    def folds(self, count: int = 5, *, seed: int | None = 0) -> Iterator[tuple[Self, Self]]:
        """Yield the pairs of training and test set of a cross-validation.

        Parameters
        ----------
        count : int, default 5
            Number of folds.
        seed : int or None, default 0
            For the order in which rows are drawn; None makes folds of neighbouring rows.
        """
        for test in fold_rows(len(self), count, seed):
            train = np.ones(len(self), bool)
            train[test] = False
            yield self[train], self[test]

    def digest(self) -> str:
        """Return a hash of all numbers and of the feasible set."""
        digest = hashlib.sha256(f"{sorted(self.oracle.fingerprint().items())}".encode())
        for leaf in (self.contexts, self.costs, *jax.tree.leaves(self.instances)):
            digest.update(f"{leaf.shape}".encode() + np.ascontiguousarray(leaf).tobytes())
        return digest.hexdigest()[:16]

    @classmethod
    def from_pandas(
        cls,
        frame: "pd.DataFrame",
        oracle: Oracle,
        *,
        contexts: Sequence[str] | Columns | None = None,
        costs: Sequence[str] | None = None,
        sense: Literal["min", "max"] = "min",
    ) -> Self:
        """Return the data set in a table with a row for each context.

        Parameters
        ----------
        frame : pandas.DataFrame
            The table.
        oracle : Oracle
            The feasible set.
        contexts : list of str or Columns, optional
            Columns of the context; by default ``context_0``, ``context_1``, ….
        costs : list of str, optional
            Columns with the costs; by default ``cost_0``, ``cost_1``, ….
        sense : {"min", "max"}, default "min"
            ``"max"`` if the numbers are rewards.
        """
        pandas = extras.require("pandas", extra="data")
        if not isinstance(frame, pandas.DataFrame):
            raise SettingsError(f"data set: expected a pandas DataFrame, got a {type(frame).__name__}")
        table = frame.rename(columns=str)
        names = {"cost": costs, "context": contexts.names if isinstance(contexts, Columns) else contexts}
        for part, given in names.items():
            names[part] = _numbered(part, table.columns) if given is None else [str(name) for name in given]
            if missing := [name for name in names[part] or () if name not in table.columns]:
                raise SettingsError(f"data set: the table has no column {missing[0]!r}; it has {', '.join(table)}")
        given = table[names["context"]]
        if isinstance(contexts, Columns):
            return cls(given, table[names["cost"]].to_numpy(), oracle, columns=contexts, sense=sense)
        return cls(given.to_numpy(), table[names["cost"]].to_numpy(), oracle, sense=sense)

    @classmethod
    def from_history(cls, history: "History", oracle: Oracle) -> Self:
        """Return the rounds of a history whose costs are known in every coordinate.

        Parameters
        ----------
        history : History
            Past rounds, such as ``History.from_store(path)``.
        oracle : Oracle
            The feasible set.

        Raises
        ------
        SettingsError
            If no round has all of its costs; ``estimate_costs`` learns from parts and totals.
        """
        costs = history.as_costs()
        known = np.zeros(len(history), bool) if costs.costs is None else ~np.isnan(costs.costs).any(axis=1)
        if costs.costs is None or not known.any():
            raise SettingsError(
                "data set: expected rounds whose costs are known in every coordinate, got none; "
                "rg.offline.estimate_costs estimates them from totals and parts"
            )
        rows = costs[known]
        data = cls(rows.contexts, rows.costs, oracle, instances=rows.instances, columns=rows.columns)
        data.sense = history.sense
        return data

    @classmethod
    def from_pyepo(cls, dataset: Any, oracle: Oracle | None = None) -> Self:
        """Return the data set of a ``pyepo.data.dataset.optDataset``.

        Parameters
        ----------
        dataset : optDataset
            Features, costs and a model.
        oracle : Oracle, optional
            The feasible set; by default PyEPO's model, with its solutions.
        """
        from regretless.oracles.callback import from_pyepo

        feats, costs, sols = (np.asarray(getattr(dataset, name), np.float64) for name in ("feats", "costs", "sols"))
        sense: Literal["min", "max"] = "max" if int(dataset.model.modelSense) < 0 else "min"
        if oracle is not None:
            return cls(feats, costs, oracle, sense=sense)
        return cls(feats, costs, from_pyepo(dataset.model), sense=sense, optima=sols)

    @classmethod
    def from_benchmark(
        cls, benchmark: Benchmark | BenchmarkSpec | str, rows: int, *, seed: int = 0, after: int = 0
    ) -> Self:
        """Return rounds of a benchmark with their costs.

        Parameters
        ----------
        benchmark : Benchmark, BenchmarkSpec or str
            The stream of contexts and costs.
        rows : int
            Number of rounds.
        seed : int, default 0
            The replication; ``rg.simulate`` plays the same rounds with the same seed.
        after : int, default 0
            Rounds that are left out at the beginning.
        """
        x, c, instances, oracle = draw_rounds(benchmark, check_integer("rows", rows), seed, after)
        return cls(x, c, oracle, instances=instances)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data set to a file, atomically.

        Parameters
        ----------
        path : path
            An ``.npz`` file of NumPy arrays, without pickle. The feasible set is not in it.
        """
        arrays = {"contexts": self.contexts, "costs": self.costs, "optima": self.optima}
        arrays |= {f"instance/{place}": leaf for place, leaf in enumerate(jax.tree.leaves(self.instances))}
        columns = None if self.columns is None else self.columns.declaration()
        record = {"kind": KIND, "sense": self.sense, "estimated": self.estimated, "columns": columns}
        write_arrays(path, arrays, record)

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle, *, sense: Literal["min", "max"] = "min") -> Self:
        """Read a data set: a file that ``save`` wrote, or a table.

        Parameters
        ----------
        path : path
            An ``.npz`` file with the arrays ``contexts`` and ``costs`` (one that ``save`` wrote has more); or a CSV or
            Parquet file with the columns ``context_0``, … and ``cost_0``, ….
        oracle : Oracle
            The feasible set.
        sense : {"min", "max"}, default "min"
            ``"max"`` if the numbers of a table or of your own arrays are rewards.
        """
        place = Path(path)
        suffix = place.suffix.lower()
        if suffix not in (".npz", ".csv", ".parquet"):
            raise SettingsError(f"{place}: expected a .npz, .csv or .parquet file of contexts and costs")
        try:
            files.refuse_device(place)
            if suffix == ".npz":
                return cls._from_arrays(place, oracle, sense)
            pandas = extras.require("pandas", extra="data")
            frame = pandas.read_csv(place) if suffix == ".csv" else pandas.read_parquet(place)
        except OSError as error:
            raise SettingsError(f"cannot read {place}: {error.strerror or error}") from None
        except (ValueError, KeyError) as error:
            raise SettingsError(f"{place}: {error}") from None
        return cls.from_pandas(frame, oracle, sense=sense)

    @classmethod
    def _from_arrays(cls, path: Path, oracle: Oracle, sense: Literal["min", "max"]) -> Self:
        try:
            arrays, record = read_arrays(path)
        except DamagedError:
            with np.load(path, allow_pickle=False) as archive:  # a file of the user
                arrays, record = dict(archive), {}
        if missing := [name for name in ("contexts", "costs") if name not in arrays]:
            raise SettingsError(f"expected an array {missing[0]!r}, got {', '.join(arrays) or 'none'}")
        leaves = [arrays[f"instance/{place}"] for place in range(sum(name.startswith("instance/") for name in arrays))]
        form = oracle.example_instance()
        instances = arrays.get("instances")
        if leaves and form is not None:
            instances = jax.tree.unflatten(jax.tree.structure(form), leaves)
        columns = None if not record.get("columns") else Columns(**record["columns"])
        own = "min" if record.get("kind") == KIND else sense  # what save wrote are costs
        data = cls(arrays["contexts"], arrays["costs"], oracle, instances=instances, columns=columns, sense=own)
        data.sense, data.estimated = record.get("sense", sense), record.get("estimated", "")
        return data


def fold_rows(count: int, folds: int, seed: int | None = 0) -> list[np.ndarray]:
    """Return the held-out rows of each fold, in rising order."""
    if not 2 <= check_integer("folds", folds) <= count:
        raise SettingsError(f"expected 2 to {count} folds, one row or more in each, got {folds}")
    order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
    return [np.sort(part) for part in np.array_split(order, folds)]


def encode_contexts(contexts: Any, columns: Columns | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return one or several contexts as an array with a leading axis."""
    if columns is not None and not isinstance(contexts, np.ndarray):
        return columns.contexts(contexts, shape)[0]
    array = check_finite("contexts", contexts).astype(np.float64)
    array = array[None] if array.shape == shape else array
    if array.shape[1:] != shape:
        raise SettingsError(f"contexts: expected shape {shape} or a batch of it, got {array.shape}")
    return array


def draw_rounds(
    benchmark: Benchmark | BenchmarkSpec | str, rows: int, seed: int, after: int = 0
) -> tuple[np.ndarray, np.ndarray, Any, Oracle]:
    """Return contexts, costs and instances of a benchmark's rounds, as ``simulate`` plays them, and its oracle."""
    world = benchmark if isinstance(benchmark, Benchmark) else BenchmarkSpec.coerce(benchmark).build()
    with jax.enable_x64(True):
        times = after + 1 + jnp.arange(rows, dtype=jnp.int32)
        contexts, costs, instances = jax.tree.map(np.asarray, _draw(world, jax.random.key(seed), times))
    return contexts, costs, instances, world.oracle


@eqx.filter_jit
def _draw(world: Benchmark, key: Key, times: Int[Array, " n"]) -> Any:
    environment = world.environment(purpose_key(key, ENVIRONMENT))
    rounds = jax.vmap(lambda t: world.round(purpose_key(key, STREAM, t), environment, t))(times)
    contexts = jax.vmap(lambda observation: world.context(environment, observation))(rounds.observation)
    return contexts, rounds.cost, rounds.instance


def _rows(name: str, given: Any, width: int | None) -> np.ndarray:
    """Return rows of finite numbers in float64; name the first row with another number."""
    table: Any = given
    if hasattr(given, "to_numpy"):
        table = given.to_numpy()
    try:
        array = np.array(table, np.float64)
    except (TypeError, ValueError):
        raise SettingsError(f"data set: {name}: expected numbers, got a {type(given).__name__} with others") from None
    if array.ndim < 2 or (width is not None and array.shape[1:] != (width,)):
        shape = "(n, p) or (n, d, p)" if width is None else f"(n, {width})"
        raise SettingsError(f"data set: {name}: expected shape {shape}, got {array.shape}")
    unusable = ~np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if unusable.any():
        raise SettingsError(
            f"data set: {name}: expected finite numbers, but row {int(np.argmax(unusable))} holds NaN or infinity"
            f"{'' if unusable.sum() == 1 else f', as do {int(unusable.sum()) - 1} more'}; drop these rows or fill them"
        )
    return array


def _stacked(oracle: Oracle, given: Any, count: int) -> Any:
    """Return instances with a leading axis of rows."""
    if isinstance(given, list | tuple) and not hasattr(given, "_fields"):
        if len(given) != count:
            raise SettingsError(f"data set: expected an instance for each of {count} rows, got {len(given)}")
        rows = [oracle.instance(instance) for instance in given]
        given = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *rows)
    return oracle.instances(given, count)


def _numbered(part: str, names: Any) -> list[str]:
    found = sorted((int(name.rpartition("_")[2]), name) for name in names if _is_numbered(part, name))
    if not found:
        raise SettingsError(f"data set: expected columns {part}_0, {part}_1, …, got {', '.join(names) or 'none'}")
    return [name for _, name in found]


def _is_numbered(part: str, name: str) -> bool:
    return name.startswith(f"{part}_") and name[len(part) + 1 :].isdigit()
