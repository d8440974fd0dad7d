"""Empirical-Bayes Thompson sampling against expectation maximisation with dense matrices in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import feedback, oracles, policies
from regretless.errors import SettingsError
from regretless.policies.eb_thompson import EM_ROUNDS, EM_STEPS
from regretless.problem import Problem
from regretless.stats.bayes_linear import inverse_of_lower
from toys import DIM, FEATURES

pytestmark = pytest.mark.usefixtures("float64")
GROUPS = jnp.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
RULES = {
    "bandit": feedback.Bandit(),
    "semi_bandit": feedback.SemiBandit(),
    "groups": feedback.Linear(lambda w, aux: GROUPS * w, lambda w, aux: jnp.ones(2), label="groups"),
}
CASES = {name: (rule, (FEATURES,)) for name, rule in RULES.items()} | {"rows": (RULES["bandit"], (DIM, FEATURES))}
Q = 1 + FEATURES


def dense_fit(rows, values, groups, start):
    """Return variances and noise after one fit, and the posterior of all coefficients, with a diagonal prior."""
    variances = np.array(start)
    gram, moments = rows.T @ rows, rows.T @ values

    def posterior():
        covariance = np.linalg.inv(np.diag(1.0 / variances[groups]) + gram / variances[4])
        return covariance @ moments / variances[4], covariance

    for _ in range(EM_STEPS):
        mean, covariance = posterior()
        squares = mean**2 + np.diag(covariance)
        errors = np.sum((values - rows @ mean) ** 2) + np.trace(gram @ covariance)
        means = [np.mean(squares[groups == g]) if np.any(groups == g) else variances[g] for g in range(4)]
        variances = np.array([*means, errors / len(values)])
    return variances, *posterior()


@pytest.fixture(scope="module", params=CASES)
def played(request):
    """Play rounds with two fits, one of every four rows lost; return the states and the rows of all coefficients."""
    rule, shape = CASES[request.param]
    problem = Problem(oracles.top_k(DIM, 2), shape, rule, may_miss=True)
    policy = policies.EBThompson().build(problem)
    rng = np.random.default_rng(7)
    with jax.enable_x64(True):
        learn, refit = eqx.filter_jit(policy.learn), eqx.filter_jit(policy.refit)
        state, key = policy.init(jax.random.key(0)), jax.random.key(1)
        rows, values, counts, states = [], [], [], []
        for t in range(2 * EM_ROUNDS + 3):
            x, w = rng.normal(size=shape), np.zeros(DIM)
            w[rng.permutation(DIM)[:2]] = 1.0
            decision = problem.decision(jnp.asarray(w), jnp.asarray(x))
            cost = 2.0 + np.arange(DIM) + x @ np.array([1.0, -1.0, 0.5]) + 0.1 * rng.normal(size=DIM)
            got = problem.observe(decision, jnp.asarray(cost))
            got = problem.with_seen(got, jnp.asarray(rng.random(got.values.shape) > 0.25))
            z = np.concatenate([np.ones((*shape[:-1], 1)), x], axis=-1)
            for k in np.flatnonzero(got.used()):
                h = np.asarray(got.operator.rmatvec(jnp.eye(len(got.values))[k]))
                rows.append(h @ z if len(shape) == 2 else np.concatenate([h.sum() * z, np.kron(h, z)]))
                values.append(float(got.values[k]))
            state, info = learn(key, state, decision, got)
            assert info.finite
            if (t + 1) % EM_ROUNDS == 0:
                state = refit(key, state)
            counts.append(len(values))
            states.append(state)
    return policy, states, counts, np.array(rows), np.array(values)


def expected(policy, counts, rows, values, rounds):
    """Return variances, and the posterior of all ``θ``, after so many rounds."""
    by_row = len(policy.problem.context_shape) == 2
    groups = np.r_[0, np.ones(FEATURES, int), np.tile(np.r_[2, np.full(FEATURES, 3)], 0 if by_row else DIM)]
    variances = np.ones(5)
    for fit in range(EM_ROUNDS, rounds + 1, EM_ROUNDS):
        seen = counts[fit - 1]
        variances, _, _ = dense_fit(rows[:seen], values[:seen], groups, variances)
    seen = counts[rounds - 1]
    covariance = np.linalg.inv(np.diag(1.0 / variances[groups]) + rows[:seen].T @ rows[:seen] / variances[4])
    mean = covariance @ (rows[:seen].T @ values[:seen]) / variances[4]
    sum_of_parts = np.eye(Q) if by_row else np.hstack([np.tile(np.eye(Q), (DIM, 1)), np.eye(DIM * Q)])
    return variances, sum_of_parts @ mean, sum_of_parts @ covariance @ sum_of_parts.T


@pytest.mark.parametrize("rounds", [EM_ROUNDS - 1, EM_ROUNDS, 2 * EM_ROUNDS + 3])
def test_variances_and_posterior_are_those_of_dense_em(played, rounds):
    policy, states, counts, rows, values = played
    variances, mean, covariance = expected(policy, counts, rows, values, rounds)
    state = states[rounds - 1]
    np.testing.assert_allclose(np.array(state.variances), variances, rtol=1e-6)
    shape = policy.problem.context_shape
    zero, unit = np.zeros(shape), np.eye(FEATURES)
    offsets = np.broadcast_to(unit[:, None], (FEATURES, *shape)) if len(shape) == 2 else unit
    level = policy.mean(state, jnp.asarray(zero))
    slopes = np.array([policy.mean(state, jnp.asarray(x)) - level for x in offsets])
    theta = np.vstack([level, slopes]).T if len(shape) == 1 else np.r_[level[0], slopes[:, 0]]
    np.testing.assert_allclose(theta.reshape(-1), mean, rtol=1e-6, atol=1e-7)
    x = np.random.default_rng(1).normal(size=shape)
    samples = jax.jit(jax.vmap(lambda key: policy.sample(key, state, jnp.asarray(x), None).cost))
    drawn = np.asarray(samples(jax.random.split(jax.random.key(3), 40_000)))
    z = np.concatenate([np.ones((*shape[:-1], 1)), x], axis=-1)
    directions = z if len(shape) == 2 else np.kron(np.eye(DIM), z)
    spread = 0.09 * directions @ covariance @ directions.T
    # 40,000 draws: a variance is known to 0.7 %; five times that is allowed.
    np.testing.assert_allclose(np.cov(drawn.T), spread, atol=0.035 * spread.diagonal().max())


def test_the_inverse_of_a_triangular_matrix():
    rng = np.random.default_rng(0)
    for size in (7, 40):
        lower = np.tril(rng.normal(size=(3, 2, size, size))) / size + 2.0 * np.eye(size)
        np.testing.assert_allclose(inverse_of_lower(jnp.asarray(lower)), np.linalg.inv(lower), rtol=1e-9, atol=1e-12)


def test_nothing_is_fitted_before_anything_was_seen():
    problem = Problem(oracles.top_k(DIM, 2), FEATURES, may_miss=True)
    policy = policies.EBThompson().build(problem)
    state = policy.init(jax.random.key(0))
    assert jax.tree.all(jax.tree.map(jnp.array_equal, policy.refit(jax.random.key(1), state), state))


def test_costs_without_noise_do_not_break_it():
    problem = Problem(oracles.top_k(DIM, 2), FEATURES, "full")
    policy = policies.EBThompson().build(problem)
    learn, refit = eqx.filter_jit(policy.learn), eqx.filter_jit(policy.refit)
    state, rng = policy.init(jax.random.key(0)), np.random.default_rng(0)
    for t in range(4 * EM_ROUNDS):
        x = rng.normal(size=FEATURES)
        decision = problem.decision(jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.asarray(x))
        state, info = learn(jax.random.key(t), state, decision, problem.observe(decision, jnp.full(DIM, 1.0 + x[0])))
        state = refit(jax.random.key(t), state) if (t + 1) % EM_ROUNDS == 0 else state
        assert info.finite
    np.testing.assert_allclose(policy.mean(state, jnp.array([2.0, 5.0, 5.0])), 3.0, rtol=1e-3)


def test_too_many_coefficients_are_refused():
    with pytest.raises(SettingsError, match="eb_thompson: 10000 coefficients"):
        policies.EBThompson().build(Problem(oracles.top_k(1000, 2), 9))
