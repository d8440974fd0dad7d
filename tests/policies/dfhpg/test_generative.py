"""DFHPG with a flow or a diffusion: what its two gradients are made of, and what is refused."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import models, oracles, policies
from regretless.errors import SettingsError
from regretless.models import networks
from regretless.policies.dfhpg import algorithm, gradients
from regretless.simulation.simulator import simulate
from toys import DIM, Toy, make

TOY = Toy()
GENERATIVE = ["flow", "diffusion"]
SMALL = {"generative.scenarios": 6, "generative.kappa_dfl": 3.0, "generative.lambda_reg": 0.5}
STEPS = {"flow": {}, "diffusion": {"model.train_steps": 6, "model.sample_steps": 3}}
X, COST = jnp.array([0.4, -0.3, 1.0]), jnp.array([1.0, 2.0, 0.5, -1.0])


def build(name="dfhpg", model="flow", mode="bandit", toy=TOY, **settings):
    return make(name, toy, mode, model, **{**SMALL, **STEPS[model], **settings})


def one_round(policy, rounds=1):
    """State before the last round, that round's decision and feedback, and what came out."""
    state = policy.init(jax.random.key(0))
    for t in range(rounds):
        before, (decision, seen, (state, info)) = state, play(policy, state, t)
    return before, decision, seen, state, info


def play(policy, state, t):
    """Not compiled: the operations are compiled one by one, and shared by all policies here."""
    decision = policy.decide(jax.random.fold_in(jax.random.key(1), t), state, X, None)
    seen = policy.problem.observe(decision, COST * (1.0 + t))
    return decision, seen, policy.learn(jax.random.key(2), state, decision, seen)


@pytest.mark.parametrize("model", GENERATIVE)
def test_the_step_is_adam_on_the_mixed_gradient(model):
    """One whole round put together from its parts: score at the played sample, K scenarios, regulariser at the
    target.
    """
    policy = build(model=model, **{"alpha.max": 0.3, "alpha.min": 0.3, "surrogate": "spo_plus"})
    before, decision, seen, after, info = one_round(policy)
    score, branch, mixed, expected, moments = expected_step(policy, before, decision, seen)
    assert float(info.more["plug_in_norm"]) == pytest.approx(float(networks.tree_norm(branch)), rel=1e-4)
    assert float(info.more["score_norm"]) == pytest.approx(float(networks.tree_norm(score)), rel=1e-4)
    assert float(info.more["mixed_norm"]) == pytest.approx(float(networks.tree_norm(mixed)), rel=1e-4)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6), after.optimiser.first, moments.first
    )
    # Adam's first step has the size of the rate whatever the gradient: compare where rounding cannot turn a sign.
    for got, want, moment in zip(*map(jax.tree.leaves, (after.theta, expected, moments.first)), strict=True):
        clear = np.abs(moment) > 1e-5
        np.testing.assert_allclose(np.asarray(got)[clear], np.asarray(want)[clear], rtol=1e-3, atol=1e-4)


@eqx.filter_jit
def new_prediction(policy, before, seen):
    return policy.nuisance.predict(policy.nuisance.step(before.phi, X, seen)[0], X)


@eqx.filter_jit
def expected_step(policy, before, decision, seen):
    key, theta, model = jax.random.key(2), before.theta, policy.model
    fold = lambda purpose: jax.random.fold_in(key, purpose)  # noqa: E731
    target = new_prediction(policy, before, seen)
    loss = lambda cost, purpose: jax.grad(model.loss)(theta, X, cost, model.draw_loss(fold(purpose)))  # noqa: E731
    score = jax.tree.map(lambda g: -seen.total() * g, loss(decision.cost_sample, algorithm.SCORE))
    noise = jax.random.normal(fold(algorithm.SCENARIOS), (6, DIM))
    costs, pull = jax.vjp(lambda theta: jax.vmap(lambda row: model.sample(theta, X, row))(noise), theta)
    term = gradients.ScenarioTerm(policy.surrogate, 6, "own", 1.0)
    queries, asked = term.queries(None, costs, target, fold(algorithm.SURROGATE))
    cotangents, _ = term.cotangents(None, asked, policy.oracle.solve(queries).w, None)
    branch = jax.tree.map(lambda s, r: 3.0 * s + 0.5 * r, pull(cotangents)[0], loss(target, algorithm.REGULARISER))
    unit = lambda tree: jax.tree.map(lambda g: g / networks.tree_norm(tree), tree)  # noqa: E731
    mixed = jax.tree.map(lambda s, p: 0.3 * s + 0.7 * p, unit(score), unit(branch))
    return score, branch, mixed, *networks.adam_step(theta, networks.adam_init(theta), mixed, jnp.float32(0.05))


