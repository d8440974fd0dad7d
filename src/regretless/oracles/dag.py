"""Shortest path on a directed acyclic graph given as an edge list."""

import functools
import graphlib
import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError, short_repr
from regretless.oracles.base import INFEASIBLE, Constraints, MaskedOracle, as_data, check_integer
from regretless.types import SOLVED, Cost, Instance, Solution

Node = Hashable
Edge = tuple[Node, Node]

MAX_LISTED_PATHS = 256
"""A graph with at most this many paths is solved by comparing all of them: one product and one argmin."""


def grid_edges(rows: int, columns: int) -> list[tuple[int, int]]:
    """Return the edges of a grid whose steps go right or down, node by node, right first.

    Node ``(r, c)`` has the number ``r · columns + c``.

    Parameters
    ----------
    rows, columns : int
        Number of nodes from top to bottom and from left to right.

    Examples
    --------
    >>> grid_edges(2, 2)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    rows, columns = check_integer("grid: rows", rows), check_integer("grid: columns", columns)
    if rows < 1 or columns < 1 or rows * columns < 2:
        raise SettingsError(f"grid: expected at least two nodes, got {rows} × {columns}")
    edges = []
    for node in range(rows * columns):
        edges += [(node, node + 1)] if (node + 1) % columns else []
        edges += [(node, node + columns)] if node + columns < rows * columns else []
    return edges


class ShortestPathOracle(MaskedOracle):
    """``S``: the paths from ``source`` to ``sink``, as 0/1 vectors over the edges; costs may be negative.

    A small graph compares its paths. A larger one is solved by dynamic programming level by level (a node's level is
    its longest distance from the source in edges) and a walk back over the chosen edges, ties to the edge listed
    first. An instance is a mask of the edges that are open in this round, booleans or exactly 0 and 1 (None: all of
    them).

    Parameters
    ----------
    edges : sequence of (node, node)
        Directed edges without a cycle; nodes are numbers or names.
    source, sink : node, optional
        Where paths begin and end; by default where the first edge begins and the last edge ends.
    """

    edges: tuple[Edge, ...] = eqx.field(static=True)
    source: Node = eqx.field(static=True)
    sink: Node = eqx.field(static=True)

    def __init__(self, edges: Sequence[Edge], source: Node = None, sink: Node = None):
        try:
            self.edges = tuple((tail, head) for tail, head in edges)
        except (TypeError, ValueError):
            raise SettingsError(f"shortest path: expected pairs (from, to), got {short_repr(edges)}") from None
        if not self.edges:
            raise SettingsError("shortest path: expected at least one edge, got none")
        self.source = self.edges[0][0] if source is None else source
        self.sink = self.edges[-1][1] if sink is None else sink
        self.dim = len(self.edges)
        _tables(self.edges, self.source, self.sink)  # refuses a graph with a cycle or without a path

    @property
    def support(self) -> int:
        return len(_tables(self.edges, self.source, self.sink).edge)

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        paths = _paths(self.edges, self.source, self.sink)
        is_open = None if instance is None else jnp.asarray(instance, bool)
        if paths is None:
            w, length = self._by_levels(cost if is_open is None else jnp.where(is_open, cost, jnp.inf))
        else:
            w, length = self._by_comparison(cost, is_open, paths)
        reached = jnp.isfinite(length) | (is_open is None)
        return Solution(w, jnp.where(reached, SOLVED, INFEASIBLE))

    def _by_comparison(self, cost: Cost, is_open: Any, paths: np.ndarray) -> tuple[Cost, Float[Array, ""]]:
        """Compare all path lengths at once; paths over a closed edge are infinitely long."""
        rows = jnp.asarray(paths, cost.dtype)
        lengths = jnp.matmul(rows, cost, precision="highest")
        if is_open is not None:
            lengths = jnp.where(rows @ (~is_open).astype(cost.dtype) > 0, jnp.inf, lengths)
        best = jnp.argmin(lengths)
        return rows[best], lengths[best]

    def _by_levels(self, cost: Cost) -> tuple[Cost, Float[Array, ""]]:
        """Compute distances level by level, then walk back from the sink over the best incoming edges."""
        table = _tables(self.edges, self.source, self.sink)
        cost = jnp.append(cost, jnp.inf)  # what padding costs
        levels, width, _ = table.edge.shape

        def forward(distance: Array, level: Any) -> tuple[Array, Array]:
            start, edge, tail = level
            through = distance[tail] + cost[edge]
            best = edge[jnp.arange(width), jnp.argmin(through, axis=1)]
            return jax.lax.dynamic_update_slice(distance, jnp.min(through, axis=1), (start,)), best

        def backward(node: Array, _: None) -> tuple[Array, Array]:
            edge = best[node]
            return jnp.asarray(table.tail_of)[edge], edge

        starts = np.arange(1, levels + 1, dtype=np.int32) * width
        distance = jnp.full((levels + 1) * width, jnp.inf, cost.dtype).at[0].set(0.0)
        distance, chosen = jax.lax.scan(forward, distance, (starts, table.edge, table.tail_of[table.edge]))
        best = jnp.append(jnp.full(width, self.dim, jnp.int32), chosen)  # padding leads to the source and stays there
        _, path = jax.lax.scan(backward, jnp.asarray(table.sink), None, length=levels)
        return jnp.zeros(self.dim + 1, cost.dtype).at[path].set(1.0)[: self.dim], distance[table.sink]

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        number = {node: i for i, node in enumerate(_nodes(self.edges))}
        tail, head = (np.array([number[edge[end]] for edge in self.edges]) for end in (0, 1))
        balance = jnp.zeros(len(number)).at[tail].add(w).at[head].add(-w)
        expected = jnp.zeros(len(number)).at[number[self.source]].add(1.0).at[number[self.sink]].add(-1.0)
        checked = self._converted(instance)
        is_open = True if checked is None else jnp.asarray(checked, bool)
        return jnp.all((w == 0) | ((w == 1) & is_open)) & jnp.all(balance == expected)

    def constraints(self, instance: Instance) -> Constraints:
        nodes = _nodes(self.edges)
        balance = [[(tail == node) - (head == node) for tail, head in self.edges] for node in nodes]
        return self._within(np.array(balance, float), instance)

    @property
    def names(self) -> tuple[Hashable, ...]:
        return self.edges

    def fingerprint(self) -> dict[str, Any]:
        """Return the edges by the names of their nodes; a node that is not data has its number among all nodes."""
        number = {node: i for i, node in enumerate(_nodes(self.edges))}
        names = {node: [number[node]] if as_data(node) is None else as_data(node) for node in number}
        edges = [[names[tail], names[head]] for tail, head in self.edges]
        ends = {"source": names[self.source], "sink": names[self.sink]}
        return {"kind": "ShortestPath", "dim": self.dim, "edges": edges, **ends}


@functools.lru_cache(maxsize=64)
def _paths(edges: tuple[Edge, ...], source: Node, sink: Node) -> np.ndarray | None:
    """Return all paths as 0/1 rows in the order of their edges, or None if there are more than MAX_LISTED_PATHS."""
    following: dict[Any, list[Any]] = defaultdict(list)
    for e in _edges_between(edges, source, sink):
        following[edges[e][0]].append(e)
    complete: list[list[int]] = []
    partial: list[list[int]] = [[e] for e in reversed(following[source])]
    while partial:
        path = partial.pop()
        node = edges[path[-1]][1]
        if node == sink:
            complete.append(path)
        partial += [[*path, e] for e in reversed(following[node])]
        if len(complete) + len(partial) > MAX_LISTED_PATHS:
            return None
    rows = np.zeros((len(complete), len(edges)))
    for row, path in zip(rows, complete, strict=True):
        row[path] = 1.0
    return rows


class _LevelTables(NamedTuple):
    """The graph level by level, padded: node ``i`` of level ``l`` has the number ``l · width + i``, the source 0."""

    edge: np.ndarray  # [levels, width, in-degree] incoming edges; d for padding
    tail_of: np.ndarray  # [d + 1] number of the node that each edge comes from, the source for padding
    sink: int  # number of the sink


@functools.lru_cache(maxsize=64)
def _tables(edges: tuple[Edge, ...], source: Node, sink: Node) -> _LevelTables:
    useful = _edges_between(edges, source, sink)
    level = _levels([edges[e] for e in useful])
    members: dict[int, list[Node]] = defaultdict(list)
    for node in level:
        members[level[node]].append(node)
    width = max(map(len, members.values()))
    number = {node: depth * width + i for depth, nodes in members.items() for i, node in enumerate(nodes)}
    tail_of = np.zeros(len(edges) + 1, np.int32)
    incoming: list[list[int]] = [[] for _ in range((level[sink] + 1) * width)]
    for e in useful:
        tail, head = edges[e]
        tail_of[e] = number[tail]
        incoming[number[head]].append(e)
    padded = itertools.zip_longest(*incoming, fillvalue=len(edges))
    edge = np.array([*padded], np.int32).T.reshape(level[sink] + 1, width, -1)
    return _LevelTables(edge[1:], tail_of, number[sink])


def _edges_between(edges: tuple[Edge, ...], source: Node, sink: Node) -> list[int]:
    """Return the edges that lie on some path from source to sink; refuse a graph without one, or with a cycle."""
    nodes = _nodes(edges)
    for name, node in (("source", source), ("sink", sink)):
        if node not in nodes:
            raise SettingsError(f"shortest path: {name} {node} is not a node of any edge")
    if source == sink:
        raise SettingsError(f"shortest path: source and sink are the same node, {source}")
    level = _levels(edges)
    ordered = sorted(edges, key=lambda edge: level[edge[0]])
    after, before = {source}, {sink}
    for tail, head in ordered:
        after |= {head} if tail in after else set()
    for tail, head in reversed(ordered):
        before |= {tail} if head in before else set()
    if sink not in after:
        raise SettingsError(f"shortest path: the sink {sink} cannot be reached from the source {source}")
    return [e for e, (tail, head) in enumerate(edges) if tail in after and head in before]


def _nodes(edges: Sequence[Edge]) -> list[Node]:
    """Return every node once, in the order of the edges."""
    return list(dict.fromkeys(node for edge in edges for node in edge))


def _levels(edges: Sequence[Edge]) -> dict[Node, int]:
    """Return each node's longest distance from the nodes without incoming edges; refuse a cycle."""
    tails: dict[Node, list[Node]] = {node: [] for node in _nodes(edges)}
    for tail, head in edges:
        tails[head].append(tail)
    level: dict[Node, int] = {}
    try:
        for node in graphlib.TopologicalSorter(tails).static_order():
            level[node] = max((level[tail] + 1 for tail in tails[node]), default=0)
    except graphlib.CycleError as error:
        cycle = " → ".join(map(str, error.args[1][:6]))
        raise SettingsError(f"shortest path: the graph has a cycle, {cycle}; expected none") from None
    return level
