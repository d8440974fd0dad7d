"""Health of a live learner: what its decisions cost compared with others, prediction errors and alarms."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.comparison import (
    MIN_LEARNED,
    WINDOW,
    BackgroundSolver,
    CostComparison,
    CostReport,
    DriftAlarm,
    MeanCost,
    compare_costs,
)
from regretless.live.records import percent, text_card
from regretless.live.state import LearnerState

MIN_ROUNDS_NO_BETTER = 100
"""Rounds from which decisions can be called no better than random: before, a learner explores."""

NEGLIGIBLE_SAVING = 0.1
"""Share of the cost of random decisions up to which a saving counts as none."""

MIN_FEEDBACK_SHARE = 0.5
"""Share of settled decisions with feedback below which health says that feedback is lost."""


@dataclasses.dataclass(frozen=True, repr=False)
class Health:
    """State of a live learner, returned by ``Learner.health``; ``print`` shows it as a few lines of text.

    A figure is None if the policy does not have it or if it is too early to tell. Costs are those of rounds that the
    learner decided; where the problem maximises, all of them are rewards.

    Attributes
    ----------
    decisions, learned, waiting, expired : int
        Decisions made, learned from, waiting for feedback, and expired without feedback.
    feedback_share : float or None
        Share of the decisions no longer waiting that were learned from.
    relative_error : float or None
        Root mean square prediction error over root mean square total, in the recent half of the last 400 rounds.
    error_trend : float or None
        The same, recent half over earlier half: below 1 predictions improve.
    score_norm, plug_in_norm : float or None
        Mean norms of the two parts of the policy gradient.
    paid, paid_since_start : MeanCost or None
        Mean cost of the learner's decisions, recently and since the start.
    incumbent, best_fixed, random : CostComparison or None
        Comparison with the incumbent, with the best fixed decision and with random decisions.
    drift : DriftAlarm or None
        The last alarm, for 400 learning steps.
    details : dict of str to float
        Figures that the policy reports, such as the weights of its base learners.
    rewards : bool
        Whether costs are shown as rewards.
    """

    decisions: int
    learned: int
    waiting: int
    expired: int
    feedback_share: float | None
    relative_error: float | None
    error_trend: float | None
    score_norm: float | None
    plug_in_norm: float | None
    paid: MeanCost | None
    paid_since_start: MeanCost | None
    incumbent: CostComparison | None
    best_fixed: CostComparison | None
    random: CostComparison | None
    drift: DriftAlarm | None
    details: dict[str, float]
    rewards: bool = False

    @property
    def verdict(self) -> str:
        """The most important findings in one sentence, the most urgent first."""
        return "; ".join(self._statements(detailed=False))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write.

        Returns
        -------
        dict
            Numbers that are not finite are None.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dict(_plain_data({**fields, "verdict": self.verdict}))

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return every figure in the text format of Prometheus.

        Parameters
        ----------
        labels : mapping of str to str, optional
            Labels added to every sample, such as ``{"plant": "north"}``.

        Returns
        -------
        str

        Raises
        ------
        SettingsError
            If a label name is not valid or is used by the metrics themselves.
        """
        return _prometheus_text(self, labels or {})

    def __str__(self) -> str:
        counts = f"{self.learned:,} learned from, {self.waiting:,} waiting, {self.expired:,} expired"
        return text_card(f"Health after {self.decisions:,} decisions: {counts}", self._statements(detailed=True))

    def __repr__(self) -> str:
        return f"<Health: {self.verdict}>"

    def _statements(self, detailed: bool) -> list[str]:
        """Return the findings, the most urgent first; with ``detailed`` also what is inconclusive."""
        if self.learned < MIN_LEARNED:
            return [f"too early to tell: {self.learned} of the first {MIN_LEARNED} decisions have been learned from"]
        statements = [] if self.drift is None else [f"costs have changed since about decision {self.drift.since}"]
        if self.feedback_share is not None and self.feedback_share < MIN_FEEDBACK_SHARE:
            lost = f"only {self.feedback_share:.0%} of the settled decisions were learned from"
            statements.append(f"feedback is lost: {lost}")
        if detailed and self.paid is not None:
            statements.append(f"{'earned' if self.rewards else 'paid'} {self.paid}")
        if self.details.get("guard_chance", 1.0) <= 0.0:
            reason = "its budget does not cover the learner's risk"
            statements.append(f"the guard gives every decision to the incumbent now: {reason}")
        return [*statements, *self._comparisons(detailed), *self._predictions()]

    def _comparisons(self, detailed: bool) -> list[str]:
        names = {"incumbent": "the incumbent", "best_fixed": "the best fixed decision", "random": "random decisions"}
        others = {field: other for field in names if (other := getattr(self, field)) is not None}
        described = {field: other.describe(names[field], self.rewards) for field, other in others.items()}
        if self.random is not None and is_no_better_than_random(self.random, self.rewards):
            no_better = f"decides no better than random: {described.pop('random')}"
            return [no_better, *(described.values() if detailed else [])]
        shown = [text for field, text in described.items() if detailed or others[field].conclusive]
        if others and not shown:
            return [f"inconclusive whether decisions are better than {', '.join(names[field] for field in others)}"]
        return shown or ["too early to tell how good the decisions are"]

    def _predictions(self) -> list[str]:
        if self.relative_error is None:
            error = "totals are not known, so prediction errors are not either"
        else:
            error = (
                f"prediction errors are {percent(self.relative_error)} of the {'rewards' if self.rewards else 'costs'}"
            )
        weights = {name.removeprefix("weight_"): w for name, w in self.details.items() if name.startswith("weight_")}
        ordered = sorted(weights, key=lambda name: -weights[name])
        parts = [f"{name} {weights[name]:.0%} ({self.details[f'error_{name}']:.2f})" for name in ordered]
        return [error, f"weights of the base learners (relative errors): {', '.join(parts)}"] if parts else [error]


