"""A safe rollout: the incumbent decides first, always in the shadow, and at once after a pause; stores keep it."""

import jax
import numpy as np
import pytest

import regretless as rg
from live.learners import build
from regretless import oracles
from regretless.errors import OracleError, SettingsError, StoreError
from regretless.live.history import History
from regretless.live.learner import Learner

ORACLE = oracles.top_k(4, 2)
FIXED = [1.0, 0.0, 0.0, 1.0]
X = np.ones(3)


def make(**options):
    return build(**{"incumbent": FIXED, **options})


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
    return jax.tree.leaves(jax.tree.map(np.asarray, learner.state.policy))


def test_the_incumbent_decides_until_the_budget_allows_more():
    learner = make(budget=0.5)
    assert set(play(learner, 10)) == {"incumbent"}
    assert "learner" in play(learner, 30)
    details = learner.health().details
    assert details["guard_excess"] < 0 < details["guard_allowed"]  # the learner is cheaper
    assert learner.update(budget=0.001) == {"budget": 0.001}
    assert learner.health().details["guard_allowed"] < details["guard_allowed"]
    with pytest.raises(SettingsError, match="expected a share above 0 and below 1"):
        learner.update(budget=0.0)


def test_in_the_shadow_both_decisions_are_shown_and_the_incumbent_is_played():
    learner = make(mode="shadow", incumbent=follow, budget=0.9)
    for _ in range(12):
        one, *more = learner.decide_batch(np.stack([X, X, X]))
        assert one.w.tolist() == follow(X).tolist()
        assert one.by == "incumbent"
        assert one.proposed.sum() == 2.0
        for choice in (one, *more):
            learner.learn(choice.id, total=2.0)
    assert learner.health().learned == 36
    assert learner.explain(one).mean @ one.w == pytest.approx(2.0, rel=0.2)  # it learned from what it did not decide


def test_a_failing_solver_stops_neither_the_shadow_nor_a_pause():
    broken = oracles.external(lambda cost: 1 / 0, 4)
    shadow = make(oracle=broken, mode="shadow").decide(X)
    assert (shadow.w.tolist(), shadow.proposed) == (FIXED, None)
    acting = make(oracle=broken)
    acting.pause()
    assert [choice.by for choice in acting.decide_batch(np.stack([X, X]))] == ["incumbent"] * 2


def test_the_incumbent_answers_for_a_solver_that_fails_and_a_store_keeps_it(tmp_path):
    def moody(cost):
        if moody.fails:
            raise RuntimeError("no licence")
        return np.array([1.0, 1.0, 0.0, 0.0])

    moody.fails = False
    oracle = oracles.external(moody, 4, contains=lambda w: w.sum() == 2.0)
    path, budget = tmp_path / "live.db", rg.Budget(amount=1e6)
    learner = make(oracle=oracle, budget=budget, on_failure="incumbent", store=path)
    assert "learner" in play(learner, 30)
    assert learner.update(budget=rg.Budget(amount=2e6, per=10)) == {"budget": rg.Budget(amount=2e6, per=10)}
    moody.fails = True
    choices = learner.decide_batch(np.stack([X] * 12))
    assert all(choice.w.tolist() == FIXED and choice.by == "incumbent" for choice in choices)
    replaced = [choice for choice in choices if choice.fallback]
    assert replaced
    assert "because the solver failed" in repr(replaced[0])
    before = learner.health().details
    learner.learn(replaced[0].id, total=10.0)
    after = learner.health().details
    assert after["guard_allowed"] > before["guard_allowed"]  # one more round, of the learner's
    learner.close()
    again = Learner.open(path, oracle, read_only=True)
    assert all(np.array_equal(a, b) for a, b in zip(states(again), states(learner), strict=True))
    assert again.health().details == after
    with pytest.warns(UserWarning, match=r"budget Budget\(amount=2000000.0, per=10.0\) and mode 'act' stay"):
        Learner.open(path, oracle, read_only=True, rollout=rg.Rollout(FIXED, 0.1))


def test_an_incumbent_that_fails_too_is_named():
    plan = {"w": FIXED}
    oracle = oracles.external(lambda cost: 1 / 0, 4)
    learner = make(
        oracle=oracle, budget=rg.Budget(amount=1e6), on_failure="incumbent", incumbent=lambda context: plan["w"]
    )
    for choice in learner.decide_batch(np.stack([X] * 12)):
        learner.learn(choice.id, total=2.0)
    plan["w"] = [1.0]
    with pytest.raises(OracleError, match=r"ZeroDivisionError.*; the incumbent could not decide either: .* 4 finite"):
        learner.decide_batch(np.stack([X] * 12))


