"""Whether the world has changed: prediction errors that rise and stay high, told from single absurd ones.

Each error is compared with the usual one of the rounds before: ``u = log(|r| / median |r|)``, cut off at ``±CUT``, so that no
single outlier counts for much. The sum ``S = max(0, S + u − ALLOWED)`` stays near zero while errors are as usual or fall, and
passes ``LIMIT`` some ten rounds after they have multiplied. The round after which it last was zero is when the change began.
Errors of the learner's, of the incumbent's and of other people's decisions have levels of their own.
"""

from typing import NamedTuple

import numpy as np

KINDS = 3
"""Who decided: the learner, the incumbent, somebody else."""

FIRST = 40
"""Errors that a usual one is taken from, at least."""

MEMORY = 200
"""Errors that a usual one is taken from, at most."""

CUT, ALLOWED, LIMIT = 1.5, 0.5, 8.0
"""Measured on seeds from 100,000 of the arena (``benchmarks/health_worlds.py``): sums of at most 5.1 while nothing changes."""


class DriftAlarm(NamedTuple):
    """The world has changed, or so the errors say."""

    noticed: int  # the decision whose feedback raised the alarm
    since: int  # the first decision of the new world, about


class Watch:
    """Sums of errors beyond the usual, one for each kind of decision, and the last alarm."""

    def __init__(self) -> None:
        self.sums = np.zeros(KINDS)
        self.logs = np.zeros((KINDS, MEMORY))  # logarithms of the last errors, a ring for each kind
        # errors since the start or the last change; the first decision since the sum was zero
        self.counts, self.rising = np.zeros(KINDS, np.int64), np.zeros(KINDS, np.int64)
        self.alarm = np.zeros(3, np.int64)  # noticed, since, after how many learning steps; zeros: none so far

    def learn(self, kind: int, id: int, residual: float, learnt: int) -> bool:
        """Notes the error of a decision, the ``learnt``-th that was learnt from; True if it raises an alarm."""
        size = abs(residual)
        if not 0.0 < size < np.inf:
            return False
        log, count = float(np.log(size)), int(self.counts[kind])
        if count >= FIRST:
            usual = float(np.median(self.logs[kind, : min(count, MEMORY)]))
            excess = min(max(log - usual, -CUT), CUT) - ALLOWED
            if self.sums[kind] == 0.0:
                self.rising[kind] = id
            self.sums[kind] = max(0.0, self.sums[kind] + excess)
            if self.sums[kind] > LIMIT:
                self.alarm[:] = id, min(id, int(self.rising[kind])), learnt
                self._begin_anew()
                return True
        self.logs[kind, count % MEMORY] = log
        self.counts[kind] = count + 1
        return False

    def told(self, learnt: int, for_steps: int) -> DriftAlarm | None:
        """The last alarm, for so many learning steps after it."""
        noticed, since, at = self.alarm.tolist()
        return DriftAlarm(noticed, since) if noticed and learnt - at < for_steps else None

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name."""
        return {
            "sums": self.sums, "logs": self.logs, "counts": self.counts, "rising": self.rising, "alarm": self.alarm
        }  # fmt: skip

    def _begin_anew(self) -> None:
        """Forgets what was usual before the change."""
        self.sums[:], self.logs[:], self.counts[:], self.rising[:] = 0.0, 0.0, 0, 0
