"""Paths over the nodes of maps against scipy's Dijkstra."""

import itertools

import jax
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from regretless import oracles, testing
from regretless.errors import SettingsError

ORACLE = oracles.node_grid(7, 5)


def lowest_cost(cost, rows, columns, neighbours):
    nodes = list(itertools.product(range(rows), range(columns)))
    distance = {8: lambda a, b: max(a, b), 4: lambda a, b: a + b}[neighbours]
    pairs = [
        (i, j) for i, a in enumerate(nodes) for j, b in enumerate(nodes) if distance(*np.abs(np.subtract(a, b))) == 1
    ]
    tails, heads = np.array(pairs).T
    graph = csr_matrix((cost[heads] + 1e-12, (tails, heads)))  # zeros would be no edges
    return dijkstra(graph, indices=0)[-1] + cost[0]


@pytest.mark.parametrize(("oracle", "neighbours"), [(ORACLE, 8), (oracles.node_grid(4, 6, neighbours=4), 4)])
def test_finds_the_lowest_cost(oracle, neighbours):
    rng = np.random.default_rng(0)
    costs = rng.choice([0.8, 1.2, 5.3, 7.7, 9.2], size=(40, oracle.dim))
    costs[::2] = rng.uniform(size=(20, oracle.dim)) ** 4 * 1e5
    costs[1::8] = np.round(costs[1::8] / 10)  # many zeros
    best = [lowest_cost(cost, oracle.rows, oracle.columns, neighbours) for cost in costs]
    w = oracle.answer(costs).w
    np.testing.assert_allclose(np.sum(costs * w, axis=1), best, rtol=1e-9, atol=1e-8)
    assert oracle.contained(w).all()


def test_a_wall_is_walked_around_or_closes_the_map():
    wall = np.ones((2, 7, 5), bool)
    wall[0, 3, :4] = wall[1, 3, :] = False
    with jax.enable_x64(True):
        solution = ORACLE.solve(np.ones((2, 35)), wall.reshape(2, 35))
    assert solution.status.tolist() == [0, 1]
    path = np.asarray(solution.w[0]).reshape(7, 5)
    assert path[3].tolist() == [0, 0, 0, 0, 1]
    assert path.sum() == 8
    assert ORACLE.contained(solution.w[:1], wall.reshape(2, 35)[:1]).all()
    assert not ORACLE.contained(solution.w[:1], wall.reshape(2, 35)[1:]).any()


def test_costs_below_zero_count_as_zero():
    costs = np.random.default_rng(1).normal(size=(8, 35))
    assert np.array_equal(ORACLE.answer(costs).w, ORACLE.answer(np.maximum(costs, 0)).w)
    assert ORACLE.answer(np.full((1, 35), -1.0)).w.sum() == 7, "the fewest steps among ties"


def test_marks_that_do_not_connect_the_ends_are_infeasible():
    apart = np.zeros((7, 5))
    apart[0, 0] = apart[-1, -1] = 1
    assert not ORACLE.contained(apart.reshape(1, -1)).any()
    assert ORACLE.contained(np.ones((1, 35))).all()


def test_keeps_the_contract():
    testing.check_oracle(ORACLE)


@pytest.mark.parametrize(("rows", "columns", "neighbours"), [(1, 1, 8), (2.0, 3, 8), (2, 3, 6)])
def test_refuses_what_is_no_grid(rows, columns, neighbours):
    with pytest.raises(SettingsError, match="node grid: "):
        oracles.node_grid(rows, columns, neighbours)
