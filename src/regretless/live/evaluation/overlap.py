"""How far a log can speak for a candidate: rounds in which it did what the candidate would do, and what they stand for.

A round whose decision is the candidate's stands for ``1/p`` rounds, with ``p`` the probability that the log decides like this
in its context: known, or estimated from which rounds match. If every ``p`` is above zero the weights are 1 on average; where
they are not, some contexts have no counterpart, and no estimate is made.
"""

from typing import NamedTuple

import numpy as np

from regretless.live.history import History

LEAST = 20
"""Effective rounds below which nothing can be told."""

SAME = 1e-6
"""Difference up to which two decisions are the same."""

SHORT = 2.0
"""Standard errors that the weights may be below 1 on average before contexts without a counterpart are suspected."""

LONG = 4.0
"""The same above 1: then the probabilities are wrong."""

RARE = 0.05
"""Estimated probability below which a round has no counterpart, and the share of such rounds that is too many."""

MANY = 200
"""Rounds below which a rule cannot be told from chance, if the probabilities have to be estimated."""

NEIGHBOURS = 5
DOUBT = 0.05
"""Level at which a match that the context foretells is believed to be no chance."""


class Overlap(NamedTuple):
    """Weights of the rounds, zero where the log did something else; ``reason`` says why they tell nothing, if they do not."""

    weights: np.ndarray
    matches: int
    effective: float
    reason: str


def same(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which rows are the same decision."""
    return np.all(np.abs(first - second) <= SAME * np.maximum(1.0, np.abs(first)), axis=1)


def measured(match: np.ndarray, propensities: np.ndarray | None, history: History, w: np.ndarray) -> Overlap:
    """The overlap of a log with a candidate that decides ``w``, by known or by estimated probabilities."""
    if match.all():
        return _judged(match, np.ones(len(match)), "")
    if propensities is not None:
        return _judged(match, propensities, "")
    if match.sum() < LEAST:
        return _judged(match, np.ones(len(match)), "")
    return _judged(match, *_estimated(match, history, w))


def _judged(match: np.ndarray, probability: np.ndarray, reason: str) -> Overlap:
    """Weights from probabilities, and whether they are enough."""
    weights, count, matches = match / probability, len(match), int(match.sum())
    effective = float(weights.sum() ** 2 / np.sum(weights**2)) if matches else 0.0
    mean, error = float(weights.mean()), float(weights.std() / np.sqrt(count))
    if matches == 0:
        reason = f"none of the {count} logged decisions is the candidate's"
    elif match.all() and count < LEAST:
        reason = f"{count} rounds are too few; at least {LEAST} are needed"
    elif effective < LEAST:
        reason = (
            f"{matches} of the {count} logged decisions are the candidate's, worth {effective:.0f} rounds; at least {LEAST} "
            "are needed"
        )
    elif reason or match.all():
        pass
    elif mean < 1.0 - SHORT * error:
        reason = f"in about {1.0 - mean:.0%} of the rounds the log never decides like the candidate"
    elif mean > 1.0 + LONG * error:
        reason = (
            f"the probabilities cannot be right: the rounds that match stand for {mean:.2g} times all rounds; expected the "
            "probability with which each logged decision was drawn"
        )
    return Overlap(weights, matches, effective, reason)


def _estimated(match: np.ndarray, history: History, w: np.ndarray) -> tuple[np.ndarray, str]:
    """The probability of a match by what the candidate decides, and why it is not to be believed, if it is not.

    It is believed only where nothing in the context foretells a match: a log without randomness looks otherwise.
    """
    count = len(match)
    if count < MANY:
        return np.ones(count), (
            f"{count} rounds are too few to tell a rule from chance without propensities; at least {MANY} are needed"
        )
    decided = np.column_stack([np.ones(count), _scaled(w)])
    probability = logistic(decided, match)
    if foretold(match, probability, decided, _places(history, w), history.decisions, w) < DOUBT:
        return probability, (
            "whether the log decides like the candidate hangs on the context, as in a log without randomness; propensities "
            "would tell how much of it is chance"
        )
    rare = float(np.mean(probability < RARE))
    if rare > RARE:
        return probability, f"in {rare:.0%} of the rounds the log hardly ever decides like the candidate"
    return probability, ""


def foretold(
    match: np.ndarray,
    probability: np.ndarray,
    decided: np.ndarray,
    places: np.ndarray,
    logged: np.ndarray,
    w: np.ndarray,
) -> float:
    """The p-value of a score test: does context, time or what was logged nearby foretell a match, beside the decision?"""
    from scipy.spatial import KDTree
    from scipy.special import chdtrc

    near = KDTree(places).query(places, k=NEIGHBOURS + 1)[1][:, 1:]
    nearby = np.mean([same(logged[column], w) for column in near.T], axis=0)
    root = np.sqrt(probability * (1.0 - probability))[:, None]
    values = []
    for added in (np.column_stack([places, nearby]), nearby[:, None]):
        fitted = decided @ np.linalg.lstsq(root * decided, root * added, rcond=None)[0]
        rest = added - fitted
        score = rest.T @ (match - probability)
        values.append(chdtrc(added.shape[1], score @ np.linalg.pinv((root * rest).T @ (root * rest)) @ score))
    return float(min(values))


def _places(history: History, w: np.ndarray) -> np.ndarray:
    """What places a round among the others: its context (feature rows: their mean, and the sum of the chosen) and its time."""
    flat = history.contexts
    if flat.ndim == 3:
        flat = np.column_stack([flat.mean(axis=1), np.einsum("nd,ndp->np", w, flat)])
    return _scaled(np.column_stack([flat, np.arange(len(history))]))


def _scaled(table: np.ndarray) -> np.ndarray:
    spread = table.std(axis=0)
    return (table - table.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def logistic(features: np.ndarray, hit: np.ndarray, ridge: float = 1.0, steps: int = 30) -> np.ndarray:
    """Fitted probabilities of a ridge logistic regression (Newton); the first feature is the constant, without ridge.

    >>> import numpy as np
    >>> np.round(logistic(np.ones((4, 1)), np.array([1, 0, 0, 0])), 3).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    penalty = ridge * np.eye(features.shape[1])
    penalty[0, 0] = 1e-9
    beta = np.zeros(features.shape[1])
    for _ in range(steps):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ beta, -30.0, 30.0)))
        curvature = (features * (chance * (1.0 - chance))[:, None]).T @ features + penalty
        step = np.linalg.solve(curvature, features.T @ (hit - chance) - penalty @ beta)
        beta = beta + step * min(1.0, 5.0 / (1e-12 + float(np.max(np.abs(step)))))
        if np.max(np.abs(step)) < 1e-8:
            break
    return np.clip(1.0 / (1.0 + np.exp(-np.clip(features @ beta, -30.0, 30.0))), 1e-3, 1.0)
