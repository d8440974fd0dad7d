"""The user's function as an oracle: called as declared, on copies, in time; its errors are raised by that call."""

import os
import signal
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles
from regretless.errors import OracleError, SettingsError
from regretless.oracles.callback import call_with_limit


def pick_cheapest(cost):
    return np.eye(len(cost))[np.argmin(cost)]


def test_a_batched_solver_is_called_once():
    calls = []

    def solve(costs):
        calls.append(costs.shape)
        return np.eye(3)[np.argmin(costs, axis=1)]

    oracle = oracles.external(solve, 3, batched=True)
    costs = np.random.default_rng(0).normal(size=(10, 3))
    w = oracle.solve(jnp.asarray(costs)).w
    assert calls == [(10, 3)]
    assert np.array_equal(np.argmax(w, axis=-1), np.argmin(costs, axis=-1))


@pytest.mark.parametrize("batched", [False, True])
def test_instances_and_aux_travel(batched):
    def solve(cost, allowed):
        best = np.argmin(np.where(allowed["open"], cost, np.inf), axis=-1)
        return np.eye(3)[best], {"index": best}

    oracle = oracles.external(solve, 3, takes_instance=True, aux={"index": np.int32(0)}, batched=batched)
    costs = jnp.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    solution = oracle.solve(costs, {"open": jnp.array([[True, True, True], [False, False, True]])})
    assert solution.aux["index"].tolist() == [0, 2]
    assert solution.aux["index"].dtype == np.int32
    assert solution.w.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_an_instance_is_given_exactly_where_the_solver_takes_one():
    with pytest.raises(SettingsError, match="expected no instance"):
        oracles.external(pick_cheapest, 3).solve_one(jnp.zeros(3), jnp.ones(3))
    with pytest.raises(SettingsError, match="expected an instance, got None"):
        oracles.external(lambda cost, own: pick_cheapest(cost), 3, takes_instance=True).answer(np.zeros((1, 3)))


def fails(error):
    def solve(cost):
        raise error

    return solve


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda cost: 1 / 0, "ZeroDivisionError: division by zero"),
        (fails(SystemExit(0)), "SystemExit: 0"),
        (fails(OracleError("the plant is closed")), "the plant is closed"),
        (lambda cost: np.zeros(2), r"expected shape \(3,\), got \(2,\)"),
        (lambda cost: None, "expected numbers, got an object of type NoneType"),
        (lambda cost: np.array([np.nan, 0, 0]), "expected finite numbers, got nan"),
        (lambda cost: np.array([np.inf, 0, 0]), "expected finite numbers, got inf"),
        (lambda cost: ["1", "0", "0"], "expected numbers, got text"),
        (lambda cost: np.array([1j, 0, 0]), "expected numbers, got complex numbers"),
        (lambda cost: np.ma.array([1, 0, 0], mask=[1, 0, 0]), "got a masked array"),
        (lambda cost: [np.ma.masked, 0, 0], "got a masked array"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"time_limit": 30.0}, {"workers": 3}])
def test_what_goes_wrong_is_reported_with_its_row(answer, message, options):
    oracle = oracles.external(lambda c: answer(c) if c[0] > 0 else pick_cheapest(c), 3, **options)
    good, bad = [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]
    with pytest.raises(OracleError, match=f"row 1 of a batch of 4: .*{message}.*; 1 more of its rows failed"):
        oracle.answer([good, bad, good, bad])
    assert oracle.answer([good]).w.tolist() == [[1, 0, 0]]
    batched = oracles.external(lambda costs: answer(costs[0]), 3, batched=True)
    with pytest.raises(OracleError, match="the external solver failed: batch of 1"):
        batched.answer([bad])


def test_workers_solve_rows_at_the_same_time_and_in_their_places():
    together = threading.Barrier(3, timeout=30)

    def solve(cost):
        together.wait()  # passes when three rows are being solved
        return pick_cheapest(cost)

    costs = np.random.default_rng(0).normal(size=(9, 3))
    oracle = oracles.external(solve, 3, workers=3)
    np.testing.assert_array_equal(oracle.answer(costs).w, np.stack(list(map(pick_cheapest, costs))))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.eye(3)[0], r"expected the pair \(w, aux\), the solver returned one ndarray"),
        ((np.eye(3)[0], 7, 8), "the solver returned 3 values"),
        ((np.eye(3)[0], {"start": 2.5}), "expected numbers of type int32, got float64"),
        ((np.eye(3)[0], {"start": [1, 2]}), r"aux: expected shape \(\)"),
        ((np.eye(3)[0], {"start": "now"}), "aux: expected numbers, got text"),
        ((np.eye(3)[0], {"begin": 1}), "aux: expected the form of the example"),
    ],
)
def test_aux_must_be_as_declared(answer, message):
    oracle = oracles.external(lambda cost: answer, 3, aux={"start": np.int32(0)})
    with pytest.raises(OracleError, match=message):
        oracle.answer(np.zeros((1, 3)))