def test_a_large_batch_is_a_loop_and_leaves_what_could_break_the_budget_to_the_incumbent(tmp_path):
    one, other = (make(budget=rg.Budget(amount=120.0)) for _ in range(2))
    assert play(one, 12) == play(other, 12)
    batch = one.decide_batch(np.stack([X] * 40))
    loop = [other.decide(X) for _ in range(40)]
    assert [choice.by for choice in batch] == [choice.by for choice in loop]
    assert all(np.array_equal(a.w, b.w) for a, b in zip(batch, loop, strict=True))
    count = sum(choice.by == "learner" for choice in batch)
    details = one.health().details
    assert 0 < count == details["guard_waiting"]
    assert details["guard_bound"] <= details["guard_allowed"] == 120.0
    assert {choice.by for choice in batch[-10:]} == {"incumbent"}  # the batch has used what is left
    assert "decisions wait for feedback and count" in one.explain(batch[0]).guard
    assert one.explain(batch[0]).guard in repr(one.explain(batch[0]))


def test_feedback_that_is_missing_for_the_learner_alone_is_noticed_and_counts(tmp_path):
    path = tmp_path / "live.db"
    learner = make(budget=rg.Budget(amount=1e6), store=path, max_age=0)
    for _ in range(40):
        choice = learner.decide(X)
        if choice.by == "incumbent":  # that of the learner's decisions gets lost
            learner.learn(choice.id, total=10.0)
    learner.decide(X)
    health = learner.health()
    assert health.details["guard_waiting"] > 10
    assert "feedback is missing for" in health.guard
    assert "of the incumbent, which looks like a reason" in health.guard
    learner.save(tmp_path / "copy.db")
    learner.close()
    for again in (Learner.open(path, ORACLE, read_only=True), Learner.open(tmp_path / "copy.db", ORACLE)):
        assert again.health().details == health.details


def test_a_convex_set_is_left_in_small_steps():
    line = oracles.milp(A_eq=[[1.0, 1.0, 1.0]], b_eq=[1.0])
    usual = np.array([0.0, 0.0, 1.0])
    learner = make(oracle=line, context=1, incumbent=usual, budget=rg.Budget(amount=30.0))
    costs, steps = np.array([8.0, 8.0, 5.0]), []
    for _ in range(60):
        choice = learner.decide([1.0])
        assert line.contained(choice.w[None])[0]
        steps += [1.0 - choice.w[2]] if choice.by == "learner" else []
        learner.learn(choice.id, total=float(costs @ choice.w))
    assert any(0.0 < step < 0.99 for step in steps)


def test_a_pause_is_logged_replayed_and_kept_in_checkpoints(tmp_path):
    learner = make(budget=0.9, incumbent=follow, store=tmp_path / "live.db")
    play(learner, 15)
    learner.pause()
    learner.pause()
    assert set(play(learner, 5)) == {"incumbent"}
    learner.save(tmp_path / "plant.db")
    loaded = Learner.open(tmp_path / "plant.db", ORACLE, read_only=True, rollout=rg.Rollout(follow, 0.9))
    assert set(play(loaded, 3)) == {"incumbent"}
    learner.resume()
    who = play(learner, 5)
    assert "learner" in who
    again = Learner.open(tmp_path / "live.db", ORACLE, read_only=True, rollout=rg.Rollout(follow, 0.9))
    assert all(np.array_equal(a, b) for a, b in zip(states(again), states(learner), strict=True))
    assert play(again, 3) == play(learner, 3)
    assert len(History.from_store(tmp_path / "live.db")) == 28
    with pytest.raises(StoreError, match="a function as its incumbent: give it as rollout="):
        Learner.open(tmp_path / "plant.db", ORACLE, read_only=True)


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
        ({"incumbent": [1.0, 1.0, 1.0, 0.0], "mode": "shadow"}, SettingsError, "incumbent: expected at most 2"),
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


def test_no_one_can_pause_without_an_incumbent():
    learner = make(incumbent=None)
    with pytest.raises(SettingsError, match="incumbent that takes over"):
        learner.pause()


def test_fixed_decisions_have_to_be_feasible():
    with pytest.raises(SettingsError, match=r"incumbent: expected a feasible decision, got \[1.0, 0.0, 0.0, 0.0\]"):
        make(incumbent=[1.0, 0.0, 0.0, 0.0])


def test_fixed_decisions_have_to_be_feasible_now():
    learner = make(instance=np.ones(4, bool))
    assert learner.decide(X, instance=np.ones(4, bool)).w.tolist() == FIXED
    with pytest.raises(OracleError, match="not feasible now"):
        learner.decide(X, instance=np.array([False, True, True, True]))
