"""Decisions that wait for their feedback, by id, and what has been learnt already: nothing is lost or counted twice."""

from collections import OrderedDict
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
    """Keeps at most ``limit`` waiting decisions, none older than ``max_age`` decisions (None: as old as they like).

    The feedback of the last ``limit`` learnt decisions is remembered, to tell a repetition from a contradiction.
    """

    def __init__(self, limit: int, max_age: int | None):
        self.limit, self.max_age = limit, max_age
        self.waiting: OrderedDict[int, Decision] = OrderedDict()
        self.learnt: OrderedDict[int, Learnt] = OrderedDict()
        self.made = 0  # decisions so far; ids are 1, 2, …
        self.expired = 0

    def add(self, decision: Decision) -> None:
        """Keeps a decision under the next id; the oldest ones make room."""
        self.made += 1
        self.waiting[self.made] = decision
        while len(self.waiting) > self.limit or (
            self.max_age is not None and self.made - next(iter(self.waiting)) > self.max_age
        ):
            self.waiting.popitem(last=False)
            self.expired += 1

    def require_same(self, id: int, signature: np.ndarray) -> None:
        """Raises unless this very feedback is what the learnt decision ``id`` was learnt from."""
        before = self.learnt[id].signature
        if before.shape != signature.shape or not np.allclose(before, signature, rtol=1e-9, atol=1e-12):
            raise FeedbackError(
                f"decision {id} has been learnt from other feedback already, which cannot be undone; this one was left out"
            )

    def get(self, id: int) -> Decision:
        """The waiting decision called ``id``."""
        if id in self.waiting:
            return self.waiting[id]
        if not 1 <= id <= self.made:
            made = f"this learner has made decisions 1 to {self.made}" if self.made else "no decision has been made yet"
            raise FeedbackError(f"unknown decision {id!r}: {made}")
        kept = f"the last {self.limit} waiting decisions are kept"
        kept += "" if self.max_age is None else f", none older than {self.max_age} decisions"
        raise FeedbackError(f"decision {id} has expired or was learnt long ago: {kept} (max_pending, max_age)")

    def known(self, id: int) -> Decision:
        """The decision called ``id``, waiting or learnt."""
        return self.learnt[id].decision if id in self.learnt else self.get(id)

    def settle(self, id: int, learnt: Learnt) -> None:
        """Marks a decision as learnt."""
        del self.waiting[id]
        self.learnt[id] = learnt
        while len(self.learnt) > self.limit:
            self.learnt.popitem(last=False)
