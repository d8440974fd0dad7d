"""The guard: an estimate that is right on average, a bound that holds, an incumbent that decides where it must."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles
from regretless.errors import SettingsError
from regretless.policies.base import Policy
from regretless.policies.guard import (
    INCUMBENT,
    MIN_INCUMBENT_SHARE,
    REDUCED_EXPLORATION,
    Guarded,
    add_guard,
    describe_guard,
    incumbent_costs,
    initial_forecast,
    initial_ledger,
)
from regretless.problem import Problem
from regretless.simulation.simulator import Recording, simulate
from regretless.types import NOT_SAMPLED, Info, Sample
from toys import DIM, FEATURES, Toy

ORACLE = oracles.top_k(DIM, 2)
W = [1.0, 0.0, 0.0, 1.0]
BUDGET, CONFIDENCE, ZERO = jnp.array([0.05, 0.0, 0.0]), jnp.asarray(0.95), jnp.asarray(0.0)


class LastDecisionState(eqx.Module):
    """The decision that was shown last."""

    decision: Any
    version: jax.Array


class LastItems(Policy):
    """Want the two last items, and remember the last decision that was shown."""

    def init(self, key):
        return LastDecisionState(self.problem.example_decision(), jnp.zeros((), jnp.int32))

    def sample(self, key, state, context, instance):
        return Sample(jnp.array([4.0, 3.0, 2.0, 1.0]), state.version, member=jnp.int32(2))

    def learn(self, key, state, decision, feedback):
        return LastDecisionState(decision, state.version + 1), Info(
            feedback.total(), feedback.total(), feedback.complete(), jnp.asarray(True)
        )


class FirstItemsExpected(LastItems):
    """Expect the two first items to be best, and want to try the two last."""

    def mean(self, state, context):
        return jnp.array([1.0, 2.0, 3.0, 4.0])


def stream(key, worse):
    """Play 400 rounds: costs of the incumbent drift and depend on the context, the policy costs ``worse`` more."""

    def one(carry, t):
        ledger, excess, highest = carry
        a, b, c, d = jax.random.split(jax.random.fold_in(key, t), 4)
        x = jax.random.normal(a, (1,))
        cost = 10.0 + x[0] + 2.0 * jnp.sin(t / 60.0) + jax.random.normal(b)
        policy_cost = cost + worse * jax.random.uniform(c, minval=0.0, maxval=2.0)
        chance = ledger.policy_probability(BUDGET, CONFIDENCE, ZERO)
        keeps = jax.random.uniform(d) >= chance
        after = ledger.after_incumbent(x, cost, 1.0 - chance), ledger.after_policy(x, policy_cost, 1.0 - chance)
        ledger = jax.tree.map(lambda one, other: jnp.where(keeps, one, other), *after)
        excess = excess + jnp.where(keeps, 0.0, policy_cost - cost)
        highest = jnp.maximum(highest, excess - ledger.bound(CONFIDENCE, ZERO))
        return (ledger, excess, highest), ledger.excess - excess

    start = initial_ledger((1,)), jnp.zeros(()), -jnp.inf
    (ledger, excess, highest), errors = jax.lax.scan(one, start, jnp.arange(400.0))
    return errors[-1], highest, excess / ledger.turnover, ledger.tried, jnp.max(ledger.variance)


@pytest.mark.usefixtures("float64")
def test_the_estimate_is_right_on_average_and_the_bound_holds_at_all_times():
    runs = jax.jit(jax.vmap(stream, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), 300)
    for worse in (-1.0, 3.0):
        error, highest, share, tried, variance = map(np.asarray, runs(keys, worse))
        assert abs(error.mean()) < 4 * error.std(ddof=1) / len(error) ** 0.5
        assert 0.1 < np.mean(np.square(error)) / variance.mean() < 1.5
        assert np.mean(highest > 0) <= 0.05
        assert np.mean(share > 0.05) <= 0.02
        assert tried.mean() > (200 if worse < 0 else 20)  # a good policy is let in, a bad one still tries


@pytest.mark.usefixtures("float64")
def test_a_forecast_follows_the_context_and_does_not_believe_an_outlier():
    forecast, rng = initial_forecast((2,)), np.random.default_rng(0)
    after = jax.jit(lambda forecast, x, cost: forecast.score(x, cost))
    for _ in range(60):
        x = rng.normal(size=2)
        forecast = after(forecast, jnp.asarray(x), 20.0 + 3.0 * x[0] + 0.1 * rng.normal())
    assert float(forecast.predict(jnp.array([1.0, 0.0]))) == pytest.approx(23.0, abs=0.5)
    assert 0.05 < float(forecast.spread()) < 1.0
    shaken = after(forecast, jnp.zeros(2), 1000.0)
    assert float(shaken.predict(jnp.zeros(2))) == pytest.approx(20.0, abs=0.5)


@pytest.mark.usefixtures("float64")
def test_the_incumbent_decides_first_and_the_policy_learns_from_it():
    problem = Problem(ORACLE, (FEATURES,), "bandit")
    policy = add_guard(LastItems(problem), incumbent_costs(ORACLE, W))
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES))
    assert decision.w.tolist() == W
    assert int(decision.member) == INCUMBENT
    assert float(decision.log_density) == 0.0
    seen = problem.observe(decision, jnp.ones(DIM))
    state, info = jax.jit(lambda *given: policy.learn(*given))(jax.random.key(2), state, decision, seen)
    shown = state.inner.decision
    assert int(shown.version) == NOT_SAMPLED
    assert np.isnan(float(shown.log_density))
    assert int(shown.member) == 0
    assert (float(info.more["guard_incumbent"]), float(state.ledger.turnover)) == (1.0, 2.0)
    rich, x, costs = state, jnp.ones(FEATURES), jnp.ones(DIM)
    lenient = Guarded(problem, policy.inner, jnp.array([1e9, 0.0, 0.0]), CONFIDENCE, policy.incumbent)

    @jax.jit
    def played(key, state):
        decision = lenient.decide(key, state, x)
        return *lenient.learn(key, state, decision, problem.observe(decision, costs)), decision.member

    members = []
    for t in range(20):
        rich, info, member = played(jax.random.key(t), rich)
        members.append(int(member))
    assert float(info.more["guard_chance"]) == pytest.approx(1.0 - MIN_INCUMBENT_SHARE)
    assert float(rich.ledger.tried) > 5
    person = problem.decision(jnp.asarray(W), jnp.ones(FEATURES))
    same, _ = jax.jit(lambda *given: lenient.learn(*given))(
        jax.random.key(4), rich, person, problem.observe(person, costs)
    )
    assert float(same.ledger.turnover) == float(rich.ledger.turnover)  # a person's decision is not counted
    assert set(members) == {INCUMBENT, 3}


@pytest.mark.usefixtures("float64")
def test_plays_what_is_expected_to_be_best_before_it_explores():
    problem = Problem(ORACLE, (FEATURES,), "bandit")
    policy = add_guard(FirstItemsExpected(problem), incumbent_costs(ORACLE, W), budget=0.05)
    x, total, always = jnp.ones(FEATURES), jnp.asarray(10.0), jnp.asarray(1.0)
    rounds = lambda _, ledger: ledger.after_incumbent(x, total, always)  # noqa: E731
    rich = jax.lax.fori_loop(0, 2000, rounds, initial_ledger((FEATURES,)))  # 20,000, of which 5 % may be spent
    assert float(rich.step_size(BUDGET, CONFIDENCE, ZERO)) == 1.0
    poor = eqx.tree_at(lambda ledger: ledger.excess, rich, rich.allowed(BUDGET) - 45.0)
    assert float(poor.step_size(BUDGET, CONFIDENCE, ZERO)) < 0.1
    start, played = policy.init(jax.random.key(0)), []
    for ledger in (poor, rich):
        state = eqx.tree_at(lambda s: s.ledger, start, ledger)
        samples = jax.vmap(lambda key, state=state: policy.sample(key, state, jnp.ones(FEATURES), None))(
            jax.random.split(jax.random.key(1), 400)
        )
        own = np.flatnonzero(np.asarray(samples.member) != INCUMBENT)  # rounds that the guard gives to the policy
        played.append((ORACLE.solve_one(samples.cost[own[0]]).w.tolist(), int(samples.member[own[0]])))
    assert played == [(W, REDUCED_EXPLORATION), ([0.0, 0.0, 1.0, 1.0], 3)]
    state = eqx.tree_at(lambda s: s.ledger, start, poor)
    steps = {}
    for name, usual in (("unknown", jnp.full(DIM, jnp.nan)), ("known", jnp.asarray(W))):
        proposal = policy.propose(jax.random.key(0), state, jnp.ones(FEATURES), None, usual)
        steps[name] = ORACLE.solve_one(proposal.cost).w.tolist()
    assert steps == {"unknown": [1.0, 1.0, 0.0, 0.0], "known": W}  # the best one expected, and no step at all
    decision = eqx.tree_at(
        lambda d: (d.member, d.version), problem.example_decision(), (jnp.int32(REDUCED_EXPLORATION), jnp.int32(0))
    )
    after, _ = policy.learn(jax.random.key(0), start, decision, problem.observe(decision, jnp.ones(DIM)))
    assert int(after.inner.decision.version) == NOT_SAMPLED  # it is no draw from the policy's distribution


@pytest.mark.usefixtures("float64")
def test_decisions_that_wait_count_with_what_they_plausibly_cost_more():
    x, always = jnp.ones(1), jnp.asarray(1.0)
    ledger = jax.lax.fori_loop(
        0, 400, lambda _, so_far: so_far.after_incumbent(x, jnp.asarray(10.0), always), initial_ledger((1,))
    )
    for loss in (3.0, 5.0, 4.0) * 10:
        ledger = ledger.after_policy(x, jnp.asarray(10.0 + loss), jnp.asarray(0.5))
    assert 5.0 < float(ledger.plausible_loss()) < 12.0  # the initial belief still counts
    chances = [float(ledger.policy_probability(BUDGET, CONFIDENCE, jnp.asarray(float(n)))) for n in (0, 4, 8, 40)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.3
    assert chances[-1] == 0.0


@pytest.mark.usefixtures("float64")
def test_a_verdict_names_the_reason_and_what_opens_the_guard_and_is_right():
    """The rounds of the incumbent that the verdict asks for do open it."""
    problem = Problem(ORACLE, (FEATURES,), "bandit")
    policy = add_guard(LastItems(problem), None, budget=0.05)
    describe = lambda ledger, waiting=0.0: describe_guard(  # noqa: E731
        policy._diagnostics(policy.with_waiting(eqx.tree_at(lambda s: s.ledger, start, ledger), waiting)), always=True
    )
    start, x, always = policy.init(jax.random.key(0)), jnp.ones(FEATURES), jnp.asarray(1.0)
    rng = np.random.default_rng(0)
    round_of = jax.jit(lambda ledger, total: ledger.after_incumbent(x, total, always))
    ledger = initial_ledger((FEATURES,))
    assert (
        describe(ledger)
        == "the guard gives every decision to the incumbent until its cost is known from 10 rounds, now 0"
    )
    for _ in range(20):
        ledger = round_of(ledger, 10.0 + rng.normal())
    text = describe(ledger)
    asked = float(re.search(r"about ([\d,]+) rounds of the incumbent", text)[1].replace(",", ""))
    opened = next(n for n in range(1, 1000) if is_open(ledger := round_of(ledger, 10.0 + rng.normal())))
    assert opened == pytest.approx(asked, rel=0.5)
    assert "of the decisions to the learner" in describe(ledger)
    assert re.search("30 decisions wait for feedback and count .* each", describe(ledger, 30.0))
    spent = eqx.tree_at(lambda given: given.excess, ledger, 1e4)
    assert re.search("a budget that is larger by 10,.* would open it", describe(spent))
    assert describe_guard({"mean": 1.0}) is None


def is_open(ledger):
    return bool(ledger.policy_probability(BUDGET, CONFIDENCE, ZERO) > 0.0)


def test_a_forecast_begins_with_what_others_paid_and_its_errors_with_the_incumbent():
    ledger, x = initial_ledger((1,)), jnp.ones(1)
    taught = jax.jit(lambda ledger: ledger.after_other(x, jnp.asarray(20.0)))
    for _ in range(30):
        ledger = taught(ledger)
    assert float(ledger.forecast.predict(x)) == pytest.approx(20.0, rel=1e-3)
    assert (float(ledger.turnover), float(ledger.forecast.scored)) == (0.0, 0.0)
    assert float(ledger.after_incumbent(x, jnp.asarray(40.0), jnp.asarray(1.0)).forecast.spread()) > 10.0


@pytest.mark.parametrize("budget", [0.0, 0.05])
def test_the_budget_is_kept_in_a_simulation(budget):
    """Without a budget the incumbent decides throughout; the policy wants the most expensive items."""
    bench = Toy()
    with jax.enable_x64(True):
        policy = add_guard(LastItems(bench.problem("bandit")), jnp.array([0.0, 1.0, 2.0, 3.0]), budget=budget)
    result = simulate(policy, bench, seeds=2, horizon=40, recording=Recording(decisions=True))
    first = np.asarray(result.decisions)[..., :2]
    assert np.all(first == 1.0) if budget == 0.0 else np.all(first[:, :10] == 1.0)


def test_says_what_is_no_guard():
    problem = Problem(ORACLE, (FEATURES,), "bandit")
    inner = LastItems(problem)
    for given, message in (
        ({"incumbent": jnp.ones(3)}, "4 finite costs"),
        ({"incumbent": None, "budget": -1.0}, "budget of at least 0"),
        ({"incumbent": None, "confidence": 1.0}, "confidence from 0.5"),
    ):
        with pytest.raises(SettingsError, match=message):
            add_guard(inner, **given)
    with pytest.raises(SettingsError, match="solution of some costs"):
        incumbent_costs(ORACLE, [1.0, 1.0, 1.0, 0.0])
