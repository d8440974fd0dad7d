"""What the page shows of a learner: figures folded from the records of its store, one after the other.

Nothing here needs the learner itself, so that the page of a store that another process writes shows the same. What the
incumbent would have paid in the learner's rounds is estimated as the guard does it: a forecast from the context, with
the forecast's errors in the incumbent's own rounds weighted by the probability with which it decided. For rounds in
which the incumbent decides with probability ``p``, cost ``y``, forecast ``m``:

    saved = Σ over the learner's rounds of (m − y) + Σ over the incumbent's of (y − m) (1 − p) / p

is unbiased for any forecast that does not know the round; its variance is estimated by ``Σ ((y − m) / p)² (1 − p)``.
"""

import collections
import contextlib
import math
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.columns import Columns
from regretless.formatting import format_amount
from regretless.live.store import Record, RecordStore
from regretless.stats.confidence import NORMAL_QUANTILE

MAX_BINS = 400
"""Points of the savings curve; when there are more rounds, neighbours are joined."""

MAX_FEATURES = 64
"""Features of a context beyond which the forecast is the incumbent's mean cost."""

MEMORY = 200.0
"""Outcomes that the forecast remembers."""

MIN_LEARNER_ROUNDS, MIN_COMPARED = 20, 5
"""Outcomes of the learner, and of the incumbent in rounds that could have been the learner's, before a saving is shown;
the second only if the incumbent had such rounds."""

EVENTS = 200
"""Events that are kept."""

RECENT_ROUNDS = 100
"""Last rounds that "decides 83 % of the days" is about."""


class OpenDecision(NamedTuple):
    """What is remembered of a decision that waits for feedback."""

    time: float
    by: str
    features: np.ndarray
    chance: float  # with which the incumbent decided, if it did
    fallback: bool = False


class LatestDecision(NamedTuple):
    """The last decision."""

    id: int
    time: float
    by: str
    w: np.ndarray
    context: np.ndarray
    fallback: bool
    explored: bool
    chance: float


class Overdue(NamedTuple):
    """Decisions that wait for feedback longer than usual: all, those among the last, and the age of the oldest."""

    number: int
    recent: int
    oldest: float | None


class Bin(NamedTuple):
    """A part of the curve: its rounds, and sums at its end."""

    rounds: int
    by_learner: int
    by_incumbent: int
    saved: float
    would: float


class RunningForecast:
    """Forecast the incumbent's cost from the context by least squares with fading memory."""

    def __init__(self) -> None:
        self.weight, self.level, self.error = 0.0, 0.0, 0.0
        self.centre = self.products = self.slopes = None  # type: Any

    def predict(self, x: np.ndarray) -> float:
        """Return the expected cost."""
        if self.products is None or self.weight < 3.0:
            return self.level
        ridge = 3.0 / self.weight * np.diag(self.products) + 1e-12 * (1.0 + np.trace(self.products))
        slopes = np.linalg.solve(self.products + np.diag(ridge), self.slopes)
        return float(self.level + slopes @ (x - self.centre))

    def learn(self, x: np.ndarray, cost: float) -> None:
        """Learn from an outcome of the incumbent."""
        if self.centre is None:
            self.centre = np.zeros(len(x))
            self.products, self.slopes = np.zeros((len(x), len(x))), np.zeros(len(x))
        error = cost - self.predict(x)
        self.weight = min(self.weight + 1.0, MEMORY)
        rate = 1.0 / self.weight
        self.error += rate * (error * error - self.error)
        shift, difference = x - self.centre, cost - self.level
        self.centre = self.centre + rate * shift
        self.level += rate * difference
        kept = 1.0 - rate
        self.products = kept * (self.products + rate * np.outer(shift, shift))
        self.slopes = kept * (self.slopes + rate * shift * difference)


