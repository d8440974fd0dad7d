"""Intervals and the confidence sequence cover what they promise."""

import numpy as np
import pytest

from regretless.stats.confidence import batch_interval, mean_interval, mixture_radius, standard_error

pytestmark = pytest.mark.usefixtures("float64")


def autocorrelated(rng, count, carry):
    noise = rng.normal(size=count)
    for t in range(1, count):
        noise[t] += carry * noise[t - 1]
    return noise


def test_the_standard_error_grows_where_neighbouring_rounds_are_alike():
    rng = np.random.default_rng(0)
    independent, alike = rng.normal(size=2000), autocorrelated(rng, 2000, 0.6)
    assert standard_error(independent) == pytest.approx(independent.std(ddof=1) / 2000**0.5, rel=0.2)
    assert standard_error(alike) > 1.5 * alike.std(ddof=1) / 2000**0.5


def test_batches_are_single_observations():
    shown = batch_interval(np.repeat([1.0, 3.0], 20))
    assert shown.mean == 2.0
    assert shown.high - 2.0 == pytest.approx(1.96 * np.std([1, 1, 3, 3], ddof=1) / 2.0)


@pytest.mark.parametrize("interval", [lambda scores: mean_interval(scores, len(scores)), batch_interval])
@pytest.mark.parametrize("carry", [0.0, 0.3])
def test_intervals_cover_the_mean(interval, carry):
    rng = np.random.default_rng(1)
    intervals = [interval(3.0 + autocorrelated(rng, 300, carry)) for _ in range(600)]
    assert 0.88 < np.mean([one.low <= 3.0 <= one.high for one in intervals]) < 0.99
    assert all(one.low < one.mean < one.high for one in intervals)


def test_few_effective_rounds_widen_and_a_sign_turns_an_interval_round():
    scores = np.random.default_rng(0).normal(size=100)
    wide, narrow = mean_interval(scores, 3.0), mean_interval(scores, 100.0)
    ratio = (wide.high - wide.low) / (narrow.high - narrow.low)
    assert ratio == pytest.approx(4.303 / 1.984, rel=1e-3), "quantiles of Student's t"
    reward = wide.with_sign(-1.0)
    assert (reward.mean, reward.low, reward.high) == (-wide.mean, -wide.high, -wide.low)
    assert wide.with_sign(1.0) == wide


def test_a_martingale_stays_below_the_radius_at_all_times():
    """Random walks of 2000 steps; of 1000 walks at most 5 % may ever cross."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(1000, 2000)), axis=1)
    radius = np.asarray(mixture_radius(np.arange(1.0, 2001.0), 10.0, 0.95))
    assert 0.005 < np.mean(np.any(walks > radius, axis=1)) < 0.05
    assert np.all(np.asarray(mixture_radius(np.arange(1.0, 9.0), 10.0, 0.99)) > radius[:8])
