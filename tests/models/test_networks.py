import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from regretless.models import networks

LAYERS = networks.init_uniform(jax.random.key(0), (3, 8, 8, 2))


@pytest.mark.parametrize("shape", [(3,), (5, 3)])
def test_backward_is_the_gradient(shape):
    x, target = jax.random.normal(jax.random.key(1), shape), jax.random.normal(jax.random.key(2), (*shape[:-1], 2))
    expected = jax.grad(lambda layers: 0.5 * jnp.sum(jnp.square(networks.apply(layers, x) - target)))(LAYERS)
    output, inputs = networks.forward(LAYERS, x)
    got = [networks.gradient(factor) for factor in networks.backward(LAYERS, inputs, output - target)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), got, list(expected))


@pytest.mark.usefixtures("float64")
def test_adam_is_adam():
    params = {"a": jnp.arange(3.0), "b": jnp.array(2.0)}
    rate, reference = jnp.array(0.05), optax.adam(0.05)
    theirs, ours = params, params
    their_state, our_state = reference.init(params), networks.adam_init(params)
    for t in range(20):
        grads = jax.tree.map(lambda p, t=t: jnp.sin(p + t) * 10.0 ** (t % 3 - 4), params)
        updates, their_state = reference.update(jax.tree.map(lambda g: 0.5 * g, grads), their_state)
        theirs = optax.apply_updates(theirs, updates)
        ours, our_state = networks.adam_step(ours, our_state, grads, rate, scale=0.5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9), ours, theirs)


@pytest.mark.usefixtures("float64")
def test_bias_corrections_of_single_precision_weights_are_computed_in_double_precision():
    weight, state = jnp.zeros(3, jnp.float32), networks.adam_init(jnp.zeros(3, jnp.float32))
    expected = first = second = np.zeros(3)
    for t in range(1, 6):
        gradient = np.array([1.0, -0.5, 0.25]) * t
        weight, state = networks.adam_step(weight, state, jnp.asarray(gradient, jnp.float32), jnp.array(1e-3))
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        expected = expected - 1e-3 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    assert weight.dtype == jnp.float32
    np.testing.assert_allclose(weight, expected, rtol=1e-6)  # 6e-6 apart with corrections in single precision


def test_clipping():
    step = networks.sgd_step({"w": jnp.zeros(2)}, {"w": jnp.array([30.0, 40.0])}, jnp.array(0.1), clip=10.0)
    np.testing.assert_allclose(step["w"], [-0.6, -0.8], rtol=1e-6)
    step = networks.sgd_step({"w": jnp.zeros(2)}, {"w": jnp.array([3.0, 4.0])}, jnp.array(0.1), clip=10.0)
    np.testing.assert_allclose(step["w"], [-0.3, -0.4], rtol=1e-6)
    assert networks.clip_factor(jnp.array(0.0), 10.0) == 1.0


def test_initial_weights_have_the_stated_spread():
    (first, second) = networks.init_uniform(jax.random.key(0), (100, 200, 5))
    assert np.max(np.abs(first.weight)) <= 0.1
    assert float(jnp.std(first.weight)) == pytest.approx(0.1 / 3**0.5, rel=0.02)
    assert float(jnp.std(first.bias)) == pytest.approx(0.1 / 3**0.5, rel=0.15)
    assert np.max(np.abs(second.weight)) <= 200**-0.5
    (first, _) = networks.init_he(jax.random.key(0), (100, 200, 5))
    assert float(jnp.std(first.weight)) == pytest.approx((2 / 100) ** 0.5, rel=0.02)
    assert not np.any(first.bias)