@functools.cache
def parameters_after(**change):
    """Leaves of θ after three rounds."""
    toy = Toy(
        oracles.top_k(DIM, 1)
    )  # with two of four both orientations of spo_plus are one: the most expensive are the others
    settings = {"surrogate": "spo_plus", "alpha.max": 0.3, "alpha.min": 0.3, **change}
    return jax.tree.leaves(one_round(build(mode="full", toy=toy, **settings), rounds=3)[3].theta)


@pytest.mark.parametrize(
    "change",
    [
        {"generative.scenario_gradient": "averaged"},
        {"generative.scenario_gradient": "saa"},
        {"generative.regulariser_at": "sample"},
        {"generative.orientation": "published"},
        {"generative.kappa_dfl": 1.0},
        {"generative.lambda_reg": 0.0},
        {"normalize_gradients": False},
    ],
    ids=lambda change: "-".join(map(str, next(iter(change.items())))),
)
def test_every_choice_makes_a_difference(change):
    both = zip(parameters_after(), parameters_after(**change), strict=True)
    assert not all(np.allclose(a, b, rtol=1e-3) for a, b in both)


@pytest.mark.parametrize("change", [{"model.weights": "elbo"}, {"model.sample_steps": 2}], ids=str)
def test_options_of_the_diffusion_make_a_difference(change):
    both = zip(parameters_after(model="diffusion"), parameters_after(model="diffusion", **change), strict=True)
    assert not all(np.allclose(a, b, rtol=1e-3) for a, b in both)


def test_semi_bandit_puts_what_was_seen_into_the_target_and_full_needs_no_nuisance():
    settings = {
        "surrogate": "mse",
        "generative.lambda_reg": 0.0,
        "alpha.max": 0.0,
        "alpha.min": 0.0,
        "generative.scenarios": 1,
    }
    for mode in ("semi_bandit", "full"):
        policy = build(mode=mode, normalize_gradients=False, **settings)
        before, decision, seen, _, info = one_round(policy)
        costs = jnp.zeros(DIM) if policy.nuisance is None else new_prediction(policy, before, seen)
        target = seen.overwrite(costs)
        chosen = np.asarray(decision.w) > 0 if mode == "semi_bandit" else slice(None)
        assert np.array_equal(np.asarray(target)[chosen], np.asarray(COST)[chosen])
        noise = jax.random.normal(jax.random.fold_in(jax.random.key(2), algorithm.SCENARIOS), (1, DIM))
        sampled, pull = policy.model.scenarios(before.theta, X, noise)
        expected = networks.tree_norm(pull(3.0 * 2.0 * (sampled - target)))
        assert float(info.more["plug_in_norm"]) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.usefixtures("float64")
def test_the_state_of_a_mixed_program_keeps_its_types():
    for model in GENERATIVE:
        policy = build(model=model, surrogate="map_c")
        before = policy.init(jax.random.key(0))
        after, _ = eqx.filter_eval_shape(play, policy, before, 0)[2]
        kinds = lambda state: [leaf.dtype for leaf in jax.tree.leaves(state)]  # noqa: E731
        assert kinds(before) == kinds(after)
        assert {leaf.dtype for leaf in jax.tree.leaves(after.theta)} == {jnp.dtype("float32")}
        assert after.average.dtype == jnp.float64


