"""What every point model must do, for a context vector and for feature rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import models

DIM, SCALE = 4, 0.3
SHAPES = {"vector": (3,), "rows": (DIM, 3)}


@pytest.fixture(params=models.POINT)
def name(request):
    return request.param


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


def setting(name, shape):
    model = models.POINT[name](DIM, shape, np.array(SCALE))
    params = model.init(jax.random.key(0))
    return model, params, jax.random.normal(jax.random.key(1), shape)


@pytest.mark.usefixtures("float64")
def test_samples_have_the_mean_and_density_of_the_model(name, shape):
    model, params, context = setting(name, shape)
    draw = jax.jit(jax.vmap(lambda key: model.sample(params, context, model.draw(key))))
    samples = np.asarray(draw(jax.random.split(jax.random.key(2), 20_000)))
    mean = np.asarray(model.mean(params, context))
    standard_error = samples.std(axis=0, ddof=1) / len(samples) ** 0.5
    assert np.all(np.abs(samples.mean(axis=0) - mean) < 4.5 * standard_error)
    # E over p of p_other/p is 1 for any other density that p covers: checks the density's shape and its constant.
    log_density = jax.vmap(lambda cost: model.log_density(params, context, cost))(samples)
    spread = 0.5 * samples.std(axis=0)
    other = np.sum(-0.5 * ((samples - mean) / spread) ** 2 - np.log(spread * (2 * np.pi) ** 0.5), axis=1)
    ratio = np.exp(other - np.asarray(log_density))
    assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / len(ratio) ** 0.5


@pytest.mark.usefixtures("float64")
def test_score_is_the_gradient_of_the_log_density(name, shape):
    model, params, context = setting(name, shape)
    noise = model.draw(jax.random.key(3))
    cost = model.sample(params, context, noise)
    expected = jax.grad(lambda theta: model.log_density(theta, context, cost))(params)
    for fresh in (True, False):
        got = model.score(params, context, cost, noise, jnp.asarray(fresh))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9), got, expected)


@pytest.mark.usefixtures("float64")
def test_a_stale_noise_is_not_used(name, shape):
    model, params, context = setting(name, shape)
    cost = model.sample(params, context, model.draw(jax.random.key(3)))
    expected = jax.grad(lambda theta: model.log_density(theta, context, cost))(params)
    got = model.score(params, context, cost, jnp.full(DIM, 7.0), jnp.asarray(False))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9), got, expected)


@pytest.mark.usefixtures("float64")
def test_pullback_is_the_transposed_jacobian_of_the_mean(name, shape):
    model, params, context = setting(name, shape)
    cotangent = jax.random.normal(jax.random.key(4), (DIM,))
    got = model.pullback(params, context, cotangent)
    h = 1e-6
    for index, leaf in enumerate(jax.tree.leaves(params)):
        position = np.unravel_index(leaf.size // 2, leaf.shape)

        def moved(by, index=index, position=position):
            leaves = jax.tree.leaves(params)
            leaves[index] = leaves[index].at[position].add(by)
            return model.mean(jax.tree.unflatten(jax.tree.structure(params), leaves), context) @ cotangent

        slope = (moved(h) - moved(-h)) / (2 * h)
        assert float(jax.tree.leaves(got)[index][position]) == pytest.approx(float(slope), rel=1e-5, abs=1e-7)


def test_initial_weights_have_the_stated_spread(shape):
    model = models.GaussianLinear(400, (50,) if len(shape) == 1 else (400, 5000), np.array(1.0))
    theta = np.asarray(model.init(jax.random.key(0)))
    assert theta.std() == pytest.approx(0.01, rel=0.05)
    assert abs(theta.mean()) < 1e-3
