"""Assignment: match the rows of a square table with its columns, one to one, at the lowest sum of costs."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE, Constraints, MaskedOracle
from regretless.types import SOLVED, Cost, Instance, Solution

FREE = -1
"""Marks a column without a row."""


class PathSearch(NamedTuple):
    """The search for the shortest augmenting path to a free column; column ``n`` stands for the row that is added."""

    column: Int[Array, ""]  # reached last
    lengths: Float[Array, " n+1"]  # of the shortest paths to columns that are known so far
    via: Int[Array, " n+1"]  # the column before each column on that path
    reached: Bool[Array, " n+1"]  # the column whose path was continued


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
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise SettingsError(f"assignment: expected a positive number of rows, an integer, got {n!r}")
        self.n, self.dim = int(n), int(n) ** 2

    @property
    def support(self) -> int:
        return self.n

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        table = cost.reshape(self.n, self.n)
        allowed = None if instance is None else jnp.asarray(instance, bool).reshape(self.n, self.n)
        if allowed is not None:  # one forbidden pair costs more than any two matchings differ by
            finite = jnp.where(allowed, table, 0.0)
            table = jnp.where(allowed, table, 1.0 + 2.0 * self.n * jnp.max(jnp.abs(finite)))
        w = jax.nn.one_hot(_match(table), self.n, dtype=cost.dtype).T
        possible = True if allowed is None else jnp.all((w == 0) | allowed)
        return Solution(w.reshape(-1), jnp.where(possible, SOLVED, INFEASIBLE))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        table, checked = w.reshape(self.n, self.n), self._converted(instance)
        allowed = True if checked is None else jnp.asarray(checked, bool).reshape(self.n, self.n)
        once = jnp.all(jnp.sum(table, axis=0) == 1) & jnp.all(jnp.sum(table, axis=1) == 1)
        return once & jnp.all((table == 0) | ((table == 1) & allowed))

    def constraints(self, instance: Instance) -> Constraints:
        one, ones = np.eye(self.n), np.ones((1, self.n))
        return self._within(np.concatenate([np.kron(one, ones), np.kron(ones, one)]), instance)


def _match(table: Float[Array, "n n"]) -> Int[Array, " n"]:
    """Return the row of each column in the matching of lowest cost.

    Row after row is added along its shortest augmenting path. The prices ``u`` of rows and ``v`` of columns prove that
    the matching so far is optimal; each changes by how much closer its row or column is than the free column.
    """
    n = len(table)
    table = jnp.pad(table, ((0, 0), (0, 1)), constant_values=jnp.inf)

    def add(row: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        row_of, u, v = state
        row_of = row_of.at[n].set(row)
        search = _search(table, row_of, u, v)
        slack = jnp.where(search.reached, search.lengths[search.column] - search.lengths, 0.0)
        u = u.at[jnp.where(search.reached, row_of, n)].add(slack, mode="drop")
        return _flip(row_of, search), u, v - slack

    zeros = jnp.zeros(n + 1, table.dtype)
    row_of, _, _ = jax.lax.fori_loop(0, n, add, (jnp.full(n + 1, FREE, jnp.int32), zeros[:n], zeros))
    return row_of[:n]


def _search(table: Array, row_of: Array, u: Array, v: Array) -> PathSearch:
    """Run Dijkstra's algorithm over reduced costs, from the last column's row to the nearest free column."""
    n = len(table)

    def step(now: PathSearch) -> PathSearch:
        row, reached = row_of[now.column], now.reached.at[now.column].set(True)
        through = now.lengths[now.column] + table[row] - u[row] - v
        nearer = ~reached & (through < now.lengths)
        lengths, via = jnp.where(nearer, through, now.lengths), jnp.where(nearer, now.column, now.via)
        return PathSearch(jnp.argmin(jnp.where(reached, jnp.inf, lengths)).astype(jnp.int32), lengths, via, reached)

    far = jnp.full(n + 1, jnp.finfo(table.dtype).max).at[n].set(0.0)  # finite: no column is reached twice, even for NaN
    begin = PathSearch(jnp.asarray(n, jnp.int32), far, jnp.full(n + 1, n, jnp.int32), jnp.zeros(n + 1, bool))
    return jax.lax.while_loop(lambda now: row_of[now.column] != FREE, step, begin)


def _flip(row_of: Int[Array, " n+1"], search: PathSearch) -> Int[Array, " n+1"]:
    """Give every column on the path the row of the column before it."""

    def step(now: tuple[Array, Array]) -> tuple[Array, Array]:
        column, row_of = now
        before = search.via[column]
        return before, row_of.at[column].set(row_of[before])

    return jax.lax.while_loop(lambda now: now[0] != len(row_of) - 1, step, (search.column, row_of))[1]
