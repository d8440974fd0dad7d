import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless import oracles
from regretless.oracles import selection


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(0, 10))
def test_cheapest_agrees_with_a_stable_sort(values, k):
    expected = np.zeros(len(values), bool)
    expected[np.argsort(values, kind="stable")[:k]] = True
    assert np.array_equal(selection.cheapest(jnp.array(values, float), k), expected)
    assert np.array_equal(selection.cheapest(jnp.array(values, float), jnp.int32(k)), expected)


def test_partial_sort_breaks_ties_as_the_pairwise_comparison_does():
    values = jnp.round(2 * jax.random.normal(jax.random.key(0), (500,)))
    for k in (0, 1, 17, 250, 500):
        assert np.array_equal(selection.cheapest(values, k), selection.cheapest(values, jnp.int32(k)))


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
