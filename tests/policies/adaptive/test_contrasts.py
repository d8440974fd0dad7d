"""Stacking weights relative to the first learner, against least squares over all rounds."""

import jax.numpy as jnp
import numpy as np
import pytest

from regretless.policies.adaptive.policy import zero_moments

pytestmark = pytest.mark.usefixtures("float64")


def moments_of(error, contrast, level):
    """Return the moments of one learner after these rounds of one row each."""
    moments = zero_moments(1)
    for t, row in enumerate(zip(error, contrast, level, strict=True)):
        e, d, shift = (jnp.asarray([number]) for number in row)
        moments = moments.update(e, d[None], shift[None], jnp.asarray(1), jnp.asarray(1.0 / (t + 1)))
    return moments


@pytest.mark.parametrize("level_weight", [0.0, 0.8, -3.0])
def test_is_the_coefficient_of_the_contrast_whatever_the_level_explains(level_weight):
    rng = np.random.default_rng(0)
    level = rng.normal(size=400)
    contrast = 0.5 * level + rng.normal(size=400)
    error = 0.3 * contrast + level_weight * level + 0.1 * rng.normal(size=400)
    expected = np.linalg.lstsq(np.column_stack([contrast, level]), error, rcond=None)[0][0]
    np.testing.assert_allclose(moments_of(error, contrast, level).stacking_weights(), [expected], atol=0.01)


def test_a_learner_that_knows_only_the_level_better_gets_none():
    rng = np.random.default_rng(1)
    level, contrast = rng.normal(size=(2, 2000))
    weight = float(moments_of(level, contrast, level).stacking_weights()[0])
    assert weight < 0.06, "noise of 2000 rounds: 0.022"


def test_lies_between_zero_and_one_and_is_zero_where_nothing_differs():
    ones = np.ones(5)
    assert float(moments_of(2.0 * ones, ones, 0.0 * ones).stacking_weights()[0]) == 1.0
    assert float(moments_of(-ones, ones, 0.0 * ones).stacking_weights()[0]) == 0.0
    assert float(moments_of(ones, 0.0 * ones, 0.0 * ones).stacking_weights()[0]) == 0.0


def test_rows_of_a_round_are_averaged():
    error, contrast = jnp.array([1.0, 3.0]), jnp.array([[2.0, 1.0]])
    moments = zero_moments(1).update(error, contrast, 0.0 * contrast, jnp.asarray(2), jnp.asarray(1.0))
    np.testing.assert_allclose([moments.error_contrast[0], moments.contrasts[0]], [2.5, 2.5])
