"""Assignment: match the rows of a square table with its columns, one to one, at the lowest sum of costs."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE, MaskedOracle
from regretless.types import SOLVED, Cost, Instance, Solution

FREE = -1
"""Marks a row or column without a partner."""


class Matching(NamedTuple):
    """A partial matching that is optimal for its rows, with the prices that prove it."""

    column_of: Int[Array, " n"]  # of each row, FREE if it has none
    row_of: Int[Array, " n"]  # of each column
    u: Float[Array, " n"]  # prices of rows
    v: Float[Array, " n"]  # prices of columns


class PathSearch(NamedTuple):
    """The search for the shortest augmenting path from one row."""

    row: Int[Array, ""]  # reached last
    length: Float[Array, ""]  # of the shortest path to it
    lengths: Float[Array, " n"]  # of the shortest paths to columns that are known so far
    via: Int[Array, " n"]  # the row before each column on that path
    rows: Bool[Array, " n"]  # reached
    columns: Bool[Array, " n"]  # reached
    sink: Int[Array, ""]  # the free column that ends the path, FREE until it is found


class AssignmentOracle(MaskedOracle):
    """``S``: the permutation matrices of size ``n``, row by row as 0/1 vectors of length ``n²``.

    Shortest augmenting paths (Jonker and Volgenant), exact, ``O(n³)``, ties to the lowest column. An instance is a
    mask of the pairs that are allowed in this round, booleans or exactly 0 and 1 (None: all of them).

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Examples
    --------
    >>> import jax.numpy as jnp, regretless as rg
    >>> rg.oracles.assignment(2).solve_one(jnp.array([1.0, 2.0, 3.0, 9.0])).w.tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    n: int = eqx.field(static=True)

    def __init__(self, n: int):
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise SettingsError(f"assignment: expected a positive number of rows, got {n!r}")
        self.n, self.dim = n, n * n

    @property
    def support(self) -> int:
        return self.n

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        table = cost.reshape(self.n, self.n)
        allowed = None if instance is None else jnp.asarray(instance, bool).reshape(self.n, self.n)
        if allowed is not None:  # one forbidden pair costs more than any two matchings differ by
            finite = jnp.where(allowed, table, 0.0)
            table = jnp.where(allowed, table, 1.0 + 2.0 * self.n * jnp.max(jnp.abs(finite)))
        w = jax.nn.one_hot(_match(table).column_of, self.n, dtype=cost.dtype)
        possible = True if allowed is None else jnp.all((w == 0) | allowed)
        return Solution(w.reshape(-1), jnp.where(possible, SOLVED, INFEASIBLE))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        table, checked = w.reshape(self.n, self.n), self._converted(instance)
        allowed = True if checked is None else jnp.asarray(checked, bool).reshape(self.n, self.n)
        once = jnp.all(jnp.sum(table, axis=0) == 1) & jnp.all(jnp.sum(table, axis=1) == 1)
        return once & jnp.all((table == 0) | ((table == 1) & allowed))


def _match(table: Float[Array, "n n"]) -> Matching:
    """Return the perfect matching of lowest cost: row after row is added along its shortest augmenting path."""
    n = len(table)
    free, zeros = jnp.full(n, FREE, jnp.int32), jnp.zeros(n, table.dtype)
    return jax.lax.fori_loop(0, n, lambda row, match: _add(table, match, row), Matching(free, free, zeros, zeros))


def _add(table: Float[Array, "n n"], match: Matching, first: Int[Array, ""]) -> Matching:
    """Add one row; each price changes by how much closer its row or column is than the free column."""
    search = _search(table, match, first)
    slack = search.length - search.lengths
    change = jnp.where(search.rows & (match.column_of != FREE), slack[match.column_of], 0.0)
    u = match.u + change.at[first].set(search.length)
    v = match.v - jnp.where(search.columns, slack, 0.0)
    column_of, row_of = _flip(match, search, first)
    return Matching(column_of, row_of, u, v)


def _search(table: Float[Array, "n n"], match: Matching, first: Int[Array, ""]) -> PathSearch:
    """Run Dijkstra's algorithm over reduced costs, from a row to the nearest free column."""
    n = len(table)

    def step(now: PathSearch) -> PathSearch:
        through = now.length + table[now.row] - match.u[now.row] - match.v
        nearer = ~now.columns & (through < now.lengths)
        lengths, via = jnp.where(nearer, through, now.lengths), jnp.where(nearer, now.row, now.via)
        column = jnp.argmin(jnp.where(now.columns, jnp.inf, lengths)).astype(jnp.int32)
        owner = match.row_of[column]
        return PathSearch(
            row=jnp.where(owner == FREE, now.row, owner),
            length=lengths[column],
            lengths=lengths,
            via=via,
            rows=now.rows.at[now.row].set(True),
            columns=now.columns.at[column].set(True),
            sink=jnp.where(owner == FREE, column, FREE),
        )

    nothing = jnp.zeros(n, bool)
    begin = PathSearch(
        row=jnp.asarray(first, jnp.int32),
        length=jnp.zeros((), table.dtype),
        lengths=jnp.full(n, jnp.inf, table.dtype),
        via=jnp.full(n, FREE, jnp.int32),
        rows=nothing,
        columns=nothing,
        sink=jnp.asarray(FREE, jnp.int32),
    )
    return jax.lax.while_loop(lambda now: now.sink == FREE, step, begin)


def _flip(match: Matching, search: PathSearch, first: Int[Array, ""]) -> tuple[Int[Array, " n"], Int[Array, " n"]]:
    """Exchange every pair on the path, from the free column back to the first row."""

    def step(now: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        column, column_of, row_of = now
        row = search.via[column]
        return column_of[row], column_of.at[row].set(column), row_of.at[column].set(row)

    column, column_of, row_of = step((search.sink, match.column_of, match.row_of))
    _, column_of, row_of = jax.lax.while_loop(lambda now: now[0] != FREE, step, (column, column_of, row_of))
    return column_of, row_of
