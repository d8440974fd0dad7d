"""How a live learner is doing: what its decisions cost beside others, how well it predicts, and a verdict in words."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.live import health_export
from regretless.live.health_costs import RECENT, Comparison, Costs, Estimate, Seen, Solver, compared
from regretless.live.health_drift import DriftAlarm
from regretless.live.health_model import Rounds
from regretless.live.health_record import LARGEST, WINDOW, Recorder, kind_of
from regretless.live.health_words import EARLY, verdict
from regretless.live.pending import Learnt


class Health(NamedTuple):
    """What ``Learner.health`` tells; None: unavailable for this policy, or not known yet.

    Costs are those of decisions that the learner made, in its last rounds; of rewards everything is told as rewards.
    """

    decisions: int
    learnt: int
    waiting: int
    expired: int
    feedback_share: float | None  # of the decisions that are no longer waiting
    relative_residual: float | None  # root mean square residual over root mean square total, recent half of the window
    residual_trend: float | None  # the same, recent half over earlier half: below 1 the predictions get better
    score_norm: float | None
    plug_in_norm: float | None
    paid: Estimate | None
    paid_since_start: Estimate | None
    incumbent: Comparison | None
    best_fixed: Comparison | None
    random: Comparison | None
    drift: DriftAlarm | None  # for WINDOW learning steps after an alarm
    details: dict[str, float]  # what the policy tells of itself, such as how much say each of its learners has
    verdict: str

    def _repr_html_(self) -> str:
        from regretless.live.cards import health_card

        return health_card(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON can write."""
        return dict(health_export.plain(self))

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Every figure in Prometheus's text format; ``labels`` are added to each of them, such as ``{"plant": "north"}``."""
        return health_export.prometheus(self, labels or {})


def report(
    recorder: Recorder, counts: tuple[int, int, int], costs: Costs, rewards: bool, details: dict[str, float]
) -> Health:
    """The figures with their verdict; ``counts``: decisions made, waiting, expired; ``costs`` are costs also of rewards."""
    made, waiting, expired = counts
    steps = recorder.ordered()
    relative, trend = _errors(steps)
    settled = made - waiting
    share = recorder.learnt / settled if settled > 0 else None
    drift = recorder.watch.told(recorder.learnt, WINDOW)
    sign = -1.0 if rewards else 1.0
    others = {name: _signed(getattr(costs, name), sign) for name in ("incumbent", "best_fixed", "random")}
    return Health(
        decisions=made,
        learnt=recorder.learnt,
        waiting=waiting,
        expired=expired,
        feedback_share=share,
        relative_residual=relative,
        residual_trend=trend,
        score_norm=_mean(steps[:, 2]),
        plug_in_norm=_mean(steps[:, 3]),
        paid=_signed(costs.paid, sign),
        paid_since_start=_signed(recorder.paid_since_start(), sign),
        **others,
        drift=drift,
        details=details,
        verdict=verdict(recorder.learnt, share, relative, costs, drift, rewards, details),
    )


def recent(recorder: Recorder, learnt: Sequence[Learnt]) -> Seen | None:
    """The last rounds of this world whose totals are known; ``learnt`` ends with the last learning step. None: too few."""
    totals = recorder.ordered()[:, 1]
    count = min(len(learnt), len(totals), recorder.learnt - int(recorder.world[0]))
    if recorder.learnt < EARLY or not count or recorder.dim > LARGEST:
        return None
    pairs = zip(learnt[len(learnt) - count :], totals[len(totals) - count :], strict=True)
    known = [(own.decision, total) for own, total in pairs if np.isfinite(total)]
    if not known:
        return None
    kinds, paid = np.array([kind_of(decision) for decision, _ in known]), np.array([total for _, total in known])
    last = [decision for decision, _ in known[-RECENT:]]
    contexts, w = (np.stack([np.asarray(getattr(each, name), float) for each in last]) for name in ("context", "w"))
    return Seen(contexts, w, paid[-RECENT:], kinds[-RECENT:], [each.instance for each in last], (paid, kinds))


def judged(opening: Rounds, totals: np.ndarray, seen: Seen | None, fixed_set: bool, solve: Solver) -> Costs:
    """Costs beside those of others, as far as they can be told."""
    if seen is None:
        return Costs()
    with np.errstate(all="ignore"):
        try:
            return compared(opening, totals, seen, fixed_set, solve)
        except np.linalg.LinAlgError:  # numbers too large or too much alike
            return Costs()


def _errors(steps: np.ndarray) -> tuple[float | None, float | None]:
    """Relative error of the later half of the steps, and over that of the earlier half."""
    half = len(steps) // 2
    if not half:
        return None, None
    early, late = (_size(part[:, 0]) / max(_size(part[:, 1]), 1e-300) for part in (steps[:half], steps[half:]))
    relative = late if np.isfinite(late) else None
    return relative, late / early if np.isfinite(early) and np.isfinite(late) and early > 0 else None


def _signed(told: Any, sign: float) -> Any:
    """Costs as rewards, where these are meant."""
    if told is None or sign > 0:
        return told
    low, high = -told.high, -told.low
    if isinstance(told, Estimate):
        return told._replace(mean=-told.mean, low=low, high=high)
    return told._replace(cost=-told.cost, difference=-told.difference, low=low, high=high)


def _size(values: np.ndarray) -> float:
    """Root mean square of what is known, without overflow."""
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan")
    top = max(float(np.max(np.abs(known))), 1e-300)
    return top * float(np.sqrt(np.mean(np.square(known / top))))


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.mean(known)) if len(known) else None
