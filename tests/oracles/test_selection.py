"""Top-k and pricing: against sorting and the textbook recursion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless import oracles
from regretless.errors import SettingsError
from regretless.oracles.selection import mark_lowest


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(0, 10))
def test_the_lowest_agree_with_a_stable_sort(values, k):
    expected = np.zeros(len(values), bool)
    expected[np.argsort(values, kind="stable")[:k]] = True
    assert np.array_equal(mark_lowest(jnp.array(values, float), k), expected)
    assert np.array_equal(mark_lowest(jnp.array(values, float), jnp.int32(k)), expected)


def test_partial_sort_breaks_ties_as_the_pairwise_comparison_does():
    values = jnp.round(2 * jax.random.normal(jax.random.key(0), (500,)))
    for k in (0, 1, 17, 250, 500):
        assert np.array_equal(mark_lowest(values, k), mark_lowest(values, jnp.int32(k)))


def test_unavailable_items_are_not_chosen_and_too_few_are_infeasible():
    oracle = oracles.top_k(4, 2)
    cost = jnp.array([0.0, 1.0, 2.0, 3.0])
    solution = oracle.solve_one(cost, jnp.array([False, True, False, True]))
    assert solution.w.tolist() == [0, 1, 0, 1]
    assert solution.status == 0
    assert oracle.feasible(solution.w, jnp.array([False, True, False, True]))
    assert not oracle.feasible(solution.w, jnp.array([True, False, True, True]))
    assert oracle.solve_one(cost, jnp.array([False, False, False, True])).status != 0


@pytest.mark.parametrize("k", [0, 4])
def test_refuses_an_impossible_k(k):
    with pytest.raises(ValueError, match=f"1 ≤ k ≤ number of items, got k = {k} with 3 items"):
        oracles.top_k(3, k)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: oracles.top_k(4, 2.0), r"top-k: k: expected an integer, got 2\.0"),
        (lambda: oracles.top_k(4, True), "top-k: k: expected an integer, got True"),
        (lambda: oracles.top_k("4", 2), "top-k: dim: expected an integer, got '4'"),
        (lambda: oracles.pricing(3, 2.0, 1, 1), r"pricing: levels: expected an integer, got 2\.0"),
    ],
)
def test_sizes_are_integers(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_sizes_may_be_integers_of_numpy():
    assert oracles.top_k(np.int64(3), np.int32(2)) == oracles.top_k(3, 2)
    assert oracles.assignment(np.int64(3)) == oracles.assignment(3)


@pytest.mark.parametrize("kind", [bool, int, float, np.float32, list])
def test_a_mask_of_zeros_and_ones_is_a_mask(kind):
    oracle = oracles.top_k(4, 2)
    given = [0, 1, 1, 1] if kind is list else np.array([0, 1, 1, 1], kind)
    assert oracle.instance(given).tolist() == [False, True, True, True]
    assert oracle.solve_one(jnp.arange(4.0), given).w.tolist() == [0, 1, 1, 0]
    assert oracle.answer(np.arange(4.0)[None], [given]).w.tolist() == [[0, 1, 1, 0]]
    assert oracle.contained([[1, 1, 0, 0], [0, 1, 1, 0]], [given, given]).tolist() == [False, True]
    if kind is not list:
        traced = jax.jit(lambda mask: oracle.solve_one(jnp.arange(4.0), mask).w)
        assert traced(jnp.asarray(given)).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([2, 2, 0, 0], "expected True and False, or exactly 1 and 0, got 2"),
        ([1, 1, np.nan, 0], "exactly 1 and 0, got nan"),
        ([1, 1, 0.5, 0], "exactly 1 and 0, got 0.5"),
        (["1", "1", "0", "0"], "expected numbers, got text"),
        ([1, 1, 0], r"expected shape \(4,\), got \(3,\)"),
        (np.ma.array([1, 1, 1, 0], mask=[0, 0, 1, 0]), "got a masked array"),
    ],
)
def test_what_is_no_mask_is_refused(given, message):
    oracle = oracles.top_k(4, 1)
    with pytest.raises(SettingsError, match=message):
        oracle.instance(given)
    with pytest.raises(SettingsError, match=message):
        oracle.solve_one(jnp.zeros(4), given)
    with pytest.raises(SettingsError, match="instances: expected"):
        oracle.answer(np.zeros((1, 4)), [given])


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
