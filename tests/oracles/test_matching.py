"""The assignment in JAX against scipy's, with pairs forbidden and without."""

import jax
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from regretless import oracles
from regretless.errors import SettingsError

ORACLE = oracles.assignment(12)


def scipys(costs):
    tables = costs.reshape(-1, 12, 12)
    return np.array([table[linear_sum_assignment(table)].sum() for table in tables])


def test_costs_as_much_as_scipys_and_as_the_same_solver_from_outside():
    costs = np.random.default_rng(0).normal(size=(64, 144)) * np.array([1.0, 1e6] * 32)[:, None]
    costs[::5] = np.round(costs[::5])  # ties
    ours = ORACLE.answer(costs)
    np.testing.assert_allclose(np.sum(costs * ours.w, axis=1), scipys(costs), rtol=1e-12)
    assert ORACLE.contained(ours.w).all()

    def solve(cost):
        w = np.zeros((12, 12))
        w[linear_sum_assignment(cost.reshape(12, 12))] = 1
        return w.reshape(-1)

    untied = costs[[1, 2, 3, 4]]
    assert np.array_equal(oracles.external(solve, 144).answer(untied).w, ORACLE.answer(untied).w)


def test_forbidden_pairs_are_not_used_and_too_few_pairs_are_infeasible():
    rng = np.random.default_rng(1)
    costs, masks = rng.normal(size=(16, 144)), rng.uniform(size=(16, 144)) < 0.5
    masks |= np.eye(12, dtype=bool).reshape(-1)  # the diagonal is always there
    w = ORACLE.answer(costs, masks).w
    assert not np.any(w[~masks])
    np.testing.assert_allclose(np.sum(costs * w, axis=1), scipys(np.where(masks, costs, 1e5)), rtol=1e-9)
    closed = masks.copy()
    closed[3, :12] = False
    with jax.enable_x64(True):
        assert ORACLE.solve(costs, closed).status.tolist() == [0, 0, 0, 1] + [0] * 12
    assert not ORACLE.contained(w, closed)[3]


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_refuses_what_is_no_size(n):
    with pytest.raises(SettingsError, match="expected a positive number of rows"):
        oracles.assignment(n)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_search_among_costs_that_are_not_finite_ends(value):
    costs = np.random.default_rng(2).normal(size=(2, 12, 12))
    costs[:, 3] = costs[1, :, 5] = value
    solution = ORACLE.solve(costs.reshape(2, 144))
    assert solution.w.sum(axis=1).tolist() == [12, 12], "a permutation of no meaning; answer refuses such costs"