@pytest.mark.parametrize("time_limit", [None, 30.0])
def test_ctrl_c_passes_through(time_limit):
    with pytest.raises(KeyboardInterrupt):
        oracles.external(fails(KeyboardInterrupt()), 3, time_limit=time_limit).answer(np.zeros((2, 3)))


@pytest.mark.parametrize("batched", [False, True])
def test_the_solver_may_change_what_it_gets(batched):
    def solve(cost, instance):
        w = np.eye(3)[np.argmin(cost, axis=-1)]
        cost[...] = instance["limit"][...] = 77.0
        return w

    oracle = oracles.external(solve, 3, takes_instance=True, batched=batched)
    costs, instances = np.arange(6.0).reshape(2, 3), {"limit": np.ones((2, 3))}
    oracle.answer(costs, instances)
    assert np.array_equal(costs, np.arange(6.0).reshape(2, 3))
    assert np.array_equal(instances["limit"], np.ones((2, 3)))


def test_a_solver_that_does_not_come_back_is_left_behind():
    release, threads = threading.Event(), []

    def solve(cost):
        threads.append(threading.current_thread())
        if cost[0] > 0:
            release.wait(60)
        return pick_cheapest(cost)

    oracle = oracles.external(solve, 3, time_limit=0.2)
    good, bad = [[-1.0, 0.0, 0.0]], [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    began = time.monotonic()
    with pytest.raises(OracleError, match=r"row 1 of a batch of 3: no answer within the time limit of 0.2 s"):
        oracle.answer(bad)
    assert 0.2 <= time.monotonic() - began < 10, "the rows behind it are not tried"
    assert oracle.answer(good).w.tolist() == [[1, 0, 0]]
    assert oracle.answer(good).w.tolist() == [[1, 0, 0]]
    stuck = threads[1]
    assert stuck.daemon
    assert stuck not in threads[2:]
    release.set()
    stuck.join(10)
    assert not stuck.is_alive(), "it ends when its call returns"


def test_threads_that_share_an_oracle_see_their_own_failures_only():
    def solve(cost):
        if cost[0] > 0:
            raise RuntimeError("no licence today")
        return pick_cheapest(cost)

    oracle = oracles.external(solve, 3, time_limit=30.0)
    failures = {"healthy": 0, "failing": 0}

    def use(name, first):
        for _ in range(200):
            try:
                oracle.answer([[first, 0.0, 0.0]])
            except OracleError:
                failures[name] += 1

    users = [threading.Thread(target=use, args=user) for user in (("healthy", -1.0), ("failing", 1.0))]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert failures == {"healthy": 0, "failing": 200}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_forked_child_starts_threads_of_its_own():
    assert call_with_limit(30.0, int, "7") == 7
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if call_with_limit(5.0, int, "7") == 7 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_contains_is_asked_point_by_point():
    oracle = oracles.external(
        lambda cost, room: pick_cheapest(cost), 3, takes_instance=True, contains=lambda w, room: w.sum() <= room
    )
    assert oracle.contained(np.tri(3), np.array([1.0, 1.0, 3.0])).tolist() == [True, False, True]
    assert not oracle.feasible(jnp.ones(3), jnp.array(2.0))
    assert oracles.external(pick_cheapest, 3).contained(np.ones((2, 3))).tolist() == [True, True]
    for wrong, message in ((lambda w: w, r"contains: expected shape \(\)"), (fails(ValueError("what?")), "what?")):
        with pytest.raises(OracleError, match=f"contains failed: row 0 of a batch of 1: .*{message}"):
            oracles.external(pick_cheapest, 3, contains=wrong).contained(np.ones((1, 3)))


def test_the_fingerprint_is_the_form_and_not_how_it_is_called():
    plain = oracles.external(pick_cheapest, 3).fingerprint()
    assert plain == oracles.external(lambda costs: costs, 3, batched=True, time_limit=2.0).fingerprint()
    others = [{"takes_instance": True}, {"aux": np.int32(0)}, {"aux": np.zeros(3)}, {"aux": {"start": np.zeros(3)}}]
    prints = [plain, *(oracles.external(pick_cheapest, 3, **change).fingerprint() for change in others)]
    assert all(one != other for i, one in enumerate(prints) for other in prints[:i])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "positive number of cost coordinates, got 0"),
        ({"dim": 2.0}, "got 2.0"),
        ({"fn": 3}, "expected functions fn and contains"),
        ({"contains": True}, "expected functions fn and contains"),
        ({"time_limit": 0}, "expected a time_limit in seconds, above 0"),
        ({"time_limit": "3"}, "expected a time_limit"),
        ({"time_limit": float("nan")}, "expected a time_limit"),
        ({"time_limit": 1e300}, "expected a time_limit"),
        ({"aux": "start"}, "aux: expected numbers, got text"),
        ({"workers": 0}, "expected at least one worker, and one for a batched solver, got 0"),
        ({"workers": 2, "batched": True}, "one for a batched solver, got 2"),
        ({"workers": 1.5}, "workers"),
    ],
)
def test_refused_at_construction(arguments, message):
    with pytest.raises(SettingsError, match=message):
        oracles.external(**{"fn": pick_cheapest, "dim": 3, **arguments})