def is_no_better_than_random(random: CostComparison, rewards: bool = False) -> bool:
    """Return whether decisions cost more than random ones, or after enough rounds not noticeably less."""
    low, high = (-random.high, -random.low) if rewards else (random.low, random.high)
    return low > 0.0 or (
        random.rounds >= MIN_ROUNDS_NO_BETTER and high >= 0.0 and random.share(low) > -NEGLIGIBLE_SAVING
    )


def compute_health(state: LearnerState, rewards: bool, solver: BackgroundSolver) -> Health:
    """Compute a learner's health from its state."""
    record, costs = state.health, CostReport()
    last = itertools.islice(reversed(state.learned.values()), WINDOW)
    rounds = record.recent_rounds([learned.decision for learned in last][::-1])
    if rounds is not None:
        opening = record.opening_rounds(excluded=len(rounds.totals))
        costs = compare_costs(*opening, rounds, not state.engine.problem.has_instances, solver)
    steps, settled = record.ordered_steps(), state.made - len(state.waiting)
    relative_error, trend = _relative_errors(steps)
    figures = {**costs._asdict(), "paid_since_start": record.paid_since_start()}
    sign = -1.0 if rewards else 1.0
    return Health(
        decisions=state.made,
        learned=record.learned,
        waiting=len(state.waiting),
        expired=state.expired,
        feedback_share=record.learned / settled if settled > 0 else None,
        relative_error=relative_error,
        error_trend=trend,
        score_norm=_known_mean(steps[:, 2]),
        plug_in_norm=_known_mean(steps[:, 3]),
        **{name: _with_sign(figure, sign) for name, figure in figures.items()},
        drift=record.active_alarm(),
        details={} if state.policy is None else state.engine.describe(state.policy),
        rewards=rewards,
    )


def _relative_errors(steps: np.ndarray) -> tuple[float | None, float | None]:
    """Return the relative error of the later half of the steps, and its ratio to that of the earlier half."""
    half = len(steps) // 2
    if not half:
        return None, None
    early, late = (
        _root_mean_square(p[:, 0]) / max(_root_mean_square(p[:, 1]), 1e-300) for p in (steps[:half], steps[half:])
    )
    if not np.isfinite(late):
        return None, None
    return late, late / early if np.isfinite(early) and early > 0 else None


def _with_sign(figure: Any, sign: float) -> Any:
    """Return costs as rewards where the sign is −1."""
    if figure is None or sign > 0:
        return figure
    names = {"mean", "cost", "difference"} & set(figure._fields)
    negated = {name: -getattr(figure, name) for name in names}
    return figure._replace(low=-figure.high, high=-figure.low, **negated)


