import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from regretless import feedback, oracles
from regretless.models import MLPNuisance, networks
from regretless.problem import Problem
from regretless.types import Feedback

DIM = 6
SHAPES = {"vector": (3,), "rows": (DIM, 3)}


def built(kind, shape, mode="bandit", **settings):
    return kind(**settings).build(Problem(oracles.top_k(DIM, 2), shape, mode))


def seen(rule, shape, seed):
    keys = jax.random.split(jax.random.key(seed), 2)
    w = oracles.top_k(DIM, 2).solve_one(jax.random.normal(keys[0], (DIM,))).w
    operator, linkage = rule.measure(w, None)
    return Feedback(operator, linkage, operator.matvec(20 * jax.random.normal(keys[1], (DIM,))))


@pytest.mark.parametrize("mode", feedback.REGISTRY)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.usefixtures("float64")
def test_step_is_adam_on_the_clipped_gradient_of_the_stated_loss(mode, shape):
    rule = feedback.REGISTRY[mode]
    model = built(MLPNuisance, shape, rule, lr=0.05, precision="double")
    assert model.support == (2 if rule.sparse else None)
    state = model.init(jax.random.key(0))
    layers, reference = state.layers, optax.adam(lambda t: 0.05 * 101 / (t + 101))
    their_state = reference.init(layers)
    for t in range(4):
        context, got = jax.random.normal(jax.random.key(t), shape), seen(rule, shape, t)

        def loss(layers, context=context, got=got):
            prediction = networks.apply(layers, context).reshape(DIM)
            error = jnp.where(got.used(), got.operator.matvec(prediction) - got.values, 0.0)
            return 0.5 * jnp.sum(jnp.square(error)) / jnp.sum(got.used())

        grads = jax.grad(loss)(layers)
        norm = optax.tree.norm(grads)
        grads = jax.tree.map(lambda g, norm=norm: g * jnp.minimum(1.0, 10.0 / norm), grads)
        updates, their_state = reference.update(grads, their_state)
        layers = optax.apply_updates(layers, updates)
        state, reported = model.step(state, context, got)
        assert float(reported) == pytest.approx(float(norm), rel=1e-9)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10), state.layers, layers)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("mode", ["bandit", "semi_bandit", "full"])
def test_the_prediction_before_a_step_is_whole_or_keeps_to_what_was_chosen(mode):
    model = built(MLPNuisance, SHAPES["rows"], mode, precision="double")
    state, context = model.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), SHAPES["rows"])
    got = seen(feedback.REGISTRY[mode], SHAPES["rows"], 2)
    chosen = np.asarray(got.operator.rmatvec(got.linkage)) != 0
    expected = np.asarray(model.predict(state, context))
    whole, after_whole, _ = model.predict_and_step(state, context, got, jnp.asarray(True))
    part, after_part, _ = model.predict_and_step(state, context, got, jnp.asarray(False))
    np.testing.assert_allclose(whole, expected, rtol=1e-12)
    np.testing.assert_allclose(part, np.where(chosen | (mode == "full"), expected, 0.0), rtol=1e-12)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), after_whole, after_part)


def test_rows_that_cannot_matter_may_be_left_out():
    context, got = jax.random.normal(jax.random.key(0), SHAPES["rows"]), seen(feedback.Bandit(), SHAPES["rows"], 1)
    states = []
    for support in (None, 2, 4):
        model = dataclasses.replace(built(MLPNuisance, SHAPES["rows"], lr=0.05), support=support)
        states.append(model.step(model.init(jax.random.key(0)), context, got)[0])
    for other in states[1:]:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), states[0], other)


@pytest.mark.usefixtures("float64")
def test_single_precision_unless_double_is_asked_for():
    for precision, kind in (("single", np.float32), ("double", np.float64)):
        model = built(MLPNuisance, SHAPES["vector"], precision=precision)
        state, _ = model.step(model.init(jax.random.key(0)), jnp.ones(3), seen(feedback.Bandit(), (3,), 0))
        assert {leaf.dtype for leaf in jax.tree.leaves(state.layers)} == {np.dtype(kind)}
        assert model.predict(state, jnp.ones(3)).dtype == np.float64