class Account:
    """What the learner saved compared with the incumbent."""

    def __init__(self) -> None:
        self.forecast = RunningForecast()
        self.saved = self.variance = self.paid = self.paid_by_learner = 0.0
        self.by_learner = self.by_incumbent = self.by_person = self.compared = 0
        self.bins: list[Bin] = []
        self.width = 1

    @property
    def would(self) -> float:
        """What the incumbent would have paid in all rounds."""
        return self.paid + self.saved

    @property
    def radius(self) -> float:
        """Half of the 95 % interval of what was saved."""
        least = self.by_learner * self.forecast.error
        return NORMAL_QUANTILE * math.sqrt(max(self.variance, least))

    def missing(self) -> str | None:
        """Return why it is too early to tell, None if it is not."""
        if self.by_learner < MIN_LEARNER_ROUNDS:
            return f"{self.by_learner} of the first {MIN_LEARNER_ROUNDS} costs of the learner's decisions are known"
        if self.compared < MIN_COMPARED:
            return f"{self.compared} of the first {MIN_COMPARED} costs to compare with are known"
        return None

    def add(self, decision: OpenDecision, cost: float) -> None:
        """Add an outcome."""
        expected, known = self.forecast.predict(decision.features), self.forecast.weight > 0.0
        learner = incumbent = 0
        if decision.by == "incumbent":
            incumbent = 1
            if known and decision.chance < 1.0:
                weight = (1.0 - decision.chance) / decision.chance
                self.saved += (cost - expected) * weight
                self.variance += ((cost - expected) / decision.chance) ** 2 * (1.0 - decision.chance)
                self.compared += 1
            self.forecast.learn(decision.features, cost)
        elif decision.by == "learner" and known:
            learner = 1
            self.saved += expected - cost
            self.paid_by_learner += cost
        else:
            self.by_person += 1
        self.by_learner += learner
        self.by_incumbent += incumbent
        self.paid += cost if learner or incumbent else 0.0
        stood_in = learner if decision.fallback else 0
        self._extend(learner - stood_in, incumbent + stood_in)

    def _extend(self, learner: int, incumbent: int) -> None:
        last = self.bins[-1] if self.bins else None
        if last is not None and last.rounds < self.width:
            grown = (last.rounds + 1, last.by_learner + learner, last.by_incumbent + incumbent)
            self.bins[-1] = Bin(*grown, self.saved, self.would)
        else:
            self.bins.append(Bin(1, learner, incumbent, self.saved, self.would))
        if len(self.bins) > MAX_BINS:
            self.width *= 2
            pairs = zip(self.bins[::2], [*self.bins[1::2], None], strict=False)
            self.bins = [first if second is None else _joined(first, second) for first, second in pairs]


def _joined(first: Bin, second: Bin) -> Bin:
    rounds, learner, incumbent = (first[i] + second[i] for i in range(3))
    return Bin(int(rounds), int(learner), int(incumbent), second.saved, second.would)


