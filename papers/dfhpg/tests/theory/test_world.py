"""The world of the theorems against Monte Carlo, finite differences and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regretless_dfhpg.theory import world as world
from regretless_dfhpg.theory.runs import shortest_horizon

pytestmark = pytest.mark.usefixtures("float64")

SHAPE = (world.ITEMS, world.FEATURES)
points = arrays(float, SHAPE, elements=st.floats(-3.0, 3.0))
choice_probabilities = jax.jit(world.choice_probabilities)
value = jax.jit(world.value)
gradient = jax.jit(world.gradient)
bias_gradient = jax.jit(world.bias_gradient)
plug_in_value = jax.jit(world.plug_in_value)
convexity = jax.jit(world.convexity)
curvatures = jax.jit(world.curvatures)


@pytest.fixture(scope="module")
def bounds():
    return world.constants()


def differences(function, theta, step=1e-5):
    """Central finite differences of ``function`` at ``theta``."""
    slopes = np.zeros(SHAPE)
    for index in np.ndindex(SHAPE):
        shift = np.zeros(SHAPE)
        shift[index] = step
        slopes[index] = (function(theta + shift) - function(theta - shift)) / (2 * step)
    return slopes


def test_probabilities_agree_with_monte_carlo():
    means = np.array([[0.3, -0.4, 0.1], [-0.5, 0.5, 0.5], [0.0, 0.0, 0.0]])
    exact = np.asarray(world.probabilities(jnp.asarray(means)))
    size = 400_000
    draws = means[:, None, :] + world.SCALE * np.random.default_rng(0).normal(size=(3, size, 3))
    counted = np.stack([np.bincount(row, minlength=3) for row in draws.argmin(axis=2)]) / size
    error = np.sqrt(exact * (1 - exact) / size)
    assert np.all(np.abs(counted - exact) < 5 * error)  # nine comparisons: wrong in fewer than 1 of 100,000 worlds
    assert np.allclose(exact[2], 1 / 3, atol=1e-12)


@given(points)
def test_probabilities_are_probabilities(theta):
    shares = np.asarray(choice_probabilities(theta))
    assert np.all(shares > 0)
    assert np.allclose(shares.sum(axis=1), 1.0, atol=1e-10)


@given(points)
def test_the_closed_form_gradient_is_that_of_the_expected_cost(theta):
    assert np.allclose(gradient(theta), differences(value, theta), atol=1e-8)


@given(points, points)
def test_the_bias_gradient_is_that_of_the_difference(phi, theta):
    difference = lambda theta: plug_in_value(phi, theta) - value(theta)  # noqa: E731
    assert np.allclose(bias_gradient(phi, theta), differences(difference, theta), atol=1e-7)


@given(points)
def test_one_eigenvalue_serves_every_policy(bounds, theta):
    assert float(convexity(theta)) >= bounds.convexity
    assert float(np.max(np.abs(curvatures(theta)))) <= bounds.smoothness * 1.001
    assert float(np.linalg.norm(gradient(theta))) <= bounds.gradient


def test_the_convexity_is_that_of_the_nuisance_loss():
    theta = jax.random.normal(jax.random.key(3), SHAPE)
    shares = world.choice_probabilities(theta)

    def loss(phi):
        return jnp.mean(
            jnp.sum(shares * jnp.square(world.CONTEXTS @ (phi.reshape(SHAPE) - world.COEFFICIENTS).T), axis=1)
        )

    hessian = jax.hessian(loss)(jnp.zeros(world.ITEMS * world.FEATURES))
    assert float(world.convexity(theta)) == pytest.approx(float(np.linalg.eigvalsh(hessian)[0]), rel=1e-10)


def test_costs_have_the_known_mean_and_every_item_is_best_somewhere():
    stream = world.World()
    keys = jax.random.split(jax.random.key(0), 20_000)
    played = jax.vmap(lambda key: stream.round(key, None, jnp.int32(1)))(keys)
    assert np.allclose(played.mean, played.observation @ world.COEFFICIENTS.T)
    miss = np.asarray(played.cost / played.mean).mean(axis=0) - 1.0
    assert np.all(np.abs(miss) < 5 * world.NOISE_RADIUS / (3 * 20_000) ** 0.5)
    assert set(np.argmin(world.CONTEXTS @ world.COEFFICIENTS.T, axis=1)) == {0, 1, 2}
    assert np.linalg.norm(world.COEFFICIENTS) < world.RADIUS


def test_the_bounds_are_the_papers_formulas(bounds):
    horizon = 1000.0
    adaptive = bounds.slope**2 * (1 + np.log(horizon)) / (2 * bounds.convexity * horizon)
    assert bounds.nuisance_bound("adaptive", horizon) == pytest.approx(adaptive)
    assert bounds.nuisance_bound("constant", horizon) == pytest.approx(bounds.diameter * bounds.slope / horizon**0.5)
    descent = 2 * bounds.smoothness * bounds.gap + bounds.gradient**2 + bounds.score_deviation**2
    assert bounds.stationarity_bound("adaptive", 1.0, horizon) == pytest.approx(descent / horizon**0.5)
    bias = (
        bounds.stationarity_bound("constant", 0.0, horizon)
        - (2 * bounds.smoothness * bounds.gap + bounds.gradient**2 + bounds.plug_in_deviation**2) / horizon**0.5
    )
    expected = (
        bounds.jacobian**2
        * bounds.lipschitz**2
        * 2
        * bounds.diameter
        * bounds.slope
        / (bounds.convexity * horizon**0.5)
    )
    assert bias == pytest.approx(expected)


def test_the_shortest_horizon_follows_from_the_slowest_direction(bounds):
    horizon = shortest_horizon(bounds)
    slowest = min(
        bounds.convexity * bounds.diameter / bounds.slope,
        bounds.relaxation / bounds.smoothness,
    )
    assert np.exp(-2 * slowest * horizon**0.5) <= np.exp(-5) < np.exp(-2 * slowest * (horizon / 2) ** 0.5)
    assert horizon == 4096


def test_the_model_is_bounded_and_its_score_is_the_gradient_of_its_log_density():
    model = world.BoundedGaussian().build(3, (3,), world.SCALE)
    theta, x = 2.0 * jax.random.normal(jax.random.key(1), SHAPE), jnp.asarray(world.CONTEXTS[1])
    noise = model.draw(jax.random.key(2))
    cost = model.sample(theta, x, noise)
    assert float(jnp.max(jnp.abs(model.mean(theta, x)))) <= world.REACH
    slope = jax.grad(lambda theta: model.log_density(theta, x, cost))(theta)
    assert np.allclose(model.score(theta, x, cost, noise, jnp.asarray(True)), slope, atol=1e-6)
