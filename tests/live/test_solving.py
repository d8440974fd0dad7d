"""Solvers of the user's own: one solve per decision, failures of the very call, and no needless waiting."""

import threading
import time

import jax
import numpy as np
import pytest

from live.learners import build
from regretless import oracles
from regretless.errors import OracleError, RegretlessError
from regretless.live import engine
from regretless.live.learner import Learner

DIM, FEATURES = 4, 3


class Moody:
    """Takes the two cheapest, counts its calls, and fails or hangs on request."""

    def __init__(self):
        self.calls = 0
        self.broken = False
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, cost, allowed=None):
        self.calls += 1
        self.gate.wait()
        if self.broken:
            raise RuntimeError("out of licences")
        w = np.zeros(DIM)
        w[np.argsort(cost, kind="stable")[:2]] = 1.0
        return w


def make(oracle, **options):
    return build(oracle, **options)


def state_of(learner):
    return jax.tree.map(np.asarray, learner.state.policy)


def same(one, other):
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


@pytest.mark.parametrize(("name", "explore"), [("adaptive", True), ("linear_thompson", False)])
def test_a_decision_costs_one_solve(name, explore):
    solver = Moody()
    learner = make(oracles.external(solver, DIM), policy=name)
    for t in range(5):
        before = solver.calls
        choice = learner.decide(np.full(FEATURES, t), explore=explore)
        assert solver.calls == before + 1
        learner.learn(choice.id, total=1.0)
        assert solver.calls == before + 1, "it learns without solving"
    learner.explain(choice.id)
    assert solver.calls == 6


def test_several_decisions_cost_one_call_of_a_batch_solver():
    sizes = []

    def solve(costs):
        sizes.append(len(costs))
        return np.eye(DIM)[np.argmin(costs, axis=1)]

    learner = make(oracles.external(solve, DIM, batched=True))
    choices = learner.decide_batch(np.random.default_rng(0).normal(size=(7, FEATURES)))
    assert sizes == [7]
    assert [choice.id for choice in choices] == list(range(1, 8))
    dfhpg = make(oracles.external(solve, DIM, batched=True), policy="dfhpg", settings={"surrogate": "dbb"})
    choice = dfhpg.decide(np.ones(FEATURES))
    dfhpg.learn(choice.id, total=1.0)
    assert sizes[1:] == [1, 2], "a learning step's solves are one batch"


@pytest.mark.parametrize(
    ("name", "closures", "settings", "options"),
    [
        ("linear_thompson", False, {}, {}),
        ("linear_thompson", True, {}, {"feedback": "semi_bandit", "offset": [0.5, 0.0, 1.0, 0.0]}),
        ("adaptive", True, {}, {"feedback": "semi_bandit", "offset": [0.5, 0.0, 1.0, 0.0]}),
        ("dfhpg", False, {"surrogate": "spo_plus"}, {}),
        ("dfhpg", True, {"surrogate": "pairwise_diff"}, {"feedback": "semi_bandit"}),
        ("dfhpg", True, {"baseline": "nuisance_induced", "variant": "plug_in"}, {"scaling": False}),
        ("epsilon_greedy", False, {}, {"feedback": "full"}),
    ],
)
def test_a_host_solver_makes_the_decisions_of_its_twin_in_jax(name, closures, settings, options):
    def solve(cost, allowed=None):
        w = np.zeros(DIM)
        w[np.argsort(cost if allowed is None else np.where(allowed, cost, np.inf), kind="stable")[:2]] = 1.0
        return w

    def contains(w, allowed=None):
        return bool(np.sum(w) == 2 and (allowed is None or np.all(allowed[w > 0])))

    host = oracles.external(solve, DIM, takes_instance=closures, contains=contains)
    learners = [make(oracle, policy=name, settings=settings, **options) for oracle in (oracles.top_k(DIM, 2), host)]
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(DIM, FEATURES))
    for t in range(30):
        x, explore = rng.normal(size=FEATURES), t % 7 != 0
        instance = np.arange(DIM) != t % DIM if closures else None
        costs = weights @ x + 3.0
        one, other = (learner.decide(x, instance=instance, explore=explore) for learner in learners)
        assert np.array_equal(one.w, other.w), f"round {t + 1}"
        np.testing.assert_allclose(one.cost_sample, other.cost_sample, rtol=1e-9, atol=1e-12)
        for learner in learners:
            learner.learn(t + 1, costs=costs)


@pytest.mark.parametrize("on_host", [False, True])
def test_several_contexts_are_several_decisions(on_host):
    oracle = oracles.external(Moody(), DIM) if on_host else oracles.top_k(DIM, 2)
    one, other = make(oracle, seed=3), make(oracle, seed=3)
    for learner in (one, other):  # beyond the first random decisions
        for t in range(3):
            learner.learn(learner.decide(np.full(FEATURES, t)).id, total=float(t))
    contexts = np.random.default_rng(0).normal(size=(5, FEATURES))
    many = one.decide_batch(contexts)
    single = [other.decide(x) for x in contexts]
    assert [choice.id for choice in many] == [4, 5, 6, 7, 8]
    for a, b in zip(many, single, strict=True):
        assert np.array_equal(a.w, b.w)
        np.testing.assert_allclose(a.cost_sample, b.cost_sample, rtol=1e-9)
    for t in range(4, 9):
        one.learn(t, total=1.0)
        other.learn(t, total=1.0)
    assert one.health() == other.health()


