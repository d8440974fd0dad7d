"""The MILP oracle: exact against brute force, instances, failures, refusals, parallel as one by one, inside a simulation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import benchmarks, oracles
from regretless.benchmarks import Round
from regretless.oracles import highs
from regretless.simulate.simulation import simulate
from toys import DIM, FEATURES, make

numbers = st.integers(-4, 4)
BAG = oracles.milp(A_ub=[[3, 4, 2, 5]], b_ub=[8], integrality=1, workers=2)
# Hard enough that branch and bound needs longer than a millisecond.
MARKET = np.random.default_rng(0).integers(0, 100, (5, 40))


@given(
    matrix=st.lists(st.lists(numbers, min_size=5, max_size=5), min_size=2, max_size=2),
    right=st.lists(st.integers(-2, 6), min_size=2, max_size=2),
    costs=st.lists(st.lists(numbers, min_size=5, max_size=5), min_size=3, max_size=3),
    equal=st.booleans(),
)
@settings(max_examples=60)
def test_agrees_with_all_binary_vectors(matrix, right, costs, equal):
    everything = np.array(list(itertools.product([0.0, 1.0], repeat=5)))
    left = everything @ np.array(matrix).T
    kept = everything[np.all(left == right if equal else left <= right, axis=1)]
    rows = {"A_eq": matrix, "b_eq": right} if equal else {"A_ub": matrix, "b_ub": right}
    if not len(kept):
        with pytest.raises(ValueError, match="infeasible: no decision satisfies the constraints"):
            oracles.milp(**rows, integrality=1)
        return
    oracle = oracles.milp(**rows, integrality=1, workers=2)
    costs = np.array(costs, np.float32)
    solution = oracle.solve(jnp.asarray(costs))
    assert solution.status.tolist() == [0, 0, 0]
    assert np.array_equal(np.sum(costs * np.asarray(solution.w), axis=1), np.min(costs @ kept.T, axis=1))
    inside = jax.vmap(oracle.feasible)(jnp.asarray(everything, jnp.float32))
    assert np.array_equal(everything[np.asarray(inside)], kept)


def test_without_integrality_the_answer_is_a_vertex_of_the_relaxation():
    simplex = oracles.milp(A_eq=[[1, 1, 1]], b_eq=[1], bounds=(0, np.inf))
    costs = np.random.default_rng(0).normal(size=(20, 3))
    assert np.array_equal(simplex.solve(jnp.asarray(costs)).w, np.eye(3)[np.argmin(costs, axis=1)])
    half = oracles.milp(A_ub=[[2, 2]], b_ub=[3], bounds=(np.array([0, -1]), 1))
    np.testing.assert_allclose(half.solve_one(jnp.array([-2.0, -1.0])).w, [1.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(half.solve_one(jnp.array([2.0, 1.0])).w, [0.0, -1.0], atol=1e-9)
    mixed = oracles.milp(A_ub=[[2, 2]], b_ub=[3], integrality=[0, 1])
    np.testing.assert_allclose(mixed.solve_one(jnp.array([-1.0, -2.0])).w, [0.5, 1.0], atol=1e-9)
    assert mixed.feasible(jnp.array([0.5, 1.0]))
    assert not mixed.feasible(jnp.array([1.0, 0.5]))
    assert not mixed.feasible(jnp.array([0.6, 1.0]))


def test_tiny_and_huge_costs_are_solved_exactly():
    """The solver's tolerances are absolute; costs are scaled to them."""
    cost = np.array([-1.0, -1.0 - 1e-5, 0.5, 0.25])
    pick = oracles.milp(A_ub=[[1, 1, 1, 1]], b_ub=[1], integrality=1)
    for scale in (1e-30, 1e-9, 1.0, 1e9):
        assert pick.solve_one(jnp.asarray(scale * cost, jnp.float32)).w.tolist() == [0, 1, 0, 0]


