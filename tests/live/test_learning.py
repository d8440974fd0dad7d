"""Feedback in pieces, decisions of people, expiry by the clock, rewards instead of costs."""

import jax
import numpy as np
import pytest

from live.learners import DIM, FEATURES, ORACLE, contents, digest, forge, make, play
from regretless.errors import FeedbackError, SettingsError, StoreError
from regretless.feedback import ReportedRows
from regretless.live.learner import Learner

X = np.array([0.3, -1.0, 0.5])


def chosen(choice):
    return np.flatnonzero(choice.w).tolist()


@pytest.mark.parametrize("may_miss", [True, False])
def test_pieces_are_learned_once_they_are_complete(tmp_path, may_miss):
    whole, pieces = make(may_miss=may_miss), make(may_miss=may_miss)
    i, j = chosen(whole.decide(X))
    pieces.decide(X)
    whole.learn(1, components={i: 1.0, j: 2.5})
    receipt = pieces.learn(1, components={i: 1.0}, final=False)
    assert (receipt.new, receipt.complete, receipt.residual) == (True, False, None)
    assert receipt.message.startswith("kept; 1 more of its rows may come")
    assert pieces.waiting == [1]
    assert not pieces.learn(1, components={i: 1.0}, final=False).new, "the same piece again"
    with pytest.raises(FeedbackError, match=f"row {i} was reported before with another value"):
        pieces.learn(1, components={i: 1.5}, final=False)
    with pytest.raises(FeedbackError, match=r"the parts add up to 3\.5, the total is 9"):
        pieces.learn(1, components={j: 2.5}, total=9.0)
    pieces.save(tmp_path / "pieces.db")
    pieces = Learner.open(tmp_path / "pieces.db", ORACLE, read_only=True)
    assert pieces.learn(1, components={j: 2.5}, total=3.5, final=False).message == "learned", (
        "complete, whatever final says"
    )
    assert contents(pieces) == contents(whole)
    assert not pieces.learn(1, components={j: 2.5}, final=False).new, "a piece of what was learned"
    with pytest.raises(FeedbackError, match="learned from other feedback"):
        pieces.learn(1, components={j: 2.0}, final=False)


def test_pieces_end_when_they_are_declared_final():
    final, pieces = make(), make()
    i, j = chosen(final.decide(X))
    pieces.decide(X)
    final.learn(1, components={i: 1.0})
    pieces.learn(1, components={i: 1.0}, final=False)
    receipt = pieces.learn(1, components={i: 1.0})
    assert (receipt.message, receipt.complete) == ("learned", False)
    assert contents(pieces) == contents(final)
    with pytest.raises(FeedbackError, match="final=False until the last"):
        pieces.learn(1, components={i: 1.0, j: 2.0})
    strict = make(may_miss=False)
    strict.decide(X)
    strict.learn(1, components={i: 1.0}, final=False)
    with pytest.raises(FeedbackError, match="some rows are missing"):
        strict.learn(1, components={i: 1.0})
    rows = make(feedback=ReportedRows(2))
    rows.decide(X)
    with pytest.raises(FeedbackError, match="cannot come in pieces"):
        rows.learn(1, linear=(np.eye(DIM)[:1], [1.0]), final=False)
    with pytest.raises(SettingsError, match="expected final to be True or False"):
        strict.learn(1, components={j: 1.0}, final=1)


def test_decisions_expire_by_the_clock(tmp_path):
    now = [100.0]
    learner = make(max_age_seconds=60.0, clock=lambda: now[0])
    learner.decide(X)
    now[0] = 130.0
    learner.decide(X)
    now[0] = 165.0
    before = digest(learner, tmp_path)
    with pytest.raises(FeedbackError, match=r"decision 1 has expired .* none older than 60 seconds"):
        learner.learn(1, costs=np.ones(DIM))
    assert digest(learner, tmp_path) == before, "what is refused changes nothing"
    learner.save(tmp_path / "clock.db")
    again = Learner.open(tmp_path / "clock.db", ORACLE, read_only=True, clock=lambda: now[0])
    for each in (learner, again):
        assert each.learn(2, costs=np.ones(DIM)).new
        assert (each.waiting, each.health().expired) == ([], 1)
    learner.decide(X)
    now[0] = 1000.0
    learner.decide(X)
    assert learner.waiting == [4]
    forged = forge(tmp_path / "clock.db", tmp_path / "forged.db", lambda _, arrays: arrays.pop("times"))
    with pytest.raises(StoreError, match="contradict each other"):
        Learner.open(forged, ORACLE, read_only=True)
    with pytest.raises(SettingsError, match="expected the clock to return seconds"):
        make(clock=lambda: "noon").decide(X)
    with pytest.raises(SettingsError, match="expected the clock to return seconds"):
        make(clock=lambda: 10**400).decide(X)


