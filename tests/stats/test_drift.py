"""When a change is reported, and when not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.stats.drift import ChangeDetector

pytestmark = pytest.mark.usefixtures("float64")
DETECTOR = ChangeDetector()


def alarms(errors, detector=DETECTOR):
    """Return the rounds in which a change is reported, with the first round of the rise; each starts a new detector."""
    state, reported = detector.init(xp=np), []
    for t, error in enumerate(errors, 1):
        state = detector.update(state, error, xp=np)
        if detector.changed(state):
            reported.append((t, t - int(state.rising) + 1))
            state = detector.init(xp=np)
    return reported


def noise(size=5000, seed=0):
    return np.random.default_rng(seed).normal(size=size)


def autocorrelated(carry, size=5000, seed=6):
    errors = noise(size, seed)
    for t in range(1, size):
        errors[t] += carry * errors[t - 1]
    return errors


@pytest.mark.parametrize(
    "errors",
    [
        noise(),
        np.random.default_rng(1).standard_t(2, size=5000),
        np.where(np.random.default_rng(2).random(5000) < 0.01, 50.0, 1.0) * noise(),
        noise() * np.geomspace(100.0, 1.0, 5000),
        np.r_[noise(1000), 1e6, 1e6, 1e6, noise(1000)],
        np.where(np.random.default_rng(3).random(5000) < 0.4, 1.0, 0.05),
        (np.random.default_rng(4).random(5000) < 0.05) - 0.05,
        np.random.default_rng(5).poisson(0.5, 5000) - 0.5,
        autocorrelated(0.8),
        autocorrelated(0.95),
        np.abs(autocorrelated(0.95)),
    ],
    ids=[
        "normal",
        "heavy tails",
        "outliers",
        "a learner that improves",
        "three absurd in a row",
        "two sizes",
        "rare events",
        "counts",
        "AR(0.8)",
        "AR(0.95)",
        "sizes of AR(0.95)",
    ],
)
def test_nothing_is_reported_while_errors_are_as_usual(errors):
    assert alarms(errors) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_change_is_reported_soon_after_errors_have_multiplied(seed):
    ((noticed, since),) = alarms(noise(1500, seed) * np.where(np.arange(1500) < 1000, 1.0, 5.0))
    assert 1000 < noticed < 1040
    assert abs(since - 1001) < 15


@pytest.mark.parametrize("seed", range(3))
def test_a_change_is_reported_where_errors_are_autocorrelated(seed):
    ((noticed, _),) = alarms(autocorrelated(0.95, 1500, seed) * np.where(np.arange(1500) < 1000, 1.0, 5.0))
    assert 1000 < noticed < 1050


def test_the_next_change_is_reported_too():
    assert [noticed // 500 for noticed, _ in alarms(noise(1500) * np.repeat([1.0, 5.0, 25.0], 500))] == [1, 2]


def test_differences_within_the_tolerance_are_no_change():
    errors = np.r_[np.zeros(200), np.full(50, 1e-3)]
    assert alarms(errors, ChangeDetector(tolerance=1e-3)) == []
    assert alarms(errors, ChangeDetector(tolerance=1e-5)) != []


def test_programs_and_the_host_agree_and_unobserved_rounds_are_left_out():
    rng = np.random.default_rng(0)
    errors, observed = rng.normal(size=(300, 2)) * [1.0, 3.0], rng.random((300, 2)) < 0.8
    errors[200:] *= 5.0

    def step(state, given):
        state = DETECTOR.update(state, *given)
        return state, (state, DETECTOR.changed(state))

    _, (states, changed) = jax.lax.scan(step, DETECTOR.init((2,)), (jnp.asarray(errors), jnp.asarray(observed)))
    host = DETECTOR.init((2,), np)
    for t in range(300):
        host = DETECTOR.update(host, errors[t], observed[t], np)
        for one, other in zip(host, states, strict=True):
            np.testing.assert_allclose(one, other[t], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(DETECTOR.changed(host), changed[t])
    assert host.rounds.tolist() == observed.sum(axis=0).tolist()
    assert np.any(changed)
