"""Evaluation before going live: what candidates would have cost in the rounds of a history."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regretless import extras
from regretless.errors import SettingsError, short_repr
from regretless.feedback import Measurement
from regretless.live.feedback_parser import parse_vector
from regretless.live.history import History, require_fitting
from regretless.live.learner import Learner
from regretless.live.records import plain_data
from regretless.oracles.base import Oracle
from regretless.oracles.selection import TopKOracle
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.registry import require_known
from regretless.stats import Interval, doubly_robust, match_decisions, mean_interval, measure_overlap, tail_index
from regretless.stats.off_policy import fit_errors

if TYPE_CHECKING:
    import pandas as pd

BLOCKS = 5
"""Consecutive parts of a history; a candidate learns from the parts before the one it is judged by."""

MIN_ROUNDS = 3
"""Rounds that a history needs: one to learn from and two to judge by."""

MAX_KNOWN_SHARE = 0.1
"""Share of the judged rounds that a learner may have learned from by coincidence."""

MIN_TAIL_ROUNDS = 60
"""Rounds below which the tails of the errors cannot be judged."""

MIN_TAIL_INDEX = 1.4
"""Hill estimate of the tail index (about the median, so below the true one) under which variances may be infinite."""

MAX_VALUES_SHARE = 0.1
"""Distinct outcomes per round below which they are classes or counts, whose largest values say nothing of a tail."""

MIN_VARIANCE_ROUNDS = 8.0
"""Effective number of rounds, (Σ e²)² / Σ e⁴, that a variance must come from."""

LOGGED = "logged"
"""Label of the decisions of the history itself."""

Candidate = str | PolicySpec | Policy | Learner | Callable[..., Any]
"""A policy, which learns from earlier rounds; a learner, which does not learn; or a function of the context."""

Blocks = Sequence[np.ndarray]
"""The rounds of each part of a history."""

Method = Literal["logged", "seen", "doubly_robust", "matching"]


@dataclasses.dataclass(frozen=True)
class CandidateEstimate:
    """Estimated cost per round of a candidate.

    Attributes
    ----------
    candidate : str
        Label of the candidate.
    method : {"logged", "seen", "doubly_robust", "matching"}
        How the cost was estimated.
    cost : Interval or None
        Mean cost per round with its 95 % interval; None if the log is inconclusive.
    difference : Interval or None
        The same minus the cost of the logged decisions in the same rounds.
    prediction : float or None
        What a regression predicts. It may be wrong by any amount and has no interval.
    matches : int
        Rounds in which the logged decision is the candidate's.
    effective : float
        Rounds that these are worth.
    reason : str
        Why the log is inconclusive; empty if it is not.
    """

    candidate: str
    method: Method
    cost: Interval | None
    difference: Interval | None
    prediction: float | None
    matches: int
    effective: float
    reason: str = ""

    @property
    def conclusive(self) -> bool:
        """Whether there is an estimate."""
        return self.cost is not None

    def __str__(self) -> str:
        prediction = "" if self.prediction is None else f" (a model predicts {self.prediction:.4g})"
        if self.cost is None:
            return f"inconclusive from this log: {self.reason}{prediction}"
        difference = "" if self.difference is None else f", {_format_interval(self.difference, '+')} against the log"
        worth = f"{self.matches} matches worth {self.effective:.0f} rounds"
        return f"{_format_interval(self.cost)}{difference}; {self.method}, {worth}{prediction}"


@dataclasses.dataclass(frozen=True, repr=False)
class Evaluation:
    """Estimates of all candidates over the same rounds of a history, returned by ``rg.evaluate``.

    Attributes
    ----------
    estimates : tuple of CandidateEstimate
        The logged decisions first.
    rounds : int
        Rounds that the candidates were judged by.
    sense : {"min", "max"}
        ``"max"`` if the numbers are rewards.
    scores : dict of str to array
        Score of each round, in costs, for the candidates that have an estimate.
    """

    estimates: tuple[CandidateEstimate, ...]
    rounds: int
    sense: Literal["min", "max"]
    scores: dict[str, np.ndarray]

    def __getitem__(self, candidate: str) -> CandidateEstimate:
        labels = [estimate.candidate for estimate in self.estimates]
        require_known("candidate", candidate, labels)
        return self.estimates[labels.index(candidate)]

    def difference(self, first: str, second: str) -> Interval | None:
        """Return the cost per round of one candidate minus that of another in the same rounds.

        Parameters
        ----------
        first, second : str
            Labels of the candidates.

        Returns
        -------
        Interval or None
            None if the log is inconclusive about either of them.
        """
        one, other = self[first], self[second]
        if not (one.conclusive and other.conclusive):
            return None
        sign = -1.0 if self.sense == "max" else 1.0
        return mean_interval(self.scores[first] - self.scores[second]).with_sign(sign)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as data that JSON can write.

        Returns
        -------
        dict
        """
        rows = [{**plain_data(vars(estimate)), "conclusive": estimate.conclusive} for estimate in self.estimates]
        return {"rounds": self.rounds, "sense": self.sense, "confidence": 0.95, "estimates": rows}

    def to_pandas(self) -> "pd.DataFrame":
        """Return a table with a row for each candidate.

        Returns
        -------
        pandas.DataFrame
            NaN stands for what is inconclusive.
        """

        def cells(estimate: CandidateEstimate) -> Iterator[tuple[str, Any]]:
            for name, value in vars(estimate).items():
                if name in ("cost", "difference"):
                    yield from zip((name, f"{name}_low", f"{name}_high"), value or (math.nan,) * 3, strict=True)
                else:
                    yield name, value

        return extras.require("pandas", extra="data").DataFrame([dict(cells(estimate)) for estimate in self.estimates])

    def __str__(self) -> str:
        width = max(len(estimate.candidate) for estimate in self.estimates)
        lines = [f"{estimate.candidate:<{width}}  {estimate}" for estimate in self.estimates]
        quantity = "reward" if self.sense == "max" else "cost"
        return "\n".join([f"{quantity} per round over {self.rounds} rounds, 95 % intervals", *lines])

    def __repr__(self) -> str:
        return f"<Evaluation of {', '.join(e.candidate for e in self.estimates[1:])} over {self.rounds} rounds>"


