import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import oracles
from regretless.errors import OracleError
from regretless.oracles import dag


@st.composite
def graphs(draw):
    """Edges that only go upwards in a random numbering, over a path that keeps the sink within reach."""
    count = draw(st.integers(2, 7))
    extra = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=12))
    upward = [(min(a, b), max(a, b)) for a, b in extra if a != b]
    edges = draw(st.permutations([*zip(range(count - 1), range(1, count), strict=True), *upward]))
    names = draw(st.permutations(range(10, 10 + count)))
    return [(names[a], names[b]) for a, b in edges], names[0], names[-1]


def bellman_ford(edges, source, sink, cost):
    distance = {source: 0.0}
    for _ in edges:
        for (tail, head), c in zip(edges, cost, strict=True):
            if tail in distance:
                distance[head] = min(distance.get(head, np.inf), distance[tail] + c)
    return distance[sink]


@given(graphs(), st.integers(0, 2**31 - 1))
@settings(max_examples=30)
def test_agrees_with_bellman_ford_on_any_acyclic_graph(graph, seed):
    edges, source, sink = graph
    oracle = oracles.shortest_path(edges, source, sink)
    cost = np.random.default_rng(seed).normal(size=len(edges)).astype(np.float32)
    solution = oracle.solve_one(jnp.asarray(cost))
    assert oracle.feasible(solution.w)
    assert float(cost @ np.asarray(solution.w)) == pytest.approx(bellman_ford(edges, source, sink, cost), abs=1e-5)


def test_grid_has_the_paper_size_and_orientation():
    edges = oracles.grid_edges(5, 5)
    assert len(edges) == 40
    assert edges[:3] == [(0, 1), (0, 5), (1, 2)]


def test_closed_edges_are_avoided_and_no_way_through_is_infeasible():
    oracle = oracles.shortest_path(oracles.grid_edges(2, 2))
    cost = jnp.array([0.0, 5.0, 0.0, 5.0])
    is_open = jnp.array([False, True, True, True])
    solution = oracle.solve_one(cost, is_open)
    assert solution.w.tolist() == [0, 1, 0, 1]
    assert solution.status == 0
    assert not oracle.feasible(oracle.solve_one(cost).w, is_open)
    assert oracle.solve_one(cost, jnp.array([False, False, True, True])).status != 0


@pytest.mark.parametrize(
    ("edges", "ends", "message"),
    [
        ([(0, 1), (1, 2), (2, 1), (2, 3)], (0, 3), "has a cycle"),
        ([(0, 1), (2, 3)], (0, 3), "sink 3 cannot be reached from the source 0"),
        ([(0, 1)], (0, 7), "sink 7 is not a node"),
        ([(0, 1)], (1, 1), "same node"),
        ([], (0, 1), "at least one edge"),
        ([(0, 1, 2.5)], (0, 1), r"expected pairs \(from, to\), got \[\(0, 1, 2.5\)\]"),
        (3, (0, 1), r"expected pairs \(from, to\), got 3"),
    ],
)
def test_refuses_a_graph_that_cannot_be_used(edges, ends, message):
    with pytest.raises(ValueError, match=message):
        oracles.shortest_path(edges, *ends)


@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("listed", [True, False])
def test_a_closed_edge_is_closed_whatever_the_mask_is_made_of(kind, listed, monkeypatch):
    """Integers once reopened every edge: ``~1`` is −2, which counts as true."""
    monkeypatch.setattr(dag, "MAX_LISTED_PATHS", 256 if listed else 0)
    dag._paths.cache_clear()
    oracle = oracles.shortest_path([("a", "b"), ("b", "c"), ("a", "c")])
    is_open = np.array([1, 1, 0], kind)
    cost = np.array([5.0, 5.0, 1.0])
    assert oracle.solve_one(cost, is_open).w.tolist() == [1, 1, 0]
    assert oracle.answer([cost], [is_open]).w.tolist() == [[1, 1, 0]]
    assert jax.jit(oracle.solve_one)(cost, is_open).w.tolist() == [1, 1, 0]
    assert oracle.contained([[0, 0, 1], [1, 1, 0]], np.stack([is_open] * 2)).tolist() == [False, True]
    with pytest.raises(OracleError, match="row 0 of a batch of 1: infeasible"):
        oracle.answer([cost], [np.array([1, 0, 0], kind)])
    dag._paths.cache_clear()


def test_nodes_that_are_not_data_have_a_fingerprint_too():
    a, b = frozenset([1]), frozenset([2])
    assert oracles.shortest_path([(a, b), (a, b)]).fingerprint()["edges"] == [[[0], [1]], [[0], [1]]]
