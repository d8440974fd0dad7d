"""The live learner: the decisions of simulate, feedback in any order, failures that change nothing."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from live.learners import build
from regretless import benchmarks, draws, oracles, policies
from regretless.draws import purpose_key
from regretless.errors import FeedbackError, SettingsError
from regretless.problem import Problem
from regretless.simulation import stream
from regretless.simulation.simulator import Execution, Recording, simulate
from regretless.types import NOT_SAMPLED
from regretless_dfhpg import presets

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)
UNBATCHED = {"execution": Execution(vectorized=False), "recording": Recording(decisions=True)}


def make(**options):
    return build(**{"scaling": False, **options})


def state_of(learner):
    return jax.tree.map(np.asarray, learner.state.policy)


def same(one, other):
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


@pytest.mark.parametrize(
    ("benchmark_name", "name", "scaling"),
    [
        ("topk", "dfhpg", False),
        ("shortest_path", "dfhpg", False),
        ("topk", "linear_thompson", False),
        ("topk", "linear_thompson", True),
        ("topk", "thompson", True),
    ],
)
def test_makes_the_decisions_of_an_unbatched_simulation(benchmark_name, name, scaling):
    benchmark = benchmarks.parse(benchmark_name).build()
    preset = presets.preset(benchmark_name, 8, "gaussian_linear", "bandit").values
    settings = preset if name == "dfhpg" else {}
    seed, horizon = 5, 60
    problem = benchmark.problem("bandit", may_miss=True)
    policy = policies.parse(name, settings).build(problem)
    policy = policies.Scaled(problem, policy) if scaling else policy
    trace = simulate(policy, benchmark, seeds=[seed], horizon=horizon, **UNBATCHED)
    with jax.enable_x64(True):
        drawn = stream.draw(stream.SimulationSpec(benchmark), jax.random.key(seed), jnp.int32(0), horizon).rounds
        contexts, costs = np.asarray(drawn.observation), np.asarray(drawn.cost)
    learner = build(
        benchmark.oracle,
        context=benchmark.context_shape,
        policy=name,
        settings=settings,
        scaling=scaling,
        seed=seed,
    )
    for t in range(horizon):
        choice = learner.decide(contexts[t])
        assert np.array_equal(choice.w, trace.decisions[0, t]), f"round {t + 1}"
        with jax.enable_x64(True):
            total = float(jnp.sum(jnp.asarray(choice.w) * costs[t]))
        learner.learn(choice.id, total=total)


def test_feedback_in_any_order_repeated_contradicting_unknown_expired():
    learner = make(policy="adaptive", limit=3)
    with pytest.raises(FeedbackError, match="unknown decision 1: no decision has been made yet"):
        learner.learn(1, total=1.0)
    ids = [learner.decide(np.ones(FEATURES)).id for _ in range(4)]
    assert ids == [1, 2, 3, 4]
    assert learner.waiting == [2, 3, 4]
    for id, message in (
        (1, "decision 1 has expired or was learned long ago: the last 3"),
        (5, "unknown decision 5: this learner has made decisions 1 to 4"),
    ):
        with pytest.raises(FeedbackError, match=message):
            learner.learn(id, total=1.0)
    assert learner.learn(4, total=2.0).new
    assert learner.learn(2, total=1.0).new
    before = state_of(learner)
    receipt = learner.learn(4, total=2.0)
    assert not receipt.new
    assert "nothing changed" in receipt.message
    with pytest.raises(FeedbackError, match="decision 4 has been learned from other feedback"):
        learner.learn(4, total=2.5)
    for bad, message in (
        ({}, "expected one of total="),
        ({"total": float("nan")}, "total: expected a finite number, got nan"),
        ({"total": "much"}, "total: expected numbers, got text"),
        ({"components": {0: 1.0}, "costs": [1.0] * 4}, "got components and costs"),
    ):
        with pytest.raises(FeedbackError, match=message):
            learner.learn(3, **bad)
    with pytest.raises(FeedbackError, match="expected the id of a decision"):
        learner.learn(3.0, total=1.0)
    assert same(before, state_of(learner))
    assert learner.waiting == [3]
    health = learner.health()
    assert (health.decisions, health.learned, health.waiting, health.expired) == (4, 2, 1, 1)
    assert "too early" in health.verdict


def test_decisions_grow_too_old():
    learner = make(max_age=2)
    for _ in range(5):
        learner.decide(np.ones(FEATURES))
    assert learner.waiting == [3, 4, 5]
    with pytest.raises(FeedbackError, match="none older than 2 decisions"):
        learner.learn(2, total=1.0)


def test_late_feedback_follows_the_rule():
    """Late feedback is learned as the policy learns it: a clipped density ratio, then nothing but plug-in."""
    settings = {"surrogate": "spo_plus", "exploration_scale": 0.3, "late_limit": 2}
    learner = make(policy="dfhpg", settings=settings, seed=7)
    problem = Problem(ORACLE, (FEATURES,), "bandit", may_miss=True)
    policy = policies.parse("dfhpg", settings).build(problem)
    key = jax.random.key(7)
    with jax.enable_x64(True):
        policy = jax.tree.map(jnp.asarray, policy)
        state = policy.init(purpose_key(key, draws.START))
        decisions = []
        for t in range(1, 6):
            x = jnp.linspace(-1.0, t, FEATURES)
            decision = policy.decide(purpose_key(key, draws.DECIDE, t), state, x, None)
            decisions.append(decision)
            choice = learner.decide(np.asarray(x))
            assert np.array_equal(choice.w, decision.w)
            # The noise is drawn in single precision, and terms of size 5 nearly cancel: 3e-8 of them may stay.
            assert choice.log_density == pytest.approx(float(decision.log_density), rel=1e-6, abs=5e-7)
        trusts = []
        for t in (3, 1, 5, 2):
            decision = decisions[t - 1]
            got = problem.observe(decision, jnp.arange(1.0, 5.0))
            state, info = policy.learn(purpose_key(key, draws.LEARN, t), state, decision, got)
            trusts.append(float(info.more["trust"]))
            learner.learn(t, total=float(got.total()))
    assert trusts[0] == 1.0
    assert 0 < trusts[1] <= 10
    assert trusts[3] == 0.0, "three steps old, the limit is two"
    for one, other in zip(jax.tree.leaves(state_of(learner)), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["linear_thompson", "dfhpg"])
def test_greedy_decision_solves_the_mean_and_has_no_score_term(name):
    own = {"alpha.max": 1.0, "alpha.min": 1.0, "baseline": "none", "variant": "plug_in"} if name == "dfhpg" else {}
    learner = make(policy=name, settings=own)
    for t in range(4):
        learner.learn(learner.decide(np.full(FEATURES, t)).id, total=3.0)
    x = np.array([0.2, 0.1, -0.5])
    choice = learner.decide(x, explore=False)
    explanation = learner.explain(choice)
    assert learner.state.find(choice.id).version == NOT_SAMPLED
    assert np.array_equal(choice.w, explanation.greedy)
    np.testing.assert_allclose(choice.cost_sample, explanation.mean)
    assert explanation.differs == 0
    assert explanation.gap == 0
    before = state_of(learner)
    learner.learn(choice.id, total=50.0)
    after = state_of(learner)
    if name == "dfhpg":  # α = 1: nothing but the score term could move θ
        assert np.array_equal(after.theta, before.theta)
        assert explanation.details == {"alpha": 1.0}
    else:
        assert not np.array_equal(after.posterior.mean, before.posterior.mean)
        assert explanation.details == {}


def test_explains_itself():
    learner = make(settings={"posterior_scale": 5.0})
    for t in range(6):
        learner.learn(learner.decide(np.full(FEATURES, t)).id, total=float(t * t))
    choices = [learner.decide(np.ones(FEATURES)) for _ in range(20)]
    explanation = [learner.explain(choice) for choice in choices]
    assert all(one.gap >= -1e-9 for one in explanation), "nothing is cheaper than the greedy decision under the mean"
    assert any(one.differs for one in explanation)
    assert explanation[0].residual is None
    receipt = learner.learn(choices[0].id, total=40.0)
    expected = 40.0 - float(explanation[0].mean @ choices[0].w)
    assert receipt.residual == pytest.approx(expected)
    assert learner.explain(choices[0]).residual == pytest.approx(expected)
    by_id = learner.explain(choices[0].id)
    assert by_id.residual == pytest.approx(expected)
    assert np.array_equal(by_id.cost_sample, choices[0].cost_sample)
    assert learner.explain(choices[1].id).differs == learner.explain(choices[1]).differs
    for bad, error in (
        (99, FeedbackError),
        (2.0, FeedbackError),
        (True, FeedbackError),
        ("no-such-key", FeedbackError),
        (None, FeedbackError),
        (10**5000, FeedbackError),
        ((1, 2), FeedbackError),
        (dataclasses.replace(choices[0], context=np.ones(7)), SettingsError),
    ):
        with pytest.raises(error):
            learner.explain(bad)


def test_the_default_reports_who_decides_and_why():
    learner = make(policy="adaptive")
    rng = np.random.default_rng(0)
    for _ in range(45):
        x = rng.normal(size=FEATURES)
        choice = learner.decide(x)
        learner.learn(choice.id, total=float((x[0] + np.arange(1.0, 5.0)) @ choice.w))
    explanation, health = learner.explain(choice).details, learner.health()
    names = ("linear", "log_linear", "fading", "networks")
    assert set(explanation) == {"restarts", *(f"{what}_{name}" for what in ("weight", "error") for name in names)}
    assert explanation["restarts"] == 0
    assert explanation == health.details
    assert sum(explanation[f"weight_{name}"] for name in names) == pytest.approx(1.0)
    first = max(names, key=lambda name: explanation[f"weight_{name}"])
    line = f"base learners (relative errors): {first} {explanation[f'weight_{first}']:.0%} ({explanation[f'error_{first}']:.2f}), "  # noqa: E501
    assert line in health.verdict
    silent = [name for name in names if explanation[f"weight_{name}"] == 0]
    assert "log_linear" in silent, "some costs are below zero"
    assert all(f"{name} 0% (" in health.verdict for name in silent)


@pytest.mark.parametrize("name", ["linear_thompson", "greedy"])
def test_known_part_of_the_cost_is_not_learned(name):
    """With the true cost known beforehand and totals that agree, the rest is zero and the decision is the best one."""
    offset = np.array([3.0, 1.0, 2.0, 0.5])
    learner = make(policy=name, offset=offset)
    for t in range(12):
        choice = learner.decide(np.full(FEATURES, t % 3), explore=t < 6)
        learner.learn(choice.id, total=float(offset @ choice.w))
    state = state_of(learner)
    slopes = state.posterior.mean if name == "linear_thompson" else state.theta
    assert np.max(np.abs(slopes)) < (1e-9 if name == "linear_thompson" else 0.1)
    explanation = learner.explain(choice)
    np.testing.assert_allclose(explanation.mean, offset, atol=1e-6 if name == "linear_thompson" else 0.5)
    assert choice.w.tolist() == [0, 1, 0, 1]
    with pytest.raises(SettingsError, match="offset: expected shape"):
        make(offset=[1.0])


def test_scaling_brings_contexts_and_costs_to_order_one():
    """A feature in millions, a small one that matters, costs in thousands: with scaling the small one is learned."""
    rng = np.random.default_rng(0)
    rest = {}
    for scaling in (True, False):
        learner = make(context=2, scaling=scaling)
        spent = 0.0
        for t in range(250):
            x = np.array([1e6 + 1e5 * rng.normal(), rng.choice([-1.0, 1.0])])
            cost = 1e3 * (2.0 + x[1] * np.array([1.0, 1.0, -1.0, -1.0]))
            choice = learner.decide(x)
            learner.learn(choice.id, total=float(cost @ choice.w))
            spent += float(cost @ choice.w) / 1e3 if t >= 150 else 0.0
        rest[scaling] = spent / 100
    assert rest[True] < 2.2, "the best two of four cost 2, random ones 4"
    assert rest[False] > 1.2 * rest[True]
    sgd = make(policy="greedy", scaling=True)
    for _ in range(30):
        choice = sgd.decide(rng.normal(size=FEATURES))
        sgd.learn(choice.id, total=5e4)
    # All sizes are equal: the robust estimate is the size times the factor that nine tenths of a normal variable need.
    assert sgd.explain(choice).details["cost_unit"] == pytest.approx(1.27 * 5e4 / 2**0.5)
    assert np.max(np.abs(state_of(sgd).inner.theta)) < 10


@pytest.mark.parametrize("name", ["adaptive", "linear_thompson", "greedy", "dfhpg"])
def test_one_absurd_number_ruins_nothing(name):
    """A context of 1e300 and costs of 1e200 among sane ones: the second half is as good as without them."""
    spent = {}
    for absurd in (False, True):
        rng = np.random.default_rng(0)
        learner = make(policy=name, feedback="full", scaling=True)
        weights, kept = rng.normal(size=(DIM, FEATURES)), []
        for t in range(160):
            x = rng.normal(size=FEATURES)
            costs = weights @ x + 3.0
            shown = np.array([1e300, 1.0, 1.0]) if absurd and t == 30 else x
            wrong = (
                absurd and t == 40 and name != "linear_thompson"
            )  # least squares remembers what stands in for it, too
            explanation = np.full(DIM, 1e200) if wrong else costs
            choice = learner.decide(shown)
            receipt = learner.learn(choice.id, costs=explanation)
            assert ("not believed" in receipt.message) == wrong
            kept.append(float(costs @ choice.w - np.sort(costs)[:2].sum()))
        spent[absurd] = np.mean(kept[100:])
    assert spent[True] < 2.0 * spent[False] + 0.3
