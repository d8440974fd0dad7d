"""Off-policy estimation: what logged rounds say about decisions that were not made, and when they say nothing.

A round whose logged decision is the candidate's stands for ``1/p`` rounds, with ``p`` the probability that the log
decides like this in its context: known, or estimated from which rounds match. If every ``p`` is above zero, the
weights are 1 on average; where they are not, some contexts have no counterpart in the log, and no estimate is made.
"""

from typing import NamedTuple

import numpy as np

MIN_EFFECTIVE_ROUNDS = 20
"""Effective rounds below which nothing is estimated."""

SAME_DECISION = 1e-6
"""Relative difference up to which two decisions are the same."""

MISSING_WEIGHT_ERRORS = 2.0
"""Standard errors that the mean weight may be below 1 before contexts without a counterpart are suspected."""

EXCESS_WEIGHT_ERRORS = 4.0
"""The same above 1; beyond it the stated probabilities are wrong."""

MIN_MATCH_PROBABILITY = 0.05
"""Estimated probability below which a round has no counterpart, and the share of such rounds that is too many."""

MIN_ESTIMATION_ROUNDS = 200
"""Rounds below which a rule cannot be distinguished from chance, if probabilities have to be estimated."""

NEIGHBOURS = 5
"""Nearest rounds whose logged decisions may predict a match."""

MAX_NEWTON_STEPS = 30

MIN_CONTROL_SHARE = 1e-6
"""Size of a combination of the controls, relative to the largest, below which it is rounding."""

MIN_SPREAD_SHARE = 0.7
"""Spread of the scores, at least, as a share of the one that the errors of all rounds give: rare outcomes may be
missing in the few rounds that match."""

TEST_LEVEL = 0.05
"""Level at which a match that the context predicts is not random."""


class Overlap(NamedTuple):
    """How well a log covers a candidate's decisions.

    Parameters
    ----------
    weights : array of shape ``[n]``
        Importance weights of the rounds, zero where the log decided otherwise.
    matches : int
        Rounds in which the log decided like the candidate.
    effective : float
        Effective number of rounds.
    reason : str
        Why nothing can be estimated; empty if it can.
    """

    weights: np.ndarray
    matches: int
    effective: float
    reason: str


def match_decisions(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return which rows of two arrays ``[n, d]`` are the same decision.

    Parameters
    ----------
    first, second : arrays of shape ``[n, d]``
        Decisions row by row.
    """
    return np.all(np.abs(first - second) <= SAME_DECISION * np.maximum(1.0, np.abs(first)), axis=1)


def doubly_robust(
    outcomes: np.ndarray, logged_predictions: np.ndarray, predictions: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return scores of the rounds whose mean estimates the candidate's cost, with the least variance of its kind.

    The mean of ``w y`` is corrected by two averages that are zero if the weights are right: those of
    ``w m(logged) − m(candidate)`` and of ``w − 1``. Their coefficients are fitted by least squares. Coefficients of
    (0, 0) are inverse propensity weighting, (1, 0) the doubly robust estimator, and self-normalised weights have
    another second coefficient; a poor model gets little weight. Deviations are scaled by the leverage of their round,
    so that few rounds do not look too precise, and have most of the spread that the errors of all rounds give.

    Parameters
    ----------
    outcomes : array of shape ``[n]``
        What the logged decisions cost.
    logged_predictions, predictions : arrays of shape ``[n]``
        What a model predicts for the logged and for the candidate's decisions.
    weights : array of shape ``[n]``
        Importance weights, zero where the log decided otherwise.
    """
    controls = np.column_stack([weights * logged_predictions - predictions, weights - 1.0])
    weighted, controls = weights * outcomes, controls / np.maximum(np.abs(controls).max(axis=0), 1e-300)
    centred = controls - controls.mean(axis=0)
    slopes = np.linalg.lstsq(centred, weighted, rcond=MIN_CONTROL_SHARE)[0]
    estimate = float(weighted.mean() - controls.mean(axis=0) @ slopes)
    directions, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:, sizes > MIN_CONTROL_SHARE * max(float(sizes[0]), 1e-300)]
    leverage = np.minimum(1.0 / len(outcomes) + np.sum(directions**2, axis=1), 0.9)
    deviations = (weighted - weighted.mean() - centred @ slopes) / np.sqrt(1.0 - leverage)
    usual = float(np.mean(weights**2) * np.mean(fit_errors(outcomes, logged_predictions) ** 2))
    missing = max(MIN_SPREAD_SHARE**2 * usual - float(np.var(deviations)), 0.0)
    added = weights * (-1.0) ** np.cumsum(weights > 0)  # errors of either sign in the rounds that match
    deviations += added * (missing / max(float(np.var(added)), 1e-300)) ** 0.5
    return np.asarray(estimate + deviations - deviations.mean())