def _format_interval(interval: Interval, sign: str = "") -> str:
    return f"{interval.mean:{sign}.4g} [{interval.low:{sign}.4g}, {interval.high:{sign}.4g}]"


def evaluate(
    candidates: Candidate | Sequence[Candidate] | Mapping[str, Candidate],
    history: History,
    *,
    oracle: Oracle | None = None,
    feedback: str | Measurement | None = None,
    model: str | PolicySpec = "linear_thompson",
) -> Evaluation:
    """Estimate what candidates would have cost per round, with 95 % intervals, or say that the log is inconclusive.

    The first fifth of the history is only learned from; all candidates are judged by the same later rounds. With
    propensities in the history estimates are doubly robust; without them they come from the rounds in which the logged
    decision is the candidate's.

    Parameters
    ----------
    candidates : candidate, list of candidates, or mapping of labels to candidates
        A policy (a built one; or, with ``oracle``, a specification or its name) learns from the rounds before those
        that it is judged by, and decides greedily. A Learner decides by what it knows now. A function of the context
        (and of the instance, if there are instances) returns a decision.
    history : History
        Logged rounds with known costs.
    oracle : Oracle, optional
        The feasible set in which a policy decides.
    feedback : str or Measurement, optional
        What a policy observes of each round; by default the totals, or the single costs where the history has
        them.
    model : str or PolicySpec, default "linear_thompson"
        Policy whose mean prediction is the regression of the cost.

    Returns
    -------
    Evaluation

    Raises
    ------
    SettingsError
        If the history is too short or has no known costs, or if a candidate cannot decide in its rounds.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x, drawn = rng.normal(size=(300, 1)), rng.integers(2, size=300)
    >>> history = rg.History(x, np.eye(2)[drawn], totals=5.0 + drawn * x[:, 0], propensities=np.full(300, 0.5))
    >>> evaluation = rg.evaluate({"by sign": lambda x: [1, 0] if x[0] > 0 else [0, 1]}, history)
    >>> evaluation
    <Evaluation of by sign over 240 rounds>
    >>> evaluation["by sign"].method, evaluation["by sign"].difference.high < 0.0
    ('doubly_robust', True)
    """
    if not isinstance(history, History):
        raise SettingsError(f"evaluate: expected a History, got {short_repr(history)}")
    if oracle is not None and not isinstance(oracle, Oracle):
        raise SettingsError(f"evaluate: expected oracle to be an oracle (see rg.oracles), got {short_repr(oracle)}")
    dim = history.decisions.shape[1]
    if oracle is not None and oracle.dim != dim:
        raise SettingsError(f"evaluate: expected a history with decisions of {oracle.dim} numbers, got {dim}")
    labelled = _label_candidates(candidates)
    if len(history) < MIN_ROUNDS:
        raise SettingsError(f"evaluate: expected a history of at least {MIN_ROUNDS} rounds, got {len(history)}")
    sense, history = history.sense, in_time_order(history).as_costs()
    blocks = np.array_split(np.arange(len(history)), min(BLOCKS, len(history)))
    outcomes = _paid(history, history.decisions)
    if history.totals is not None:
        outcomes = np.where(np.isnan(history.totals), outcomes, history.totals)
    judged = _judged_rounds(history, outcomes, blocks)
    predictions = _predict_costs(history, blocks, model)[judged]
    judge = _Judge(history[judged], outcomes[judged], predictions, -1.0 if sense == "max" else 1.0)
    observed = feedback or ("bandit" if history.costs is None else "semi_bandit")
    estimates = [judge.judge(LOGGED, judge.history.decisions)]
    for label, candidate in labelled.items():
        try:
            w = _decide(candidate, history, blocks, oracle, observed)
        except SettingsError as error:
            raise SettingsError(f"evaluate: candidate {label!r}: {error}") from None
        estimates.append(judge.judge(label, w[judged]))
    return Evaluation(tuple(estimates), len(judged), sense, judge.scores)


