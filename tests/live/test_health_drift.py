"""When an alarm is raised that costs have changed, and when not."""

import numpy as np
import pytest

from regretless.live.health import DriftState


def fed(residuals, kind=0, state=None):
    """Return the state after these errors, and the decisions that raised an alarm."""
    state, alarms = state or DriftState.empty(), []
    for id, residual in enumerate(residuals, 1):
        before, state = state, state.after_error(kind, id, float(residual), id)
        alarms += [] if state.alarm[0] == before.alarm[0] else [id]
    return state, alarms


def noise(size=5000, seed=0):
    return np.random.default_rng(seed).normal(size=size)


@pytest.mark.parametrize(
    "residuals",
    [
        noise(),
        np.random.default_rng(1).standard_t(2, size=5000),
        np.where(np.random.default_rng(2).random(5000) < 0.01, 50.0, 1.0) * noise(),
        noise() * np.geomspace(100.0, 1.0, 5000),
        np.r_[noise(1000), 1e6, 1e6, 1e6, noise(1000)],
    ],
    ids=["normal", "heavy tails", "outliers", "a learner that learns", "three absurd in a row"],
)
def test_no_alarm_while_errors_are_as_usual(residuals):
    assert fed(residuals)[1] == []


@pytest.mark.parametrize("seed", range(5))
def test_an_alarm_soon_after_errors_have_multiplied(seed):
    state, alarms = fed(noise(1500, seed) * np.where(np.arange(1500) < 1000, 1.0, 5.0))
    assert len(alarms) == 1
    assert 1000 < alarms[0] < 1040
    alarm = state.active_alarm(alarms[0] + 399)
    assert alarm.noticed == alarms[0]
    assert abs(alarm.since - 1001) < 15
    assert state.active_alarm(alarms[0] + 400) is None, "long ago"


def test_the_next_change_is_noticed_too():
    _, alarms = fed(noise(1500) * np.repeat([1.0, 5.0, 25.0], 500))
    assert [alarm // 500 for alarm in alarms] == [1, 2]


def test_a_person_who_hands_over_is_no_change_of_the_world():
    state, _ = fed(noise(300), kind=2)
    assert fed(5.0 * noise(300), 0, state)[1] == []
    assert fed(50.0 * noise(40), 2, state)[1] != []


def test_errors_of_zero_or_infinity_are_ignored():
    state, alarms = fed([0.0, np.inf, np.nan] * 100)
    assert (alarms, state.counts.tolist(), state.active_alarm(9)) == ([], [0, 0, 0], None)
