"""Directed graphs as edge lists: what lies on some path, who can be reached, how long the longest way is."""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from regretless.errors import SettingsError

Node = Hashable
Edge = tuple[Node, Node]


def between(edges: tuple[Edge, ...], source: Node, sink: Node) -> list[int]:
    """Indices of the edges that lie on some path from source to sink; refuses a graph without one, or with a cycle."""
    nodes = nodes_of(edges)
    for name, node in (("source", source), ("sink", sink)):
        if node not in nodes:
            raise SettingsError(f"shortest path: {name} {node} is not a node of any edge")
    if source == sink:
        raise SettingsError(f"shortest path: source and sink are the same node, {source}")
    _refuse_cycle(edges, nodes)
    after, before = _reach(edges, source), _reach([(head, tail) for tail, head in edges], sink)
    if sink not in after:
        raise SettingsError(f"shortest path: the sink {sink} cannot be reached from the source {source}")
    return [e for e, (tail, head) in enumerate(edges) if tail in after and head in before]


def nodes_of(edges: Sequence[Edge]) -> list[Node]:
    """Every node once, in the order of the edges."""
    return list(dict.fromkeys(node for edge in edges for node in edge))


def _reach(edges: Sequence[Edge], start: Node) -> set[Node]:
    following: dict[Any, list[Any]] = defaultdict(list)
    for tail, head in edges:
        following[tail].append(head)
    seen, queue = {start}, deque([start])
    while queue:
        for node in following[queue.popleft()]:
            if node not in seen:
                seen.add(node)
                queue.append(node)
    return seen


def _refuse_cycle(edges: Sequence[Edge], nodes: Iterable[Node]) -> None:
    left = set(nodes) - set(level_of(edges))
    if left:
        some = ", ".join(sorted(map(str, left))[:5])
        raise SettingsError(
            f"shortest path: the graph has a cycle: it goes through, or lies before, the nodes {some}; expected none"
        )


def level_of(edges: Sequence[Edge]) -> dict[Node, int]:
    """Longest distance of each node from the nodes without incoming edges; nodes on or behind a cycle are left out."""
    nodes = nodes_of(edges)
    waiting = dict.fromkeys(nodes, 0)
    following: dict[Any, list[Any]] = defaultdict(list)
    for tail, head in edges:
        waiting[head] += 1
        following[tail].append(head)
    level = {node: 0 for node in nodes if waiting[node] == 0}
    queue = deque(level)
    depth = dict.fromkeys(nodes, 0)
    while queue:
        node = queue.popleft()
        level[node] = depth[node]
        for head in following[node]:
            depth[head] = max(depth[head], depth[node] + 1)
            waiting[head] -= 1
            if waiting[head] == 0:
                queue.append(head)
    return level
