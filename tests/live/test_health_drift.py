"""When an alarm is raised that costs have changed, and when not."""

from typing import NamedTuple

import numpy as np
import pytest

from regretless.live.comparison import WINDOW, HealthRecord
from regretless.policies.guard import INCUMBENT


class Round(NamedTuple):
    """A decision of the learner, of the incumbent or of a person."""

    member: int
    cost_sample: float
    context: tuple = (0.0,)
    w: tuple = (1.0,)


KINDS = [Round(0, 1.0), Round(INCUMBENT, 1.0), Round(0, 0.0)]


def feed(residuals, kind=0, record=None):
    """Return the record after these errors, and the decisions that raised an alarm."""
    record, alarms = record or HealthRecord.empty((1,), 1), []
    for id, residual in enumerate(residuals, record.learned + 1):
        before, record = record, record.after_feedback({"residual": float(residual), "total": 1.0}, id, KINDS[kind])
        alarms += [] if record.alarm[0] == before.alarm[0] else [id]
    return record, alarms


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
    assert feed(residuals)[1] == []


@pytest.mark.parametrize("seed", range(5))
def test_an_alarm_soon_after_errors_have_multiplied(seed):
    errors = noise(1500, seed) * np.where(np.arange(1500) < 1000, 1.0, 5.0)
    _, alarms = feed(errors)
    assert len(alarms) == 1
    assert 1000 < alarms[0] < 1040
    record, _ = feed(errors[: alarms[0] + WINDOW - 1])
    alarm = record.active_alarm()
    assert alarm.noticed == alarms[0]
    assert abs(alarm.since - 1001) < 15
    assert feed(errors[:1], record=record)[0].active_alarm() is None, "long ago"


def test_the_next_change_is_noticed_too():
    _, alarms = feed(noise(1500) * np.repeat([1.0, 5.0, 25.0], 500))
    assert [alarm // 500 for alarm in alarms] == [1, 2]


def test_a_change_of_the_decider_is_no_change_of_the_costs():
    record, _ = feed(noise(300), kind=2)
    assert feed(5.0 * noise(300), 0, record)[1] == []
    assert feed(50.0 * noise(40), 2, record)[1] != []


def test_errors_of_zero_or_infinity_are_ignored():
    record, alarms = feed([0.0, np.inf, np.nan] * 100)
    assert (alarms, record.drift.rounds.tolist(), record.active_alarm()) == ([], [0, 0, 0], None)
