"""What a report needs of a trace: the curve thinned to some hundred points, and the final regrets."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from regretless.trace import Comparison, Trace

POINTS = 240
ANCHORS = ("dfhpg", "schedule")
"""Paired differences are taken from the first of these that a cell has, else from its first arm."""


class Curve(NamedTuple):
    """Average regret per round, ``Regret_t / t``, with its standard error, at some rounds."""

    rounds: np.ndarray
    mean: np.ndarray
    error: np.ndarray | None  # None with fewer than two replications


class ArmSummary(NamedTuple):
    """One policy of one cell, summarised."""

    label: str
    mean: float
    error: float
    median: float
    replications: int
    diverged: int
    curve: Curve | None  # None if every replication diverged
    anchor: str  # label of the arm that the paired difference is taken from
    final: np.ndarray  # final regret of the replications that stayed finite
    difference: Comparison | None  # this arm minus the anchor, paired by seed; None where there is nothing to compare


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


def curve(trace: Trace) -> Curve | None:
    """The curve of the replications that stayed finite."""
    kept = trace.cumulative()[trace.finished]
    if not kept.size:
        return None
    rounds = chosen_rounds(kept.shape[1])
    average = kept[:, rounds - 1] / rounds
    error = average.std(axis=0, ddof=1) / len(kept) ** 0.5 if len(kept) > 1 else None
    return Curve(rounds, average.mean(axis=0), error)


def summarise(traces: Mapping[str, Trace], same_world: bool = True) -> dict[str, ArmSummary]:
    """Every arm of a cell; differences are paired only if all arms met the same world. The traces may be dropped afterwards."""
    candidates = [label for label in (*ANCHORS, *traces) if label in traces and traces[label].finished.any()]
    anchor = candidates[0] if candidates and same_world else ""
    return {
        label: ArmSummary(
            label,
            trace.mean(),
            trace.standard_error(),
            trace.median(),
            len(trace.seeds),
            trace.diverged,
            curve(trace),
            anchor,
            trace.final(),
            _difference(trace, traces[anchor]) if anchor not in ("", label) else None,
        )
        for label, trace in traces.items()
    }


def _difference(trace: Trace, anchor: Trace) -> Comparison | None:
    paired = trace.seeds == anchor.seeds and trace.regret.shape == anchor.regret.shape
    return trace.compare(anchor) if paired else None
