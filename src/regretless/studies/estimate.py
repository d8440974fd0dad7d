"""How long a campaign will still take: a rough cost of every cell, corrected by what the finished ones took."""

import time

from regretless.studies.cells import AnyCell, TheoryCell

COMPILE_SECONDS = 7.0
MICROSECONDS = {"topk": 45.0, "shortest_path": 50.0, "pricing": 250.0, "energy": 150.0}
"""Per replication-round of a policy with a nuisance on two cores; of one without it, a tenth."""

HEAVY = {"flow": 10.0, "diffusion": 60.0}
DEAR = {"adaptive": 20.0, "ensemble": 30.0, "dfhpg_auto": 10.0}
"""Roughly times that for policies which are trained on replay; the order of cells and the time left hang on it."""

LIGHT = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1")
USUAL_HORIZON = {"energy": 395}
THEORY_SECONDS = 160.0


def cost(cell: AnyCell) -> tuple[float, float]:
    """Seconds of compiling and of running that a cell may take."""
    if isinstance(cell, TheoryCell):
        return 0.0, THEORY_SECONDS
    programs = {
        (arm.policy if arm.policy not in ("dfhpg", "dfhpg_0") else "dfhpg", arm.settings.get("surrogate"))
        for arm in cell.arms
        if arm.policy not in LIGHT[1:3]
    }
    name = cell.benchmark_name
    rounds = len(cell.seeds) * (cell.horizon or USUAL_HORIZON.get(name, 2000))
    each = MICROSECONDS.get(name, 100.0) * 1e-6 * HEAVY.get(cell.model, 1.0)
    arms = sum(0.1 if arm.policy in LIGHT else DEAR.get(str(arm.policy), 1.0) for arm in cell.arms)
    return COMPILE_SECONDS * len(programs), rounds * each * arms


class TimeLeft:
    """Seconds left, from the share of the expected cost that is done and the time it took.

    >>> estimate = TimeLeft(100.0, now=0.0)
    >>> estimate.done = 25.0
    >>> estimate.left(now=50.0)
    150.0
    """

    def __init__(self, total: float, now: float | None = None):
        self.total, self.done = total, 0.0
        self.began = time.monotonic() if now is None else now

    def left(self, now: float | None = None) -> float:
        """Seconds still to go; before anything is done, what the cost says."""
        elapsed = (time.monotonic() if now is None else now) - self.began
        remaining = max(self.total - self.done, 0.0)
        trusted = self.done / (self.done + 10.0)  # ten seconds' worth of work say little about the machine
        pace = elapsed / self.done if self.done else 1.0
        if self.done >= 0.1 * self.total:
            trusted = 1.0
        return remaining * (trusted * pace + (1.0 - trusted))
