"""The live learner: the decisions of simulate, feedback in any order, failures that change nothing."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless import benchmarks, feedback, oracles, policies
from regretless.errors import FeedbackError, SettingsError
from regretless.feedback import observe
from regretless.live.learner import Learner
from regretless.settings import Settings
from regretless.simulate import rounds
from regretless.simulate.simulation import simulate

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)


def make(**options):
    return Learner(options.pop("oracle", ORACLE), **{"context_dim": FEATURES, "scaling": False, **options})


def state_of(learner):
    return jax.tree.map(np.asarray, learner._state)


def same(one, other):
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


@pytest.mark.parametrize(
    ("benchmark_name", "name"), [("topk", "dfhpg"), ("shortest_path", "dfhpg"), ("topk", "linear_thompson")]
)
def test_makes_the_decisions_of_an_unbatched_simulation(benchmark_name, name):
    benchmark = benchmarks.build(benchmark_name)
    settings = benchmarks.preset(benchmark_name, "gaussian_linear", 8, "bandit").settings
    rule, seed, horizon = benchmark.measurement("bandit"), 5, 60
    policy = policies.build(name, settings, policies.Problem(benchmark.oracle, benchmark.context_shape, rule))
    trace = simulate(policy, benchmark, seeds=[seed], horizon=horizon, vectorized=False, keep_decisions=True)
    with jax.enable_x64(True):
        stream = rounds.draw(rounds.Game(benchmark, rule), jax.random.key(seed), jnp.int32(0), horizon).rounds
        contexts, costs = np.asarray(stream.observation), np.asarray(stream.cost)
    learner = Learner(
        benchmark.oracle,
        context_shape=benchmark.context_shape,
        policy=name,
        settings=settings,
        scaling=False,
        seed=seed,
    )
    for t in range(horizon):
        choice = learner.decide(contexts[t])
        assert np.array_equal(choice.w, trace.decisions[0, t]), f"round {t + 1}"
        with jax.enable_x64(True):
            total = float(jnp.sum(jnp.asarray(choice.w) * costs[t]))
        learner.learn(choice.id, total=total)


def test_feedback_in_any_order_repeated_contradicting_unknown_expired():
    learner = make(max_pending=3)
    with pytest.raises(FeedbackError, match="unknown decision 1: no decision has been made yet"):
        learner.learn(1, total=1.0)
    ids = [learner.decide(np.ones(FEATURES)).id for _ in range(4)]
    assert ids == [1, 2, 3, 4]
    assert learner.waiting == [2, 3, 4]
    for id, message in (
        (1, "decision 1 has expired or was learnt long ago: the last 3"),
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
    with pytest.raises(FeedbackError, match="decision 4 has been learnt from other feedback"):
        learner.learn(4, total=2.5)
    for bad, message in (
        ({}, "expected one of total="),
        ({"total": float("nan")}, "expected a finite number"),
        ({"total": "much"}, "expected a number, got 'much'"),
        ({"components": {0: 1.0}, "costs": [1.0] * 4}, "got components and costs"),
    ):
        with pytest.raises(FeedbackError, match=message):
            learner.learn(3, **bad)
    with pytest.raises(FeedbackError, match="expected the id of a decision"):
        learner.learn("3", total=1.0)
    assert same(before, state_of(learner))
    assert learner.waiting == [3]
    health = learner.health()
    assert (health.decisions, health.learnt, health.waiting, health.expired) == (4, 2, 1, 1)
    assert "too early" in health.verdict


def test_decisions_grow_too_old():
    learner = make(max_age=2)
    for _ in range(5):
        learner.decide(np.ones(FEATURES))
    assert learner.waiting == [3, 4, 5]
    with pytest.raises(FeedbackError, match="none older than 2 decisions"):
        learner.learn(2, total=1.0)


def test_late_feedback_follows_the_rule():
    """What the learner does with late feedback is what the policy does: a clipped density ratio, then nothing but plug-in."""
    settings = Settings(surrogate="spo_plus", exploration_scale=0.3, late_limit=2)
    learner = make(policy="dfhpg", settings=settings, seed=7)
    policy = policies.build("dfhpg", settings, policies.Problem(ORACLE, (FEATURES,), feedback.Bandit(), may_miss=True))
    key = jax.random.key(7)
    with jax.enable_x64(True):
        policy = jax.tree.map(jnp.asarray, policy)
        state = policy.init(rounds.purpose_key(key, rounds.START))
        decisions = []
        for t in range(1, 6):
            x = jnp.linspace(-1.0, t, FEATURES)
            decision = policy.decide(rounds.purpose_key(key, rounds.DECIDE, t), state, x, None)
            decisions.append(decision)
            choice = learner.decide(np.asarray(x))
            assert np.array_equal(choice.w, decision.w)
            # The noise is drawn in single precision, and terms of size 5 nearly cancel: 3e-8 of them may stay.
            assert choice.log_density == pytest.approx(float(decision.log_density), rel=1e-6, abs=5e-7)
        trusts = []
        for t in (3, 1, 5, 2):
            decision = decisions[t - 1]
            got = observe(feedback.Bandit(), decision, jnp.arange(1.0, 5.0))
            state, info = policy.learn(rounds.purpose_key(key, rounds.LEARN, t), state, decision, got)
            trusts.append(float(info["trust"]))
            learner.learn(t, total=float(got.total()))
    assert trusts[0] == 1.0
    assert 0 < trusts[1] <= 10
    assert trusts[3] == 0.0, "three steps old, the limit is two"
    for one, other in zip(jax.tree.leaves(state_of(learner)), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["linear_thompson", "dfhpg"])
def test_greedy_decision_solves_the_mean_and_has_no_score_term(name):
    learner = make(policy=name, settings={"alpha_max": 1.0, "alpha_min": 1.0, "baseline": "none", "variant": "plug_in"})
    for t in range(4):
        learner.learn(learner.decide(np.full(FEATURES, t)).id, total=3.0)
    x = np.array([0.2, 0.1, -0.5])
    choice = learner.decide(x, explore=False)
    told = learner.explain(choice)
    assert np.array_equal(choice.w, told.greedy)
    np.testing.assert_allclose(choice.cost_sample, told.mean)
    assert told.differs == 0
    assert told.gap == 0
    before = state_of(learner)
    learner.learn(choice.id, total=50.0)
    after = state_of(learner)
    if name == "dfhpg":  # α = 1: nothing but the score term could move θ
        assert np.array_equal(after.theta, before.theta)
        assert told.alpha == 1.0
    else:
        assert not np.array_equal(after.theta, before.theta)
        assert told.alpha is None


def test_explains_itself():
    learner = make(settings={"posterior_scale": 5.0})
    for t in range(6):
        learner.learn(learner.decide(np.full(FEATURES, t)).id, total=float(t * t))
    choices = [learner.decide(np.ones(FEATURES)) for _ in range(20)]
    told = [learner.explain(choice) for choice in choices]
    assert all(one.gap >= -1e-9 for one in told), "nothing is cheaper than the greedy decision under the mean"
    assert any(one.differs for one in told)
    assert told[0].residual is None
    receipt = learner.learn(choices[0].id, total=40.0)
    expected = 40.0 - float(told[0].mean @ choices[0].w)
    assert receipt.residual == pytest.approx(expected)
    assert learner.explain(choices[0]).residual == pytest.approx(expected)


def test_several_contexts_are_several_decisions():
    one, other = make(seed=3), make(seed=3)
    contexts = np.random.default_rng(0).normal(size=(5, FEATURES))
    many = one.decide(contexts)
    single = [other.decide(x) for x in contexts]
    assert [choice.id for choice in many] == [1, 2, 3, 4, 5]
    assert all(np.array_equal(a.w, b.w) for a, b in zip(many, single, strict=True))
    for bad, message in (
        (np.ones(2), r"expected shape \(3,\), or \('n', 3\) for several, got \(2,\)"),
        ([1.0, np.nan, 0.0], "expected finite numbers"),
        ("abc", "expected numbers of shape"),
        (np.ones((0, 3)), "at least one context"),
    ):
        with pytest.raises(SettingsError, match=message):
            one.decide(bad)
    assert len(one.waiting) == 5


def test_feasible_set_that_changes_by_decision():
    learner = make()
    rng = np.random.default_rng(1)
    for t in range(8):
        open_items = np.arange(DIM) != t % DIM
        choice = learner.decide(rng.normal(size=FEATURES), instance=open_items)
        assert choice.w[t % DIM] == 0
        learner.learn(choice.id, total=float(rng.normal()))
    with pytest.raises(SettingsError, match="expected the form of earlier ones"):
        learner.decide(np.ones(FEATURES))
    with pytest.raises(oracles.OracleError, match="feasible set is empty"):
        learner.decide(np.ones(FEATURES), instance=np.array([True, False, False, False]))
    assert learner.health().decisions == 8


class Moody:
    """A solver that fails when told to."""

    def __init__(self):
        self.broken = False

    def __call__(self, cost):
        if self.broken:
            raise RuntimeError("out of licences")
        return (np.argsort(np.argsort(cost)) < 2).astype(float)


@pytest.mark.parametrize("name", ["linear_thompson", "dfhpg"])
def test_failing_solver_raises_and_changes_nothing_or_falls_back(name):
    solver = Moody()
    oracle = oracles.external(solver, DIM)
    strict, lenient = (
        Learner(oracle, context_dim=FEATURES, policy=name, on_failure=how, settings={"surrogate": "spo_plus"})
        for how in ("raise", "last")
    )
    solver.broken = True
    with pytest.raises(oracles.OracleError, match="out of licences"):
        lenient.decide(np.ones(FEATURES))  # nothing to fall back on yet
    solver.broken = False
    first = lenient.decide(np.ones(FEATURES))
    strict.decide(np.ones(FEATURES))
    solver.broken = True
    before = state_of(strict), strict.waiting, strict.health()
    with pytest.raises(oracles.OracleError, match="out of licences"):
        strict.decide(np.zeros(FEATURES))
    if name == "dfhpg":  # learning solves, too
        with pytest.raises(oracles.OracleError, match="out of licences"):
            strict.learn(1, total=1.0)
    assert same(before[0], state_of(strict))
    assert (strict.waiting, strict.health()) == before[1:]
    again = lenient.decide(np.zeros(FEATURES))
    assert again.fallback
    assert np.array_equal(again.w, first.w)
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
    learner = Learner(oracle, context_dim=1, on_failure="last")
    learner.decide([0.0], instance=np.array([True, True, True]))
    with pytest.raises(oracles.OracleError, match=r"closed.*last feasible decision is not feasible now"):
        learner.decide([0.0], instance=np.array([False, True, True]))


@pytest.mark.parametrize("name", ["linear_thompson", "greedy"])
def test_known_part_of_the_cost_is_not_learnt(name):
    """With the true cost known beforehand and totals that agree, the rest is zero and the decision is the best one."""
    offset = np.array([3.0, 1.0, 2.0, 0.5])
    learner = make(policy=name, offset=offset)
    for t in range(12):
        choice = learner.decide(np.full(FEATURES, t % 3), explore=t < 6)
        learner.learn(choice.id, total=float(offset @ choice.w))
    assert np.max(np.abs(learner._state.theta)) < (1e-9 if name == "linear_thompson" else 0.1)
    told = learner.explain(choice)
    np.testing.assert_allclose(told.mean, offset, atol=1e-6 if name == "linear_thompson" else 0.5)
    assert choice.w.tolist() == [0, 1, 0, 1]
    with pytest.raises(SettingsError, match="expected offset to be 4 finite numbers"):
        make(offset=[1.0])


def test_scaling_brings_contexts_and_costs_to_order_one():
    """A feature in millions beside a small one that matters, costs in thousands: with scaling the small one is learnt."""
    rng = np.random.default_rng(0)
    rest = {}
    for scaling in (True, False):
        learner = make(context_dim=2, scaling=scaling)
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
    assert sgd._costs.size == pytest.approx(5e4 / 2**0.5)
    assert np.max(np.abs(sgd._state.theta)) < 10


def test_threads_do_not_lose_or_mix_decisions():
    learner = make()
    learner.learn(learner.decide(np.zeros(FEATURES)).id, total=0.0)
    seen, errors = [], []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(25):
                choice = learner.decide(rng.normal(size=FEATURES))
                seen.append(choice.id)
                learner.learn(choice.id, total=float(rng.normal()))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(seen) == list(range(2, 102))
    assert int(learner._state.version) == 101
    assert learner.health().learnt == 101


def test_names_and_objects():
    model = rg.models.GaussianLinear(DIM, (FEATURES,), np.asarray(0.7))
    surrogate = rg.surrogates.REGISTRY["dbb"](ORACLE)
    learner = make(policy="dfhpg", model=model, surrogate=surrogate)
    assert learner._kernel.choices.policy(learner._kernel.numbers).model.scale == 0.7
    policy = policies.build("greedy", Settings(), policies.Problem(ORACLE, (FEATURES,), feedback.Bandit()))
    choice = make(policy=policy).decide(np.ones(FEATURES))
    assert choice.log_density is None
    for options, message in (
        ({"policy": "linear_thomson"}, "unknown policy 'linear_thomson'; did you mean 'linear_thompson'"),
        ({"model": model}, "policy 'linear_thompson' has no model of its own to replace"),
        ({"policy": policy, "settings": Settings()}, "settings, model and surrogate are for a policy by name"),
        ({"policy": "dfhpg", "surrogate": "spoplus"}, "did you mean 'spo_plus'"),
        ({"settings": {"epsilonn": 1}}, "unknown setting 'epsilonn'"),
        ({"feedback": "bandits"}, "unknown feedback 'bandits'"),
        ({"feedback": "linear"}, "rows= is the most rows"),
        ({"context_dim": None}, "expected context_dim=p for a context vector"),
        ({"context_dim": None, "context_shape": (3, 2)}, r"expected a context of shape \(p,\) or \(4, p\)"),
        ({"max_pending": 0}, "max_pending: Input should be greater than or equal to 1, got 0"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(SettingsError, match=message):
            make(**options)
    with pytest.raises(SettingsError, match="expected an oracle"):
        Learner(lambda cost: cost, context_dim=2)


def test_health_speaks_of_trends():
    learner = make(settings={"posterior_scale": 0.0})
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(DIM, FEATURES))
    verdicts = []
    for t in range(300):
        x = rng.normal(size=FEATURES)
        choice = learner.decide(x)
        sign = 1.0 if t < 200 else -8.0
        if t % 5:
            learner.learn(choice.id, total=float(sign * (weights @ x + 3.0) @ choice.w))
        verdicts.append(learner.health().verdict)
    assert any("learning" in verdict for verdict in verdicts[50:150])
    assert any("getting worse" in verdict for verdict in verdicts[200:])
    health = learner.health()
    assert health.exploration_share is not None
    assert health.feedback_share == 1.0
    assert health.waiting == 60
