"""The latest records are kept; a record shows what the feedback showed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import Problem, feedback, oracles, replay


def filled(count, capacity=4):
    def add(memory, i):
        return memory.add({"x": jnp.full(2, 1.0 * i)}), None

    return jax.lax.scan(add, replay.empty({"x": jnp.zeros(2)}, capacity), jnp.arange(count))[0]


def test_a_ring_keeps_the_latest_records():
    memory = filled(11)
    assert sorted(memory.records["x"][:, 0].tolist()) == [7, 8, 9, 10]
    assert (int(memory.size), int(memory.added)) == (4, 11)


def test_what_did_not_arrive_changes_nothing():
    before = filled(6)
    after = before.add({"x": jnp.full(2, 99.0)}, arrived=jnp.asarray(False))
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))


def group_sums():
    groups = jnp.array([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]])
    return feedback.Linear(lambda w, aux: groups * w, lambda w, aux: jnp.ones(2))


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("rule", [*feedback.REGISTRY, group_sums()], ids=lambda rule: getattr(rule, "name", rule))
def test_a_record_measures_what_the_feedback_measures(rule, rows):
    problem = Problem(oracles.top_k(6, 2), (6, 3) if rows else (3,), rule)
    rng = np.random.default_rng(0)
    context, cost, prediction = rng.normal(size=problem.context_shape), rng.normal(size=6), rng.normal(size=6)
    w = jnp.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    observed = problem.observe(problem.decision(w, context), jnp.asarray(cost))
    seen = replay.measured_round(problem, problem.decision(w, context), observed)
    kept = np.arange(6)
    if rows and problem.feedback.sparse:  # only the chosen rows are there
        kept = np.array([1, 4])
        assert np.allclose(seen.context, context[kept], atol=1e-6)
    used = np.asarray(seen.used)
    expected = np.asarray(observed.operator.matvec(jnp.asarray(prediction)))[np.asarray(observed.used())]
    assert np.allclose(seen.measure(jnp.asarray(prediction[kept], jnp.float32))[used], expected, atol=1e-5)
    assert np.allclose(seen.values[used], np.asarray(observed.values)[np.asarray(observed.used())], atol=1e-5)
