"""Decisions that wait for their feedback, by id, and what has been learnt already: nothing is lost or counted twice."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import FeedbackError
from regretless.types import Decision


class Learnt(NamedTuple):
    """What is remembered of a decision that was learnt from: enough to recognise repeated feedback and to explain it."""

    decision: Decision
    signature: Any
    residual: Any


class Pending:
    """Keeps at most ``limit`` waiting decisions, none older than ``max_age`` decisions or ``max_seconds`` seconds (None: as old
    as they like), and the pieces of feedback that have come for them.

    The feedback of the last ``limit`` learnt decisions is remembered, to tell a repetition from a contradiction.
    """

    def __init__(self, limit: int, max_age: int | None, max_seconds: float | None = None):
        self.limit, self.max_age, self.max_seconds = limit, max_age, max_seconds
        self.waiting: OrderedDict[int, Decision] = OrderedDict()
        self.times: dict[int, float] = {}  # when they were made, by the clock; where ``max_seconds`` asks for it
        self.pieces: dict[int, np.ndarray] = {}  # values of the rows that have come so far, NaN for the others
        self.learnt: OrderedDict[int, Learnt] = OrderedDict()
        self.made = 0  # decisions so far; ids are 1, 2, …
        self.expired = 0

    def overdue(self, more: int, now: float, learnt: bool = False) -> list[int]:
        """Which decisions expire at this time when ``more`` new ones are made, new ones among them if they are too many; they
        are none of them where they are ``learnt`` at once.
        """
        made = self.made + more
        candidates = [*self.waiting, *(() if learnt else range(self.made + 1, made + 1))]
        gone = set()
        if self.max_age is not None:
            gone |= {id for id in candidates if made - id > self.max_age}
        if self.max_seconds is not None:
            gone |= {id for id in self.waiting if now - self.times[id] > self.max_seconds}
        left = [id for id in candidates if id not in gone]
        return sorted({*gone, *left[: max(len(left) - self.limit, 0)]})

    def add(self, decision: Decision, now: float) -> None:
        """Keeps a decision under the next id."""
        self.made += 1
        self.waiting[self.made] = decision
        if self.max_seconds is not None:
            self.times[self.made] = now

    def expire(self, ids: Iterable[int]) -> None:
        """Forgets decisions that have waited too long."""
        for id in ids:
            self._drop(id)
            self.expired += 1

    def require_same(self, id: int, signature: np.ndarray, piece: bool = False) -> None:
        """Raises unless this very feedback is what the learnt decision ``id`` was learnt from, or a ``piece`` of it."""
        before = self.learnt[id].signature
        same = before.shape == signature.shape
        if same and piece:  # a signature is values, then which of them were seen
            seen = np.tile(signature[len(signature) // 2 :] > 0, 2)
            before, signature = before[seen], signature[seen]
        if not same or not np.allclose(before, signature, rtol=1e-9, atol=1e-12):
            raise FeedbackError(
                f"decision {id} has been learnt from other feedback already, which cannot be undone; this one was left out "
                "(tell feedback that comes in pieces with final=False until the last)"
            )

    def get(self, id: int, gone: Iterable[int] = ()) -> Decision:
        """The waiting decision called ``id``; those ``gone`` have just expired."""
        if id in self.waiting and id not in gone:
            return self.waiting[id]
        if not 1 <= id <= self.made:
            made = f"this learner has made decisions 1 to {self.made}" if self.made else "no decision has been made yet"
            raise FeedbackError(f"unknown decision {id!r}: {made}")
        kept = f"the last {self.limit} waiting decisions are kept"
        kept += "" if self.max_age is None else f", none older than {self.max_age} decisions"
        kept += "" if self.max_seconds is None else f", none older than {self.max_seconds:g} seconds"
        raise FeedbackError(
            f"decision {id} has expired or was learnt long ago: {kept} (max_pending, max_age, max_age_seconds)"
        )

    def known(self, id: int, gone: Iterable[int] = ()) -> Decision:
        """The decision called ``id``, waiting or learnt."""
        return self.learnt[id].decision if id in self.learnt else self.get(id, gone)

    def settle(self, id: int, learnt: Learnt) -> None:
        """Marks a decision as learnt."""
        self._drop(id)
        self.remember(id, learnt)

    def remember(self, id: int, learnt: Learnt) -> None:
        """Keeps what was learnt from a decision."""
        self.learnt[id] = learnt
        while len(self.learnt) > self.limit:
            self.learnt.popitem(last=False)

    def _drop(self, id: int) -> None:
        del self.waiting[id]
        self.times.pop(id, None)
        self.pieces.pop(id, None)
