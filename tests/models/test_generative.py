"""What our generative models have in common beyond the contract: precision and initial weights."""

import jax
import jax.numpy as jnp
import pytest

from regretless import models

DIM = 4
SHAPES = {"vector": (3,), "rows": (DIM, 3)}
GENERATIVE = [name for name in models.REGISTRY if models.is_generative(name)]


@pytest.fixture(params=GENERATIVE)
def name(request):
    return request.param


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


@pytest.mark.usefixtures("float64")
def test_parameters_are_single_and_samples_have_the_type_of_the_program(name, shape):
    model = models.REGISTRY[name]().build(DIM, shape)
    params = model.init(jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    sample = model.sample(params, jnp.ones(shape), model.draw(jax.random.key(2)))
    assert sample.dtype == jnp.float64
    scenarios, pullback = model.scenarios(params, jnp.ones(shape), jnp.ones((5, DIM)))
    assert scenarios.dtype == jnp.float32
    gradient = pullback(jnp.ones((5, DIM)))
    assert jax.tree.map(lambda g: (g.shape, g.dtype), gradient) == jax.tree.map(lambda g: (g.shape, g.dtype), params)


def test_initial_weights_are_within_one_over_the_root_of_fan_in(name, shape):
    model = models.REGISTRY[name]().build(DIM, shape)
    leaves = jax.tree.leaves(model.init(jax.random.key(5)))
    inputs = {"flow": (7, 3), "diffusion": (15, 12)}[name][len(shape) - 1]
    bounds = {inputs**-0.5, 128**-0.5}
    for leaf in leaves:
        if leaf.size >= 128:
            largest = float(jnp.max(jnp.abs(leaf)))
            assert any(0.95 * bound < largest <= bound for bound in bounds), (leaf.shape, largest, bounds)