class _Judge:
    """Estimate costs over the judged rounds, with what was paid and what a regression predicts in each."""

    def __init__(self, history: History, outcomes: np.ndarray, costs: np.ndarray, sign: float):
        self.history, self.outcomes, self.costs, self.sign = history, outcomes, costs, sign
        self.scores: dict[str, np.ndarray] = {}
        self.logged = np.sum(costs * history.decisions, axis=1)
        self.tails = _describe_tails(outcomes, fit_errors(outcomes, self.logged))

    def judge(self, label: str, w: np.ndarray) -> CandidateEstimate:
        """Estimate what a candidate that decides ``w`` would have paid; of the log itself, what it paid."""
        history, predicted = self.history, np.sum(self.costs * w, axis=1)
        match = match_decisions(history.decisions, w)
        matches, effective, reason = int(match.sum()), float(len(w)), ""
        method: Method = "logged" if label == LOGGED else "seen"
        scores = self.outcomes if label == LOGGED else _paid(history, w)
        if np.any(np.isnan(scores)):
            method = "matching" if history.propensities is None else "doubly_robust"
            overlap = measure_overlap(history.decisions, w, history.contexts, history.propensities)
            scores, (_, matches, effective, reason) = self.outcomes, overlap
            if not match.all():
                scores = doubly_robust(self.outcomes, self.logged, predicted, overlap.weights)
        cost = difference = None
        reason = reason or self.tails
        if not reason:
            self.scores[label] = scores
            cost, difference = (
                mean_interval(values).with_sign(self.sign) for values in (scores, scores - self.outcomes)
            )
        if label == LOGGED:
            return CandidateEstimate(label, method, cost, None, None, matches, effective, reason)
        prediction = self.sign * float(np.mean(predicted))
        return CandidateEstimate(label, method, cost, difference, prediction, matches, effective, reason)


def _describe_tails(outcomes: np.ndarray, errors: np.ndarray) -> str:
    """Return why no interval of a mean holds, where the largest errors show that the variance may be infinite."""
    squares, few_values = errors**2, len(np.unique(outcomes)) < MAX_VALUES_SHARE * len(outcomes)
    index = np.inf if few_values else tail_index(errors)
    if len(errors) < MIN_TAIL_ROUNDS or not np.any(squares > 0):
        return ""
    rounds = float(np.sum(squares) ** 2 / np.sum(squares**2))
    if index >= MIN_TAIL_INDEX and rounds >= MIN_VARIANCE_ROUNDS:
        return ""
    return (
        f"a few rounds decide the mean: the variance is that of {rounds:.0f} of {len(errors)} rounds"
        f"{'' if few_values else f' (tail index {index:.1f})'}, so that no interval holds; cut the costs off at what "
        "matters, or give their logarithms"
    )


