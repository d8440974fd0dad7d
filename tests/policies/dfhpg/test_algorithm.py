"""DFHPG beyond its recorded rounds: the effect of every choice, and rounds whose total is not known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.simulation.simulator import simulate
from toys import DIM, FEATURES, Toy, make

TOY = Toy()


def decided(policy, noise, state, context):
    """The decision that this noise leads to."""
    sample = policy.sample_with(noise, state, context)
    return policy.problem.record(sample, policy.oracle.solve_one(sample.cost), context, None)


def test_full_feedback_keeps_alpha_and_needs_no_nuisance():
    trace = simulate(make("dfhpg", TOY, "full"), TOY, feedback="full", seeds=range(2), horizon=150)
    assert np.all(trace.diagnostics["alpha"] == trace.diagnostics["alpha"][0, 0])
    assert make("dfhpg", TOY, "full").nuisance is None
    assert make("dfhpg", TOY, "full", may_miss=True).nuisance is not None


def test_constant_alpha_of_one_leaves_the_nuisance_at_its_initial_weights():
    policy = make("dfhpg", TOY, **{"alpha.max": 1.0, "alpha.min": 1.0, "baseline": "nuisance_induced"})
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES))
    seen = policy.problem.observe(decision, jnp.arange(4.0))
    after, _ = jax.jit(lambda *given: policy.learn(*given))(jax.random.key(2), state, decision, seen)
    jax.tree.map(np.testing.assert_array_equal, after.phi.layers, state.phi.layers)


@functools.cache
def parameters_after(**settings):
    """θ after eight rounds with the same contexts, noise and costs, for other settings; operations are compiled
    one by one.
    """
    policy = make("dfhpg", TOY, **{"exploration_scale": 1.0, **settings})
    contexts, noises, costs = (
        np.random.default_rng(seed).normal(size=(8, n)) for seed, n in enumerate((FEATURES, DIM, DIM))
    )

    def play(state, context, noise, cost):
        decision = decided(policy, noise, state, context)
        return policy.learn(jax.random.key(2), state, decision, policy.problem.observe(decision, cost))[0]

    state = policy.init(jax.random.key(0))
    for arguments in zip(contexts, noises, 5 * costs, strict=True):
        state = play(state, *map(jnp.asarray, arguments))
    return np.asarray(state.theta)


@pytest.mark.parametrize(
    "change",
    [
        {"variant": "plug_in"},
        {"surrogate_at": "sample"},
        {"normalize_gradients": False},
        {"baseline": "nuisance_induced"},
        {"surrogate": "spo_plus"},
        {"nuisance.lr": 0.1},
        {"nuisance.width": 32},
        {"rate_offset": 1.0},
        {"clip": 0.1},
        {"policy_schedule": "constant"},
        {"baseline_momentum": 0.1},
        {"alpha.warmup": 1, "alpha.rate": 1.0},
        {"alpha.max": 0.8},
        {"surrogate.pool": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_choice_makes_a_difference(change):
    assert not np.allclose(parameters_after(), parameters_after(**change), rtol=1e-3)


@pytest.mark.usefixtures("float64")
def test_plug_in_variant_puts_the_new_nuisance_in_place_of_the_total():
    given = {"variant": "plug_in", "alpha.max": 0.4, "alpha.min": 0.4, "normalize_gradients": False, "policy_lr": 0.5}
    policy = make("dfhpg", TOY, **given)
    state = policy.init(jax.random.key(0))
    x, noise = jnp.array([0.1, -0.3, 0.2]), jnp.array([1.0, -1.0, 0.5, 0.0])
    decision = decided(policy, noise, state, x)
    seen = policy.problem.observe(decision, jnp.array([0.04, 0.03, -0.02, 0.01]))
    after, info = policy.learn(jax.random.key(2), state, decision, seen)
    phi, _ = policy.nuisance.step(state.phi, x, seen)
    weight = 0.4 * float(seen.total()) + 0.6 * float(policy.nuisance.predict(phi, x) @ decision.w)
    expected = state.theta - 0.5 * weight * np.outer(noise / 0.3, x)
    assert float(info.more["mixed_norm"]) < 10, "the step must not be clipped for this comparison"
    np.testing.assert_allclose(after.theta, expected, rtol=1e-9)


def test_a_round_without_total_has_no_score_term_and_moves_no_average():
    policy = make("dfhpg", TOY, "semi_bandit", may_miss=True)
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES), None)
    seen = jnp.arange(DIM) != jnp.argmax(decision.w)
    got = policy.problem.observe(decision, jnp.arange(1.0, 5.0), seen)
    after, info = policy.learn(jax.random.key(2), state, decision, got)
    assert not info.complete
    assert info.more["trust"] == 0
    assert after.average == state.average
    assert after.mixing.count == 0
    assert float(info.more["nuisance_norm"]) > 0
    assert not np.array_equal(after.theta, state.theta)