def test_partial_feedback_needs_no_other_program():
    learner = make(oracles.top_k(DIM, 2), feedback="full", policy="thompson")
    learner.learn(learner.decide(np.ones(FEATURES)).id, costs=np.ones(DIM))
    compiled = engine._learn.compiled
    learner.learn(learner.decide(np.ones(FEATURES)).id, costs=[1.0, np.nan, 1.0, 1.0])
    assert engine._learn.compiled == compiled


@pytest.mark.parametrize("name", ["linear_thompson", "dfhpg"])
def test_failing_solver_raises_and_changes_nothing_or_falls_back(name):
    solver = Moody()
    oracle = oracles.external(solver, DIM)
    strict, lenient = (make(oracle, policy=name, scaling=False, on_failure=how) for how in ("raise", "last"))
    solver.broken = True
    with pytest.raises(OracleError, match="out of licences"):
        lenient.decide(np.ones(FEATURES))  # nothing to fall back on yet
    solver.broken = False
    first = lenient.decide(np.ones(FEATURES))
    strict.decide(np.ones(FEATURES))
    solver.broken = True
    before = state_of(strict), strict.waiting, strict.health()
    for call in (lambda: strict.decide(np.zeros(FEATURES)), lambda: strict.decide_batch(np.zeros((2, FEATURES)))):
        with pytest.raises(OracleError, match="out of licences"):
            call()
    if name == "dfhpg":  # learning solves, too
        with pytest.raises(OracleError, match="out of licences"):
            strict.learn(1, total=1.0)
    assert same(before[0], state_of(strict))
    assert (strict.waiting, strict.health()) == before[1:]
    calls = solver.calls
    again = lenient.decide(np.zeros(FEATURES))
    assert solver.calls == calls + 1
    assert again.fallback
    assert np.array_equal(again.w, first.w)
    both = lenient.decide_batch(np.zeros((2, FEATURES)))
    assert [choice.fallback for choice in both] == [True, True]
    solver.broken = False
    assert lenient.learn(again.id, total=2.0).new
    assert strict.learn(1, total=1.0).new
    assert not lenient.decide(np.zeros(FEATURES)).fallback


def test_fallback_must_be_feasible_now():
    def solve(cost, allowed):
        if not allowed[0]:
            raise RuntimeError("closed")
        return np.eye(3)[0]

    oracle = oracles.external(solve, 3, takes_instance=True, contains=lambda w, allowed: bool(np.all(allowed[w > 0])))
    learner = build(oracle, context=1, on_failure="last")
    learner.decide([0.0], instance=np.array([True, True, True]))
    with pytest.raises(OracleError, match=r"closed.*last feasible decision is not feasible now"):
        learner.decide([0.0], instance=np.array([False, True, True]))


def test_learners_that_share_an_oracle_keep_their_failures_apart():
    """One learner's solves always fail, the other's never do, in two threads: each sees its own failures only."""

    def solve(cost, broken):
        if broken:
            raise RuntimeError("broken")
        return np.eye(DIM)[np.argmin(cost)]

    oracle = oracles.external(solve, DIM, takes_instance=True)
    failures = {True: 0, False: 0}

    def work(broken):
        learner = make(oracle, policy="dfhpg", settings={"surrogate": "dbb"})
        if broken:
            learner.decide(np.ones(FEATURES), instance=np.array(False))
        for _ in range(30):
            try:
                choice = learner.decide(np.ones(FEATURES), instance=np.array(broken))
                assert not broken
                learner.learn(choice.id, total=1.0)
            except OracleError:
                failures[broken] += 1

    threads = [threading.Thread(target=work, args=(broken,)) for broken in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == {True: 30, False: 0}


def test_health_answers_while_the_solver_hangs(tmp_path):
    solver = Moody()
    learner = make(oracles.external(solver, DIM, time_limit=1.5))
    learner.learn(learner.decide(np.ones(FEATURES)).id, total=1.0)
    solver.gate.clear()
    errors = []

    def decide():
        try:
            learner.decide(np.ones(FEATURES))
        except OracleError as error:
            errors.append(str(error))

    thread = threading.Thread(target=decide)
    thread.start()
    while solver.calls < 2:
        time.sleep(0.01)
    began = time.monotonic()
    assert learner.health().decisions == 1
    assert learner.waiting == []
    learner.save(tmp_path / "meanwhile.db")
    assert time.monotonic() - began < 1.0
    assert not errors
    thread.join()
    assert "no answer within the time limit of 1.5 s" in errors[0]
    solver.gate.set()
    assert learner.decide(np.ones(FEATURES)).id == 2
    assert Learner.open(tmp_path / "meanwhile.db", learner.problem.oracle, read_only=True).health().decisions == 1


def test_a_solver_cannot_call_its_own_learner():
    def solve(cost):
        learner.decide(np.ones(FEATURES))
        return np.eye(DIM)[0]

    learner = make(oracles.external(solve, DIM))
    with pytest.raises(RegretlessError, match="cannot call the learner that is waiting"):
        learner.decide(np.ones(FEATURES))
    assert learner.health().decisions == 0
