"""The Bayesian linear model in its three forms, against plain NumPy from scratch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.stats.bayes_linear import (
    LEVEL_VARIANCE,
    MIN_SCALE_ROWS,
    MIN_SCALE_STEP,
    FlatLevel,
    LinearPosterior,
    fit_dual,
    initial_regression,
    initial_scale,
)

pytestmark = pytest.mark.usefixtures("float64")
condition = jax.jit(lambda posterior, rows, values: posterior.condition(rows, values))


def closed_form(precision, rows, values):
    """Return posterior mean and covariance from the normal equations."""
    precision = precision + rows.T @ rows
    return np.linalg.solve(precision, rows.T @ values), np.linalg.inv(precision)


def covariances(posterior):
    factor = np.asarray(posterior.factor)
    return factor @ factor.transpose(0, 2, 1)


@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 3), (2, 5), (7, 3), (9, 5)]),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_conditioning_on_rows_is_the_closed_form(seed, shape, scale):
    m, n = shape
    rng = np.random.default_rng(seed)
    rows, values = scale * rng.normal(size=(2, m, n)), rng.normal(size=(2, m))
    with jax.enable_x64(True):
        prior = LinearPosterior(jnp.zeros((2, n)), jnp.broadcast_to(jnp.eye(n) / jnp.sqrt(2.0), (2, n, n)))
        posterior = condition(prior, jnp.asarray(rows), jnp.asarray(values))
    for block in range(2):
        mean, covariance = closed_form(2.0 * np.eye(n), rows[block], values[block])
        np.testing.assert_allclose(covariances(posterior)[block], covariance, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(posterior.mean[block], mean, rtol=1e-5, atol=1e-7 * np.max(np.abs(mean)))
    np.testing.assert_allclose(posterior.variances()[0], np.diag(covariances(posterior)[0]), rtol=1e-9)


@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(3, 1, 2, 7), (1, 2, 4, 3), (2, 9, 3, 1), (1, 1, 5, 12)]))
def test_a_flat_level_is_one_more_coefficient_with_a_wide_prior(seed, shape):
    """Coefficients are deviations from ``level · loading``; all blocks share the level."""
    blocks, m, n, steps = shape
    rng = np.random.default_rng(seed)
    loading = np.tile(np.eye(n)[0], (blocks, 1))
    rows, values = rng.normal(size=(steps, blocks, m, n)), 20.0 + rng.normal(size=(steps, blocks, m))
    with jax.enable_x64(True):
        factor = jnp.broadcast_to(jnp.eye(n), (blocks, n, n))
        level = FlatLevel(jnp.asarray(loading), jnp.zeros(()))
        posterior = LinearPosterior(jnp.zeros((blocks, n)), factor, level)
        for step in range(steps):
            posterior = condition(posterior, jnp.asarray(rows[step]), jnp.asarray(values[step]))
    wide = np.zeros((steps, blocks, m, blocks * n + 1))
    for block in range(blocks):
        wide[:, block, :, block * n : (block + 1) * n] = rows[:, block]
        wide[:, block, :, -1] = rows[:, block] @ loading[block]
    prior = np.diag([*np.ones(blocks * n), 1.0 / LEVEL_VARIANCE])
    mean, _ = closed_form(prior, wide.reshape(-1, blocks * n + 1), values.reshape(-1))
    expected = mean[:-1] + mean[-1] * loading.reshape(-1)
    np.testing.assert_allclose(np.asarray(posterior.mean).reshape(-1), expected, rtol=1e-6, atol=1e-6)


def test_the_spread_of_an_error_is_that_of_the_prior_prediction():
    rng = np.random.default_rng(0)
    factor, rows = rng.normal(size=(1, 3, 3)), rng.normal(size=(1, 2, 3))
    posterior = LinearPosterior(jnp.zeros((1, 3)), jnp.asarray(factor))
    expected = np.sqrt(1.0 + np.einsum("mn,nk,mk->m", rows[0], factor[0] @ factor[0].T, rows[0]))
    for m in (1, 2):
        spread = posterior.spread(posterior.project(jnp.asarray(rows[:, :m])))
        np.testing.assert_allclose(spread[0], expected[:m], rtol=1e-12)
    level = FlatLevel(jnp.ones((1, 3)), jnp.asarray(4.0))
    leveled = LinearPosterior(posterior.mean, posterior.factor, level)
    spread = leveled.spread(leveled.project(jnp.asarray(rows[:, :1])))
    known = expected[0] ** 2 + rows[0, 0].sum() ** 2 / (4.0 + 1.0 / LEVEL_VARIANCE)
    np.testing.assert_allclose(spread[0, 0], np.sqrt(known), rtol=1e-12)


def test_forgetting_is_a_wider_posterior_and_rows_of_zeros_change_nothing():
    """After every row the precision loses a tenth: old rows have geometric weights."""
    rng = np.random.default_rng(0)
    rows, values, keep = rng.normal(size=(8, 3)), rng.normal(size=8), 0.9
    posterior = LinearPosterior(jnp.zeros((1, 3)), jnp.eye(3)[None])
    for row, value in zip(rows, values, strict=True):
        padded, targets = jnp.stack([row, jnp.zeros(3)])[None], jnp.array([[value, 0.0]])
        posterior = posterior.condition(padded, targets, inflation=1.0 / np.sqrt(keep))
    weights = keep ** np.arange(7, -1, -1)
    mean, covariance = closed_form(keep**8 * np.eye(3), np.sqrt(weights)[:, None] * rows, np.sqrt(weights) * values)
    np.testing.assert_allclose(posterior.mean[0], mean, rtol=1e-9)
    np.testing.assert_allclose(covariances(posterior)[0], covariance, rtol=1e-9)


def test_loads_that_the_caller_knows_are_not_computed_again():
    rng = np.random.default_rng(0)
    prior = LinearPosterior(jnp.zeros((1, 4)), jnp.asarray(rng.normal(size=(1, 4, 4))))
    rows, values = jnp.asarray(rng.normal(size=(1, 2, 4))), jnp.asarray(rng.normal(size=(1, 2)))
    given_loads = prior.condition(rows, values, loads=rows @ prior.factor)
    for one, other in zip(jax.tree.leaves(given_loads), jax.tree.leaves(prior.condition(rows, values)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_draws_have_the_covariance():
    factor = jnp.array([[[2.0, 0.0], [1.0, 0.5]]])
    noise = jax.random.normal(jax.random.key(0), (20_000, 1, 2))
    posterior = LinearPosterior(jnp.ones((1, 2)), factor)
    draws = jax.vmap(posterior.draw)(noise)[:, 0]
    np.testing.assert_allclose(np.cov(draws.T), factor[0] @ factor[0].T, atol=0.15)


@pytest.mark.parametrize("condition_number", [1.0, 1e6])
def test_a_hundred_thousand_updates_end_where_batch_least_squares_does(condition_number):
    """Features of very different sizes; the tolerance is a millionth of a posterior standard deviation."""
    count, size = 100_000, 4
    scales = np.geomspace(1.0, condition_number, size)

    def draw(key):
        row_key, noise_key = jax.random.split(key)
        row = jax.random.normal(row_key, (size,)) * scales
        return row, row @ (jnp.arange(1.0, size + 1) / scales) + jax.random.normal(noise_key)

    def step(carry, t):
        posterior, gram, cross = carry
        row, value = draw(jax.random.fold_in(jax.random.key(1), t))
        posterior = posterior.condition(row[None, None], value[None, None])
        return (posterior, gram + jnp.outer(row, row), cross + value * row), None

    start = (LinearPosterior(jnp.zeros((1, size)), jnp.eye(size)[None]), jnp.eye(size), jnp.zeros(size))
    (posterior, gram, cross), _ = jax.jit(lambda start: jax.lax.scan(step, start, jnp.arange(count)))(start)
    scaled = np.asarray(gram) / np.outer(scales, scales)
    expected = np.linalg.solve(scaled, np.asarray(cross) / scales) / scales
    covariance = np.linalg.inv(scaled) / np.outer(scales, scales)
    deviation = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(np.asarray(posterior.mean[0]) - expected) / deviation) < 1e-6
    unit = np.outer(deviation, deviation)
    np.testing.assert_allclose(covariances(posterior)[0] / unit, covariance / unit, atol=1e-7)


@given(seed=st.integers(0, 10**6))
def test_the_scale_of_errors_is_a_running_median(seed):
    """Against a plain loop: the largest of the first rows, then multiplicative steps towards the median."""
    rng = np.random.default_rng(seed)
    sizes, used = np.abs(rng.normal(size=(60, 3))), rng.random((60, 3)) < 0.7
    median, rows = 0.0, 0
    with jax.enable_x64(True):
        scale, update = initial_scale(), jax.jit(lambda scale, *row: scale.update(*row))
        for size, mask in zip(sizes, used, strict=True):
            scale = update(scale, jnp.asarray(size), jnp.asarray(mask))
            if not mask.any():
                continue
            if rows < MIN_SCALE_ROWS:
                median = max(median, size[mask].max())
            else:
                median *= np.exp(np.sign(size[mask] - median).mean() * max(MIN_SCALE_STEP, 1.0 / (2.0 + rows)))
            rows += mask.sum()
    np.testing.assert_allclose([scale.median, scale.rows], [median, rows], rtol=1e-9)


def test_errors_far_beyond_their_usual_size_are_cut_off_once_that_is_known():
    scale, one = initial_scale(), jnp.ones(1)
    for _ in range(MIN_SCALE_ROWS):
        assert float(scale.clip(jnp.asarray(1e9), jnp.asarray(4.0))) == 1e9
        scale = scale.update(one, one > 0)
    errors = jnp.array([-1e9, -3.0, 2.0, 1e9])
    np.testing.assert_allclose(scale.clip(errors, jnp.asarray(4.0)), [-4.0, -3.0, 2.0, 4.0])
    np.testing.assert_allclose(scale.clip(errors, jnp.asarray(4.0), 0.5), [-2.0, -2.0, 2.0, 2.0])
    np.testing.assert_allclose(scale.clip(errors, jnp.asarray(0.0)), errors)


@given(seed=st.integers(0, 10**6))
def test_a_robust_regression_is_that_of_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    rows, values = rng.normal(size=(40, 2)), rng.standard_t(1, size=40)
    precision, cross, median = np.eye(2), np.zeros(2), 0.0
    with jax.enable_x64(True):
        posterior, scale = LinearPosterior(jnp.zeros((1, 2)), jnp.eye(2)[None]), initial_scale()

        @jax.jit
        def learn(posterior, scale, row, value):
            projection = posterior.project(row[None, None])
            spread, error = posterior.spread(projection), value - row @ posterior.mean[0]
            after = scale.update(jnp.abs(error) / spread, jnp.ones((1, 1), bool))
            return posterior.update(projection, scale.clip(error, jnp.asarray(3.0), spread)), after

        for t, (row, value) in enumerate(zip(rows, values, strict=True)):
            posterior, scale = learn(posterior, scale, jnp.asarray(row), value)
            mean = np.linalg.solve(precision, cross)
            spread = np.sqrt(1.0 + row @ np.linalg.solve(precision, row))
            error = value - row @ mean
            believed = np.clip(error, -3.0 * median * spread, 3.0 * median * spread) if t >= MIN_SCALE_ROWS else error
            step, size = max(MIN_SCALE_STEP, 1.0 / (2.0 + t)), abs(error) / spread
            early = max(median, size)
            median = early if t < MIN_SCALE_ROWS else median * np.exp(step * np.sign(size - median))
            precision, cross = precision + np.outer(row, row), cross + row * (row @ mean + believed)
    np.testing.assert_allclose(posterior.mean[0], np.linalg.solve(precision, cross), rtol=1e-6, atol=1e-9)


def test_a_running_regression_is_weighted_ridge_in_units_of_each_feature():
    rng = np.random.default_rng(0)
    x, values = rng.normal(size=(50, 2)) * [1.0, 1000.0] + [5.0, 0.0], rng.normal(size=50)
    regression, rate = initial_regression(3), 0.1
    update = jax.jit(lambda r, z, v, rate: r.update(z, v, rate=rate, rounds=jnp.asarray(10.0), prior_rounds=3.0))
    weights = np.zeros(50)
    for t in range(50):
        now = max(rate, 1.0 / (t + 1))
        weights[:t] *= 1.0 - now
        weights[t] = now
        regression = update(regression, jnp.asarray([1.0, *x[t]]), values[t], now)
    z = np.column_stack([np.ones(50), x])
    mean = weights @ x
    ridge = np.diag([0.0, *(3.0 / 10.0 * weights @ np.square(x - mean))])
    expected = np.linalg.solve(z.T @ (weights[:, None] * z) + ridge, z.T @ (weights * values))
    np.testing.assert_allclose(regression.coefficients, expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(regression.level, weights @ values, rtol=1e-9)
    np.testing.assert_allclose(regression.predict(jnp.asarray(z[3])), z[3] @ expected, rtol=1e-5, atol=1e-7)


def test_the_dual_form_is_the_primal_one():
    rng = np.random.default_rng(0)
    prior, noise = np.diag([1.0, 0.5, 2.0]), 0.3
    rows, beta = rng.normal(size=(30, 3)), rng.normal(size=3)
    values = rows @ beta + 0.5 * rng.normal(size=30)
    dual = fit_dual(rows @ prior @ rows.T, values, [noise], passes=0)
    mean, covariance = closed_form(
        np.linalg.inv(prior), rows / np.sqrt(noise), values / np.sqrt(noise)
    )  # rows of unit noise
    new = rng.normal(size=(4, 3))
    np.testing.assert_allclose(dual.predict(new @ prior @ rows.T), new @ mean, rtol=1e-8)
    average = new.mean(axis=0)
    deviation = dual.deviation(average @ prior @ rows.T, average @ prior @ average)
    np.testing.assert_allclose(deviation, np.sqrt(dual.scale * average @ covariance @ average), rtol=1e-6)


def test_the_dual_form_finds_the_noise_and_cuts_outliers_off():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    clean = rows @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.normal(size=300)
    dirty = clean.copy()
    dirty[::50] += 30.0
    noises, covariance = np.geomspace(0.01, 5.0, 9), rows @ rows.T
    quiet, noisy = (fit_dual(covariance, rows @ np.ones(3) + s * rng.normal(size=300), noises) for s in (0.2, 3.0))
    assert quiet.noise < noisy.noise
    error = [
        np.sqrt(np.mean((fit_dual(covariance, v, noises).predict(covariance) - clean) ** 2)) for v in (clean, dirty)
    ]
    assert error[0] < 0.35
    assert error[1] < 0.8
    assert fit_dual(covariance, np.ones(300), noises) is None
