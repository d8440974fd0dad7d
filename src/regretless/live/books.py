"""What a live learner knows and has done so far, changed in short steps, so that reading it never waits for a solver."""

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.live.arrivals import Arrival
from regretless.live.comparison import BackgroundSolver
from regretless.live.framing import Position
from regretless.live.health import WINDOW, Health, HealthRecord, HealthSnapshot, compute_health
from regretless.live.kernel import Kernel
from regretless.live.pending import Learnt, Pending
from regretless.live.process import Turns
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
    health: HealthRecord
    times: dict[int, float]
    pieces: dict[int, np.ndarray]
    position: Position | None  # in the log
    paused: bool = False


class Books:
    """The kernel, the policy's state, waiting and learnt decisions, health. ``lock`` is held for moments only.

    Whoever changes them is alone (``Turns``), so that it may read without the lock what only itself can change. Every change
    comes with the place of its record in the log, None where there is no log, and with the decisions that expire at it.
    """

    def __init__(
        self, kernel: Kernel, form_fixed: bool, max_pending: int, max_age: int | None, max_seconds: float | None = None,
        sign: float = 1.0,
    ):  # fmt: skip
        self.lock = threading.Lock()
        self.kernel, self.form_fixed = kernel, form_fixed
        self.state: Any = None  # until it is needed: what instances look like may be known by then
        self.pending = Pending(max_pending, max_age, max_seconds)
        self.sign = sign  # -1 where the user speaks of rewards
        self.health_record = HealthRecord.empty(kernel.problem.context_shape, kernel.problem.dim)
        self.turns = Turns()
        self.background_solver = BackgroundSolver(kernel.oracle, self.turns.if_free)
        self.last: tuple[Any, Any] | None = None
        self.position: Position | None = None
        self.paused = False  # whether the incumbent has every decision

    def keep(
        self, kernel: Kernel, state: Any, decisions: Sequence[tuple[Decision, bool]], now: float,
        expired: Sequence[int], position: Position | None,
    ) -> None:  # fmt: skip
        """Keeps decisions, each with whether it is one that the solver did not make."""
        with self.lock:
            self.kernel, self.state, self.form_fixed, self.position = kernel, state, True, position
            for decision, _ in decisions:
                self.pending.add(decision, now)
            own = [decision for decision, foreign in decisions if not foreign]
            if own:
                self.last = (own[-1].w, own[-1].aux)
            self.pending.expire(expired)

    def hold(self, id: int, values: np.ndarray, expired: Sequence[int], position: Position | None) -> None:
        """Keeps what has come so far of the feedback on decision ``id``."""
        with self.lock:
            self.position = position
            self.pending.pieces[id] = values
            self.pending.expire(expired)

    def settle(
        self, id: int, arrival: Arrival, state: Any, info: dict[str, float], expired: Sequence[int],
        position: Position | None,
    ) -> None:  # fmt: skip
        """Notes that decision ``id`` was learnt from."""
        with self.lock:
            decision = self.pending.waiting[id]
            self.state, self.position = state, position
            self.pending.settle(id, Learnt(decision, arrival.signature(), np.asarray(info["residual"])))
            self.pending.expire(expired)
            self.health_record = self.health_record.after_feedback(info, id, decision)

    def take_in(
        self, kernel: Kernel, state: Any, learnt: Sequence[Learnt], infos: Sequence[dict[str, float]],
        expired: Sequence[int], position: Position | None,
    ) -> None:  # fmt: skip
        """Notes decisions that were made elsewhere and learnt, under the next ids; the last of them are remembered."""
        with self.lock:
            self.kernel, self.state, self.form_fixed, self.position = kernel, state, True, position
            self.pending.made += len(infos)
            for id, own in enumerate(learnt, self.pending.made - len(learnt) + 1):
                self.pending.remember(id, own)
            first, forgotten = self.pending.made - len(infos) + 1, len(infos) - len(learnt)
            for place, info in enumerate(infos):
                decision = None if place < forgotten else learnt[place - forgotten].decision
                self.health_record = self.health_record.after_feedback(info, first + place, decision)
            self.pending.expire(expired)

    def change(self, kernel: Kernel, position: Position | None) -> None:
        """Goes on with a kernel of other numbers."""
        with self.lock:
            self.kernel, self.position = kernel, position

    def pause(self, paused: bool, position: Position | None) -> None:
        """Hands every decision to the incumbent, or back."""
        with self.lock:
            self.paused, self.position = paused, position

    def health(self) -> Health:
        """The figures of now."""
        with self.lock:
            kernel, state = self.kernel, self.state
        details = {} if state is None else kernel.describe(state)
        with self.lock:
            record, pending = self.health_record, self.pending
            recent = [learnt.decision for learnt in itertools.islice(reversed(pending.learnt.values()), WINDOW)][::-1]
            counts = (pending.made, len(pending.waiting), pending.expired)
        snapshot = HealthSnapshot(*counts, recent, details, self.sign < 0, not kernel.problem.has_instances)
        return compute_health(record, snapshot, self.background_solver)

    def waiting(self) -> list[int]:
        """Ids of the waiting decisions, oldest first."""
        with self.lock:
            return list(self.pending.waiting)

    def snapshot(self) -> tuple[Kernel, bool, LearnerState]:
        """The kernel, whether the form of instances is fixed, and a copy of everything else."""
        with self.lock:
            pending = self.pending
            kernel, form_fixed = self.kernel, self.form_fixed
            state = LearnerState(
                self.state, dict(pending.waiting), dict(pending.learnt), self.last, pending.made, pending.expired,
                self.health_record, dict(pending.times),
                dict(pending.pieces), self.position, self.paused,
            )  # fmt: skip
        return kernel, form_fixed, state

    def restore(self, kernel: Kernel, form_fixed: bool, saved: LearnerState) -> None:
        """Goes on from a snapshot."""
        with self.lock:
            self.kernel, self.form_fixed = kernel, form_fixed
            self.state, self.last, self.position = saved.policy, saved.last, saved.position
            self.pending.waiting.update(saved.waiting)
            self.pending.learnt.update(saved.learnt)
            self.pending.times.update(saved.times)
            self.pending.pieces.update(saved.pieces)
            self.pending.made, self.pending.expired = saved.made, saved.expired
            self.health_record = saved.health
            self.paused = saved.paused
