"""A trace as a curve: some hundred points with their standard error."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from regretless.results import Result

POINTS = 240
ANCHORS = ("dfhpg", "schedule")
"""Paired differences are taken from the first of these that there is, else from the first policy."""


class Curve(NamedTuple):
    """Means over replications with their standard errors, at some rounds."""

    rounds: np.ndarray
    mean: np.ndarray
    error: np.ndarray | None  # None with fewer than two replications


def chosen_rounds(horizon: int) -> np.ndarray:
    """At most ``POINTS`` rounds, dense at the start where curves move and even afterwards.

    >>> rounds = chosen_rounds(2000)
    >>> int(rounds[0]), int(rounds[-1]), len(rounds) <= POINTS
    (1, 2000, True)
    """
    half = POINTS // 2
    early = np.geomspace(1, horizon, half)
    even = np.linspace(1, horizon, half)
    return np.unique(np.rint(np.concatenate([early, even])).astype(int))


def curve(trace: "Result", cumulative: bool = False) -> Curve | None:
    """``Regret_t / t``, or ``Regret_t`` itself, of the replications that stayed finite; None where there are none."""
    kept = trace.cumulative()[trace.finished]
    if not kept.size:
        return None
    rounds = chosen_rounds(kept.shape[1])
    chosen = kept[:, rounds - 1]
    return _over(rounds, chosen if cumulative else chosen / rounds)


def diagnostic(trace: "Result", name: str) -> Curve | None:
    """A diagnostic of the replications that stayed finite, at the rounds of which it is known; None where there are none."""
    kept = trace.diagnostics[name][trace.finished].astype(np.float64)
    if not kept.size:
        return None
    return _over(trace.diagnostics_every * np.arange(1, kept.shape[1] + 1), kept)


def _over(rounds: np.ndarray, values: np.ndarray) -> Curve:
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else None
    return Curve(rounds, values.mean(axis=0), error)


def anchor_of(traces: "Mapping[str, Result]") -> str:
    """The label of the policy that paired differences are taken from; empty if every replication of every policy diverged."""
    usable = [label for label in (*ANCHORS, *traces) if label in traces and traces[label].finished.any()]
    return usable[0] if usable else ""