class StoreFollower:
    """Follow a store and keep what the page shows.

    Parameters
    ----------
    path : Path
        The store; its learner may be running, here or in another process.
    """

    def __init__(self, path: Path):
        self.path, self.account = path, Account()
        self.open: dict[int, OpenDecision] = {}
        self.events: collections.deque[dict[str, Any]] = collections.deque(maxlen=EVENTS)
        self.recent: collections.deque[str] = collections.deque(maxlen=RECENT_ROUNDS)
        self.settled: collections.deque[int] = collections.deque(maxlen=RECENT_ROUNDS)  # 1 with feedback, 0 without
        self.losing = False
        self.delays: collections.deque[float] = collections.deque(maxlen=200)
        self.latest: LatestDecision | None = None
        self.made = self.learned = self.expired = self.fallbacks = self.persons = 0
        self.paused, self.time = False, 0.0
        self._lock = threading.Lock()
        with contextlib.closing(RecordStore.open_reader(path)) as store:
            first = store.first_snapshot()
            self.number, self._chain = first.number, first.chain
        self.config: dict[str, Any] = first.data["config"]
        problem = self.config["problem"]
        self.sign = -1.0 if problem["sense"] == "max" else 1.0
        self.columns = None if problem["columns"] is None else Columns(**problem["columns"])
        rollout = self.config["rollout"]
        self.has_incumbent = rollout is not None
        self.budget: Any = rollout and rollout["budget"]
        self.mode = "act" if rollout is None else rollout["mode"]
        self.begins_at = first.number

    def update(self) -> int:
        """Read the records that are new; return the number of the last one."""
        with self._lock, contextlib.closing(RecordStore.open_reader(self.path)) as store:
            last, chain = store.last()
            if last > self.number:
                for record in store.records(self.number, self._chain, last):
                    self._read(record)
                self.number, self._chain = last, chain
        return self.number

    def _read(self, record: Record) -> None:
        data, arrays = record.data, record.arrays
        self.time = float(data.get("time", self.time))
        if record.kind in ("decide", "record"):
            self._read_decisions(data, arrays)
        elif record.kind == "feedback":
            self._read_feedback(data)
        elif record.kind == "history":
            self.made += len(data["rows"])
            self.note("history", f"{len(data['rows'])} earlier rounds were learned from")
        elif record.kind == "pause":
            self.paused = bool(data["paused"])
            self.note("pause" if self.paused else "resume", "paused" if self.paused else "resumed")
        elif record.kind == "settings":
            changed = data["settings"]
            self.budget, self.mode = changed.get("budget", self.budget), changed.get("mode", self.mode)
            self.note("settings", "settings: " + ", ".join(f"{name} = {value}" for name, value in changed.items()))
        expired = [id for id in data.get("expired", ()) if self.open.pop(id, None) is not None]
        self.expired += len(expired)
        self.settled.extend([0] * len(expired))
        if len(self.settled) == RECENT_ROUNDS and (lost := sum(self.settled) < 0.5 * RECENT_ROUNDS) != self.losing:
            self.losing = lost
            self.note(
                "expired" if lost else "recovered", "feedback is being lost" if lost else "feedback arrives again"
            )

    def _read_decisions(self, data: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        rows = zip(*(arrays[f"decision.{name}"] for name in ("id", "context", "w", "log_density")), strict=True)
        for (by, _, fallback, explored, _), (number, context, w, log_density) in zip(data["made"], rows, strict=True):
            id, chance = int(number), 1.0
            if by == "incumbent" and not fallback:
                chance = min(math.exp(float(log_density)), 1.0) if log_density == log_density else 1.0
            features = context if context.ndim == 1 else context.mean(axis=0)
            counted = "learner" if fallback and by == "incumbent" else by  # the round was the learner's
            kept = features if len(features) <= MAX_FEATURES else features[:0]
            self.open[id] = OpenDecision(self.time, counted, kept, chance, bool(fallback))
            self.latest = LatestDecision(id, self.time, by, w, context, bool(fallback), bool(explored), chance)
            self.recent.append(by)
            self.made += 1
            if fallback:
                self.fallbacks += 1
                self.note("solver", f"the solver failed for decision {id}")
            if by == "person":
                self.persons += 1
                self.note("person", f"a person made decision {id}")

    def _read_feedback(self, data: dict[str, Any]) -> None:
        self.learned += 1
        self.settled.append(1)
        decision = self.open.pop(data["id"], None)
        if decision is None:
            return
        if data.get("time") is not None:
            self.delays.append(max(self.time - decision.time, 0.0))
        if data["total"] is not None:
            self.account.add(decision, float(data["total"]))

    def note(self, kind: str, text: str) -> None:
        """Add an event; one like the last is counted with it.

        Parameters
        ----------
        kind : str
            What kind it is of.
        text : str
            What happened.
        """
        last = self.events[-1] if self.events else None
        if last is not None and last["kind"] == kind and kind in ("solver", "person"):
            self.events[-1] = {**last, "text": text, "count": last["count"] + 1, "time": self.time}
        else:
            self.events.append({"time": self.time, "kind": kind, "text": text, "count": 1})

    def overdue(self, now: float) -> Overdue:
        """Return which decisions wait longer than usual."""
        if not self.open:
            return Overdue(0, 0, None)
        ages = {id: now - decision.time for id, decision in self.open.items()}
        usual = math.inf if len(self.delays) < 20 else 3.0 * float(np.quantile(self.delays, 0.95)) + 1.0
        late = [id for id, age in ages.items() if age > usual]
        return Overdue(len(late), sum(id > self.made - RECENT_ROUNDS for id in late), max(ages.values()))


def format_age(seconds: float) -> str:
    """Return a length of time in words.

    >>> [format_age(seconds) for seconds in (4.0, 200.0, 9000.0, 4e5)]
    ['4 s', '3 min', '2.5 hours', '4.63 days']
    """
    for size, unit in ((86_400.0, "days"), (3600.0, "hours")):
        if seconds >= 2.0 * size:
            return f"{format_amount(seconds / size)} {unit}"
    return f"{seconds / 60.0:.0f} min" if seconds >= 120.0 else f"{max(seconds, 0.0):.0f} s"


def format_signed(value: float) -> str:
    """Return an amount with a true minus sign.

    >>> format_signed(-1234.5), format_signed(0.25)
    ('−1,234', '0.25')
    """
    return format_amount(value).replace("-", "−")


def age_now(monitor: StoreFollower, clock: Any = time.time) -> float:
    """Return the present by the store's clock: a demonstration's clock may differ from the machine's."""
    return max(float(clock()), monitor.time)
