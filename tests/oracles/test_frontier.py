"""Portfolios against scipy's SLSQP, at the limit of the risk and inside it, with ties and in single precision."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from regretless import oracles, testing
from regretless.errors import SettingsError

DIM = 12
LOADINGS = np.random.default_rng(0).uniform(-2.5e-3, 2.5e-3, (DIM, 5))
COVARIANCE = LOADINGS @ LOADINGS.T + 1e-4 * np.eye(DIM)
RISK = 2.25 * float(np.mean(COVARIANCE))
ORACLE = oracles.portfolio(COVARIANCE, RISK)


def by_slsqp(cost):
    size = np.max(np.abs(cost)) or 1.0
    constraints = [
        {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        {"type": "ineq", "fun": lambda x: 1 - x @ COVARIANCE @ x / RISK, "jac": lambda x: -2 * COVARIANCE @ x / RISK},
    ]
    start, bounds, options = np.full(DIM, 1 / DIM), [(0, 1)] * DIM, {"ftol": 1e-13, "maxiter": 500}
    solve = {"jac": lambda x: cost / size, "method": "SLSQP", "bounds": bounds, "constraints": constraints}
    return minimize(lambda x: cost @ x / size, start, options=options, **solve).x


def test_is_as_good_as_slsqp_and_feasible():
    costs = np.random.default_rng(1).normal(size=(12, DIM)) * np.array([1.0, 1e-4, 1e6] * 4)[:, None]
    costs[::4] = np.round(costs[::4])  # ties and zeros
    costs[5] = 0
    w = ORACLE.answer(costs).w
    best = np.array([cost @ by_slsqp(cost) for cost in costs])
    size = np.max(np.abs(costs), axis=1)
    assert np.all(np.sum(costs * w, axis=1) <= best + 1e-8 * size)
    np.testing.assert_allclose(np.sum(costs * w, axis=1), best, atol=1e-6 * np.max(size), rtol=1e-6)
    np.testing.assert_allclose(w.sum(axis=1), 1, rtol=1e-12)
    assert w.min() >= 0
    assert np.max(np.einsum("bi,ij,bj->b", w, COVARIANCE, w)) <= RISK * (1 + 1e-9)
    assert ORACLE.contained(w).all()
    single = np.asarray(ORACLE.solve(jnp.asarray(costs, jnp.float32)).w)
    assert ORACLE.contained(single).all()
    assert np.all(np.abs(np.sum(costs * (single - w), axis=1)) <= 1e-4 * size)


def test_keeps_the_contract():
    testing.check_oracle(ORACLE)


def test_a_wide_limit_buys_the_best_asset_and_a_narrow_one_the_safest_mix():
    costs = [[3.0, 2.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    wide = oracles.portfolio(np.eye(3), 2.0).answer(costs).w
    np.testing.assert_allclose(wide, [[0, 0, 1], [0, 0, 1], [1 / 3] * 3], atol=1e-12)
    narrow = oracles.portfolio(np.eye(3), 1 / 3).answer(costs).w
    np.testing.assert_allclose(narrow, np.full((3, 3), 1 / 3), atol=1e-7)
    tied = oracles.portfolio(np.eye(3), 0.5).answer(costs).w
    np.testing.assert_allclose(tied[1], [1 / 6, 1 / 6, 2 / 3], atol=1e-9)


@pytest.mark.parametrize(
    ("covariance", "risk", "message"),
    [
        ([[1.0, 0.0]], 1, r"a covariance matrix of shape \(d, d\), got \(1, 2\)"),
        ([[1.0, 0.5], [0.4, 1.0]], 1, "symmetric, positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], 1, "symmetric, positive definite"),
        ([[1.0, 0.0], [0.0, 1.0]], 0.4, "a risk of at least the lowest variance 0.5, got 0.4"),
    ],
)
def test_refuses_what_is_no_portfolio(covariance, risk, message):
    with pytest.raises(SettingsError, match=message):
        oracles.portfolio(covariance, risk)
    with pytest.raises(SettingsError, match="never changes"):
        ORACLE.instance([1.0])
