"""The MILP oracle: exact against brute force, instances, failures, refusals, parallel as one by one, fingerprints."""

import itertools
import os
import signal
import threading

import highspy
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from regretless import oracles
from regretless.errors import OracleError, SettingsError
from regretless.oracles import highs

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
    assert np.array_equal(everything[oracle.contained(everything)], kept)


@given(
    matrix=st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=2, max_size=2),
    right=st.lists(st.integers(0, 6), min_size=2, max_size=2),
    cost=st.lists(numbers, min_size=4, max_size=4),
)
@settings(max_examples=40)
def test_mixed_programs_agree_with_all_choices_of_their_integers(matrix, right, cost):
    oracle = oracles.milp(A_ub=matrix, b_ub=right, integrality=[0, 1, 0, 1], workers=1)
    best = np.inf
    for one, other in itertools.product([0, 1], repeat=2):
        bounds = [(0, 1), (one, one), (0, 1), (other, other)]
        rest = linprog(cost, matrix, right, bounds=bounds)
        best = min(best, rest.fun if rest.status == 0 else np.inf)
    w = oracle.answer([cost]).w
    assert np.sum(w * cost) == pytest.approx(best, abs=1e-7)
    assert oracle.contained(w).tolist() == [True]


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


def test_a_row_that_fails_is_reported_by_the_call_that_asked():
    pairs = oracles.milp(A_eq=[[1, 1, 1]], b_eq=[2], integrality=1)
    for solve in (pairs.solve, pairs.answer):
        with pytest.raises(OracleError, match=r"milp: row 1 of a batch of 3: infeasible.*1 more of its rows failed"):
            solve(np.ones((3, 3)), {"b_eq": np.array([[1.0], [1.5], [7.0]])})
        assert solve(np.ones((1, 3))).w.sum() == 2, "the next call knows nothing of it"
    must = oracles.milp(A_ub=[[1, 1]], b_ub=[2], bounds=(np.array([1, 0]), 1))
    with pytest.raises(OracleError, match="infeasible"):
        must.solve_one(jnp.ones(2), {"available": jnp.array([False, True])})


def test_threads_that_share_an_oracle_see_their_own_failures_only():
    pairs = oracles.milp(A_eq=[[1, 1, 1]], b_eq=[2], integrality=1, workers=2)
    failures = {"healthy": 0, "failing": 0}

    def use(name, room):
        for _ in range(60):
            try:
                pairs.answer(np.ones((2, 3)), {"b_eq": np.full((2, 1), room)})
            except OracleError:
                failures[name] += 1

    users = [threading.Thread(target=use, args=user) for user in (("healthy", 1.0), ("failing", 1.5))]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert failures == {"healthy": 0, "failing": 60}


def test_the_time_limit_is_kept_row_by_row():
    hard = oracles.milp(A_ub=MARKET, b_ub=MARKET.sum(axis=1) / 2, integrality=1, workers=1, time_limit=0.001)
    costs = -(MARKET.sum(axis=0) + np.random.default_rng(1).normal(size=(2, 40)))
    with pytest.raises(
        OracleError, match=r"row 0 of a batch of 2: no proven optimum within the time limit of 0.001 s; 1 more"
    ):
        hard.answer(costs)
    assert hard.answer(np.zeros((1, 40))).status.tolist() == [0], "the clock restarts with each solve"
    quick = oracles.milp(A_ub=MARKET[:, :12], b_ub=MARKET[:, :12].sum(axis=1) / 2, workers=1, time_limit=0.5)
    many = np.random.default_rng(2).normal(size=(3000, 12))
    assert np.all(quick.answer(many).status == 0), "3000 solves take more than the limit of one"


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


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"b_up": np.ones(1)}, "instance: expected a dictionary with keys of"),
        (np.ones(1), "instance: expected a dictionary with keys of"),
        ({"b_ub": np.ones(2)}, r"milp: b_ub: expected shape \(1,\), got \(2,\)"),
        ({"b_ub": [np.nan]}, "milp: b_ub: expected finite numbers, got nan"),
        ({"available": [1, 1, 2, 0]}, "milp: available: expected True and False, or exactly 1 and 0, got 2"),
        ({"available": [1, 1, np.nan, 0]}, "exactly 1 and 0, got nan"),
        ({"b_ub": ["8"]}, "expected numbers, got text"),
    ],
)
def test_wrong_instances_are_refused(instance, message):
    with pytest.raises(SettingsError, match=message):
        BAG.solve_one(jnp.zeros(4), instance)


def test_instances_have_one_form_whichever_part_is_given():
    room, closed = BAG.instance({"b_ub": [5]}), BAG.instance({"available": [0, 1, 1, 1]})
    assert sorted(room) == sorted(closed) == sorted(BAG.example_instance()) == ["available", "b_ub"]
    assert (room["available"].tolist(), room["b_ub"].tolist()) == ([True] * 4, [5.0])
    assert (closed["available"].tolist(), closed["b_ub"].tolist()) == ([False, True, True, True], [8.0])
    assert BAG.instance({"b_ub": [np.inf]})["b_ub"].tolist() == [np.inf], "no limit in this round"


def test_the_fingerprint_is_the_constraints_and_not_how_they_are_solved():
    rows = {"A_ub": [[3, 4, 2, 5]], "b_ub": [8], "integrality": 1}
    same = [
        {"workers": 1},
        {"gap": 0.1},
        {"time_limit": 3.0},
        {"bounds": (np.zeros(4), np.ones(4))},
        {"bounds": (-0.0, 1)},
    ]
    other = [
        {"b_ub": [7]},
        {"A_ub": [[3, 4, 2, 6]]},
        {"integrality": 0},
        {"bounds": (0, 2)},
        {"integrality": [1, 1, 1, 0]},
    ]
    assert all(oracles.milp(**{**rows, **change}).fingerprint() == BAG.fingerprint() for change in same)
    prints = [oracles.milp(**{**rows, **change}).fingerprint()["program"] for change in other]
    assert len({*prints, BAG.fingerprint()["program"]}) == len(other) + 1
    swapped = oracles.milp(A_eq=[[3, 4, 2, 5]], b_eq=[8], integrality=1)
    assert swapped.fingerprint() != BAG.fingerprint()


def test_the_program_is_a_copy_of_the_arguments():
    matrix = np.array([[1.0, 1.0]])
    pick = oracles.milp(A_ub=matrix, b_ub=[1], integrality=1)
    before = pick.fingerprint()
    matrix[0, 0] = 9.0
    assert pick.fingerprint() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_forked_child_has_threads_of_its_own():
    expected = BAG.answer([[-4.0, -5.0, -3.0, -1.0]]).w.tolist()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if BAG.answer([[-4.0, -5.0, -3.0, -1.0]]).w.tolist() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_solver_that_is_known_to_be_wrong_is_refused():
    with pytest.raises(OracleError, match=r"got version 1\.14\.0; install one that works here: pip install"):
        highs.refuse_faulty("1.14.0")
    for version in ("1.13.1", "1.15.1", highspy.Highs().version()):
        highs.refuse_faulty(version)


@pytest.mark.parametrize("workers", [float("nan"), 1.5, "2", True])
def test_workers_are_an_integer(workers):
    """A pool of NaN threads starts none of them, and the first solve would wait for ever."""
    with pytest.raises(SettingsError, match="milp: workers: expected an integer"):
        oracles.milp(A_ub=[[1, 1]], b_ub=[1], workers=workers)
