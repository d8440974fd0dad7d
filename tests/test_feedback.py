import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import feedback, oracles
from regretless.problem import Problem
from regretless.types import Feedback

GROUPS = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
RULES = {
    **feedback.REGISTRY,
    "group_sums": feedback.Linear(lambda w, aux: GROUPS * w, lambda w, aux: jnp.ones(2), label="group_sums"),
}
numbers = st.lists(st.integers(-9, 9), min_size=6, max_size=6).map(lambda x: jnp.array(x, float))


def decision(w):
    return Problem(oracles.top_k(6, 2), (1,)).decision(w, jnp.zeros(1))


@pytest.mark.parametrize("name", RULES)
@given(w=numbers, cost=numbers, rows=st.lists(st.integers(-9, 9), min_size=6, max_size=6))
@settings(max_examples=25)
def test_operator_is_linear_with_its_adjoint_and_the_linkage_recovers_the_total(name, w, cost, rows):
    operator, linkage = RULES[name].measure(w, None)
    u = jnp.array(rows, float)[: linkage.shape[0]]
    assert operator.matvec(cost) @ u == operator.rmatvec(u) @ cost
    assert np.array_equal(operator.rmatvec(linkage), w)
    seen = feedback.observe(RULES[name], decision(w), cost)
    assert seen.total() == cost @ w
    assert seen.complete()


@pytest.mark.parametrize("name", RULES)
@given(w=numbers, cost=numbers, prediction=numbers, gone=st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=25)
def test_missing_rows(name, w, cost, prediction, gone):
    whole = feedback.observe(RULES[name], decision(w), cost)
    seen = ~jnp.array(gone)[: whole.values.shape[0]]
    # What did not arrive must not matter, whatever stands in its place.
    partial = Feedback(whole.operator, whole.linkage, jnp.where(seen, whole.values, 1e6), seen)
    dense = jax.vmap(whole.operator.matvec, in_axes=1, out_axes=1)(jnp.eye(6))
    used = np.asarray(seen & jnp.any(dense != 0, axis=1))
    error = np.where(used, dense @ prediction - whole.values, 0)
    expected = error @ dense / max(used.sum(), 1)
    np.testing.assert_allclose(partial.loss_gradient(prediction), expected, atol=1e-4)
    needed = np.asarray(whole.linkage != 0) & np.any(np.asarray(dense) != 0, axis=1)
    assert bool(partial.complete()) == bool(np.all(seen | ~needed))
    if partial.complete():
        assert partial.total() == cost @ w


def test_loss_gradient_is_the_gradient_of_the_stated_loss():
    w, cost, f = (jax.random.normal(jax.random.key(i), (6,)) for i in range(3))
    for rule in RULES.values():
        got = feedback.observe(rule, decision(w), cost)
        loss = lambda f, got=got: 0.5 * jnp.mean(jnp.square(got.operator.matvec(f) - got.values))  # noqa: E731
        np.testing.assert_allclose(got.loss_gradient(f), jax.grad(loss)(f), rtol=1e-5, atol=1e-6)


def test_overwriting_puts_single_costs_in_place_and_leaves_sums_alone():
    w, cost, f = jnp.array([1.0, 0, 2, 0, 0, 1]), jnp.arange(1.0, 7), jnp.full(6, 9.0)
    seen = {name: feedback.observe(rule, decision(w), cost).overwrite(f).tolist() for name, rule in RULES.items()}
    assert seen["semi_bandit"] == [1, 9, 3, 9, 9, 6]
    assert seen["full"] == cost.tolist()
    assert seen["bandit"] == seen["group_sums"] == f.tolist()


def test_linkage_is_checked():
    solutions = oracles.top_k(6, 2).solve(jax.random.normal(jax.random.key(0), (8, 6)))
    for rule in RULES.values():
        feedback.check_linkage(rule, solutions)
    wrong = feedback.Linear(lambda w, aux: GROUPS, lambda w, aux: jnp.ones(2), label="unweighted")
    with pytest.raises(ValueError, match="'unweighted': expected H\\(w\\)ᵀe\\(w\\) = w, but they differ by 1"):
        feedback.check_linkage(wrong, solutions)
    ragged = feedback.Linear(lambda w, aux: GROUPS[:, :3], lambda w, aux: jnp.ones(2))
    with pytest.raises(ValueError, match="shape \\(3,\\), expected \\(6,\\)"):
        feedback.check_linkage(ragged, solutions)
