"""Weights of the learners, restarts, and results on problems that nothing was tuned for."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks, oracles, policies
from regretless.policies import Scaled
from regretless.policies.adaptive import policy as module
from regretless.problem import Problem
from regretless.simulation.simulator import Execution, Recording, simulate

QUICK = {"networks": 1, "steps": 1}


def build(problem=None, **settings):
    return policies.parse("adaptive", {**QUICK, **settings}).build(problem or Problem(oracles.top_k(4, 2), (3,)))


def with_errors(policy, errors, rounds=50):
    state = policy.init(jax.random.key(0))
    now = jnp.asarray(errors, state.errors.dtype), jnp.asarray(rounds, state.drift.rounds.dtype)
    return eqx.tree_at(lambda s: (s.errors, s.drift.rounds), state, now)


def test_weights_fall_with_the_error_and_end_at_the_margin():
    policy = eqx.tree_at(lambda p: p.min_advantage, build(temperature=0.5, margin=0.6), jnp.zeros(4))
    assert policy.names == ("linear", "log_linear", "fading", "networks")
    weights = np.asarray(policy.weights(with_errors(policy, [0.099, 0.099, 0.149, 0.199])))
    np.testing.assert_allclose(weights[:3] / weights[0], [1, 1, (0.1 / 0.15) ** 2], rtol=1e-3)
    assert weights[3] == 0, "log 2 behind"
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-6)


def test_with_feature_rows_some_learners_have_no_weight_in_the_first_rounds():
    policy = build(Problem(oracles.top_k(4, 2), (4, 3)), margin=0.1)
    weights = lambda errors, **more: np.asarray(policy.weights(with_errors(policy, errors, **more)))  # noqa: E731
    assert np.argmax(weights([0.1, 0.0995, 0.11, 0.1])) == 0, "log-linear has to be better by a hundredth"
    assert np.argmax(weights([0.1, 0.08, 0.1, 0.1])) == 1
    np.testing.assert_allclose(weights([0.1, 0.08, 0.1, 0.04], rounds=19), [0.5, 0.0, 0.5, 0.0])


def with_stacking_weight(state, share):
    """Return the state with this stacking weight of each learner relative to the first one."""
    return eqx.tree_at(
        lambda s: (s.moments.error_contrast, s.moments.contrasts), state, (jnp.full(4, share * 0.2), jnp.full(4, 0.2))
    )


def test_the_weight_of_networks_is_capped_by_their_stacking_weight():
    policy = build()
    state = with_errors(policy, [0.1, 0.1, 0.1, 0.1])
    even = np.asarray(policy.weights(with_errors(policy, [0.1, 0.1, 0.1, 0.1], rounds=19)))
    np.testing.assert_allclose(even, [1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-5, err_msg="not known yet")
    np.testing.assert_allclose(policy.weights(with_stacking_weight(state, 0.1)), [0.45, 0.45, 0, 0.1], rtol=1e-5)
    np.testing.assert_allclose(policy.weights(with_stacking_weight(state, -0.5)), [0.5, 0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(
        policy.weights(with_stacking_weight(state, 0.7)), even, rtol=1e-5, err_msg="a limit, not a weight"
    )


def test_networks_exclude_no_other_learner():
    policy = build(margin=0.4)
    state = with_stacking_weight(with_errors(policy, [0.1, 0.1, 0.1, 0.02]), 0.3)
    np.testing.assert_allclose(policy.weights(state), [0.35, 0.35, 0, 0.3], rtol=1e-5)


def after(costs, changed):
    """Return a policy's state after rounds with these totals, and after ``changed`` ones."""
    policy = build(networks=0, forgetting=0.0)
    learn, w = eqx.filter_jit(policy.learn), jnp.array([1.0, 1.0, 0.0, 0.0])
    state = policy.init(jax.random.key(0))
    for t, cost in enumerate([*costs, *changed]):
        decision = policy.problem.decision(w, jnp.ones(3))
        state, _ = learn(jax.random.key(t), state, decision, policy.problem.observe(decision, jnp.full(4, cost)))
    return state


