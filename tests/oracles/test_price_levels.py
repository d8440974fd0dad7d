import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles
from regretless.errors import SettingsError


def by_dynamic_programming(cost, products, levels, promotions, budget):
    """The textbook recursion over (product, budget left)."""
    table = cost.reshape(products, levels)
    best = np.zeros(budget + 1)
    for row in table[::-1]:
        now = np.empty_like(best)
        for left in range(budget + 1):
            regular = min(row[promotions:], default=np.inf) + best[left]
            promoted = min(row[:promotions], default=np.inf) + best[left - 1] if left else np.inf
            now[left] = min(regular, promoted)
        best = now
    return best[budget]


@pytest.mark.parametrize(("products", "budget"), [(20, 10), (20, 0), (5, 5), (80, 30), (7, 3)])
def test_agrees_with_dynamic_programming(products, budget):
    oracle = oracles.pricing(products, 4, 2, budget)
    costs = np.asarray(jax.random.normal(jax.random.key(products), (50, oracle.dim)), np.float32)
    decisions = np.asarray(oracle.solve(jnp.asarray(costs)).w)
    expected = [by_dynamic_programming(cost.astype(float), products, 4, 2, budget) for cost in costs]
    np.testing.assert_allclose(np.sum(costs.astype(float) * decisions, axis=1), expected, rtol=1e-5, atol=1e-5)


def test_budget_may_change_by_round():
    oracle = oracles.pricing(3, 2, 1, 3)
    cost = jnp.array([-3.0, 0.0, -2.0, 0.0, -1.0, 0.0])
    assert oracle.solve_one(cost, jnp.int32(1)).w.tolist() == [1, 0, 0, 1, 0, 1]
    assert oracle.solve_one(cost, jnp.int32(2)).w.tolist() == [1, 0, 1, 0, 0, 1]
    assert not oracle.feasible(oracle.solve_one(cost).w, jnp.int32(2))


def test_a_promotion_without_gain_is_not_made():
    assert oracles.pricing(2, 2, 1, 2).solve_one(jnp.zeros(4)).w.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"), [((3, 2, 2, 2), "budget 2, expected at least 3"), ((3, 2, 1, -1), "budget -1")]
)
def test_refuses_an_infeasible_budget(arguments, message):
    with pytest.raises(ValueError, match=message):
        oracles.pricing(*arguments)


def test_a_budget_is_an_integer():
    oracle = oracles.pricing(3, 2, 1, 3)
    assert [oracle.instance(given).tolist() for given in (2, 2.0, np.int64(2), 99)] == [2, 2, 2, 3]
    for wrong, message in ((2.5, "integer of at least 0, got 2.5"), (-1, "got -1"), ([1, 2], r"expected shape \(\)")):
        with pytest.raises(SettingsError, match=message):
            oracle.instance(wrong)
    assert oracle.answer([[-3.0, 0, -2, 0, -1, 0]] * 2, [1, 2]).w[:, ::2].tolist() == [[1, 0, 0], [1, 1, 0]]
