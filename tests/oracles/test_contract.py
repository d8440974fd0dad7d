"""What every oracle must do: solve exactly (against all vertices), feasibly, batched as singly, the same way on ties,
without a callback, and with a fingerprint of its feasible set."""

import functools
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import oracles, testing
from regretless.errors import OracleError, SettingsError
from regretless.host_calls import host_jit
from toys import all_schedules

BRAIDED = [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3), (1, 3), (3, 4), (2, 4), (2, 4)]  # skips levels, a double edge


def cheapest_two(cost):
    w = np.zeros(4)
    w[np.argsort(cost, kind="stable")[:2]] = 1
    return w


PLANT = oracles.Plant(  # two machines that cannot take every choice of start times
    slot_minutes=180,
    capacities=((3.0, 2.0), (2.0, 2.0)),
    tasks=(
        oracles.PlantTask(3, 0, 6, 4.0, (2.0, 1.0)),
        oracles.PlantTask(2, 1, 7, 2.0, (2.0, 2.0)),
        oracles.PlantTask(4, 2, 8, 1.0, (1.0, 1.0)),
        oracles.PlantTask(1, 0, 8, 3.0, (2.0, 1.0)),
    ),
)
ROOMY = PLANT._replace(capacities=((9.0, 9.0),))

CASES = {
    "top_k": oracles.top_k(6, 2),
    "top_k_all": oracles.top_k(3, 3),
    "top_k_many": oracles.top_k(70, 1),
    "grid": oracles.shortest_path(oracles.grid_edges(3, 3)),
    "deep_grid": oracles.shortest_path(oracles.grid_edges(2, 20)),
    "braided": oracles.shortest_path(BRAIDED),
    "assignment": oracles.assignment(4),
    "knapsack": oracles.knapsack([[3, 5, 2, 4, 1], [1.5, 1, 0, 2.25, 2]], [8, 4]),
    "travelling_salesman": oracles.travelling_salesman(5),
    "pricing": oracles.pricing(3, 3, 1, 1),
    "pricing_no_budget": oracles.pricing(2, 4, 2, 0),
    "pricing_all_promotions": oracles.pricing(2, 2, 2, 2),
    "milp": oracles.milp(A_ub=[[3, 5, 2, 4, 1]], b_ub=[8], A_eq=[[1, 1, 0, 0, 1]], b_eq=[1], integrality=1),
    "scheduling": oracles.scheduling(PLANT),
    "scheduling_roomy": oracles.scheduling(ROOMY),
    "external": oracles.external(cheapest_two, 4, contains=lambda w: w.sum() == 2 and set(np.unique(w)) <= {0.0, 1.0}),
}


@functools.cache
def vertices(oracle) -> np.ndarray:
    """All decisions by brute force: unit vectors for large top-k, paths and schedules listed, else feasible 0/1
    vectors.
    """
    if isinstance(oracle, oracles.shortest_path):
        return np.array(list(walks(oracle.edges, oracle.source, oracle.sink)))
    if isinstance(oracle, oracles.scheduling):
        return np.unique(list(all_schedules(oracle.plant)), axis=0)
    if oracle.dim > 16:
        return np.eye(oracle.dim)
    candidates = np.array(list(itertools.product([0.0, 1.0], repeat=oracle.dim)))
    return candidates[oracle.contained(candidates)]


def walks(edges, node, sink, taken=()):
    if node == sink:
        yield np.isin(np.arange(len(edges)), taken).astype(float)
    for index, (tail, head) in enumerate(edges):
        if tail == node:
            yield from walks(edges, head, sink, (*taken, index))


@pytest.mark.parametrize("name", CASES)
def test_keeps_the_contract(name):
    testing.check_oracle(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_is_exact_and_feasible(name):
    oracle = CASES[name]
    everything = vertices(oracle)
    assert len(everything) >= 1
    costs = np.asarray(jax.random.normal(jax.random.key(0), (200, oracle.dim)))
    solution = oracle.solve(jnp.asarray(costs))
    assert np.all(np.asarray(solution.status) == 0)
    assert np.all(oracle.contained(solution.w))
    np.testing.assert_allclose(
        np.sum(costs * np.asarray(solution.w), axis=1), np.min(costs @ everything.T, axis=1), rtol=1e-5, atol=1e-5
    )
    assert int(np.max(np.sum(np.asarray(solution.w) != 0, axis=1))) <= oracle.support


@pytest.mark.parametrize("name", CASES)
@given(numbers=st.lists(st.integers(-2, 2), min_size=80, max_size=80))
@settings(max_examples=20)
def test_is_exact_and_repeatable_on_ties(name, numbers):
    oracle = CASES[name]
    cost = np.array(numbers[: oracle.dim], np.float32)
    first = np.asarray(oracle.solve_one(jnp.asarray(cost)).w)
    batch = np.asarray(oracle.solve(jnp.asarray(np.stack([-cost, cost, cost]))).w)
    assert np.array_equal(first, batch[1])
    assert np.array_equal(first, batch[2])
    assert cost @ first == np.min(vertices(oracle) @ cost)


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_numpy_in_double_precision(name):
    oracle = CASES[name]
    costs = np.random.default_rng(3).normal(size=(5, oracle.dim))
    solution = oracle.answer(costs)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(solution))
    assert solution.w.dtype == np.float64
    assert np.array_equal(solution.w, oracle.solve(jnp.asarray(costs)).w)
    assert solution.w.flags.writeable
    assert oracle.contained(solution.w).tolist() == [True] * 5
    assert oracle.answer(np.zeros((0, oracle.dim))).w.shape == (0, oracle.dim)