def test_a_change_resets_all_learners_and_wrong_entries_do_not():
    rng = np.random.default_rng(0)
    usual = 3 + 0.3 * rng.normal(size=110)
    changed = after(usual, 6 + 0.3 * rng.normal(size=10))
    assert (int(changed.restarts), int(changed.drift.rounds) < 10) == (1, True)
    assert float(changed.learners[0].scale.rows) < 10, "what was learned before is gone"
    assert int(changed.version) == 120
    wrong = usual.copy()
    wrong[[104, 106]] *= 50
    assert int(after(wrong, usual[:10]).restarts) == 0


def test_without_noise_a_tiny_difference_is_no_change():
    assert int(after([3.0] * 700, [3.003] * 10).restarts) == 0
    assert int(after([3.0] * 110, [6.0] * 10).restarts) == 1


@pytest.mark.parametrize("costs", [(1.0, 1.0, -1.0, 1.0), (0.0, 1.0, 1.0)], ids=["negative", "zero"])
def test_a_cost_of_the_other_sign_ends_the_log_linear_learner(costs):
    policy = build()
    state, learn = policy.init(jax.random.key(0)), eqx.filter_jit(policy.learn)
    for t, cost in enumerate(costs):
        decision = policy.problem.decision(jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.ones(3))
        state, info = learn(jax.random.key(t), state, decision, policy.problem.observe(decision, jnp.full(4, cost)))
    assert float(policy.weights(state)[1]) == 0.0
    assert info.finite
    assert np.all(np.isfinite(policy.mean(state, jnp.ones(3))))
    description = policy.describe(state)
    assert set(description) == {
        "restarts",
        *(f"{kind}_{name}" for kind in ("weight", "error") for name in policy.names),
    }


def test_too_many_coefficients_leave_the_networks(monkeypatch):
    monkeypatch.setattr(module, "MAX_COEFFICIENTS", 10)
    assert build().names == ("networks",)
    assert build(networks=0).names == ("networks",), "one has to learn"
    alone = build(Problem(oracles.top_k(4, 2), (4, 6)))
    assert float(alone.weights(alone.init(jax.random.key(0)))[0]) == 1.0, "and has all weight at once"
    monkeypatch.setattr(module, "MAX_COEFFICIENTS", 5000)
    assert build(networks=0, forgetting=0.0).names == ("linear", "log_linear")


def world(sign, seed=0, rounds=250, d=10):
    rng = np.random.default_rng(seed)
    base, slopes = rng.uniform(2, 6, d), rng.normal(size=(d, 4)) / 2
    x = rng.normal(size=(rounds, 4)) * [1, 100, 1, 1] + [0, 50, 0, 0]
    means = np.maximum(base + ((x - [0, 50, 0, 0]) / [1, 100, 1, 1]) @ slopes.T, 0.3) - (0 if sign > 0 else 12)
    costs = 1000 * (means + rng.normal(size=means.shape))
    return benchmarks.from_arrays(x, costs, oracles.top_k(d, 2), means=1000 * means)


@functools.cache
def played(sign, chunk=4, horizon=250):
    bench = world(sign)
    problem = bench.problem("bandit")
    scaled = Scaled(problem, policies.parse("adaptive", QUICK).build(problem))
    return simulate(
        {"adaptive": scaled},
        bench,
        seeds=4,
        horizon=horizon,
        execution=Execution(chunk=chunk),
        recording=Recording(decisions=True),
    )


@pytest.mark.parametrize("sign", [1, -1], ids=["costs", "rewards"])
def test_learns_what_nothing_was_tuned_for(sign):
    run = played(sign)
    lines = {line.name: line.mean for line in run.references}
    late = np.mean(run["adaptive"].regret[:, 125:].sum(axis=1))
    assert late < 0.3 * lines["random"] / 2


def test_chunks_do_not_change_decisions():
    whole, cut = (run["adaptive"].decisions for run in (played(1), played(1, chunk=2, horizon=100)))
    assert np.array_equal(whole[:, :100], cut)


def test_the_key_and_not_rounding_decides_between_rows_of_equal_predicted_cost():
    bench = benchmarks.parse("pricing").build()
    problem = bench.problem("bandit")
    scaled = Scaled(problem, policies.parse("adaptive", {"networks": 0}).build(problem))
    play = functools.partial(simulate, {"own": scaled}, bench, seeds=4, horizon=40, recording=Recording(decisions=True))
    whole, cut = (play(execution=Execution(chunk=chunk))["own"].decisions for chunk in (4, 1))
    assert np.array_equal(whole, cut)
