"""Any interleaving of decide, learn, repeat, contradict, expire, save and load, against a plain model in Python.

No feedback is lost or counted twice: the posterior is that of batch least squares over exactly this feedback.
``REGRETLESS_INTERLEAVINGS`` says how many interleavings are tried (``make soak``: 10,000).
"""

import os
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from live.learners import build
from regretless import oracles
from regretless.errors import FeedbackError, SettingsError
from regretless.live.learner import Learner

DIM, FEATURES, LIMIT = 3, 2, 4
ORACLE = oracles.top_k(DIM, 1)
COUNT = int(os.environ.get("REGRETLESS_INTERLEAVINGS", "60"))

contexts = st.lists(st.integers(-4, 4).map(float), min_size=FEATURES, max_size=FEATURES)
totals = st.integers(-9, 9).map(float)


class Interleavings(RuleBasedStateMachine):
    @initialize(max_age=st.sampled_from([None, 3]), seed=st.integers(0, 3))
    def begin(self, max_age, seed):
        self.max_age = max_age
        self.learner = build(ORACLE, context=FEATURES, scaling=False, limit=LIMIT, max_age=max_age, seed=seed)
        self.made = self.expired = 0
        self.waiting = {}  # id -> regression row
        self.learned = {}  # id -> (row, total), in the order of learning
        self.repetitions = 0

    @rule(x=contexts, explore=st.booleans())
    def decide(self, x, explore):
        self.note(self.learner.decide(x, explore=explore), x)

    def note(self, choice, x):
        self.made += 1
        assert choice.id == self.made
        assert ORACLE.feasible(choice.w)
        self.waiting[choice.id] = np.kron(choice.w, [1.0, *x])
        while len(self.waiting) > LIMIT or (self.max_age is not None and self.made - min(self.waiting) > self.max_age):
            del self.waiting[min(self.waiting)]
            self.expired += 1

    @rule(xs=st.lists(contexts, min_size=1, max_size=3), explore=st.booleans())
    def decide_several(self, xs, explore):
        for choice, x in zip(self.learner.decide_batch(xs, explore=explore), xs, strict=True):
            self.note(choice, x)

    @rule(bad=st.sampled_from([[1.0], [np.nan, 1.0], ["1", "2"], [True, False], np.array([1.0, 2.0j])]))
    def decide_on_nonsense(self, bad):
        with pytest.raises(SettingsError, match="context"):
            self.learner.decide(bad)

    @precondition(lambda self: self.waiting or self.learned)
    @rule(data=st.data())
    def explain(self, data):
        id = data.draw(st.sampled_from([*sorted(self.waiting), *self.remembered()]))
        assert self.learner.explain(id).gap >= -1e-9
        residual = self.learner.explain(id).residual
        assert (residual is None) == (id in self.waiting)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), total=totals)
    def learn(self, data, total):
        id = data.draw(st.sampled_from(sorted(self.waiting)))
        assert self.learner.learn(id, total=total).new
        self.learned[id] = (self.waiting.pop(id), total)

    def remembered(self):
        return list(self.learned)[-LIMIT:]

    @precondition(lambda self: self.learned)
    @rule(data=st.data())
    def repeat(self, data):
        id = data.draw(st.sampled_from(self.remembered()))
        assert not self.learner.learn(id, total=self.learned[id][1]).new

    @precondition(lambda self: self.learned)
    @rule(data=st.data(), more=st.integers(1, 5))
    def contradict(self, data, more):
        id = data.draw(st.sampled_from(self.remembered()))
        with pytest.raises(FeedbackError, match="learned from other feedback"):
            self.learner.learn(id, total=self.learned[id][1] + more)

    @rule(data=st.data(), total=totals)
    def report_what_is_unknown(self, data, total):
        gone = [id for id in range(1, self.made + 1) if id not in self.waiting and id not in self.remembered()]
        id = data.draw(st.sampled_from([*gone, 0, self.made + 1, self.made + 7]))
        with pytest.raises(
            FeedbackError, match="expired or was learned long ago" if id in gone else "unknown decision"
        ):
            self.learner.learn(id, total=total)

    @precondition(lambda self: self.waiting)
    @rule(
        data=st.data(),
        bad=st.sampled_from([{"total": np.nan}, {}, {"costs": [1.0]}, {"total": 1.0, "costs": [5.0, 5.0, 5.0]}]),
    )
    def report_nonsense(self, data, bad):
        with pytest.raises(FeedbackError):
            self.learner.learn(data.draw(st.sampled_from(sorted(self.waiting))), **bad)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner.db"
            self.learner.save(path)
            self.learner = Learner.open(path, ORACLE, read_only=True)

    @invariant()
    def counts_agree(self):
        if not hasattr(self, "learner"):
            return
        assert self.learner.waiting == sorted(self.waiting)
        health = self.learner.health()
        assert (health.decisions, health.learned, health.expired) == (self.made, len(self.learned), self.expired)
        state = self.learner.state.policy  # None before the first decision
        assert (0 if state is None else int(state.version)) == len(self.learned)

    def teardown(self):
        if not getattr(self, "learned", None):
            return
        rows, values = (
            np.array([row for row, _ in self.learned.values()]),
            np.array([v for _, v in self.learned.values()]),
        )
        state = self.learner.state.policy
        precision = np.diag(np.asarray(state.ridge)[0]) + rows.T @ rows
        np.testing.assert_allclose(
            np.asarray(state.posterior.mean)[0], np.linalg.solve(precision, rows.T @ values), atol=1e-8
        )
        factor = np.asarray(state.posterior.factor)[0]
        np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(precision), atol=1e-8)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=COUNT,
    stateful_step_count=16,
    deadline=None,
    derandomize=COUNT <= 100,
    suppress_health_check=list(HealthCheck),
)
