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

NEIGHBOURS = 5
ALIKE = 3.0
"""Standard errors by which neighbouring rounds may match alike before the estimated probability is not believed."""


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
    elif not match.all() and mean < 1.0 - SHORT * error:
        reason = f"in about {1.0 - mean:.0%} of the rounds the log never decides like the candidate"
    elif not match.all() and mean > 1.0 + LONG * error:
        reason = (
            f"the probabilities cannot be right: the rounds that match stand for {mean:.2g} times all rounds; expected the "
            "probability with which each logged decision was drawn"
        )
    return Overlap(weights, matches, effective, reason)


def _estimated(match: np.ndarray, history: History, w: np.ndarray) -> tuple[np.ndarray, str]:
    """The probability of a match in each round by logistic regression, and why it is not to be believed, if it is not."""
    places = _columns(history)
    probability = logistic(np.column_stack([np.ones(len(match)), places, _scaled(w)]), match)
    if np.mean(probability < RARE) > RARE:
        return probability, (
            f"in {np.mean(probability < RARE):.0%} of the rounds the log hardly ever decides like the candidate, as far as can "
            "be seen without propensities"
        )
    if alike(match - probability, probability * (1 - probability), places) > ALIKE:
        return probability, (
            "whether the log decides like the candidate hangs on the context, as in a log without randomness; propensities "
            "would tell whether there is any"
        )
    return probability, ""


def _columns(history: History) -> np.ndarray:
    """What places a round among the others: its context and when it was."""
    flat = history.contexts.reshape(len(history), -1)
    if history.contexts.ndim == 3:  # feature rows: their mean, and their sum over what was chosen elsewhere is in w
        flat = history.contexts.mean(axis=1)
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


def alike(residuals: np.ndarray, variances: np.ndarray, places: np.ndarray) -> float:
    """Moran's statistic in standard errors: how much more alike than chance the residuals of neighbouring rounds are."""
    from scipy.sparse import coo_matrix
    from scipy.spatial import KDTree

    count = min(NEIGHBOURS, len(residuals) - 1)
    near = KDTree(places).query(places, k=count + 1)[1][:, 1:]
    rows = np.repeat(np.arange(len(residuals)), count)
    graph = coo_matrix((np.ones(rows.size), (rows, near.ravel())), shape=(len(residuals),) * 2).tocsr()
    graph = graph + graph.T
    spread = np.sqrt(0.5 * float(variances @ (graph.multiply(graph) @ variances)))
    return float(0.5 * residuals @ (graph @ residuals)) / max(spread, 1e-12)
