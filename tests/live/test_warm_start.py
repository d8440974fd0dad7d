"""Warm starts: learning from a history is recording and learning each of its rounds, all of them or none."""

import jax
import numpy as np
import pytest

import regretless as rg
from live import learners
from live.learners import DIM, FEATURES, make
from regretless.errors import RegretlessError
from regretless.live.history import History


def some(count, **observed):
    rng = np.random.default_rng(1)
    rounds = observed or {"costs": 2.0 + rng.normal(size=(count, DIM))}
    return History(rng.normal(size=(count, FEATURES)), np.eye(DIM)[rng.integers(DIM, size=count)], **rounds)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": "dfhpg", "settings": {"surrogate": "dbb"}, "oracle": "host"},
        {"scaling": True, "feedback": "bandit"},
    ],
    ids=["thompson", "host", "scaled"],
)
def test_learning_from_a_history_is_recording_and_learning_each_round(options):
    options = dict(options)
    if options.pop("oracle", None):
        two = lambda cost: np.isin(np.arange(DIM), np.argsort(cost)[:2]).astype(float)  # noqa: E731
        build = lambda: learners.build(rg.oracles.external(two, DIM), **options)  # noqa: E731
    else:
        build = lambda: make(limit=50, **options)  # noqa: E731
    count = 9 if "policy" in options else 70
    history, seen = some(count), []
    learner, loop = build(), build()
    assert learner.learn_from(history, progress=lambda done, of: seen.append((done, of))) == count
    assert seen[-1] == (count, count)
    for own in history:
        loop.learn(loop.record(own.context, own.decision).id, costs=own.costs)
    for one, other in zip(*(leaves(each) for each in (learner, loop)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    for name in ("decisions", "learned", "waiting", "expired", "feedback_share"):
        assert getattr(learner.health(), name) == getattr(loop.health(), name)
    assert learner.health().relative_error == pytest.approx(loop.health().relative_error)
    assert learner.decide(np.ones(FEATURES)).id == count + 1
    assert learner.explain(count).residual == pytest.approx(loop.explain(count).residual)


def leaves(learner):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(learner.state.policy)]


def test_learning_from_a_history_is_all_or_nothing():
    learner = make()
    costs = np.ones((4, DIM))
    costs[1] = np.nan
    assert learner.learn_from(some(4, costs=costs)) == 3, "a round of which nothing was seen is left out"
    before = learner.state.policy, learner.health()
    wrong = History(np.ones((3, FEATURES)), [[1, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], costs=np.ones((3, DIM)))
    for bad, message in (
        (some(3, totals=[1.0, 2.0, 3.0]), "row 0 of the history: .*needs components= or costs=.*; nothing was learned"),
        (wrong, "row 1 of the history: decision: expected at most 2 coordinates"),
        (History(np.ones((2, 9)), np.eye(2)), r"shape \(3,\) and decisions of 4 numbers, got \(9,\) and 2"),
        (
            History(np.ones((1, FEATURES)), np.eye(DIM)[:1], costs=np.ones((1, DIM)), instances=[np.ones(DIM)]),
            "expected the form of earlier ones",
        ),
        ([1, 2], "expected a History"),
    ):
        with pytest.raises(RegretlessError, match=message):
            learner.learn_from(bad)
    assert learner.learn_from(some(2, costs=np.full((2, DIM), np.nan))) == 0
    assert (learner.state.policy, learner.health()) == before
