"""What every policy must do, with every feedback and every model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import feedback, models, policies
from regretless.feedback import observe
from regretless.simulate.simulation import simulate, simulate_all
from toys import DIM, FEATURES, Toy, make

TOY = Toy()


@pytest.fixture(params=policies.REGISTRY)
def name(request):
    return request.param


@pytest.mark.parametrize("mode", feedback.REGISTRY)
@pytest.mark.parametrize("model", models.REGISTRY)
def test_runs_and_stays_finite(mode, model):
    small = (
        {"scenarios": 4, "diffusion_train_steps": 6, "diffusion_sample_steps": 3} if model in models.GENERATIVE else {}
    )
    everyone = {name: make(name, TOY, mode, model, **small) for name in policies.available(model)}
    for trace in simulate_all(everyone, TOY, feedback=mode, seeds=range(2), horizon=30).traces.values():
        assert trace.regret.shape == (2, 30)
        assert not trace.diverged
        assert np.all(trace.regret >= -1e-6)
        assert np.all(trace.diagnostics["complete"])


def test_decides_feasibly_without_touching_its_state_and_learns_without_touching_the_decision(name):
    policy = make(name, TOY)
    state = policy.init(jax.random.key(0))
    before = jax.tree.map(np.asarray, state)
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES), None)
    again = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES), None)
    assert TOY.oracle.feasible(decision.w)
    assert jax.tree.all(jax.tree.map(np.array_equal, decision, again))
    record = jax.tree.map(np.asarray, decision)
    after, info = policy.learn(
        jax.random.key(2), state, decision, observe(feedback.Bandit(), decision, jnp.arange(4.0))
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, state, before))
    assert jax.tree.all(jax.tree.map(np.array_equal, decision, record))
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [leaf.dtype for leaf in jax.tree.leaves(after)] == [leaf.dtype for leaf in jax.tree.leaves(state)]
    assert int(after.version) == 1
    assert info["finite"]
    assert not jax.tree.all(jax.tree.map(np.array_equal, after.theta, state.theta))


def test_numbers_are_leaves_so_that_a_sweep_is_one_program(name):
    number = "posterior_scale" if name == "linear_thompson" else "policy_lr"
    one, other = (make(name, TOY, **{number: value}) for value in (0.1, 0.2))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert jax.tree.leaves(one) != jax.tree.leaves(other)


def test_dfhpg_and_dfhpg_0_share_a_program_and_so_do_the_regressions():
    structure = {name: jax.tree.structure(make(name, TOY)) for name in policies.REGISTRY}
    assert structure["dfhpg"] == structure["dfhpg_0"] != structure["dfhpg_1"]
    assert structure["greedy"] == structure["epsilon_greedy"] == structure["thompson"]


def test_full_feedback_keeps_alpha_and_needs_no_nuisance():
    trace = simulate(make("dfhpg", TOY, "full"), TOY, feedback="full", seeds=range(2), horizon=150)
    assert np.all(trace.diagnostics["alpha"] == trace.diagnostics["alpha"][0, 0])
    assert make("dfhpg", TOY, "full").nuisance is None
    assert make("dfhpg", TOY, "full", may_miss=True).nuisance is not None


def test_constant_alpha_of_one_leaves_the_nuisance_at_its_initial_weights():
    policy = make("dfhpg", TOY, alpha_max=1.0, alpha_min=1.0, baseline="nuisance_induced")
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES), None)
    after, _ = policy.learn(jax.random.key(2), state, decision, observe(feedback.Bandit(), decision, jnp.arange(4.0)))
    jax.tree.map(np.testing.assert_array_equal, after.phi.layers, state.phi.layers)


def learnt(**settings):
    """θ after eight rounds with the same contexts, noise and costs, for other settings."""
    policy = make("dfhpg", TOY, **{"exploration_scale": 1.0, **settings})
    contexts, noises, costs = (
        np.random.default_rng(seed).normal(size=(8, n)) for seed, n in enumerate((FEATURES, DIM, DIM))
    )

    @jax.jit
    def play(state, context, noise, cost):
        decision = policy.act(noise, state, context, None)
        return policy.learn(jax.random.key(2), state, decision, observe(feedback.Bandit(), decision, cost))[0]

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
        {"nuisance": "linear_constant"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_choice_makes_a_difference(change):
    assert not np.allclose(learnt(), learnt(**change), rtol=1e-3)


@pytest.mark.usefixtures("float64")
def test_plug_in_variant_puts_the_new_nuisance_in_place_of_the_total():
    policy = make(
        "dfhpg", TOY, variant="plug_in", alpha_max=0.4, alpha_min=0.4, normalize_gradients=False, policy_lr=0.5
    )
    state = policy.init(jax.random.key(0))
    x, noise = jnp.array([0.1, -0.3, 0.2]), jnp.array([1.0, -1.0, 0.5, 0.0])
    decision = policy.act(noise, state, x, None)
    seen = observe(feedback.Bandit(), decision, jnp.array([0.04, 0.03, -0.02, 0.01]))
    after, info = policy.learn(jax.random.key(2), state, decision, seen)
    phi, _ = policy.nuisance.step(state.phi, x, seen)
    weight = 0.4 * float(seen.total()) + 0.6 * float(policy.nuisance.predict(phi, x) @ decision.w)
    expected = state.theta - 0.5 * weight * np.outer(noise / 0.3, x)
    assert float(info["mixed_norm"]) < 10, "the step must not be clipped for this comparison"
    np.testing.assert_allclose(after.theta, expected, rtol=1e-9)


def test_a_round_without_total_has_no_score_term_and_moves_no_average():
    policy = make("dfhpg", TOY, "semi_bandit", may_miss=True)
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(FEATURES), None)
    seen = jnp.arange(DIM) != jnp.argmax(decision.w)
    got = observe(feedback.SemiBandit(), decision, jnp.arange(1.0, 5.0), seen)
    after, info = policy.learn(jax.random.key(2), state, decision, got)
    assert not info["complete"]
    assert info["trust"] == 0
    assert after.average == state.average
    assert after.mixing.count == 0
    assert float(info["nuisance_norm"]) > 0
    assert not np.array_equal(after.theta, state.theta)
