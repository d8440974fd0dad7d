"""Regressors in the style of scikit-learn: the fits of a plain loop, for every kind of feedback, and clear refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless import models, testing
from regretless.errors import SettingsError
from toys import Toy


class Ridge:
    """Least squares with an intercept and a weak prior."""

    def fit(self, x, y):
        x = np.column_stack([x, np.ones(len(x))])
        self.weights = np.linalg.solve(x.T @ x + 1e-6 * np.eye(x.shape[1]), x.T @ y)

    def predict(self, x):
        return np.column_stack([x, np.ones(len(x))]) @ self.weights


class Online:
    """The same with ``partial_fit`` only."""

    def __init__(self):
        self.inner = Ridge()

    def partial_fit(self, x, y):
        self.inner.fit(x, y)

    def predict(self, x):
        return self.inner.predict(x)


def play(problem, spec, rounds, costs):
    """Return the policy, its last state and the decisions of random rounds."""
    policy = spec.build(problem)
    state, rng, seen = policy.init(jax.random.key(0)), np.random.default_rng(0), []
    for t in range(rounds):
        x = jnp.asarray(rng.normal(size=problem.context_shape))
        w = jnp.asarray(rng.permutation([1.0, 1.0, 0.0, 0.0]))
        decision = problem.decision(w, x, id=t)
        state, _ = policy.learn(jax.random.key(t), state, decision, problem.observe(decision, costs(x)))
        seen.append((np.asarray(x), np.asarray(w)))
    return policy, state, seen


@pytest.mark.parametrize("make", [Ridge, Online])
@pytest.mark.parametrize("feedback", ["full", "semi_bandit"])
def test_coordinates_that_are_seen_are_fitted_one_by_one(make, feedback):
    """After 57 rounds the fit is that of rounds 11 to 50: refits every 10 rounds, 40 rounds remembered."""
    matrix = np.random.default_rng(1).normal(size=(4, 3))
    costs = lambda x: jnp.asarray(matrix @ x + np.cos(5 * np.asarray(x)[0]))  # noqa: E731
    spec = rg.policies.Greedy(model=models.Regressor(make=make, refit_every=10, memory=40))
    policy, state, seen = play(rg.Problem(rg.oracles.top_k(4, 2), 3, feedback), spec, 57, costs)
    x = np.array([0.3, -1.0, 2.0])
    expected = []
    for i in range(4):
        used = [(row, costs(row)[i]) for row, w in seen[10:50] if feedback == "full" or w[i]]
        ridge = Ridge()
        ridge.fit(np.array([row for row, _ in used]), np.array([float(y) for _, y in used]))
        expected.append(ridge.predict(x[None])[0])
    np.testing.assert_allclose(policy.mean(state, jnp.asarray(x)), expected, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
@pytest.mark.parametrize("feedback", ["bandit", "semi_bandit"])
def test_linear_costs_are_found_from_every_feedback(shape, feedback):
    weights = np.random.default_rng(1).normal(size=(4, 3) if len(shape) == 1 else 3)
    costs = lambda x: jnp.asarray(weights @ x if len(shape) == 1 else x @ weights)  # noqa: E731
    spec = rg.policies.Greedy(model=models.Regressor(make=Ridge))
    policy, state, _ = play(rg.Problem(rg.oracles.top_k(4, 2), shape, feedback), spec, 400, costs)
    x = jnp.asarray(np.random.default_rng(2).normal(size=shape))
    tolerance = 0.15 if feedback == "bandit" else 1e-4
    np.testing.assert_allclose(policy.mean(state, x), costs(x), atol=tolerance)


@pytest.mark.parametrize("policy", [rg.policies.Greedy, rg.policies.EpsilonGreedy, rg.policies.Thompson])
def test_keeps_the_contract_with(policy):
    testing.check_policy(lambda problem: policy(model=models.Regressor(make=Ridge)).build(problem))


def test_a_saved_run_continues_bit_for_bit_and_replications_differ(tmp_path):
    spec = rg.policies.EpsilonGreedy(model=models.Regressor(make=Ridge, refit_every=7, memory=20))
    whole = rg.simulate(spec, Toy(), seeds=2, horizon=60, delay=3).regret
    assert not np.array_equal(whole[0], whole[1])

    def stop(metrics):
        if metrics.round == 40:
            raise InterruptedError

    save = rg.simulation.Execution(save=tmp_path / "run.npz")
    for callback in (stop, lambda metrics: None):
        monitor = rg.simulation.Monitor(callback=callback, every=20)
        try:
            again = rg.simulate(spec, Toy(), seeds=2, horizon=60, delay=3, monitor=monitor, execution=save)
        except InterruptedError:
            continue
    assert np.array_equal(again.regret, whole)


@pytest.mark.parametrize("policy", [rg.policies.DFHPG, rg.policies.DFHPG0, rg.policies.DFHPG1])
def test_policies_that_need_a_gradient_refuse_it(policy):
    with pytest.raises(SettingsError, match="a regressor has no gradient; expected a network"):
        policy(model=models.Regressor(make=Ridge)).build(Toy().problem("bandit"))


@pytest.mark.parametrize("make", [lambda: 7, lambda: np.zeros(3)])
def test_other_objects_are_refused(make):
    with pytest.raises(SettingsError, match="returns an object with predict, got one"):
        rg.policies.Greedy(model=models.Regressor(make=make)).build(Toy().problem("bandit"))