def _paid(history: History, w: np.ndarray) -> np.ndarray:
    """Return the cost of decisions in each round from single costs, NaN where a cost that it needs is not known."""
    if history.costs is None:
        return np.full(len(w), np.nan)
    return np.asarray(np.sum(np.where(w != 0, history.costs * w, 0.0), axis=1))


def in_time_order(history: History) -> History:
    """Return the rounds by time, if all times are known; propensities that are all unknown are dropped."""
    if history.propensities is not None and np.all(np.isnan(history.propensities)):
        history = dataclasses.replace(history, propensities=None)
    if history.times is None or np.any(np.isnan(history.times)):
        return history
    return history[np.argsort(history.times, kind="stable")]


def _judged_rounds(history: History, outcomes: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Return the rounds after the first block whose cost, and propensity if there are any, is known."""
    usable = ~np.isnan(outcomes)
    if history.propensities is not None:
        usable &= ~np.isnan(history.propensities)
    later = np.concatenate(blocks[1:])
    judged = later[usable[later]]
    if len(judged) < 2:
        raise SettingsError(
            "evaluate: expected at least two rounds with known costs (totals= or costs=) after the first fifth of the "
            f"history, which is only learned from; got {len(judged)} of {len(later)}"
        )
    return judged


def _label_candidates(given: Any) -> dict[str, Candidate]:
    """Return candidates by label, given as a mapping, several in a sequence, or one."""
    if isinstance(given, Mapping):
        labelled = dict(given)
    else:
        labelled = {}
        for candidate in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
            name = candidate if isinstance(candidate, str) else getattr(candidate, "__name__", None)
            label = name or type(candidate).__name__.lower()
            if label in labelled:
                raise SettingsError(
                    f"evaluate: expected a label for each candidate, got two called {label!r}: give them as "
                    "{label: candidate}"
                )
            labelled[label] = candidate
    if not labelled:
        raise SettingsError("evaluate: expected at least one candidate, got none")
    for label, candidate in labelled.items():
        if not isinstance(label, str) or label == LOGGED:
            raise SettingsError(f"evaluate: expected labels other than {LOGGED!r}, got {short_repr(label)}")
        is_function = callable(candidate) and not isinstance(candidate, type)
        if not isinstance(candidate, str | PolicySpec | Policy | Learner) and not is_function:
            raise SettingsError(
                f"evaluate: candidate {label!r}: expected a policy (see rg.policies) or its name, a Learner, or a "
                f"function of the context, got {short_repr(candidate)}"
            )
    return labelled


def _decide(candidate: Candidate, history: History, blocks: Blocks, oracle: Oracle | None, feedback: Any) -> np.ndarray:
    """Return a candidate's decisions ``w[n, d]``, NaN in the first block."""
    later = np.concatenate(blocks[1:])
    if isinstance(candidate, Learner):
        require_fitting(history, candidate.problem)
        _require_unseen(candidate, history[later])
        w = candidate.predict(history[later])[1]
    elif isinstance(candidate, str | PolicySpec | Policy):
        w = _learn_forward(_new_learner(candidate, history, oracle, feedback), history, blocks)[1]
    else:
        w = _call_function(candidate, history[later], oracle)
    return np.concatenate([np.full((len(blocks[0]), w.shape[1]), np.nan), w])


def _learn_forward(learner: Learner, history: History, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted costs and greedy decisions in every block but the first, each learned from the blocks before."""
    costs, w = [], []
    for before, block in itertools.pairwise(blocks):
        learner.learn_from(history[before])
        predicted, decided = learner.predict(history[block])
        costs.append(predicted)
        w.append(decided)
    return np.concatenate(costs), np.concatenate(w)


def _predict_costs(history: History, blocks: Blocks, model: str | PolicySpec) -> np.ndarray:
    """Return what a regression on earlier blocks predicts for every coordinate, ``[n, d]``, NaN in the first block.

    The regression is the mean prediction of a policy, as deviations from one cost for all coordinates. It learns from
    totals, or from single costs where they were observed.
    """
    try:
        learner, plain = cost_regression(history, history[blocks[0]], model)
        costs = _learn_forward(learner, plain, blocks)[0]
    except SettingsError as error:
        raise SettingsError(f"evaluate: model {model!r}: {error}") from None
    return np.concatenate([np.full((len(blocks[0]), history.decisions.shape[1]), np.nan), costs])


def cost_regression(
    history: History, first: History, model: str | PolicySpec = "linear_thompson"
) -> tuple[Learner, History]:
    """Return a learner whose mean prediction is a regression of the costs, and what it can learn from.

    It predicts deviations from one cost for all coordinates, the one that fits the ``first`` rounds best.
    """
    dim = history.decisions.shape[1]
    totals = history.totals if history.costs is None else None
    plain, start = (dataclasses.replace(part, instances=None, values=None) for part in (history, first))
    plain = dataclasses.replace(plain, totals=totals)
    feedback, level = "bandit" if history.costs is None else "full", _common_level(start)
    problem = Problem(TopKOracle(dim, dim), history.contexts.shape[1:], feedback, offset=[level] * dim)
    return Learner(problem, policy=model), plain


def _common_level(history: History) -> float:
    """Return the cost per unit of a decision that fits best if it is the same for all coordinates."""
    if history.costs is not None:
        return float(np.nanmean(history.costs)) if np.any(~np.isnan(history.costs)) else 0.0
    seen = history[history.seen()]
    size, totals = seen.decisions.sum(axis=1), np.asarray(seen.totals)
    return float(size @ totals) / max(float(size @ size), 1e-300)


def _new_learner(policy: str | PolicySpec | Policy, history: History, oracle: Oracle | None, feedback: Any) -> Learner:
    shape = history.contexts.shape[1:]
    if isinstance(policy, Policy):
        learner = Learner(policy.oracle, context=shape, feedback=policy.problem.feedback, policy=policy)
    else:
        spec = PolicySpec.coerce(policy)  # an unknown name is reported before a missing oracle
        if oracle is None:
            raise SettingsError("expected oracle=, the feasible set in which a policy decides")
        learner = Learner(oracle, context=shape, feedback=feedback, policy=spec)
    require_fitting(history, learner.problem)
    return learner


def _require_unseen(learner: Learner, history: History) -> None:
    """Refuse a learner that would be judged by rounds it has learned from, if contexts rarely repeat."""
    if 2 * len({context.tobytes() for context in history.contexts}) < len(history):
        return
    learned = {
        (np.asarray(decision.context, float).tobytes(), np.asarray(decision.w, float).tobytes())
        for decision in learner.learned_decisions()
    }
    pairs = zip(history.contexts, history.decisions, strict=True)
    known = sum((context.tobytes(), w.tobytes()) in learned for context, w in pairs)
    if known > MAX_KNOWN_SHARE * len(history):
        raise SettingsError(
            f"it has learned from {known} of the {len(history)} rounds that it would be judged by, and would look too "
            "good; give its policy, by name or as an object, which learns from earlier rounds only, or a history of "
            "later rounds"
        )


def _call_function(function: Callable[..., Any], history: History, oracle: Oracle | None) -> np.ndarray:
    """Return what a function of the context, and of the instance if there are instances, decides in each round."""
    form = "(context)" if history.instances is None else "(context, instance)"
    decisions = []
    for row, context in enumerate(history.contexts):
        shown = context if history.columns is None else history.columns.decode(context)
        try:
            w = function(shown) if history.instances is None else function(shown, history.instances[row])
            decisions.append(parse_vector("w", w, history.decisions.shape[1]))
        except SettingsError as error:
            raise SettingsError(f"row {row} of the judged rounds: {error}") from None
        except (Exception, SystemExit) as error:
            failure = f"the function, called with {form}, failed in row {row} of the judged rounds"
            raise SettingsError(f"{failure}: {type(error).__name__}: {error}") from error
    w = np.stack(decisions)
    if oracle is not None and history.instances is None:
        wrong = np.flatnonzero(~oracle.contained(w))
        if len(wrong):
            got = short_repr(w[wrong[0]].tolist())
            raise SettingsError(f"expected decisions in the feasible set, got {got} in row {wrong[0]}")
    return w
