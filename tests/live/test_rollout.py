"""A safe rollout: the incumbent decides first, always in the shadow, and at once after a pause; logs and checkpoints know."""

import jax
import numpy as np
import pytest

from regretless import oracles
from regretless.errors import CheckpointError, OracleError, SettingsError
from regretless.live.history import History
from regretless.live.learner import Learner

ORACLE = oracles.top_k(4, 2)
FIXED = [1.0, 0.0, 0.0, 1.0]
X = np.ones(3)


def make(**options):
    given = {"context_dim": 3, "policy": "linear_thompson", "incumbent": FIXED, **options}
    return Learner(given.pop("oracle", ORACLE), **given)


def follow(context):
    """An incumbent as a function."""
    return np.array([1.0, 1.0, 0.0, 0.0])


def play(learner, rounds):
    """Decides and learns: the incumbent's items cost 5 each, the others 1; who decided."""
    costs, who = np.array([5.0, 1.0, 1.0, 5.0]), []
    for _ in range(rounds):
        choice = learner.decide(X)
        who.append(choice.by)
        learner.learn(choice.id, total=float(costs @ choice.w))
    return who


def states(learner):
    return jax.tree.leaves(jax.tree.map(np.asarray, learner._books.state))


def test_the_incumbent_decides_until_the_budget_allows_more():
    learner = make(budget=0.5)
    assert set(play(learner, 10)) == {"incumbent"}
    assert "learner" in play(learner, 30)
    told = learner.health().details
    assert told["guard_excess"] < 0 < told["guard_allowed"]  # the learner is cheaper
    assert learner.update(budget=0.0) == {"budget": 0.0}
    assert learner.health().details["guard_allowed"] == 0.0


def test_in_the_shadow_both_decisions_are_told_and_the_incumbent_is_played():
    learner = make(mode="shadow", incumbent=follow, budget=1e6)
    for _ in range(12):
        one, *more = learner.decide(np.stack([X, X, X]))
        assert one.w.tolist() == follow(X).tolist()
        assert one.by == "incumbent"
        assert one.proposed.sum() == 2.0
        for choice in (one, *more):
            learner.learn(choice.id, total=2.0)
    assert learner.health().learned == 36
    assert learner.explain(one).mean @ one.w == pytest.approx(2.0, rel=0.2)  # it learnt from what it did not decide


def test_a_failing_solver_stops_neither_the_shadow_nor_a_pause():
    broken = oracles.external(lambda cost: 1 / 0, 4)
    shadow = make(oracle=broken, mode="shadow").decide(X)
    assert (shadow.w.tolist(), shadow.proposed) == (FIXED, None)
    acting = make(oracle=broken)
    acting.pause()
    assert [choice.by for choice in acting.decide(np.stack([X, X]))] == ["incumbent"] * 2


def test_a_pause_is_logged_replayed_and_kept_in_checkpoints(tmp_path):
    learner = make(budget=100.0, incumbent=follow, log=tmp_path / "log")
    play(learner, 15)
    learner.pause()
    learner.pause()
    assert set(play(learner, 5)) == {"incumbent"}
    learner.save(tmp_path / "plant.rgl")
    loaded = Learner.load(tmp_path / "plant.rgl", ORACLE, incumbent=follow)
    assert set(play(loaded, 3)) == {"incumbent"}
    learner.resume()
    who = play(learner, 5)
    assert "learner" in who
    again = Learner.replay(tmp_path / "log", ORACLE, incumbent=follow)
    assert all(np.array_equal(a, b) for a, b in zip(states(again), states(learner), strict=True))
    assert play(again, 3) == play(learner, 3)
    assert len(History.from_log(tmp_path / "log")) == 28
    with pytest.raises(CheckpointError, match="incumbent of your own"):
        Learner.load(tmp_path / "plant.rgl", ORACLE)


def test_what_the_budget_does_not_count():
    learner = make()
    learner.learn(learner.record(X, FIXED).id, total=10.0)
    learner.learn_from(History(contexts=np.stack([X] * 3), decisions=np.array([FIXED] * 3), totals=[10.0, 9.0, 8.0]))
    assert learner.health().details["guard_allowed"] == 0.0
    assert learner.health().learned == 4


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"incumbent": [1.0]}, SettingsError, "incumbent to be 4 finite numbers"),
        ({"incumbent": None, "mode": "shadow"}, SettingsError, "expected an incumbent"),
        ({"budget": -1.0}, SettingsError, "budget"),
        ({"mode": "sometimes"}, SettingsError, "mode"),
        ({"incumbent": lambda x: 1 / 0}, OracleError, "its function failed: ZeroDivisionError"),
        ({"incumbent": lambda x: [1.0] * 4}, SettingsError, "at most 2 coordinates"),
        ({"incumbent": [1.0, 1.0, 1.0, 0.0]}, SettingsError, "at most 2 coordinates"),
    ],
)
def test_says_what_is_wrong_and_keeps_nothing(given, error, message):
    with pytest.raises(error, match=message):
        make(**given).decide(X)


def test_nobody_can_pause_without_an_incumbent():
    learner = make(incumbent=None)
    with pytest.raises(SettingsError, match="incumbent that takes over"):
        learner.pause()


def test_fixed_decisions_have_to_be_feasible_now():
    learner = make(instance=np.ones(4, bool))
    assert learner.decide(X, instance=np.ones(4, bool)).w.tolist() == FIXED
    with pytest.raises(OracleError, match="not feasible now"):
        learner.decide(X, instance=np.array([False, True, True, True]))
