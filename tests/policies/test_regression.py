"""The baselines of the paper: what they play and which loss their steps follow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import policies
from regretless.errors import SettingsError
from toys import DIM, Toy

TOY = Toy()
X, NOISE, COST = jnp.array([0.4, -0.3, 1.0]), jnp.array([1.0, -1.0, 0.5, 0.0]), jnp.array([1.0, 2.0, 0.5, -1.0])


def step(name, mode="bandit", **settings):
    """What one round at rate 1 takes away from θ, with the decision and the prediction that led there."""
    policy = policies.parse(name, {"policy_lr": 1.0, "clip": 1e9, **settings}).build(TOY.problem(mode))
    state = policy.init(jax.random.key(0))
    sample = policy.sample_with(NOISE, jnp.asarray(False), state, X)
    decision = policy.problem.record(sample, policy.oracle.solve_one(sample.cost), X, None)
    after, _ = policy.learn(jax.random.key(1), state, decision, policy.problem.observe(decision, COST))
    return state.theta - after.theta, decision, policy.mean(state, X)


@pytest.mark.parametrize("name", ["greedy", "epsilon_greedy", "thompson"])
@pytest.mark.parametrize(("mode", "settings"), [("bandit", {}), ("semi_bandit", {}), ("semi_bandit", {"loss": "sum"})])
def test_the_step_is_that_of_the_stated_loss(name, mode, settings):
    taken, decision, f = step(name, mode, **settings)
    w = np.asarray(decision.w)
    share = 2.0 if settings else 1.0 / w.sum()
    slope = 2 * (f @ w - COST @ w) * w if mode == "bandit" else share * w * (f - COST)
    np.testing.assert_allclose(taken, np.outer(slope, X), rtol=1e-4, atol=1e-6)


def test_the_likelihood_is_that_of_the_total():
    """−log q(v), where q is the distribution of c·w for c ~ N(f, σ² I): normal around f·w with variance σ² ‖w‖²."""
    taken, decision, f = step("thompson", thompson_loss="likelihood", exploration_scale=0.3)
    w, v = decision.w, COST @ decision.w

    def loss(theta):
        return -jax.scipy.stats.norm.logpdf(v, theta @ X @ w, 0.3 * jnp.linalg.norm(w))

    theta = jnp.linalg.lstsq(X[None], jnp.asarray(f)[None])[0].T  # any θ with this prediction has the same slope
    np.testing.assert_allclose(taken, jax.grad(loss)(theta), rtol=1e-3)
    sampled = 0.3 * np.random.default_rng(0).normal(size=(100_000, DIM)) @ np.asarray(w)
    assert sampled.std() == pytest.approx(0.3 * float(jnp.linalg.norm(w)), rel=0.02)


def test_the_likelihood_needs_the_total_alone():
    spec = policies.Thompson(thompson_loss="likelihood")
    with pytest.raises(SettingsError, match="'thompson_loss' has no effect on policy 'thompson' here"):
        policies.build_policy(spec, TOY.problem("semi_bandit"))
    with pytest.raises(SettingsError, match="expected bandit feedback, got 'full'"):
        spec.build(TOY.problem("full"))
    with pytest.raises(SettingsError, match="'loss' has no effect on policy 'greedy' here: only the total is seen"):
        policies.build_policy(policies.Greedy(loss="sum"), TOY.problem("bandit"))
