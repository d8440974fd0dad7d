"""What a live learner knows and has done so far, changed in short steps, so that reading it never waits for a solver."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.live.arrivals import Arrival
from regretless.live.health import Health, Recorder
from regretless.live.kernel import Kernel
from regretless.live.pending import Learnt, Pending
from regretless.types import Decision


@dataclass(frozen=True)
class LearnerState:
    """Everything that a checkpoint keeps of a learner beside its configuration."""

    policy: Any  # the policy's state
    waiting: dict[int, Decision]
    learnt: dict[int, Learnt]
    last: tuple[Any, Any] | None  # the last feasible decision with its aux
    made: int
    expired: int
    steps: np.ndarray  # of the Recorder
    known: np.ndarray
    learnt_count: int


class Books:
    """The kernel, the policy's state, waiting and learnt decisions, health. ``lock`` is held for moments only.

    Whoever changes them is alone (``Turns``), so that it may read without the lock what only itself can change.
    """

    def __init__(self, kernel: Kernel, form_fixed: bool, max_pending: int, max_age: int | None):
        self.lock = threading.Lock()
        self.kernel, self.form_fixed = kernel, form_fixed
        self.state: Any = None  # until it is needed: what instances look like may be known by then
        self.pending = Pending(max_pending, max_age)
        self.recorder = Recorder()
        self.last: tuple[Any, Any] | None = None

    def keep(self, kernel: Kernel, state: Any, decisions: Sequence[tuple[Decision, bool]]) -> None:
        """Keeps decisions, each with whether it is a fallback."""
        with self.lock:
            self.kernel, self.state, self.form_fixed = kernel, state, True
            for decision, fallback in decisions:
                self.pending.add(decision)
                if not fallback:
                    self.last = (decision.w, decision.aux)

    def settle(self, id: int, arrival: Arrival, state: Any, info: dict[str, float], residual: float) -> None:
        """Notes that decision ``id`` was learnt from."""
        with self.lock:
            decision = self.pending.waiting[id]
            self.state = state
            self.pending.settle(id, Learnt(decision, arrival.signature(), np.asarray(residual)))
            self.recorder.learn(info)

    def health(self) -> Health:
        """The figures of now."""
        with self.lock:
            kernel, state = self.kernel, self.state
        details = {} if state is None else kernel.describe(state)
        with self.lock:
            pending = self.pending
            return self.recorder.report(pending.made, len(pending.waiting), pending.expired, details)

    def waiting(self) -> list[int]:
        """Ids of the waiting decisions, oldest first."""
        with self.lock:
            return list(self.pending.waiting)

    def snapshot(self) -> tuple[Kernel, bool, LearnerState]:
        """The kernel, whether the form of instances is fixed, and a copy of everything else."""
        with self.lock:
            pending, recorder = self.pending, self.recorder
            kernel, form_fixed = self.kernel, self.form_fixed
            state = LearnerState(
                self.state, dict(pending.waiting), dict(pending.learnt), self.last, pending.made, pending.expired,
                recorder.steps.copy(), recorder.known.copy(), recorder.learnt,
            )  # fmt: skip
        return kernel, form_fixed, state

    def restore(self, kernel: Kernel, form_fixed: bool, saved: LearnerState) -> None:
        """Goes on from a snapshot."""
        with self.lock:
            self.kernel, self.form_fixed = kernel, form_fixed
            self.state, self.last = saved.policy, saved.last
            self.pending.waiting.update(saved.waiting)
            self.pending.learnt.update(saved.learnt)
            self.pending.made, self.pending.expired = saved.made, saved.expired
            self.recorder.steps, self.recorder.known = saved.steps, saved.known
            self.recorder.learnt = saved.learnt_count
