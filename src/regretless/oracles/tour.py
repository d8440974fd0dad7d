"""Travelling salesman: the cheapest round trip through all nodes of a complete, undirected graph."""

import functools
import itertools
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE, MaskedOracle, check_integer
from regretless.types import SOLVED, Cost, Instance, Solution

MAX_NODES = 16
"""Half of the subsets of all nodes but one are visited: 28,000 additions with 12 nodes, 860,000 with 16."""


class TourOracle(MaskedOracle):
    """``S``: the round trips through ``nodes`` nodes, as 0/1 vectors over the edges ``(i, j)``, ``i < j``, row by row.

    Exact by dynamic programming over subsets (Held and Karp, 1962), from node 0 up to half of the others; both halves
    of a trip meet in one node. Costs may be negative; ties go to the first trip in a fixed order. An instance is a
    mask of the edges that are open in this round, booleans or exactly 0 and 1 (None: all of them).

    Parameters
    ----------
    nodes : int
        Number of nodes, from 3 to 16; twice the time and memory for each further node.

    Examples
    --------
    >>> import jax.numpy as jnp, regretless as rg
    >>> square = rg.oracles.travelling_salesman(4)
    >>> square.names
    ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    >>> square.solve_one(jnp.array([1.0, 9.0, 1.0, 1.0, 9.0, 1.0])).w.tolist()
    [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    """

    nodes: int = eqx.field(static=True)

    def __init__(self, nodes: int):
        if not 3 <= check_integer("travelling salesman: nodes", nodes) <= MAX_NODES:
            raise SettingsError(
                f"travelling salesman: expected from 3 to {MAX_NODES} nodes, got {nodes}; for more, use "
                "rg.oracles.external with a solver of your own"
            )
        self.nodes, self.dim = int(nodes), int(nodes) * (int(nodes) - 1) // 2

    @property
    def support(self) -> int:
        return self.nodes

    @property
    def names(self) -> tuple[tuple[int, int], ...]:
        return tuple(itertools.combinations(range(self.nodes), 2))

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        table = _subset_tables(self.nodes)
        cost = cost if instance is None else jnp.where(jnp.asarray(instance, bool), cost, jnp.inf)
        lengths = [cost[table.first]]  # of the shortest paths from node 0, subset size by subset size
        for level in table.levels:
            lengths.append(jnp.min(lengths[-1][level.before] + cost[level.edge], axis=1))
        trips = lengths[-1][table.half] + lengths[table.other_level][table.other_half]
        best = jnp.argmin(trips)
        edges: list[Array] = []
        for state, depth in ((table.half, len(table.levels)), (table.other_half, table.other_level)):
            edges += _walk_back(table, cost, lengths[: depth + 1], jnp.asarray(state)[best])
        used = jnp.any(jnp.stack(edges)[:, None] == jnp.arange(self.dim), axis=0)
        possible = instance is None or jnp.isfinite(trips[best])
        return Solution(used.astype(cost.dtype), jnp.where(possible, SOLVED, INFEASIBLE))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        checked = self._converted(instance)
        is_open = True if checked is None else jnp.asarray(checked, bool)
        rows, columns = np.triu_indices(self.nodes, 1)
        table = jnp.zeros((self.nodes, self.nodes)).at[rows, columns].set(w)
        table = table + table.T
        reached = table + jnp.eye(self.nodes)
        for _ in range(int(np.ceil(np.log2(self.nodes)))):
            reached = jnp.minimum(reached @ reached, 1.0)
        binary = jnp.all((w == 0) | ((w == 1) & is_open))
        return binary & jnp.all(jnp.sum(table, axis=0) == 2) & jnp.all(reached > 0)


class _PathsOfOneSize(NamedTuple):
    """Paths from node 0 through the subsets of one size to one node of each; a state is a subset and that node."""

    before: np.ndarray  # [states, size - 1] the states of the level below that a path may come from
    edge: np.ndarray  # [states, size - 1] the edges from there


class _SubsetTables(NamedTuple):
    """All levels, and the pairs of states of two halves that meet: they share one node and hold all others once."""

    first: np.ndarray  # edges from node 0
    levels: tuple[_PathsOfOneSize, ...]
    half: np.ndarray  # states of the last level
    other_half: np.ndarray  # states of level ``other_level``
    other_level: int


def _walk_back(table: _SubsetTables, cost: Cost, lengths: list[Array], state: Array) -> list[Array]:
    """Return the edges of the shortest path to a state of the last level in ``lengths``."""
    edges = []
    for level, below in reversed(list(zip(table.levels, lengths[:-1], strict=False))):
        before, edge = jnp.asarray(level.before)[state], jnp.asarray(level.edge)[state]
        step = jnp.argmin(below[before] + cost[edge])
        edges.append(edge[step])
        state = before[step]
    return [*edges, jnp.asarray(table.first)[state]]


@functools.lru_cache(maxsize=16)
def _subset_tables(nodes: int) -> _SubsetTables:
    others = nodes - 1
    number = np.zeros((nodes, nodes), np.int32)
    number[np.triu_indices(nodes, 1)] = np.arange(nodes * others // 2)
    number += number.T
    deepest = others // 2 + 1
    # Subsets of the nodes but 0 are bits of an integer, node i is bit i - 1; states are rows of (subset, node).
    states = [{(1 << node, node): node for node in range(others)}]
    levels = []
    for size in range(2, deepest + 1):
        rows = [
            (sum(1 << j for j in subset), i) for subset in itertools.combinations(range(others), size) for i in subset
        ]
        before, edge = np.empty((2, len(rows), size - 1), np.int32)
        for row, (subset, i) in enumerate(rows):
            members = [j for j in range(others) if j != i and subset >> j & 1]
            before[row] = [states[-1][subset ^ (1 << i), j] for j in members]
            edge[row] = number[i + 1, [j + 1 for j in members]]
        levels.append(_PathsOfOneSize(before, edge))
        states.append({state: row for row, state in enumerate(rows)})
    other_level = others - deepest
    pairs = [
        (row, other)
        for (subset, i), row in states[-1].items()
        if (other := states[other_level][((1 << others) - 1) ^ subset | (1 << i), i]) >= row
        or other_level < deepest - 1
    ]
    half, other_half = np.array(pairs, np.int32).T
    return _SubsetTables(number[0, 1:], tuple(levels), half, other_half, other_level)