def test_instances_change_the_feasible_set_row_by_row_and_leave_no_trace():
    cost = jnp.tile(-jnp.array([4.0, 5.0, 3.0, 1.0]), (3, 1))
    plain = BAG.solve(cost).w.tolist()
    assert plain == [[1, 1, 0, 0]] * 3
    rooms = {"b_ub": jnp.array([[8.0], [5.0], [0.0]])}
    assert BAG.solve(cost, rooms).w.tolist() == [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    closed = {"available": jnp.array([[True] * 4, [False, True, True, True], [False, False, False, True]])}
    assert BAG.solve(cost, closed).w.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert not BAG.feasible(jnp.array([1.0, 1, 0, 0]), {"b_ub": jnp.array([5.0])})
    assert not BAG.feasible(jnp.array([1.0, 0, 0, 0]), {"available": jnp.array([False, True, True, True])})
    assert BAG.feasible(jnp.array([0.0, 1, 0, 0]), {"available": jnp.array([False, True, True, True])})
    assert BAG.solve(cost).w.tolist() == plain
    pairs = oracles.milp(A_eq=[[1, 1, 1]], b_eq=[2], integrality=1)
    assert pairs.solve_one(jnp.arange(3.0), {"b_eq": jnp.array([1.0])}).w.tolist() == [1, 0, 0]


def test_a_row_that_fails_is_told_and_the_others_are_solved():
    pairs = oracles.milp(A_eq=[[1, 1, 1]], b_eq=[2], integrality=1)
    solution = pairs.solve(jnp.ones((3, 3)), {"b_eq": jnp.array([[1.0], [1.5], [7.0]])})
    assert solution.status.tolist() == [highs.SOLVED, highs.INFEASIBLE, highs.INFEASIBLE]
    with pytest.raises(oracles.OracleError, match=r"row 1 of a batch of 3: infeasible.*1 more of its rows failed"):
        pairs.raise_failure()
    assert pairs.take_failure() is None
    solution = pairs.solve(jnp.array([[jnp.nan, 0, 0], [0, 1, 2]]))
    assert solution.status.tolist() == [highs.NOT_FINITE, highs.SOLVED]
    with pytest.raises(oracles.OracleError, match="not finite"):
        pairs.raise_failure()
    must = oracles.milp(A_ub=[[1, 1]], b_ub=[2], bounds=(np.array([1, 0]), 1))
    assert must.solve_one(jnp.ones(2), {"available": jnp.array([False, True])}).status == highs.INFEASIBLE


def test_the_time_limit_is_kept_row_by_row():
    hard = oracles.milp(A_ub=MARKET, b_ub=MARKET.sum(axis=1) / 2, integrality=1, workers=1, time_limit=0.001)
    costs = -jnp.asarray(MARKET.sum(axis=0) + np.random.default_rng(1).normal(size=(2, 40)))
    assert hard.solve(costs).status.tolist() == [highs.OUT_OF_TIME] * 2
    with pytest.raises(oracles.OracleError, match=r"row 0 of a batch of 2: no proven optimum within .* 0.001 s"):
        hard.raise_failure()
    assert hard.solve(jnp.zeros((1, 40))).status.tolist() == [highs.SOLVED], "the clock starts anew with each solve"
    quick = oracles.milp(A_ub=MARKET[:, :12], b_ub=MARKET[:, :12].sum(axis=1) / 2, workers=1, time_limit=0.5)
    many = np.random.default_rng(2).normal(size=(3000, 12))
    assert np.all(quick.solve(jnp.asarray(many)).status == highs.SOLVED), "3000 solves take more than the limit of one"


@pytest.mark.parametrize("integrality", [0, 1])
def test_a_parallel_batch_equals_one_by_one_in_any_order(integrality):
    rows = {"A_ub": MARKET[:3, :8], "b_ub": MARKET[:3, :8].sum(axis=1) / 2, "integrality": integrality}
    costs = np.random.default_rng(3).integers(-3, 2, (24, 8)).astype(float)  # many ties
    alone = oracles.milp(**rows, workers=1)
    single = np.stack([alone.solve_one(jnp.asarray(cost)).w for cost in costs])
    together = oracles.milp(**rows, workers=4)
    for order in (np.arange(24), np.random.default_rng(4).permutation(24)):
        assert np.array_equal(together.solve(jnp.asarray(costs[order])).w, single[order])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b_ub": [1, 2]}, r"expected A_ub of shape \(rows, 2\) and b_ub of shape \(rows,\), got"),
        ({"b_ub": None}, "expected A_ub of shape"),
        ({"A_eq": [[1, 1, 1]], "b_eq": [1]}, "expected one number of columns throughout, got shapes"),
        ({"A_ub": None, "b_ub": None}, "expected one number of columns throughout"),
        ({"A_ub": [[1, np.nan]]}, "expected numbers in A_ub, got NaN"),
        ({"A_ub": [[1, np.inf]]}, "expected finite numbers"),
        ({"integrality": [0, 2]}, "expected integrality 0 or 1"),
        ({"bounds": (0, np.array([1, -1]))}, "expected low ≤ high, but component 1 has 0.0 and -1.0"),
        ({"bounds": [(0, 1), (0, 1)]}, r"expected bounds to be a pair \(low, high\)"),
        ({"time_limit": 0.0}, "expected time_limit > 0"),
        ({"b_ub": [-1]}, "infeasible"),
        ({"bounds": (0, np.inf), "A_ub": [[1, -1]]}, "unbounded: component .* plus infinity"),
        ({"bounds": (-np.inf, 1)}, "unbounded: component .* minus infinity"),
        ({"bounds": (-np.inf, np.inf), "A_ub": [[0, 1]]}, "unbounded"),
    ],
)
def test_refused_at_construction(change, message):
    with pytest.raises(ValueError, match=message):
        oracles.milp(**{"A_ub": [[1, 1]], "b_ub": [1], **change})


