import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless_dfhpg.theory.statements import fitted_slope, log_slope, mean_interval, resampled_means

HORIZONS = [100, 200, 400, 800]


@given(st.floats(-2.0, 2.0), st.floats(1e-3, 1e3))
def test_a_power_law_has_its_exponent_as_slope(exponent, factor):
    values = factor * np.asarray(HORIZONS, float) ** exponent
    assert log_slope(HORIZONS, values) == pytest.approx(exponent, abs=1e-9)


def test_the_interval_covers_the_true_slope_about_as_often_as_it_says():
    draw = np.random.default_rng(1)
    covered = 0
    for trial in range(60):
        samples = [t**-0.5 * draw.exponential(size=40) for t in HORIZONS]
        measured = fitted_slope(HORIZONS, samples, seed=trial)
        covered += measured.low <= -0.5 <= measured.high
    # The percentile bootstrap of 40 replications is a little short: 95 % nominal, not as low as 83 % or as high as
    # 100 %.
    assert 50 <= covered < 60


def test_a_slope_that_is_too_flat_is_seen():
    draw = np.random.default_rng(2)
    samples = [t**-0.4 * draw.uniform(0.9, 1.1, size=40) for t in HORIZONS]
    measured = fitted_slope(HORIZONS, samples)
    assert measured.low > -0.5
    assert measured.low < measured.value < measured.high


def test_means_are_resampled_by_horizon():
    samples = [np.full(5, 2.0), np.array([0.0, 1.0, 0.0, 1.0])]
    drawn = resampled_means(samples)
    assert np.all(drawn[0] == 2.0)
    assert drawn[1].mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[1].std() == pytest.approx(0.25, abs=0.02)


def test_the_interval_of_a_mean_is_students():
    measured = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert measured.value == 2.0
    assert measured.high - 2.0 == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("horizons", "samples", "message"),
    [
        ([1], [np.ones(3)], "at least two horizons"),
        ([1, 2], [np.ones(3)], "at least two horizons"),
        ([1, 2], [np.ones(3), -np.ones(3)], "positive averages"),
    ],
)
def test_what_has_no_slope_is_refused(horizons, samples, message):
    with pytest.raises(ValueError, match=message):
        fitted_slope(horizons, samples)