@pytest.mark.parametrize("name", CASES)
def test_costs_that_are_no_numbers_are_refused(name):
    oracle = CASES[name]
    costs = np.ones((3, oracle.dim))
    costs[1, 0] = np.nan
    with pytest.raises(OracleError, match="row 1 of a batch of 3: its costs are not finite numbers"):
        oracle.answer(costs)
    for wrong, message in (
        (np.ones(oracle.dim), "costs: expected rows of"),
        (np.ones((1, oracle.dim + 1)), "costs: expected rows of"),
        (np.full((1, oracle.dim), "1"), "costs: expected numbers, got text"),
        (np.ones((1, oracle.dim)) * 1j, "got complex numbers"),
        (np.ma.ones((1, oracle.dim)), "got a masked array"),
    ):
        with pytest.raises(SettingsError, match=message):
            oracle.answer(wrong)


@pytest.mark.parametrize("name", CASES)
def test_jit_and_vmap_change_nothing_or_are_refused(name):
    """Pure JAX runs inside a program and calls nothing outside of it; one program cannot hold a solver on the host."""
    oracle = CASES[name]
    costs = jax.random.normal(jax.random.key(1), (3, 4, oracle.dim))
    program = jax.jit(jax.vmap(lambda rows: oracle.solve(rows).w))
    plain = np.stack([np.asarray(oracle.solve(row).w) for row in costs])
    if oracle.on_host:
        with pytest.raises(OracleError, match="cannot run inside a program that JAX compiles as one"):
            program(costs)
        many = jax.vmap(lambda rows: oracle.solve(rows).w)
        assert np.array_equal(plain, many(costs))
        assert np.array_equal(plain, host_jit(many, statics=0)(oracle, costs))
        return
    assert np.array_equal(plain, program(costs))
    assert "callback" not in str(jax.make_jaxpr(program)(costs))


@pytest.mark.parametrize("name", CASES)
def test_round_shares_its_instance(name):
    oracle = CASES[name]
    costs = jax.random.normal(jax.random.key(2), (3, oracle.dim))
    assert np.array_equal(oracle.solve_round(costs).w, oracle.solve(costs).w)
    example = oracle.example_instance()
    if example is not None:
        assert jax.tree.map(np.shape, oracle.instance(example)) == jax.tree.map(np.shape, example)
        assert np.array_equal(oracle.solve_round(costs, example).w, oracle.solve(costs).w), (
            "the example changes nothing"
        )


@pytest.mark.parametrize("name", CASES)
def test_instances_that_are_no_numbers_are_refused(name):
    for wrong in (
        "closed",
        np.array(["a"]),
        object(),
        {"b_ub": "x"},
        np.ma.ones(CASES[name].dim),
        np.datetime64("now"),
    ):
        with pytest.raises(SettingsError, match="expected"):
            CASES[name].instance(wrong)


def test_fingerprints_are_data_and_differ_where_the_sets_do():
    prints = {name: json.dumps(oracle.fingerprint(), sort_keys=True, allow_nan=False) for name, oracle in CASES.items()}
    assert len(set(prints.values())) == len(CASES)
    assert json.loads(prints["top_k"]) == {"kind": "TopK", "dim": 6, "k": 2}
    assert json.loads(prints["pricing"])["promotions"] == 1
    again = oracles.shortest_path(oracles.grid_edges(3, 3))
    assert again.fingerprint() == json.loads(prints["grid"])
    other = oracles.shortest_path([*oracles.grid_edges(3, 3)[:-1], (5, 8)])
    assert other.fingerprint() != again.fingerprint()
    assert oracles.scheduling(ROOMY._replace(tasks=ROOMY.tasks[:3])).fingerprint() != json.loads(
        prints["scheduling_roomy"]
    )


def test_names_of_coordinates():
    streets = [("depot", "shop"), ("depot", "mill"), ("mill", "shop")]
    assert oracles.shortest_path(streets).names == tuple(streets)
    assert oracles.top_k(3, 1).names is None


def test_registry_holds_every_oracle_by_its_public_name():
    assert {name: oracles.REGISTRY[name] for name in oracles.REGISTRY} == {
        name: getattr(oracles, name)
        for name in (
            *("top_k", "shortest_path", "node_grid", "assignment", "knapsack", "travelling_salesman", "portfolio"),
            *("pricing", "milp", "scheduling", "external"),
        )
    }


def test_check_reports_the_first_row_and_how_many():
    mask = np.array([[True] * 4, [True, False, False, False], [False] * 4])
    solution = oracles.top_k(4, 2).solve(jnp.zeros((3, 4)), mask)
    assert solution.status.tolist() == [0, 1, 1]
    with pytest.raises(OracleError, match=r"row 1 of a batch of 3: infeasible.*; 1 more of its rows failed"):
        oracles.check(solution)
    oracles.check(oracles.top_k(4, 2).solve(jnp.zeros((3, 4))))