def test_late_feedback_uses_the_flows_density_and_leaves_the_diffusions_score_out():
    for model, trusted in (("flow", True), ("diffusion", False)):
        policy = build(model=model, policy_lr=1e-3)
        _, old, seen, state, info = one_round(policy)
        assert info.more["trust"] == 1
        _, info = policy.learn(jax.random.key(3), state, old, seen)
        assert (0 < float(info.more["trust"]) < 10) if trusted else (info.more["trust"] == 0)
        if trusted:
            ratio = jnp.exp(policy.model.log_density(state.theta, X, old.cost_sample) - old.log_density)
            assert float(info.more["trust"]) == pytest.approx(float(ratio), rel=1e-4)


def test_mean_is_that_of_scenarios():
    policy = build(**{"generative.scenarios": 400})
    state = policy.init(jax.random.key(0))
    noise = jax.random.normal(jax.random.key(9), (4000, DIM))
    costs, _ = policy.model.scenarios(state.theta, X, noise)
    error = costs.std(axis=0) / 400**0.5
    assert np.all(np.abs(policy.mean(state, X) - costs.mean(axis=0)) < 5 * error)


@pytest.mark.parametrize("name", ["greedy", "epsilon_greedy", "thompson"])
@pytest.mark.parametrize("model", GENERATIVE)
def test_policies_of_point_models_refuse_generative_ones(name, model):
    with pytest.raises(SettingsError, match=rf"the name of one \(gaussian_linear, gaussian_nn\), got '{model}'"):
        policies.parse(name, {"model": model}).build(TOY.problem())
    with pytest.raises(SettingsError, match=r"expected a model of regretless\.models, or the name of one"):
        policies.parse(name, {"model": models.parse(model).build(DIM, TOY.context_shape)}).build(TOY.problem())


def test_choices_that_only_point_models_have_are_refused():
    with pytest.raises(SettingsError, match=r"variant 'plug_in' needs a model with a density.* got diffusion"):
        build(model="diffusion", variant="plug_in")
    for given in ({"surrogate_at": "sample"}, {"exploration_scale": 0.5}):
        with pytest.raises(SettingsError, match="has no effect on policy 'dfhpg' here: the model 'flow'"):
            policies.build_policy(policies.parse("dfhpg", {"model": "flow", **given}), TOY.problem())


@pytest.mark.usefixtures("float64")
def test_the_plug_in_variant_weighs_the_flows_exact_score():
    """One plain step: minus the rate times (α y + (1 − α) f_φ(x)·w) ∇ log p_θ(ĉ|x), with φ_t and nothing subtracted."""
    policy = build(
        variant="plug_in",
        policy_lr=1e-3,
        normalize_gradients=False,
        baseline="none",
        nuisance_at="before",
        rate_start=0.0,
        **{"alpha.max": 0.4, "alpha.min": 0.4, "generative.optimiser": "sgd"},
    )
    before, decision, seen, after, info = one_round(policy)
    assert after.optimiser is None
    assert float(info.more["mixed_norm"]) < 10, "the step must not be clipped for this comparison"
    weight = 0.4 * seen.total() + 0.6 * policy.nuisance.predict(before.phi, X) @ decision.w
    slope = jax.grad(policy.model.log_density)(before.theta, X, decision.cost_sample)
    rate = 1e-3 * 100 / 101
    for got, old, gradient in zip(*map(jax.tree.leaves, (after.theta, before.theta, slope)), strict=True):
        np.testing.assert_allclose(got - old, -rate * weight * gradient, rtol=1e-3, atol=1e-7)


def test_a_setting_that_diverges_is_reported_with_its_round():
    policy = build(policy_lr=1e18, normalize_gradients=False)
    trace = simulate(policy, TOY, seeds=range(2), horizon=40)
    assert trace.diverged == 2
    assert np.all((trace.diverged_at > 0) & (trace.diverged_at < 40))


def test_learns_to_decide():
    """A flow with the whole cost shown loses far less than random decisions do."""
    policy = build(mode="full", surrogate="spo_plus", policy_lr=0.02, **{"generative.scenarios": 16})
    regret = simulate(policy, TOY, feedback="full", seeds=range(4), horizon=400).regret
    assert regret[:, 300:].mean() < 0.35 * regret[:, :10].mean()
