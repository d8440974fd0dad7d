"""The page of a learner as data: every figure and sentence that it shows, which tests and other programs can read."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from regretless.errors import RegretlessError
from regretless.formatting import format_amount
from regretless.live.comparison import MIN_LEARNED
from regretless.live.health import Health
from regretless.live.learner import Learner
from regretless.live.records import Explanation, percent, plain_data
from regretless.serve.config import WordsTable
from regretless.serve.metrics import compilations
from regretless.serve.monitor import StoreFollower, age_now, format_age, format_signed

MAX_ROWS = 12
"""Items of a decision that the page lists."""

NARROW = "\N{NO-BREAK SPACE}"
"""Between a number and its unit."""

CONFIDENT = f"with 95{NARROW}% confidence"

RESIDUALS = 200
"""Prediction errors that the page plots."""


class LearnerView:
    """What the page knows of one learner.

    Parameters
    ----------
    name : str
        Its name in addresses.
    follower : StoreFollower
        Of its store.
    title : str
        Its name for people.
    words : WordsTable
        What things are called.
    items : sequence of str
        A name for each coordinate; empty: their numbers.
    clock : callable, default time.time
        Returns seconds.
    """

    can_pause = False

    def __init__(
        self,
        name: str,
        follower: StoreFollower,
        title: str = "",
        words: WordsTable | None = None,
        items: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ):
        self.name, self.title, self.words, self.items = name, title or name, words or WordsTable(), items
        self.monitor, self.clock = follower, clock
        self._page_lock = threading.Lock()
        self._explained: tuple[int, Explanation | None] = (0, None)
        self._drift = 0  # the decision that the last alarm was raised at

    @property
    def viewed(self) -> Learner | None:
        """The learner, if this process has it or can replay it."""
        return None

    def number(self) -> int:
        """Return a number that changes whenever the page does."""
        learner = self.viewed
        return self.monitor.update() if learner is None else learner.state.number

    def health(self) -> Health | None:
        """Return the learner's health, if it is known here."""
        return None if self.viewed is None else self.viewed.health()

    def engineering(self) -> dict[str, Any]:
        """Return what was measured of requests and solver."""
        return {}

    def incumbent_decision(self, context: Any) -> np.ndarray | None:
        """Return what the incumbent would decide, if that can be found out."""
        rollout = self.monitor.config["rollout"]
        given = None if rollout is None else rollout["incumbent"]
        return np.asarray(given, float) if isinstance(given, list) else None

    def summary(self) -> dict[str, Any]:
        """Return the state and the most important figures, for the overview."""
        with self._page_lock:
            self.monitor.update()
            health = self.health()
            tiles = self._tiles(health)
            return {"name": self.name, "title": self.title, "state": self._state(health), "tiles": [tiles[0], tiles[3]]}

    def page(self) -> dict[str, Any]:
        """Return everything that the page shows."""
        with self._page_lock:
            number = self.monitor.update()
            health = self.health()
            self._note_drift(health)
            monitor = self.monitor
            return {
                "name": self.name,
                "title": self.title,
                "number": number,
                "updated": age_now(monitor, self.clock),
                "words": {"round": self.words.round, "rounds": self.words.plural, "incumbent": self.words.incumbent},
                "can_pause": self.can_pause and monitor.has_incumbent,
                "paused": monitor.paused,
                "state": self._state(health),
                "tiles": self._tiles(health),
                "curve": self._curve(),
                "decision": self._decision(),
                "events": self._events(),
                "engineer": self._engineer(health),
            }

    # ------------------------------------------------------------------ state and tiles

    def _state(self, health: Health | None) -> dict[str, str]:
        """Return the state in one sentence, the most urgent finding first, and how serious it is."""
        monitor, words = self.monitor, self.words
        alarm = self._alarm(health)
        if alarm is not None:
            return alarm
        if monitor.mode == "shadow":
            return _level("ok", f"shadow mode: {words.incumbent} decides, the learner only proposes")
        if health is not None and health.guard is not None:
            return _level("wait", health.guard.replace("the incumbent", words.incumbent))
        if monitor.has_incumbent:
            missing = monitor.account.missing()
            if missing is not None:
                return _level("wait", f"too early to tell: {missing}")
            share = monitor.recent.count("learner") / max(len(monitor.recent), 1)
            text = f"the learner decides {_percent(share)} of the {words.plural}"
            if monitor.account.saved + monitor.account.radius < 0.0:
                return _level("look", f"{text}, and costs more than {words.incumbent}")
            return _level("ok", f"working: {text}")
        if health is not None:
            return _level("wait" if health.learned < MIN_LEARNED else "ok", health.verdict)
        return _level("ok", f"working: {monitor.learned:,} of {monitor.made:,} decisions have a cost")

    def _alarm(self, health: Health | None) -> dict[str, str] | None:
        """Return what is wrong or special now, None if nothing is."""
        monitor, latest, incumbent = self.monitor, self.monitor.latest, self.words.incumbent
        if latest is None:
            return _level("wait", "no decision has been asked for yet")
        if monitor.paused:
            return _level("paused", f"paused: {incumbent} decides")
        alarms, warnings = [], []
        if latest.fallback:
            stand_in = f"{incumbent} decides" if latest.by == "incumbent" else "the last decision is repeated"
            alarms.append(f"the solver fails: {stand_in} in its place")
        if health is not None and health.drift is not None:
            alarms.append(f"costs have changed since about decision {health.drift.since}")
        overdue = monitor.overdue(age_now(monitor, self.clock))
        if overdue.recent > max(5, 0.3 * len(monitor.recent)):
            warnings.append(f"feedback is late: {overdue.number} decisions wait longer than usual")
        elif monitor.losing:
            share = sum(monitor.settled) / len(monitor.settled)
            warnings.append(
                f"feedback is lost: {_percent(share)} of the last {len(monitor.settled)} decisions have a cost"
            )
        text = "; ".join([*alarms, *warnings])
        return _level("alarm" if alarms else "look", text) if text else None

    def _tiles(self, health: Health | None) -> list[dict[str, str]]:
        if self.monitor.has_incumbent:
            first = [self._saved_tile(), self._effect_tile(), self._budget_tile()]
        else:
            first = self._tiles_without_incumbent(health)
        return [*first, self._feedback_tile()]

    def _amount(self, value: float) -> str:
        unit = f"{NARROW}{self.words.unit}" if self.words.unit else ""
        return f"{format_signed(value)}{unit}"

    @property
    def _verb(self) -> tuple[str, str]:
        return ("Saved", "Lost") if self.monitor.sign > 0 else ("Gained", "Lost")

    def _rounds(self, count: int) -> str:
        return f"{count:,} {self.words.round if count == 1 else self.words.plural}"

    def _saved_tile(self) -> dict[str, str]:
        account = self.monitor.account
        rounds, incumbent = account.by_learner + account.by_incumbent, self.words.incumbent
        label = f"{self._verb[0]} since the start ({self._rounds(rounds)})"
        missing = account.missing()
        if missing is not None:
            return _tile("saved", label, "too early to tell", missing)
        saved, radius = account.saved, account.radius
        interval = f"95{NARROW}%: {self._amount(saved - radius)} to {self._amount(saved + radius)}"
        share = _share(-self.monitor.sign * saved, account.would)
        compared = f"compared with {incumbent}" if share is None else f"{share} compared with {incumbent}"
        level = "good" if saved > radius else "look" if saved < -radius else ""
        label = label if saved >= 0 else label.replace(self._verb[0], self._verb[1])
        return _tile("saved", label, self._amount(abs(saved) if saved < 0 else saved), f"{compared}; {interval}", level)

    def _effect_tile(self) -> dict[str, str]:
        account, plural = self.monitor.account, self.words.plural
        label, count = f"On {plural} that the learner decided", self._rounds(account.by_learner)
        missing = account.missing()
        if missing is not None:
            return _tile("effect", label, "too early to tell", missing)
        would = account.paid_by_learner + account.saved
        sign = -self.monitor.sign
        middle, low, high = (
            sign * value for value in (account.saved, account.saved + account.radius, account.saved - account.radius)
        )
        if _share(middle, would) is None:
            each = [self._amount(value / account.by_learner) for value in (middle, low, high)]
            return _tile("effect", label, f"{each[0]} each", f"95{NARROW}%: {each[1]} to {each[2]}; {count}")
        shares = [_share(value, would) for value in (middle, low, high)]
        return _tile("effect", label, str(shares[0]), f"95{NARROW}%: {shares[1]} to {shares[2]}; {count}")

    def _allowed(self, would: float, rounds: int) -> float:
        """Return what may be spent beyond the incumbent's cost."""
        budget = self.monitor.budget
        if isinstance(budget, Mapping):
            share = float(budget.get("share") or 0.0)
            amount, per = float(budget.get("amount") or 0.0), budget.get("per")
            return share * abs(would) + max(amount, amount / per * rounds if per else 0.0)
        return float(budget or 0.0) * abs(would)

    def _budget_tile(self) -> dict[str, str]:
        account, incumbent = self.monitor.account, self.words.incumbent
        budget, spent = self.monitor.budget, max(-account.saved, 0.0)
        if self.monitor.mode == "shadow":
            return _tile("budget", "Safety budget used", "none", f"shadow mode: {incumbent} decides everything")
        if isinstance(budget, Mapping) and budget.get("share") is None:
            allowed = self._allowed(account.would, account.by_learner + account.by_incumbent)
            promise = f"the guarantee: never more than {self._amount(allowed)} above {incumbent}, {CONFIDENT}"
            value, used = f"{format_amount(spent)} of {self._amount(allowed)}", spent / max(allowed, 1e-300)
        else:
            share = float(budget["share"] if isinstance(budget, Mapping) else budget)
            part = spent / max(abs(account.would), 1e-300)
            word = "above" if self.monitor.sign > 0 else "below"
            promise = f"the guarantee: never more than {_percents(share)}{NARROW}% {word} {incumbent}, {CONFIDENT}"
            value, used = f"{_percents(part)} of {_percents(share)}{NARROW}%", part / share
        return _tile("budget", "Safety budget used", value, promise, "look" if used > 0.8 else "")

    def _tiles_without_incumbent(self, health: Health | None) -> list[dict[str, str]]:
        """Return the first tiles where there is no incumbent: compared with random decisions, by a model."""
        none = _tile("budget", "Safety budget", "no guard", "no incumbent was given, so that no guard limits costs")
        label, other = f"{self._verb[0]} compared with random decisions", None if health is None else health.random
        if other is None or not other.conclusive:
            missing = "needs the problem: regretless watch STORE --problem module:problem"
            if health is not None:
                missing = f"{health.learned} decisions were learned from" if other is None else "inconclusive so far"
            return [
                _tile("saved", label, "too early to tell", missing),
                _tile("effect", "Compared with random decisions", "too early to tell", missing),
                none,
            ]
        sign = -1.0 if self.monitor.sign > 0 else 1.0
        saved = [sign * value * other.rounds for value in (other.difference, other.high, other.low)]
        low, high = sorted(saved[1:])
        window = f"estimated, the last {self._rounds(other.rounds)}"
        shares = [_share(value, other.cost) for value in (other.difference, other.low, other.high)]
        each = [
            share or self._amount(value)
            for share, value in zip(shares, (other.difference, other.low, other.high), strict=True)
        ]
        return [
            _tile(
                "saved",
                label,
                self._amount(saved[0]),
                f"{window}; 95{NARROW}%: {self._amount(low)} to {self._amount(high)}",
            ),
            _tile(
                "effect", "Compared with random decisions", each[0], f"95{NARROW}%: {each[1]} to {each[2]}; {window}"
            ),
            none,
        ]

    def _feedback_tile(self) -> dict[str, str]:
        monitor = self.monitor
        waiting, (overdue, _, oldest) = len(monitor.open), monitor.overdue(age_now(monitor, self.clock))
        label = "Rewards reported" if monitor.sign < 0 else "Costs reported"
        settled = monitor.learned + monitor.expired
        if not monitor.made:
            return _tile("feedback", label, "–", "no decision yet")
        detail = [f"{waiting:,} {'decision waits' if waiting == 1 else 'decisions wait'}"]
        if oldest is not None:
            detail[0] += f", the oldest for {format_age(oldest)}"
        detail += [f"{overdue:,} overdue"] if overdue else []
        detail += [f"{monitor.expired:,} expired"] if monitor.expired else []
        share = monitor.learned / (settled + overdue) if settled + overdue else None
        value = "–" if share is None else f"{math.floor(100.0 * share)}{NARROW}%"
        recent = sum(monitor.settled) / max(len(monitor.settled), 1)
        if share is not None and abs(recent - share) > 0.1:
            detail.insert(0, f"{_percent(recent)} of the last {len(monitor.settled)}")
        level = "look" if overdue > 0.1 * monitor.made or min(recent, share or 0.0) < 0.8 else ""
        return _tile("feedback", label, value, "; ".join(detail), level)

    # ------------------------------------------------------------------ curve, decision, events

    def _curve(self) -> dict[str, Any]:
        account, monitor = self.monitor.account, self.monitor
        unit, rounds, points = self.words.unit, 0, []
        for part in account.bins:
            rounds += part.rounds
            points.append(
                {
                    "round": rounds,
                    "saved": part.saved,
                    "limit": -self._allowed(part.would, rounds) if monitor.has_incumbent else None,
                    "learner": part.by_learner / part.rounds,
                    "other": 1.0 - (part.by_learner + part.by_incumbent) / part.rounds,
                }
            )
        in_unit = f", in {unit}" if unit else ""
        title = f"{self._verb[0]} so far{in_unit} ({self.words.incumbent}'s plan = 0)"
        return {
            "title": title,
            "known": monitor.has_incumbent,
            "points": points,
            "total": self._amount(account.saved),
            "limit": self._limit_text(),
            "width": account.width,
        }

    def _limit_text(self) -> str:
        budget = self.monitor.budget
        share = budget.get("share") if isinstance(budget, Mapping) else budget
        return "the guard's limit" if share is None else f"the guard's limit ({_percents(float(share))}{NARROW}%)"

    def _label(self, place: int) -> str:
        return self.items[place] if place < len(self.items) else str(place)

    def _explain(self, id: int) -> Explanation | None:
        """Return the explanation of a decision, worked out once."""
        if self._explained[0] != id:
            explanation = None
            if self.viewed is not None:
                try:
                    explanation = self.viewed.explain(id)
                except RegretlessError:
                    return None
            self._explained = (id, explanation)
        return self._explained[1]

    def _decision(self) -> dict[str, Any] | None:
        """Return the last decision with the reasons for it."""
        latest, monitor = self.monitor.latest, self.monitor
        if latest is None:
            return None
        context = latest.context if monitor.columns is None else monitor.columns.decode(np.asarray(latest.context))
        explanation = self._explain(latest.id)
        other = self.incumbent_decision(context)
        rows = []
        for place in np.flatnonzero(latest.w)[:MAX_ROWS].tolist():
            predicted = None if explanation is None else self._amount(float(explanation.mean[place]))
            rows.append({"item": self._label(place), "amount": _number(latest.w[place]), "predicted": predicted})
        why = self._reasons(explanation)
        if explanation is not None and other is not None and np.any(explanation.mean):
            totals = [self._amount(float(explanation.mean @ w)) for w in (latest.w, other)]
            same = np.array_equal(latest.w, other)
            rest = f"as {self.words.incumbent} would decide" if same else f"{self.words.incumbent}'s plan: {totals[1]}"
            why.append(f"predicted total {totals[0]} ({rest})")
        return {
            "id": latest.id,
            "age": format_age(age_now(monitor, self.clock) - latest.time),
            "by": {"incumbent": self.words.incumbent, "learner": "the learner"}.get(latest.by, "a person"),
            "rows": rows,
            "more": max(int(np.count_nonzero(latest.w)) - MAX_ROWS, 0),
            "integral": bool(np.all(np.isin(latest.w, (0.0, 1.0)))),
            "context": _context_rows(context),
            "why": why,
        }

    def _reasons(self, explanation: Explanation | None) -> list[str]:
        """Return why the last decision is what it is."""
        latest = self.monitor.latest
        assert latest is not None
        incumbent = self.words.incumbent
        if latest.fallback:
            return ["the solver gave no answer in time, so that this decision stands in"]
        if latest.by == "person":
            return ["a person decided; its cost is learned like any other"]
        if latest.by == "incumbent" and latest.chance < 1.0:
            return [f"this {self.words.round} fell to {incumbent} by lot, with probability {_percent(latest.chance)}"]
        if latest.by == "incumbent":
            reason = "paused" if self.monitor.paused else "shadow mode" if self.monitor.mode == "shadow" else ""
            return [f"{incumbent} decided: {reason or 'the safety budget does not cover the risk yet'}"]
        if explanation is None:
            return ["the learner explored" if latest.explored else "the best for the predicted costs"]
        if not explanation.differs:
            return ["the best for the predicted costs; not an experiment"]
        gap = self._amount(abs(explanation.gap))
        return [f"an experiment: {explanation.differs} items differ from the best for the predicted costs, {gap} apart"]

    def _events(self) -> list[dict[str, Any]]:
        now = age_now(self.monitor, self.clock)
        shown = [
            {**event, "text": self._event_text(event), "age": f"{format_age(now - event['time'])} ago"}
            for event in reversed(self.monitor.events)
        ][:30]
        return shown

    def _note_drift(self, health: Health | None) -> None:
        """Keep an alarm among the events."""
        drift = None if health is None else health.drift
        if drift is not None and drift.noticed != self._drift:
            self._drift = drift.noticed
            text = f"costs have changed since about decision {drift.since}, noticed at {drift.noticed}"
            self.monitor.note("drift", text)

    def _event_text(self, event: Mapping[str, Any]) -> str:
        text = {"pause": f"paused: {self.words.incumbent} decides", "resume": "resumed: the learner decides again"}
        count = f" (and {event['count'] - 1} more)" if event["count"] > 1 else ""
        return text.get(event["kind"], event["text"]) + count

    # ------------------------------------------------------------------ engineer's tab

    def _engineer(self, health: Health | None) -> dict[str, Any]:
        """Return residuals, weights, times and the names of metrics."""
        learner, monitor = self.viewed, self.monitor
        residuals: list[Any] = []
        if learner is not None:
            last = list(learner.state.learned.items())[-RESIDUALS:]
            residuals = [[id, self.monitor.sign * float(item.residual)] for id, item in last]
            residuals = [pair for pair in residuals if math.isfinite(pair[1])]
        details = {} if health is None else {name: format_amount(value) for name, value in health.details.items()}
        weights = (
            []
            if health is None
            else [
                [name.removeprefix("weight_"), value]
                for name, value in health.details.items()
                if name.startswith("weight_")
            ]
        )
        figures = {
            "records": f"{monitor.number:,}",
            "decisions": f"{monitor.made:,}",
            "decisions by a person": f"{monitor.persons:,}",
            "answers in place of the solver": f"{monitor.fallbacks:,}",
            "policy": str(monitor.config["policy"].get("name", monitor.config["policy"].get("object"))),
            "programs compiled": f"{compilations.count:,} in {compilations.seconds:.1f} s",
            **self.engineering(),
        }
        names = (
            []
            if health is None
            else [line.split()[2] for line in health.prometheus().splitlines() if line.startswith("# TYPE")]
        )
        return plain_data(
            {
                "verdict": "unknown without the problem" if health is None else health.verdict,
                "residuals": residuals,
                "weights": weights,
                "figures": figures,
                "details": details,
                "metrics": names,
            }
        )


