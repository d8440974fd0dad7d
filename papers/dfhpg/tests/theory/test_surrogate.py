"""The surrogate variant's exact functions against finite differences, and its constants against the paper's
formulas.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless_dfhpg.theory import surrogate, world

pytestmark = pytest.mark.usefixtures("float64")

SHAPE = (world.ITEMS, world.FEATURES)
THETA, PHI = np.random.default_rng(0).uniform(-1.0, 1.0, (2, *SHAPE))


@pytest.fixture(scope="module")
def more():
    return surrogate.constants()


def test_gradients_are_those_of_the_values():
    value = jax.jit(jax.grad(surrogate.surrogate_value, argnums=1))
    assert np.allclose(surrogate.surrogate_gradient(jnp.asarray(PHI), jnp.asarray(THETA)), value(PHI, THETA), atol=1e-9)
    mixed = jax.jit(jax.grad(surrogate.mixed_value, argnums=1))(0.3, THETA)
    assert np.allclose(surrogate.mixed_gradient(0.3, jnp.asarray(THETA)), mixed, atol=1e-9)
    fast = surrogate.mixed_gradient(0.3, jnp.asarray(THETA), surrogate.FAST)
    assert np.max(np.abs(fast - mixed)) < 3e-5


def test_the_bias_is_the_difference_of_two_surrogate_gradients():
    truth = jnp.asarray(world.COEFFICIENTS)
    theta, phi = jnp.asarray(THETA), jnp.asarray(PHI)
    difference = surrogate.surrogate_gradient(phi, theta) - surrogate.surrogate_gradient(truth, theta)
    assert np.allclose(surrogate.surrogate_bias_gradient(phi, theta), difference, atol=1e-12)


def test_no_curvature_found_exceeds_the_constant(more):
    curvature = jax.jit(
        jax.vmap(lambda theta: jnp.max(jnp.abs(world.eigenvalues(lambda t: surrogate.mixed_gradient(0.5, t), theta))))
    )
    places = np.random.default_rng(1).uniform(-np.pi, np.pi, (200, *SHAPE))
    assert float(np.max(curvature(places))) <= more.smoothness[0.5]
    assert more.smoothness[0.0] <= more.lemma_smoothness


def test_the_bounds_are_the_papers_formulas(more):
    bounds, horizon = world.constants(), 1000.0
    bias = (more.target_lipschitz * more.reach * bounds.lipschitz * bounds.slope / bounds.convexity) ** 2
    bias *= (1 + np.log(horizon)) / horizon
    assert more.bias_bound(bounds, "adaptive", horizon) == pytest.approx(bias)
    norm = 0.5 * bounds.gradient + 0.5 * more.reach * more.slope
    deviation = 0.5 * bounds.score_deviation + 0.5 * more.deviation
    descent = 2 * more.smoothness[0.5] * more.gap[0.5] + norm**2 + deviation**2
    expected = descent / horizon**0.5 + 0.25 * bias
    assert more.stationarity_bound(bounds, "adaptive", 0.5, horizon) == pytest.approx(expected)


def test_the_pool_is_full_from_the_start():
    oracle = world.World().problem("bandit").oracle
    memory = surrogate.FullPool(pool=world.ITEMS).build(oracle).init()
    assert int(memory.count()) == world.ITEMS
