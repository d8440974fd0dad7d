import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless import posterior

assimilate = jax.jit(posterior.assimilate)
pytestmark = pytest.mark.usefixtures("float64")


def batch(ridge, rows, values):
    precision = np.diag(ridge) + rows.T @ rows
    return np.linalg.solve(precision, rows.T @ values), np.linalg.inv(precision)


@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 3), (2, 5), (7, 3), (9, 5)]),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_rows_together_are_batch_least_squares(seed, shape, scale):
    rows, size = shape
    rng = np.random.default_rng(seed)
    matrix, values = scale * rng.normal(size=(rows, size)), rng.normal(size=rows)
    with jax.enable_x64(True):
        start = jnp.eye(size) / jnp.sqrt(2.0)
        mean, factor = assimilate(jnp.zeros(size), start, jnp.ones(()), jnp.asarray(matrix), jnp.asarray(values))
    expected, covariance = batch(np.full(size, 2.0), matrix, values)
    np.testing.assert_allclose(factor @ factor.T, covariance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-7 * np.max(np.abs(expected)))


def test_inflation_is_a_wider_start_and_zero_rows_change_nothing():
    factor = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
    rows, values = jnp.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), jnp.array([1.0, 0.0])
    wide = posterior.assimilate(jnp.ones(3), factor, jnp.asarray(2.0), rows, values)
    same = posterior.assimilate(jnp.ones(3), 2.0 * factor, jnp.ones(()), rows[:1], values[:1])
    for one, other in zip(wide, same, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 1e6])
def test_a_hundred_thousand_updates_end_where_batch_least_squares_does(condition):
    """Features whose sizes differ by ``condition``; the tolerance is a millionth of a posterior standard deviation."""
    count, size = 100_000, 4
    scales = np.geomspace(1.0, condition, size)

    def draw(key):
        row_key, noise_key = jax.random.split(key)
        row = jax.random.normal(row_key, (size,)) * scales
        return row, row @ (jnp.arange(1.0, size + 1) / scales) + jax.random.normal(noise_key)

    def step(carry, t):
        mean, factor, gram, cross = carry
        row, value = draw(jax.random.fold_in(jax.random.key(1), t))
        mean, factor = posterior.assimilate(mean, factor, jnp.ones(()), row[None], value[None])
        return (mean, factor, gram + jnp.outer(row, row), cross + value * row), None

    start = (jnp.zeros(size), jnp.eye(size), jnp.eye(size), jnp.zeros(size))
    (mean, factor, gram, cross), _ = jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(count)))(start)
    scaled = np.asarray(gram) / np.outer(scales, scales)
    expected = np.linalg.solve(scaled, np.asarray(cross) / scales) / scales
    covariance = np.linalg.inv(scaled) / np.outer(scales, scales)
    deviation = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(np.asarray(mean) - expected) / deviation) < 1e-6
    np.testing.assert_allclose(
        (factor @ factor.T) / np.outer(deviation, deviation), covariance / np.outer(deviation, deviation), atol=1e-7
    )