def fit_errors(outcomes: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """Return the errors of the best linear function of a model's predictions, at most those of the mean.

    Parameters
    ----------
    outcomes, predictions : arrays of shape ``[n]``
        What was paid, and what the model predicted.
    """
    deviations, centred = outcomes - outcomes.mean(), predictions - predictions.mean()
    slope = max(float(centred @ deviations), 0.0) / max(float(centred @ centred), 1e-300)
    return np.asarray(deviations - slope * centred)


def measure_overlap(
    logged: np.ndarray, candidate: np.ndarray, contexts: np.ndarray, propensities: np.ndarray | None = None
) -> Overlap:
    """Return how well a log covers a candidate, by known or by estimated probabilities.

    Parameters
    ----------
    logged, candidate : arrays of shape ``[n, d]``
        The decisions of the log and those of the candidate in the same rounds.
    contexts : array of shape ``[n, p]`` or ``[n, d, p]``
        What was known in each round.
    propensities : array of shape ``[n]``, optional
        Probability with which each logged decision was drawn. If None, it is estimated, and used only where neither
        context, time nor neighbouring rounds predict whether the log decides like the candidate.
    """
    match = match_decisions(logged, candidate)
    if match.all() or (propensities is None and match.sum() < MIN_EFFECTIVE_ROUNDS):
        return _judge(match, np.ones(len(match)), "")
    if propensities is not None:
        return _judge(match, propensities, "")
    return _judge(match, *_estimate_propensities(match, logged, candidate, contexts))


def _judge(match: np.ndarray, probability: np.ndarray, reason: str) -> Overlap:
    """Return the weights, with the reason why they are not enough if they are not."""
    weights, count, matches = match / probability, len(match), int(match.sum())
    effective = float(weights.sum() ** 2 / np.sum(weights**2)) if matches else 0.0
    mean, error = float(weights.mean()), float(weights.std() / np.sqrt(count))
    if matches == 0:
        reason = f"none of the {count} logged decisions is the candidate's"
    elif match.all() and count < MIN_EFFECTIVE_ROUNDS:
        reason = f"{count} rounds are too few; at least {MIN_EFFECTIVE_ROUNDS} are needed"
    elif effective < MIN_EFFECTIVE_ROUNDS:
        reason = (
            f"{matches} of the {count} logged decisions are the candidate's, worth {effective:.0f} rounds; at least "
            f"{MIN_EFFECTIVE_ROUNDS} are needed"
        )
    elif reason or match.all():
        pass
    elif mean < 1.0 - MISSING_WEIGHT_ERRORS * error:
        reason = f"in about {1.0 - mean:.0%} of the rounds the log never decides like the candidate"
    elif mean > 1.0 + EXCESS_WEIGHT_ERRORS * error:
        reason = (
            f"the probabilities cannot be right: the rounds that match stand for {mean:.2g} times all rounds; expected "
            "the probability with which each logged decision was drawn"
        )
    return Overlap(weights, matches, effective, reason)


def _estimate_propensities(
    match: np.ndarray, logged: np.ndarray, candidate: np.ndarray, contexts: np.ndarray
) -> tuple[np.ndarray, str]:
    """Return the probability of a match given what the candidate decides, and why it is not believed if it is not."""
    from scipy.spatial import KDTree

    count = len(match)
    if count < MIN_ESTIMATION_ROUNDS:
        return np.ones(count), (
            f"{count} rounds are too few to distinguish a rule from chance without propensities; at least "
            f"{MIN_ESTIMATION_ROUNDS} are needed"
        )
    decided = np.column_stack([np.ones(count), _standardise(candidate)])
    probability = fit_logistic(decided, match)
    places = _round_features(contexts, candidate)
    neighbours = KDTree(places).query(places, k=NEIGHBOURS + 1)[1][:, 1:]
    nearby = np.mean([match_decisions(logged[column], candidate) for column in neighbours.T], axis=0)[:, None]
    if _lowest_p_value(match, probability, decided, [np.column_stack([places, nearby]), nearby]) < TEST_LEVEL:
        return probability, (
            "whether the log decides like the candidate depends on the context, as in a log without randomness; "
            "propensities would show how much of it is chance"
        )
    rare = float(np.mean(probability < MIN_MATCH_PROBABILITY))
    if rare > MIN_MATCH_PROBABILITY:
        return probability, f"in {rare:.0%} of the rounds the log hardly ever decides like the candidate"
    return probability, ""


def _lowest_p_value(
    match: np.ndarray, probability: np.ndarray, decided: np.ndarray, predictors: list[np.ndarray]
) -> float:
    """Return the lowest p-value of score tests that a match does not depend on predictors, given the decision alone.

    ``probability`` was fitted to ``match`` from the features ``decided`` of the candidate's decision.
    """
    from scipy.special import chdtrc

    root = np.sqrt(probability * (1.0 - probability))[:, None]
    p_values = []
    for added in predictors:
        residual = added - decided @ np.linalg.lstsq(root * decided, root * added, rcond=None)[0]
        score = residual.T @ (match - probability)
        information = (root * residual).T @ (root * residual)
        p_values.append(chdtrc(added.shape[1], score @ np.linalg.pinv(information) @ score))
    return float(min(p_values))


def fit_logistic(features: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """Return fitted probabilities of a ridge logistic regression, by Newton's method.

    Parameters
    ----------
    features : array of shape ``[n, k]``
        The first one is the constant, which has no ridge; the coefficients of the others have a prior precision of 1.
    hit : array of shape ``[n]``
        Outcomes, 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(fit_logistic(np.ones((4, 1)), np.array([1, 0, 0, 0])), 3).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    penalty = np.eye(features.shape[1])
    penalty[0, 0] = 1e-9
    beta = np.zeros(features.shape[1])
    for _ in range(MAX_NEWTON_STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(features @ beta, -30.0, 30.0)))
        curvature = (features * (probability * (1.0 - probability))[:, None]).T @ features + penalty
        step = np.linalg.solve(curvature, features.T @ (hit - probability) - penalty @ beta)
        beta = beta + step * min(1.0, 5.0 / (1e-12 + float(np.max(np.abs(step)))))
        if np.max(np.abs(step)) < 1e-8:
            break
    return np.clip(1.0 / (1.0 + np.exp(-np.clip(features @ beta, -30.0, 30.0))), 1e-3, 1.0)


def _round_features(contexts: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Return features by which rounds are neighbours: time and context, of feature rows the mean and the chosen sum."""
    flat = contexts
    if flat.ndim == 3:
        flat = np.column_stack([flat.mean(axis=1), np.einsum("nd,ndp->np", candidate, flat)])
    return _standardise(np.column_stack([flat, np.arange(len(flat))]))


def _standardise(table: np.ndarray) -> np.ndarray:
    """Return the columns that vary, with mean 0 and variance 1."""
    spread = table.std(axis=0)
    return (table - table.mean(axis=0))[:, spread > 0] / spread[spread > 0]
