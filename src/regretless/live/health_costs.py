"""What decisions cost beside what others would have: the incumbent's, the best fixed one, random ones.

What was paid is known. What the incumbent pays is known in its own rounds. What fixed or random decisions would have paid is a
model's estimate (``health_model.py``) from the first and the last totals since the start or the last change of the world: the
first ones, because that is when decisions differ most. Its intervals are widened by ``WIDER``, which makes them right on the
arena's worlds (``benchmarks/health_worlds.py``); the luck of a few rounds is in them too.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from regretless.live.health_model import Model, Rounds, fitted

RECENT = 120
"""Rounds that costs are compared in, at most."""

FIRST = 40
"""Rounds of the learner's in which costs are compared, at least; of the incumbent's, a quarter of that."""

MANY = 256
"""Features of a context that the model looks at; if there are more, it looks at none."""

WIDER = 2.0
CONFIDENCE = 1.96
"""Standard errors on each side of a 95 % interval."""

BATCH = 10
"""Rounds whose mean counts as one observation: neighbours may be alike."""


class Estimate(NamedTuple):
    """A mean cost with its 95 % interval (of rewards: a mean reward)."""

    mean: float
    low: float
    high: float
    rounds: int


class Comparison(NamedTuple):
    """What others would have paid in the same rounds, and what the learner paid more: a difference with its 95 % interval."""

    cost: float
    difference: float
    low: float
    high: float
    rounds: int  # of the learner's
    estimated: bool  # by a model; False: from what was paid

    def share(self, value: float) -> float:
        """A difference as a share of the others' cost."""
        return value / max(abs(self.cost), 1e-300)


class Seen(NamedTuple):
    """Rounds with known totals: contexts ``[n, p]`` or ``[n, d, p]``, decisions, totals, who decided (0: the learner)."""

    contexts: np.ndarray
    w: np.ndarray
    totals: np.ndarray
    kinds: np.ndarray
    instances: list[Any]
    paid: tuple[np.ndarray, np.ndarray]  # totals and kinds of more rounds, for an incumbent that decides now and then

    def at(self, places: np.ndarray) -> "Seen":
        """Some of the rounds."""
        own = [self.instances[place] for place in places]
        return Seen(self.contexts[places], self.w[places], self.totals[places], self.kinds[places], own, self.paid)


Solver = Callable[[np.ndarray | None, list[Any] | None], np.ndarray | None]
"""Solutions ``[n, d]`` of costs, or of random ones for None, under instances where there are any; None: not to be had now."""


class Costs(NamedTuple):
    """Everything that is known of costs in recent rounds; None: cannot be told yet."""

    paid: Estimate | None = None
    incumbent: Comparison | None = None
    best_fixed: Comparison | None = None
    random: Comparison | None = None


def compared(opening: Rounds, opening_totals: np.ndarray, seen: Seen, fixed_set: bool, solve: Solver) -> Costs:
    """The learner's costs in its recent rounds beside those of others; a model of all rounds says what was not paid."""
    own = seen.kinds == 0
    if own.sum() < FIRST:
        return Costs()
    paid, incumbent = estimate(seen.totals[own]), _incumbent(seen)
    by_row = seen.contexts.ndim == 3
    rounds = Rounds(
        np.concatenate([opening.features, features(seen.contexts, seen.w)]), np.concatenate([opening.w, seen.w])
    )
    model = fitted(rounds, np.concatenate([opening_totals, seen.totals]), by_row)
    if model is None:
        return Costs(paid, incumbent)
    judged = seen.at(np.flatnonzero(own))
    fixed = _fixed(model, judged, solve) if fixed_set else None
    return Costs(paid, incumbent, fixed, _random(model, judged, fixed_set, solve))


def features(contexts: np.ndarray, w: np.ndarray) -> np.ndarray:
    """What the model sees of contexts: themselves, or the sums of their rows that decisions weight."""
    shown = contexts if contexts.ndim == 2 else np.einsum("nd,ndp->np", w, contexts)
    return shown if shown.shape[1] <= MANY else np.zeros((len(shown), 0))


def estimate(totals: np.ndarray) -> Estimate:
    """The mean of totals; its error from means of batches."""
    count = len(totals) // BATCH
    batches = totals[len(totals) - count * BATCH :].reshape(count, BATCH).mean(axis=1)
    mean, error = float(np.mean(totals)), CONFIDENCE * float(np.std(batches, ddof=1)) / count**0.5
    return Estimate(mean, mean - error, mean + error, len(totals))


def _incumbent(seen: Seen) -> Comparison | None:
    """The learner's totals beside the incumbent's, each in its own rounds; who had which was drawn at random."""
    totals, kinds = seen.paid
    own, theirs = totals[kinds == 0], totals[kinds == 1]
    if len(theirs) < FIRST // 4:
        return None
    difference = float(np.mean(own) - np.mean(theirs))
    error = CONFIDENCE * float(np.sqrt(np.var(own, ddof=1) / len(own) + np.var(theirs, ddof=1) / len(theirs)))
    return Comparison(float(np.mean(theirs)), difference, difference - error, difference + error, len(own), False)


def _fixed(model: Model, judged: Seen, solve: Solver) -> Comparison:
    """The decision that is cheapest on average, among those that were made and the solution of the mean costs."""
    means = model.mean_costs(_shown(judged.contexts))
    solved = solve(means[None], None)
    candidates = model.rounds.w if solved is None else np.concatenate([model.rounds.w, solved])
    best = candidates[np.argmin(candidates @ means)]
    return _estimated(model, judged, np.broadcast_to(best, judged.w.shape), 0.0)


def _random(model: Model, judged: Seen, fixed_set: bool, solve: Solver) -> Comparison | None:
    """Solutions of random costs: the mean of them, or where the feasible set changes one for each of the last rounds."""
    drawn = solve(None, None if fixed_set else judged.instances)
    if drawn is None:
        return None
    means = model.mean_costs(_shown(judged.contexts))
    doubt = float(np.std(drawn @ means, ddof=1)) / len(drawn) ** 0.5
    if fixed_set:
        return _estimated(model, judged, np.broadcast_to(drawn.mean(axis=0), judged.w.shape), doubt)
    last = np.arange(len(judged.w) - len(drawn), len(judged.w))
    return _estimated(model, judged.at(last), drawn, doubt)._replace(rounds=len(judged.w))


def _shown(contexts: np.ndarray) -> np.ndarray:
    return contexts if contexts.shape[-1] <= MANY else np.zeros((*contexts.shape[:-1], 0))


def _estimated(model: Model, judged: Seen, others: np.ndarray, doubt: float) -> Comparison:
    """The model's difference between the decisions that were made and others; ``doubt``: a standard error of these."""
    costs, _ = model.difference(Rounds(features(judged.contexts, others), others))
    by_row = judged.contexts.ndim == 3
    more = judged.w - others
    shown = features(judged.contexts, more if by_row else judged.w)
    differences, deviation = model.difference(Rounds(shown, more))
    difference, luck = float(np.mean(differences)), float(np.std(differences, ddof=1)) / len(more) ** 0.5
    error = CONFIDENCE * float(np.linalg.norm([WIDER * deviation, luck, doubt]))
    return Comparison(float(np.mean(costs)), difference, difference - error, difference + error, len(more), True)
