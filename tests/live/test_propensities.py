"""Probabilities of decisions: where they are known, in choices, stores and histories."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless.live import store as stores
from regretless.policies import Policy
from regretless.types import Sample
from toys import DIM, FEATURES, Toy

CHANCES = np.array([0.5, 0.3, 0.2])
X = np.random.default_rng(0).normal(size=(8, FEATURES))


class Lottery(Policy):
    """Draws one of three cost vectors with known probabilities."""

    def init(self, key):
        return rg.policies.LinearThompson().build(self.problem).init(key)

    def sample(self, key, state, context, instance):
        drawn = jax.random.choice(key, 3, p=jnp.asarray(CHANCES))
        cost = jnp.ones(DIM).at[0].set(0.0).at[1 + drawn].set(0.0)
        return Sample(cost, state.version, log_probability=jnp.log(jnp.asarray(CHANCES))[drawn])

    def learn(self, key, state, decision, feedback):
        return rg.policies.LinearThompson().build(self.problem).learn(key, state, decision, feedback)


def learner(policy, **options):
    problem = Toy().problem("bandit", may_miss=True)
    return rg.Learner(problem, policy=Lottery(problem) if policy == "lottery" else policy, **options)


def chance_of(w):
    return CHANCES[np.flatnonzero(w)[1] - 1]


def test_a_store_keeps_what_the_policy_knows(tmp_path):
    live = learner("lottery", store=tmp_path / "plant.db")
    for x in X:
        choice = live.decide(x)
        assert np.exp(choice.log_probability) == pytest.approx(chance_of(choice.w))
        live.learn(choice.id, total=1.0)
    assert live.record(X[0], [1, 1, 0, 0]).log_probability is None
    live.close()
    reopened = rg.Learner.open(tmp_path / "plant.db", live.problem, policy=Lottery(live.problem))
    choice = reopened.decide(X[0])
    assert np.exp(choice.log_probability) == pytest.approx(chance_of(choice.w))
    reopened.close()
    history = rg.History.from_store(tmp_path / "plant.db")
    assert len(history) == 10
    np.testing.assert_allclose(history.propensities[:8], [chance_of(w) for w in history.decisions[:8]])
    assert np.isnan(history.propensities[8]), "a person's"
    copy = learner("linear_thompson", store=tmp_path / "copy.db")
    assert copy.learn_from(history) == 8
    copy.close()
    np.testing.assert_allclose(rg.History.from_store(tmp_path / "copy.db").propensities, history.propensities[:8])


def test_decisions_without_chance_have_probability_one(tmp_path):
    live = learner("linear_thompson", store=tmp_path / "greedy.db")
    assert live.decide(X[0], explore=False).log_probability == 0.0
    assert rg.History.from_store(tmp_path / "greedy.db").propensities.tolist() == [1.0]
    assert live.decide(X[0]).log_probability is None
    assert rg.History.from_store(tmp_path / "greedy.db").propensities is None, "known of some decisions only"
    assert learner("greedy").decide(X[0]).log_probability == 0.0


def test_what_an_incumbent_decides_for_certain():
    shadow = learner("linear_thompson", rollout=rg.Rollout([1, 1, 0, 0], mode="shadow"))
    assert shadow.decide(X[0]).log_probability == 0.0
    guarded = learner("lottery", rollout=rg.Rollout([1, 1, 0, 0], budget=0.5))
    first = guarded.decide(X[0])
    assert (first.by, first.log_probability) == ("incumbent", 0.0), "no budget yet"
    for x in np.tile(X, (8, 1)):
        guarded.learn(guarded.decide(x).id, total=1.0)
    by, chances = zip(*((choice.by, choice.log_probability) for choice in map(guarded.decide, X)), strict=True)
    assert "learner" in by
    assert set(chances) == {None}, "the incumbent may decide the same, with a probability of its own"


def test_a_decision_in_place_of_one_that_failed_has_no_probability():
    fails = []

    def solver(cost):
        if fails:
            raise RuntimeError("no licence")
        w = np.zeros(DIM)
        w[np.argsort(cost)[:2]] = 1.0
        return w

    live = rg.Learner(rg.oracles.external(solver, DIM), context=FEATURES, policy="greedy", on_failure="last")
    assert live.decide(X[0]).log_probability == 0.0
    fails.append(True)
    again = live.decide(X[0])
    assert again.fallback
    assert again.log_probability is None


def test_stores_from_before_probabilities_were_kept_can_be_opened(tmp_path, monkeypatch):
    pack = stores._pack
    without = lambda arrays: pack({name: a for name, a in arrays.items() if "log_probability" not in name})  # noqa: E731
    monkeypatch.setattr(stores, "_pack", without)
    live = learner("greedy", store=tmp_path / "old.db")
    for x in X[:3]:
        live.learn(live.decide(x).id, total=1.0)
    waiting = live.decide(X[3])
    live.close()
    monkeypatch.undo()
    assert rg.History.from_store(tmp_path / "old.db").propensities is None
    reopened = rg.Learner.open(tmp_path / "old.db", live.problem, policy="greedy")
    assert reopened.learn(waiting.id, total=2.0).new
    assert reopened.decide(X[4]).log_probability == 0.0