def _root_mean_square(values: np.ndarray) -> float:
    """Return the root mean square of the known values, without overflow."""
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan")
    top = max(float(np.max(np.abs(known))), 1e-300)
    return top * float(np.sqrt(np.mean(np.square(known / top))))


def _known_mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.mean(known)) if len(known) else None


_PREFIX = "regretless_"
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OWN_LABELS = ("bound", "who", "over", "name")
_COUNTERS = {
    "decisions": "Decisions made, recorded or taken from a history.",
    "learned": "Decisions that were learned from.",
    "expired": "Decisions whose feedback never came.",
}
_GAUGES = {
    "waiting": "Decisions that wait for feedback.",
    "feedback_share": "Share of the settled decisions that were learned from.",
    "relative_error": "Root mean square error of predicted totals over root mean square total, recently.",
    "error_trend": "The same, recent half of the rounds over the earlier half.",
    "score_norm": "Norm of the score gradient, recently.",
    "plug_in_norm": "Norm of the plug-in gradient, recently.",
}
_Sample = tuple[dict[str, str], float | None]


def _plain_data(value: Any) -> Any:
    """Return NamedTuples as dictionaries, and what is not finite as None."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain_data(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain_data(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _prometheus_text(health: Health, labels: Mapping[str, str]) -> str:
    for name in labels:
        if not _LABEL.fullmatch(name) or name.startswith("__") or name in _OWN_LABELS:
            raise SettingsError(
                "prometheus: expected labels with names of letters, digits and _, other than "
                f"{', '.join(_OWN_LABELS)}, got {name!r}"
            )
    lines = []
    for name, kind, about, samples in _metrics(health):
        known = [(sample, value) for sample, value in samples if value is not None and math.isfinite(value)]
        if known:
            lines += [f"# HELP {_PREFIX}{name} {about}", f"# TYPE {_PREFIX}{name} {kind}"]
            lines += [f"{_PREFIX}{name}{_label_text({**labels, **sample})} {value:.17g}" for sample, value in known]
    return "\n".join([*lines, ""])


def _metrics(health: Health) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    """Yield name, type and meaning of every metric, and its values by label."""

    def bounds(figures: Mapping[str, tuple[float, float, float]], label: str) -> list[_Sample]:
        names = ("mean", "low", "high")
        return [
            ({label: key, "bound": b}, v) for key, values in figures.items() for b, v in zip(names, values, strict=True)
        ]

    periods = {"recent": health.paid, "start": health.paid_since_start}
    paid = {period: mean[:3] for period, mean in periods.items() if mean is not None}
    references = {"incumbent": health.incumbent, "best_fixed": health.best_fixed, "random": health.random}
    others = {who: other for who, other in references.items() if other is not None}
    differences = {who: (other.difference, other.low, other.high) for who, other in others.items()}
    sums: list[_Sample] = [({"who": who}, other.total_difference) for who, other in others.items()]
    costs: list[_Sample] = [({"who": who}, other.cost) for who, other in others.items()]
    details: list[_Sample] = [({"name": name}, value) for name, value in health.details.items()]
    since = None if health.drift is None else float(health.drift.since)
    for name, about in _COUNTERS.items():
        yield f"{name}_total", "counter", about, [({}, getattr(health, name))]
    for name, about in _GAUGES.items():
        yield name, "gauge", about, [({}, getattr(health, name))]
    yield "paid", "gauge", "Mean cost or reward of the learner's decisions, with its interval.", bounds(paid, "over")
    yield "reference", "gauge", "Mean cost or reward of others in the same rounds.", costs
    about = "Mean of the learner's minus that of others, with its 95 % interval."
    yield "difference", "gauge", about, bounds(differences, "who")
    yield "difference_sum", "gauge", "The difference to others, summed over the learner's compared rounds.", sums
    yield "drift", "gauge", "1 while there is an alarm that costs have changed.", [({}, float(since is not None))]
    yield "drift_since", "gauge", "The decision at which costs probably changed.", [({}, since)]
    yield "detail", "gauge", "A figure that the policy reports.", details


def _label_text(labels: Mapping[str, str]) -> str:
    parts = (f'{name}="{_escape_label(str(value))}"' for name, value in labels.items())
    return f"{{{','.join(parts)}}}" if labels else ""


def _escape_label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