def test_infinite_bounds_are_fine_if_the_rows_bound_the_set():
    ball = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    diamond = oracles.milp(A_ub=ball, b_ub=np.ones(4), bounds=(-np.inf, np.inf))
    np.testing.assert_allclose(diamond.solve_one(jnp.array([1.0, 3.0])).w, [0, -1], atol=1e-9)


def test_wrong_instances_are_refused():
    for instance, message in (
        ({"b_up": jnp.ones(1)}, "expected an instance to be a dictionary with keys of"),
        (jnp.ones(1), "expected an instance to be a dictionary"),
        ({"b_ub": jnp.ones(2)}, r"expected b_ub of shape \(1,\) per row, got \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            BAG.solve_one(jnp.zeros(4), instance)


class Shop(benchmarks.Benchmark):
    """A knapsack whose room changes by round; from round ``closes`` on nothing can satisfy it."""

    closes: int

    def __init__(self, closes=10**6):
        super().__init__("shop", BAG, (FEATURES,), 30, False)
        self.closes = closes

    def environment(self, key):
        return jax.random.normal(key, (DIM, FEATURES)).astype(jnp.result_type(float))

    def round(self, key, environment, t):
        x = jax.random.normal(key, (FEATURES,)).astype(jnp.result_type(float))
        room = jnp.where(t >= self.closes, -1.0, 5.0 + t % 3)[None]
        return Round(x, environment @ x, environment @ x, {"b_ub": room})

    def context(self, environment, observation):
        return observation


@pytest.mark.parametrize("delay", [0, 2])
def test_inside_a_simulation(delay):
    shop = Shop()
    trace = simulate(make("dfhpg", shop), shop, seeds=range(2), horizon=12, keep_decisions=True, delay=delay)
    assert not trace.diverged
    assert np.all(trace.regret >= -1e-6)
    used = trace.decisions @ np.array([3, 4, 2, 5])
    assert np.all(used <= 5 + np.arange(1, 13) % 3)


def test_an_infeasible_round_stops_the_simulation_with_its_reason():
    shop = Shop(closes=5)
    with pytest.raises(oracles.OracleError, match=r"milp: row \d+ of a batch of \d+: infeasible"):
        simulate(make("greedy", shop), shop, seeds=range(2), horizon=12)
