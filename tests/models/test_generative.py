"""What every generative model must do, for a context vector and for feature rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import models

DIM = 4
SHAPES = {"vector": (3,), "rows": (DIM, 3)}


@pytest.fixture(params=models.GENERATIVE)
def name(request):
    return request.param


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


def setting(name, shape, dtype=jnp.float32):
    model = models.GENERATIVE[name](DIM, shape)
    params = jax.tree.map(lambda leaf: 2.0 * leaf.astype(dtype), model.init(jax.random.key(0)))
    return model, params, jax.random.normal(jax.random.key(1), shape, dtype)


@pytest.mark.usefixtures("float64")
def test_parameters_are_single_and_samples_have_the_type_of_the_program(name, shape):
    model = models.GENERATIVE[name](DIM, shape)
    params = model.init(jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    sample = model.sample(params, jnp.ones(shape), model.draw(jax.random.key(2)))
    assert sample.dtype == jnp.float64
    assert sample.shape == (DIM,)
    scenarios, pullback = model.scenarios(params, jnp.ones(shape), jnp.ones((5, DIM)))
    assert scenarios.dtype == jnp.float32
    gradient = pullback(jnp.ones((5, DIM)))
    assert jax.tree.map(lambda g: (g.shape, g.dtype), gradient) == jax.tree.map(lambda g: (g.shape, g.dtype), params)


@pytest.mark.usefixtures("float64")
def test_scenarios_are_samples_one_by_one(name, shape):
    model, params, context = setting(name, shape, jnp.float64)
    noise = jax.random.normal(jax.random.key(2), (5, DIM))
    scenarios, _ = model.scenarios(params, context, noise)
    one_by_one = jnp.stack([model.sample(params, context, row) for row in noise])
    np.testing.assert_allclose(scenarios, one_by_one, rtol=1e-12)
    assert np.std(scenarios, axis=0).min() > 0.01


@pytest.mark.usefixtures("float64")
def test_scenarios_are_differentiable_in_the_parameters(name, shape):
    """Cotangents carried back agree with finite differences of the sampler, at every leaf."""
    model, params, context = setting(name, shape, jnp.float64)
    noise, cotangents = jax.random.normal(jax.random.key(2), (2, 5, DIM))
    got = model.scenarios(params, context, noise)[1](cotangents)
    total = jax.jit(lambda theta: jnp.sum(model.scenarios(theta, context, noise)[0] * cotangents))
    leaves, structure = jax.tree.flatten(params)
    h = 1e-6
    for index, leaf in enumerate(leaves):
        direction = jax.random.normal(jax.random.fold_in(jax.random.key(3), index), leaf.shape)

        def moved(by, index=index, direction=direction):
            changed = [*leaves]
            changed[index] = leaves[index] + by * direction
            return float(total(jax.tree.unflatten(structure, changed)))

        slope = (moved(h) - moved(-h)) / (2 * h)
        along = float(jnp.sum(jax.tree.leaves(got)[index] * direction))
        assert along == pytest.approx(slope, rel=2e-5, abs=1e-6)


@pytest.mark.usefixtures("float64")
def test_the_loss_falls_along_its_gradient(name, shape):
    model, params, context = setting(name, shape, jnp.float64)
    cost, drawn = jnp.array([1.0, -2.0, 0.5, 3.0]), model.draw_loss(jax.random.key(4))
    gradient = model.loss_gradient(params, context, cost, drawn)
    square = float(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)))
    step = 1e-6 / square**0.5
    after = jax.tree.map(lambda p, g: p - step * g, params, gradient)
    fall = float(model.loss(params, context, cost, drawn) - model.loss(after, context, cost, drawn))
    assert fall == pytest.approx(step * square, rel=1e-3)


def test_initial_weights_are_within_one_over_the_root_of_fan_in(name, shape):
    model = models.GENERATIVE[name](DIM, shape)
    leaves = jax.tree.leaves(model.init(jax.random.key(5)))
    inputs = {"flow": (7, 3), "diffusion": (15, 12)}[name][len(shape) - 1]
    bounds = {inputs**-0.5, 128**-0.5}
    for leaf in leaves:
        if leaf.size >= 128:
            largest = float(jnp.max(jnp.abs(leaf)))
            assert any(0.95 * bound < largest <= bound for bound in bounds), (leaf.shape, largest, bounds)