def test_a_persons_decision_is_learned_like_any_other(tmp_path):
    learner = make()
    choice = learner.record(X, [1, 0, 1, 0])
    assert (choice.id, choice.w.tolist(), choice.explored, choice.fallback) == (1, [1.0, 0.0, 1.0, 0.0], False, False)
    with jax.enable_x64(True):
        wanted = learner.problem.decision(np.array([1.0, 0.0, 1.0, 0.0]), X, id=1)
    for one, other in zip(*map(jax.tree.leaves, (wanted, learner.state.find(1))), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other, equal_nan=True)
    receipt = learner.learn(choice.id, components={0: 1.0, 2: 3.0})
    assert (receipt.message, receipt.residual) == ("learned", 4.0)
    assert learner.record(X, [1, 0, 0, 0]).id == 2, "a person may do what the solver would not"
    learner.save(tmp_path / "person.db")
    assert Learner.open(tmp_path / "person.db", ORACLE, read_only=True).explain(1).residual == 4.0
    for bad, message in (
        (([1, 1, 1, 0],), "expected at most 2 coordinates other than zero"),
        (([1, np.nan, 0, 0],), "expected w to be 4 finite numbers"),
        (("all",), "w: expected numbers, got text"),
    ):
        with pytest.raises(SettingsError, match=message):
            learner.record(X, *bad)


def test_rewards_are_reported_and_shown_as_rewards(tmp_path):
    """A learner that maximises is one that minimises with every number negated, inside and in its log as well."""
    options = {"offset": [1.0, 0.0, 0.5, 0.0]}
    earns = make(sense="max", store=tmp_path / "plant.db", **options)
    costs = make(offset=[-1.0, 0.0, -0.5, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(4):
        x, rewards = rng.normal(size=FEATURES), 2.0 + rng.normal(size=DIM)
        one, other = earns.decide(x), costs.decide(x)
        assert np.array_equal(one.w, other.w)
        assert np.array_equal(one.cost_sample, -other.cost_sample)
        i, j = chosen(one)
        total = rewards[i] + rewards[j]
        got = earns.learn(one.id, components={i: rewards[i], j: rewards[j]}, total=total)
        wanted = costs.learn(one.id, components={i: -rewards[i], j: -rewards[j]}, total=-total)
        assert got.residual == -wanted.residual
    for explanation in (earns.explain(one), earns.explain(one.id)):
        wanted = costs.explain(other)
        assert np.array_equal(explanation.mean, -wanted.mean)
        assert np.array_equal(explanation.cost_sample, -wanted.cost_sample)
        assert (explanation.gap, explanation.residual) == (wanted.gap, -wanted.residual)
    assert np.array_equal(earns.state.policy.posterior.mean, costs.state.policy.posterior.mean)
    i, j = chosen(earns.decide(x))
    earns.learn(5, components={i: 3.0}, final=False)
    earns.learn(5, components={j: 4.0}, total=7.0, final=False)
    with pytest.raises(FeedbackError, match="the parts add up to 7, the total is -7"):
        earns.learn(5, components={i: 3.0, j: 4.0}, total=-7.0)
    assert digest(Learner.open(tmp_path / "plant.db", ORACLE, read_only=True), tmp_path) == digest(earns, tmp_path)


def test_updates_change_numbers_and_nothing_else(tmp_path):
    learner = make(store=tmp_path / "plant.db")
    play(learner, 3)
    before = learner.state.policy
    assert learner.update(forgetting=0.02, posterior_scale=0) == {"forgetting": 0.02, "posterior_scale": 0.0}
    assert learner.state.policy is before
    learner.save(tmp_path / "updated.db")
    again = Learner.open(tmp_path / "updated.db", ORACLE, read_only=True)
    for each in (learner, again):
        choice = each.decide(X)
        assert np.array_equal(choice.cost_sample, each.explain(choice).mean), "a posterior scale of 0 draws the mean"
    loaded = Learner.open(tmp_path / "updated.db", ORACLE, read_only=True, settings={"posterior_scale": 1.0})
    assert not np.array_equal(loaded.decide(X).cost_sample, choice.cost_sample)
    for bad, message in (
        (
            {"forgeting": 0.1},
            r"'forgeting' is unknown; those that can change are posterior_scale \(0.0\), forgetting",
        ),
        ({}, "expected a setting and its new value"),
        ({"forgetting": 1.5}, "forgetting.*less than 1"),
    ):
        with pytest.raises(SettingsError, match=message):
            learner.update(**bad)
    assert digest(Learner.open(tmp_path / "plant.db", ORACLE, read_only=True), tmp_path) == digest(learner, tmp_path)
    shaped = make(policy="dfhpg", settings={"surrogate": "dbb"})
    with pytest.raises(SettingsError, match=r"'surrogate' is not a number; those that can change are .*surrogate\.lam"):
        shaped.update(surrogate="spo_plus")
    networks = make(policy="adaptive", feedback="bandit")
    with pytest.raises(SettingsError, match="networks from 3 to 2 would change the form of what was learned"):
        networks.update(networks=2)
    assert networks.update(exploration=0.5) == {"exploration": 0.5}