class ReplayedView(LearnerView):
    """The page of a store that another process writes; with the problem, the learner is replayed now and then.

    Parameters
    ----------
    open_learner : callable, optional
        Returns the learner of the store, read-only.
    **options
        Those of ``LearnerView``.
    """

    MIN_SECONDS = 2.0

    def __init__(self, *arguments: Any, open_learner: Callable[[], Learner] | None = None, **options: Any):
        super().__init__(*arguments, **options)
        self._open, self._opened = open_learner, -math.inf
        self._learner: Learner | None = None
        self._known: tuple[int, Health | None] = (-1, None)

    @property
    def viewed(self) -> Learner | None:
        if self._open is not None and time.monotonic() - self._opened > self.MIN_SECONDS:
            if self._learner is None or self._learner.state.number != self.monitor.number:
                self._learner = self._open()
            self._opened = time.monotonic()
        return self._learner

    def number(self) -> int:
        return self.monitor.update()

    def health(self) -> Health | None:
        learner = self.viewed
        if learner is not None and self._known[0] != learner.state.number:
            self._known = (learner.state.number, learner.health())
        return self._known[1]


class LiveView(ReplayedView):
    """The page of a learner of this process.

    Parameters
    ----------
    learner : Learner
        With a store.
    **options
        Those of ``LearnerView``.
    """

    def __init__(self, *arguments: Any, learner: Learner, **options: Any):
        super().__init__(*arguments, **options)
        self._learner = learner


