"""The ensemble of networks: its memory, and learning from replay with every feedback."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import feedback, oracles, replay
from regretless.policies.adaptive import ensemble
from regretless.policies.adaptive.ensemble import Ensemble
from regretless.problem import Problem

SMALL = {"members": 2, "width": 8, "batch": 16}


def build(rule="bandit", shape=(3,), k=2, **changes):
    return Ensemble(**{**SMALL, **changes}).build(Problem(oracles.top_k(5, k), shape, rule))


def play_round(policy, rng, cost):
    x, w = rng.normal(size=policy.problem.context_shape), np.zeros(5)
    w[rng.choice(5, policy.problem.oracle.k, replace=False)] = 1.0
    decision = policy.problem.decision(jnp.asarray(w), jnp.asarray(x))
    return decision, policy.problem.observe(decision, jnp.asarray(cost(x)))


@pytest.mark.parametrize("shape", [(3,), (5, 3)], ids=["vector", "rows"])
@pytest.mark.parametrize("rule", feedback.REGISTRY)
def test_learns_from_replay(rule, shape):
    policy = build(rule, shape, memory=64, lr=1e-2, steps=4)
    slopes = np.arange(5.0)[:, None] * 0.2 if shape == (3,) else np.ones(3) * 0.3
    cost = lambda x: 3.0 + (slopes @ x[:1] if shape == (3,) else x @ slopes)  # noqa: E731
    state, learn, rng = policy.init(jax.random.key(0)), eqx.filter_jit(policy.learn), np.random.default_rng(0)
    errors = []
    for t in range(150):
        state, info = learn(jax.random.key(t), state, *play_round(policy, rng, cost))
        errors.append(abs(float(info.residual)))
    assert np.mean(errors[-20:]) < 0.15 * np.mean(errors[:5])
    assert int(state.memory.added) == int(state.version) == 150


def test_remembers_the_newest_rounds_and_only_chosen_rows():
    policy = build(shape=(5, 3), memory=4)
    state, rng = policy.init(jax.random.key(0)), np.random.default_rng(0)
    learn, rounds = eqx.filter_jit(policy.learn), [play_round(policy, rng, lambda x: np.ones(5)) for _ in range(6)]
    for decision, observed in rounds:
        state, _ = learn(jax.random.key(0), state, decision, observed)
    assert state.memory.records.context.shape == (4, 2, 3)
    for place, t in enumerate((4, 5, 2, 3)):
        decision = rounds[t][0]
        chosen = np.flatnonzero(decision.w)
        np.testing.assert_allclose(state.memory.records.context[place], np.asarray(decision.context)[chosen], rtol=1e-6)
        np.testing.assert_array_equal(state.memory.records.weights[place], np.ones(2))


def test_memory_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(ensemble, "MAX_MEMORY_BYTES", 1000)
    policy = build(memory=10**6)
    memory = policy.init(jax.random.key(0)).memory
    assert 500 < sum(leaf.nbytes for leaf in jax.tree.leaves(memory.records)) <= 1000


def test_the_loss_is_relative():
    policy = build()
    state = policy.init(jax.random.key(0))
    weights = jnp.zeros_like(state.weights[0])
    rows = replay.MeasuredRound(jnp.zeros((1, 3)), jnp.ones((1, 5)), jnp.full((1, 1), 4.0), jnp.ones((1, 1), bool))
    # nothing is predicted: (4 / (4 + 0 + 0.3 · 2))²
    np.testing.assert_allclose(policy.loss(weights, rows, jnp.asarray(2.0)), (4 / 4.6) ** 2, rtol=1e-6)
    nothing = replay.MeasuredRound(rows.context, rows.weights, jnp.zeros((1, 1)), rows.used)
    assert np.all(jax.grad(policy.loss)(weights, nothing, jnp.zeros(())) == 0)


def test_a_reset_empties_the_memory_and_makes_new_networks():
    policy = build(memory=4)
    state, rng = policy.init(jax.random.key(0)), np.random.default_rng(0)
    decision, observed = play_round(policy, rng, lambda x: np.ones(5))
    state, _ = eqx.filter_jit(policy.learn)(jax.random.key(0), state, decision, observed)
    same, fresh = (policy.reset_if(jax.random.key(1), state, jnp.asarray(flag)) for flag in (False, True))
    assert eqx.tree_equal(same, state)
    assert (int(fresh.memory.size), int(fresh.adam.count.sum()), int(fresh.version)) == (0, 0, 1)
    assert not np.allclose(fresh.weights, state.weights)
