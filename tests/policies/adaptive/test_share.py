"""The share of a learner beside the first, against least squares over all rounds."""

import jax.numpy as jnp
import numpy as np
import pytest

from regretless.policies.adaptive.share import Moments, nothing

pytestmark = pytest.mark.usefixtures("float64")


def after(wrong, contrast, level):
    """Moments of one learner after these rounds of one row each."""
    moments = nothing(1)
    for t, row in enumerate(zip(wrong, contrast, level, strict=True)):
        e, apart, dearer = (jnp.asarray([number]) for number in row)
        moments = moments.after(e, apart[None], dearer[None], jnp.asarray(1), jnp.asarray(1.0 / (t + 1)))
    return moments


@pytest.mark.parametrize("level_weight", [0.0, 0.8, -3.0])
def test_is_the_coefficient_of_the_contrast_whatever_the_level_explains(level_weight):
    rng = np.random.default_rng(0)
    level = rng.normal(size=400)
    contrast = 0.5 * level + rng.normal(size=400)
    wrong = 0.3 * contrast + level_weight * level + 0.1 * rng.normal(size=400)
    expected = np.linalg.lstsq(np.column_stack([contrast, level]), wrong, rcond=None)[0][0]
    np.testing.assert_allclose(after(wrong, contrast, level).share(), [expected], atol=0.01)


def test_who_knows_nothing_but_the_level_deserves_none():
    rng = np.random.default_rng(1)
    level, contrast = rng.normal(size=(2, 2000))
    assert float(after(level, contrast, level).share()[0]) < 0.06, "noise of 2000 rounds: 0.022"


def test_lies_between_none_and_all_and_is_none_where_nothing_differs():
    ones = np.ones(5)
    assert float(after(2.0 * ones, ones, 0.0 * ones).share()[0]) == 1.0
    assert float(after(-ones, ones, 0.0 * ones).share()[0]) == 0.0
    assert float(after(ones, 0.0 * ones, 0.0 * ones).share()[0]) == 0.0


def test_rows_of_a_round_are_averaged():
    wrong, contrast = jnp.array([1.0, 3.0]), jnp.array([[2.0, 1.0]])
    moments = nothing(1).after(wrong, contrast, 0.0 * contrast, jnp.asarray(2), jnp.asarray(1.0))
    assert isinstance(moments, Moments)
    np.testing.assert_allclose([moments.wrong_contrast[0], moments.contrasts[0]], [2.5, 2.5])