def _level(level: str, sentence: str) -> dict[str, str]:
    return {"level": level, "sentence": sentence}


def _tile(id: str, label: str, value: str, detail: str, level: str = "") -> dict[str, str]:
    return {"id": id, "label": label, "value": value, "detail": detail, "level": level}


def _share(value: float, base: float) -> str | None:
    """Return a signed share in per cent; None where the base is too small or of the other sign."""
    if base <= 0.0 or abs(value) > 10.0 * base:
        return None
    share = value / base
    text = f"{share:+.1%}" if abs(share) < 0.095 else f"{share:+.0%}"
    return text.replace("-", "−").replace("%", f"{NARROW}%")


def _percent(share: float) -> str:
    return percent(share).replace("%", f"{NARROW}%")


def _percents(share: float) -> str:
    """Return a share in per cent without the sign: 5, 0.4."""
    return f"{100.0 * share:.2g}"


def _number(value: Any) -> str:
    return format_amount(float(value))


def _context_rows(context: Any) -> list[list[str]]:
    """Return a context as names and values."""
    if isinstance(context, dict):
        return [[str(name), _text(value)] for name, value in context.items()][:20]
    array = np.asarray(context, dtype=object)
    if array.ndim != 1 or len(array) > 20:
        return [["context", " × ".join(map(str, array.shape)) + " numbers"]]
    return [[f"context {i}", _text(value)] for i, value in enumerate(array.tolist())]


def _text(value: Any) -> str:
    return format_amount(value) if isinstance(value, float) else "missing" if value is None else str(value)
