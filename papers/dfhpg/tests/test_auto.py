"""DFHPG without presets: the density of what is played, few solves, a nuisance that learns from replay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import Problem, feedback, oracles, policies, replay
from regretless.experiments import Experiment
from regretless.experiments.runner import resolve
from regretless.host_calls import host_jit
from regretless.models import networks
from regretless_dfhpg.auto import DecayedNetwork, NetworkEnsemble, draw, row_norms, size_of
from toys import DIM, cheapest_two

PROBLEM = Problem(oracles.top_k(DIM, 2), (3,), "bandit")


def test_a_fresh_network_says_nothing_and_its_linear_part_moves_faster():
    net = DecayedNetwork(DIM, (3,), width=8)
    weights = net.init(jax.random.key(0))
    assert np.array_equal(net.apply(weights, jnp.ones((2, 3))), np.zeros((2, DIM)))
    assert np.any(np.asarray(weights) != 0)
    ones = jnp.ones_like(weights)
    moved, _ = net.adam_step(weights, networks.adam_init(weights), ones, 0.01, 0.0, 5.0)
    step = np.asarray(weights - moved)
    linear = 3 * DIM + DIM  # A and b come last
    assert np.allclose(step[:-linear], 0.01, rtol=1e-3)
    assert np.allclose(step[-linear:], 0.05, rtol=1e-3)
    shrunk, _ = net.adam_step(ones, networks.adam_init(ones), 0.0 * ones, 0.01, 0.5, 1.0)
    assert np.allclose(np.unique(np.asarray(shrunk)), [1 - 0.01 * 0.5, 1.0])  # biases keep their size


def test_the_sample_has_the_density_that_it_was_drawn_from():
    policy = policies.parse("dfhpg_auto").build(PROBLEM)
    state = policy.init(jax.random.key(0))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=state.phi.members.shape), jnp.float32)
    state = type(state)(**{**vars(state), "theta": weights[0], "phi": type(state.phi)(weights, state.phi.adam)})
    context = jnp.array([0.3, -1.0, 2.0])
    sample, expected, mean = jax.jit(
        lambda key, state, x: (
            policy.sample(key, state, x, None),
            policy.nuisance.predict_one(state.phi, x),
            policy.mean(state, x),
        )
    )(jax.random.key(1), state, context)
    sigma = float(size_of(expected)[0]) * 0.3 * float(jnp.std(expected / size_of(expected)))
    assert np.allclose(sample.cost, mean + sigma * sample.noise, rtol=1e-4)
    by_hand = -0.5 * np.sum(((sample.cost - mean) / sigma) ** 2) - DIM * np.log(sigma * np.sqrt(2 * np.pi))
    assert np.isclose(sample.log_density, by_hand, rtol=1e-4)


def test_a_learning_step_asks_for_few_solves():
    batches = []

    def counted(costs):
        batches.append(len(costs))
        return cheapest_two(costs)

    problem = Problem(oracles.external(counted, DIM, batched=True), (3,), "bandit")
    policy = policies.parse("dfhpg_auto").build(problem)
    state, context = policy.init(jax.random.key(0)), jnp.ones(3)
    sample = policy.sample(jax.random.key(1), state, context, None)
    decision = problem.record(sample, problem.oracle.solve_one(sample.cost), context, None)
    seen = problem.observe(decision, jnp.arange(1.0, 1.0 + DIM))
    batches.clear()
    host_jit(policy.learn, statics=0)(problem.oracle, jax.random.key(2), state, decision, seen)
    assert batches == [1 + 2 * 2]  # the baseline, and SPO+ at two contexts


def test_the_nuisance_learns_costs_from_totals_that_are_replayed():
    rng = np.random.default_rng(0)
    slopes, x = rng.normal(size=(DIM, 3)), rng.normal(size=(200, 3))
    w = np.array([cheapest_two(rng.normal(size=(1, DIM)))[0] for _ in x])
    costs = 5.0 + x @ slopes.T
    record = replay.MeasuredRound(
        *(jnp.asarray(array, jnp.float32) for array in (x, w, np.sum(w * costs, axis=1)[:, None])),
        jnp.ones((200, 1), bool),
    )
    memory = replay.Replay(record, jnp.int32(200))
    net = DecayedNetwork(DIM, (3,), width=8)
    nuisance = NetworkEnsemble(*map(np.asarray, (0.01, 1e9, 0.0, 3.0, 0.3)), net=net, count=2, batch=32)
    state = nuisance.init(jax.random.key(0))
    after = jax.jit(lambda *given: nuisance.train(*given))(jax.random.key(1), state, memory, jnp.int32(400))
    error = lambda state: float(np.mean(np.abs(nuisance.predict(state, jnp.asarray(x)) - costs)))  # noqa: E731
    assert error(after) < 0.2 * error(state)


def test_no_preset_of_the_paper_reaches_it():
    auto, dfhpg = resolve(Experiment("topk", ["dfhpg_auto", "dfhpg"]))
    assert auto.policy == policies.parse("dfhpg_auto")
    assert auto.scaling
    assert not auto.tuned
    assert dfhpg.tuned


def test_draws_come_from_what_is_there():
    memory = replay.empty({"x": jnp.zeros(2)}, 100)
    assert np.array_equal(draw(jax.random.key(0), memory, (3,))["x"], np.zeros((3, 2)))
    for value in range(3):
        memory = memory.add({"x": jnp.full(2, 1.0 * value)})
    drawn = draw(jax.random.key(0), memory, (5, 40))["x"]
    assert drawn.shape == (5, 40, 2)
    assert set(drawn.ravel().tolist()) == {0.0, 1.0, 2.0}


@pytest.mark.parametrize("rule", feedback.REGISTRY)
def test_rows_of_a_record_have_the_norms_of_what_was_measured(rule):
    problem = Problem(oracles.top_k(6, 2), (3,), rule)
    decision = problem.decision(jnp.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0]), np.ones(3))
    observed = problem.observe(decision, jnp.arange(6.0))
    record = replay.measured_round(problem, decision, observed)
    used = np.asarray(observed.used())
    norms = np.sqrt(np.asarray(observed.operator.row_squares()))[used]
    assert np.allclose(row_norms(record)[used], norms, atol=1e-5)
