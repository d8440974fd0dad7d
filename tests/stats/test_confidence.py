"""Intervals and the confidence sequence cover what they promise."""

import numpy as np
import pytest

from regretless.stats.confidence import batch_interval, dependence_factor, mean_interval, mixture_radius, tail_index

pytestmark = pytest.mark.usefixtures("float64")


def autocorrelated(rng, count, carry):
    noise = rng.normal(size=count)
    for t in range(1, count):
        noise[t] += carry * noise[t - 1]
    return noise


def test_the_interval_grows_where_neighbouring_rounds_are_alike():
    rng = np.random.default_rng(0)
    assert np.mean([dependence_factor(rng.normal(size=400)) for _ in range(200)]) < 1.35
    alike = [dependence_factor(autocorrelated(rng, 2000, 0.6)) for _ in range(20)]
    assert 1.7 < np.mean(alike) < 4.0, "2 if the autocorrelation were known"
    assert dependence_factor(np.ones(100)) == dependence_factor(rng.normal(size=47)) == 1.0


def test_batches_are_single_observations():
    shown = batch_interval(np.repeat([1.0, 3.0], 20))
    assert shown.mean == 2.0
    assert shown.high - 2.0 == pytest.approx(1.96 * np.std([1, 1, 3, 3], ddof=1) / 2.0)


@pytest.mark.parametrize("interval", [mean_interval, batch_interval])
@pytest.mark.parametrize("carry", [0.0, 0.3])
def test_intervals_cover_the_mean(interval, carry):
    rng = np.random.default_rng(1)
    intervals = [interval(3.0 + autocorrelated(rng, 300, carry)) for _ in range(300)]
    assert 0.88 < np.mean([one.low <= 3.0 <= one.high for one in intervals]) < 0.99
    assert all(one.low < one.mean < one.high for one in intervals)


@pytest.mark.parametrize("kind", ["lognormal", "t3", "blocks"])
def test_intervals_cover_for_skewed_heavy_tailed_and_dependent_rounds(kind):
    rng, held = np.random.default_rng(2), []
    for _ in range(300):
        noise = {
            "lognormal": lambda: rng.lognormal(size=400) - np.exp(0.5),
            "t3": lambda: rng.standard_t(3, size=400),
            "blocks": lambda: np.repeat(rng.normal(size=20), 20) + rng.normal(size=400),
        }[kind]()
        interval = mean_interval(noise)
        held.append(interval.low <= 0.0 <= interval.high)
    assert np.mean(held) > 0.9


def test_the_longer_side_is_that_of_the_longer_tail():
    interval = mean_interval(np.random.default_rng(0).exponential(size=60))
    assert interval.high - interval.mean > 1.1 * (interval.mean - interval.low)
    reward = interval.with_sign(-1.0)
    assert (reward.mean, reward.low, reward.high) == (-interval.mean, -interval.high, -interval.low)
    assert interval.with_sign(1.0) == interval


def test_rounds_that_never_vary_have_an_interval_of_no_length():
    assert mean_interval(np.full(30, 2.0)) == (2.0, 2.0, 2.0)
    assert mean_interval(np.array([1.0])) == (1.0, 1.0, 1.0)


def test_the_tail_index_separates_finite_from_infinite_variance():
    rng = np.random.default_rng(0)
    assert tail_index(rng.pareto(1.5, size=2000)) < 1.6
    assert tail_index(rng.standard_t(4, size=2000)) > 2.0
    assert tail_index(rng.random(2000) < 0.05) == tail_index(np.zeros(9)) == np.inf


def test_a_martingale_stays_below_the_radius_at_all_times():
    """Random walks of 2000 steps; of 1000 walks at most 5 % may ever cross."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(1000, 2000)), axis=1)
    radius = np.asarray(mixture_radius(np.arange(1.0, 2001.0), 10.0, 0.95))
    assert 0.005 < np.mean(np.any(walks > radius, axis=1)) < 0.05
    assert np.all(np.asarray(mixture_radius(np.arange(1.0, 9.0), 10.0, 0.99)) > radius[:8])
