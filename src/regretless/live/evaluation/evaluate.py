"""Evaluation before going live: what candidates would have paid in the rounds of a history."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.live import inputs
from regretless.live.evaluation import candidates as parts
from regretless.live.evaluation.candidates import LOGGED, Candidate, Meant
from regretless.live.evaluation.report import Estimate, Evaluation, Method
from regretless.live.history import History
from regretless.oracles.base import Oracle
from regretless.stats import doubly_robust, match_decisions, mean_interval, measure_overlap

BLOCKS = 5
"""Parts of a history, one after the other: what is learnt for one is learnt from those before it; the first is not judged."""


def evaluate(
    candidates: Candidate | Sequence[Candidate] | Mapping[str, Candidate],
    history: History,
    *,
    oracle: Oracle | None = None,
    feedback: str | Measurement | None = None,
    model: str = "linear_thompson",
) -> Evaluation:
    """What each candidate would have paid per round, with a 95 % interval, or that the log cannot tell.

    A candidate is a policy (a name, which needs ``oracle``, or an object), which learns from the rounds before those that it
    is judged by and decides greedily; a Learner as it is now; or a function of the context (and of the instance, where there
    are instances) that returns ``w``. With ``propensities`` in the history estimates are doubly robust, without them from
    logged decisions that are the candidate's. ``feedback`` is what a policy by name is told of each round (totals, or single
    costs where the history has them); ``model`` the policy whose mean is the regression of the direct method.

    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x, drawn = rng.normal(size=(300, 1)), rng.integers(2, size=300)
    >>> history = rg.History(x, np.eye(2)[drawn], totals=5.0 + drawn * x[:, 0], propensities=np.full(300, 0.5))
    >>> found = rg.evaluate({"by sign": lambda x: [1, 0] if x[0] > 0 else [0, 1]}, history)
    >>> found["by sign"].method, found["by sign"].difference.high < 0.0
    ('doubly_robust', True)
    """
    if not isinstance(history, History):
        raise SettingsError(f"evaluate: expected a History, got {inputs.said(history)}")
    if oracle is not None and not isinstance(oracle, Oracle):
        raise SettingsError(f"evaluate: expected oracle to be an oracle (see rg.oracles), got {inputs.said(oracle)}")
    chosen = parts.labelled(candidates)
    sign, history = -1.0 if history.sense == "maximise" else 1.0, _in_order(history)
    sense, history = history.sense, history.as_costs()
    blocks = np.array_split(np.arange(len(history)), BLOCKS)
    outcomes = _outcomes(history)
    judged = _judged_rounds(history, outcomes, blocks)
    costs = parts.expected(history, blocks, model)[judged]
    meant = Meant(oracle, feedback or ("bandit" if history.costs is None else "semi_bandit"))
    judge = _Judge(history[judged], outcomes[judged], costs, sign)
    found = [judge.logged()]
    for label, candidate in chosen.items():
        found.append(judge.candidate(label, parts.decisions(label, candidate, history, blocks, meant)[judged]))
    return Evaluation(tuple(found), len(judged), sense, judge.scores)


class _Judge:
    """Estimates over the judged rounds, with what was paid in each and what a regression expects there."""

    def __init__(self, history: History, outcomes: np.ndarray, costs: np.ndarray, sign: float):
        self.history, self.outcomes, self.costs, self.sign = history, outcomes, costs, sign
        self.scores: dict[str, np.ndarray] = {}

    def logged(self) -> Estimate:
        """What the log itself paid."""
        return self._estimate(LOGGED, "logged", self.outcomes, None, len(self.outcomes), float(len(self.outcomes)))

    def candidate(self, label: str, w: np.ndarray) -> Estimate:
        """What a candidate that decides ``w`` would have paid."""
        history, predicted = self.history, np.sum(self.costs * w, axis=1)
        match = match_decisions(history.decisions, w)
        prediction = float(np.mean(predicted))
        known = self._known(w)
        if known is not None:
            return self._estimate(label, "seen", known, prediction, int(match.sum()), float(len(known)))
        own = measure_overlap(history.decisions, w, history.contexts, history.propensities)
        logged = np.sum(self.costs * history.decisions, axis=1)
        robust = doubly_robust(self.outcomes, logged, predicted, own.weights)
        scores = np.where(match.all(), self.outcomes, robust)
        method: Method = "matching" if history.propensities is None else "doubly_robust"
        return self._estimate(label, method, scores, prediction, own.matches, own.effective, own.reason)

    def _known(self, w: np.ndarray) -> np.ndarray | None:
        """What ``w`` would have cost where every cost that it needs was seen in every round; else None."""
        if self.history.costs is None:
            return None
        paid: np.ndarray = np.sum(np.where(w != 0, self.history.costs * w, 0.0), axis=1)
        return None if np.any(np.isnan(paid)) else paid

    def _estimate(
        self, label: str, method: Method, scores: np.ndarray, prediction: float | None, matches: int,
        effective: float, reason: str = "",
    ) -> Estimate:  # fmt: skip
        expected = None if prediction is None else self.sign * prediction
        if reason:
            return Estimate(label, method, None, None, expected, matches, effective, reason)
        self.scores[label] = scores
        cost = mean_interval(scores, effective).with_sign(self.sign)
        more = None if label == LOGGED else mean_interval(scores - self.outcomes, effective).with_sign(self.sign)
        return Estimate(label, method, cost, more, expected, matches, effective)


def _in_order(history: History) -> History:
    """The rounds by time, where times are known; probabilities that are all unknown are none."""
    if history.propensities is not None and np.all(np.isnan(history.propensities)):
        history = dataclasses.replace(history, propensities=None)
    if history.times is None or np.any(np.isnan(history.times)):
        return history
    return history[np.argsort(history.times, kind="stable")]


def _outcomes(history: History) -> np.ndarray:
    """What was paid in each round, NaN if that is not known: the total, or all single costs that the decision has."""
    paid = np.full(len(history), np.nan) if history.totals is None else history.totals
    if history.costs is None:
        return paid
    added = np.sum(np.where(history.decisions != 0, history.costs * history.decisions, 0.0), axis=1)
    return np.where(np.isnan(paid), added, paid)


def _judged_rounds(history: History, outcomes: np.ndarray, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Rounds after the first block whose cost is known, and how they were drawn if the history tells that at all."""
    usable = ~np.isnan(outcomes)
    if not usable.any():
        raise SettingsError(
            "evaluate: expected a history that tells what its decisions cost, in totals= or costs=, got none"
        )
    if history.propensities is not None:
        usable &= ~np.isnan(history.propensities)
    later = np.concatenate(blocks[1:])
    judged = later[usable[later]]
    if len(judged) < 2:
        raise SettingsError(
            "evaluate: expected at least two rounds of known cost to judge by after the first fifth of the history, got "
            f"{len(judged)} of {len(later)}"
        )
    return judged
