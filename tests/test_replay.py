"""A ring keeps the latest, a reservoir a uniform sample; a record shows what the feedback showed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import Problem, feedback, oracles, replay


def filled(count, capacity=4, reservoir=False):
    def add(memory, i):
        key = jax.random.fold_in(jax.random.key(1), i) if reservoir else None
        return memory.add({"x": jnp.full(2, 1.0 * i)}, key=key), None

    return jax.lax.scan(add, replay.empty({"x": jnp.zeros(2)}, capacity), jnp.arange(count))[0]


def test_a_ring_keeps_the_latest_records():
    memory = filled(11)
    assert sorted(memory.records["x"][:, 0].tolist()) == [7, 8, 9, 10]
    assert (int(memory.size), int(memory.added)) == (4, 11)


def test_a_reservoir_keeps_a_uniform_sample_of_all():
    def kept(key):
        def add(memory, i):
            return memory.add(1.0 * i, key=jax.random.fold_in(key, i)), None

        return jax.lax.scan(add, replay.empty(jnp.zeros(()), 4), jnp.arange(16))[0].records

    records = np.asarray(jax.vmap(kept)(jax.random.split(jax.random.key(0), 4000)))
    share = np.bincount(records.astype(int).ravel(), minlength=16) / len(records)
    assert all(len(set(row)) == 4 for row in records[:50])
    assert np.all(np.abs(share - 0.25) < 5 * (0.25 * 0.75 / len(records)) ** 0.5)


def test_what_did_not_arrive_changes_nothing():
    before = filled(6)
    after = before.add({"x": jnp.full(2, 99.0)}, arrived=jnp.asarray(False))
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))


def test_draws_come_from_what_is_there():
    drawn = filled(3, capacity=100).draw(jax.random.key(0), (5, 40))
    assert drawn["x"].shape == (5, 40, 2)
    assert set(drawn["x"].ravel().tolist()) == {0.0, 1.0, 2.0}
    assert np.array_equal(filled(0).draw(jax.random.key(0), (3,))["x"], np.zeros((3, 2)))


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
    seen = replay.measured_round(problem.feedback, 2, problem.decision(w, context), observed)
    kept = np.arange(6)
    if rows and problem.feedback.sparse:  # only the chosen rows are there
        kept = np.array([1, 4])
        assert np.allclose(seen.context, context[kept], atol=1e-6)
    used = np.asarray(seen.used)
    expected = np.asarray(observed.operator.matvec(jnp.asarray(prediction)))[np.asarray(observed.used())]
    assert np.allclose(seen.measure(jnp.asarray(prediction[kept], jnp.float32))[used], expected, atol=1e-5)
    assert np.allclose(seen.values[used], np.asarray(observed.values)[np.asarray(observed.used())], atol=1e-5)
    norms = np.sqrt(np.asarray(observed.operator.row_squares()))[np.asarray(observed.used())]
    assert np.allclose(seen.row_norms()[used], norms, atol=1e-5)
