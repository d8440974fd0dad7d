"""The pool against a plain list: the last ``size`` distinct decisions, re-adding one makes it newest, ties to the
oldest.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import oracles
from regretless.surrogates import pool as pools

SIZE, DIM = 4, 3
add, add_many = jax.jit(pools.add), jax.jit(pools.add_many)
decisions = st.lists(st.tuples(*[st.integers(0, 1)] * DIM), min_size=1, max_size=20)
costs = st.tuples(*[st.integers(-2, 2)] * DIM)


def grown(sequence):
    pool, plain = pools.empty(DIM, SIZE), []
    for w in sequence:
        pool = add(pool, jnp.array(w, float))
        plain = [*(entry for entry in plain if entry != w), w][-SIZE:]
    return pool, plain


@given(decisions)
@settings(max_examples=60)
def test_holds_the_last_distinct_decisions_in_order(sequence):
    pool, plain = grown(sequence)
    present = np.asarray(pool.present())
    order = np.argsort(np.asarray(pool.added)[present])
    held = [tuple(int(x) for x in row) for row in np.asarray(pool.decisions)[present][order]]
    assert held == plain
    assert int(pool.count()) == len(plain)


@given(decisions, costs)
@settings(max_examples=60)
def test_finds_the_cheapest_and_of_equals_the_oldest(sequence, cost):
    pool, plain = grown(sequence)
    values = [np.dot(w, cost) for w in plain]
    expected = plain[int(np.argmin(values))]
    assert tuple(np.asarray(pool.best(jnp.array(cost, float))).astype(int)) == expected
    assert int(np.sum(pool.cheapest(jnp.array(cost, float)))) == 1


def test_decisions_that_agree_to_eight_decimals_are_one():
    pool = pools.empty(1, SIZE)
    with jax.enable_x64(True):
        pool = pools.empty(1, SIZE)
        for value in (1.0, 1.0 + 1e-10, 1.0 + 1e-7):
            pool = pools.add(pool, jnp.array([value]))
        assert int(pool.count()) == 2


def test_what_is_infeasible_now_is_hidden_and_comes_back():
    oracle = oracles.top_k(3, 1)
    pool, _ = grown([(1, 0, 0), (0, 1, 0)])
    now = pool.only(jax.vmap(lambda w: oracle.feasible(w, jnp.array([False, True, True])))(pool.decisions))
    assert now.best(jnp.array([-5.0, 0.0, 0.0])).tolist() == [0, 1, 0]
    assert pool.best(jnp.array([-5.0, 0.0, 0.0])).tolist() == [1, 0, 0]


@given(st.lists(st.integers(0, 11), min_size=1, max_size=12), st.lists(st.integers(0, 11), max_size=9))
@settings(max_examples=40)
def test_adding_many_is_adding_one_after_the_other(many, before):
    """With room for six: the same decisions with the same ages, wherever they are kept."""
    rows = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    padded = [*many, *[many[-1]] * (12 - len(many))]  # of one shape, for one compilation
    one_by_one = pools.empty(3, 6)
    for i in before:
        one_by_one = add(one_by_one, rows[i])
    start = one_by_one
    for i in padded:
        one_by_one = add(one_by_one, rows[i])
    together = add_many(start, rows[np.array(padded)])

    def held(pool):
        return {(int(age), *map(float, w)) for age, w in zip(pool.added, pool.decisions, strict=True) if age}

    assert held(together) == held(one_by_one)
    assert int(together.clock) == int(one_by_one.clock)
