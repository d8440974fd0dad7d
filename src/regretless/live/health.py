"""Health of a live learner: what its decisions cost compared with others, prediction errors and alarms."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.comparison import MIN_LEARNED, WINDOW, BackgroundSolver, CostComparison, DriftAlarm, MeanCost
from regretless.live.records import percent, plain_data, text_card
from regretless.live.state import LearnerState, describe_lost
from regretless.policies.guard import describe_guard

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
    paid : MeanCost or None
        Mean cost of the learner's recent decisions.
    incumbent, best_fixed, random : CostComparison or None
        Comparison with the incumbent, with the best fixed decision and with random decisions.
    drift : DriftAlarm or None
        The last alarm, for 400 learning steps.
    details : dict of str to float
        Figures that the policy reports, such as the weights of its base learners.
    rewards : bool
        Whether costs are shown as rewards.
    guard : str or None
        What the guard does now and why; None without an incumbent, or if it only does its usual work.
    """

    decisions: int
    learned: int
    waiting: int
    expired: int
    feedback_share: float | None
    relative_error: float | None
    error_trend: float | None
    paid: MeanCost | None
    incumbent: CostComparison | None
    best_fixed: CostComparison | None
    random: CostComparison | None
    drift: DriftAlarm | None
    details: dict[str, float]
    rewards: bool = False
    guard: str | None = None

    @property
    def verdict(self) -> str:
        """The most important findings in one sentence, the most urgent first."""
        return "; ".join(self._statements(detailed=False))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write.

        Returns
        -------
        dict
            Numbers that are not finite are None.
        """
        return {**plain_data(vars(self)), "verdict": self.verdict}

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return every known figure in the text format of Prometheus, a gauge for each number of ``to_dict``.

        Parameters
        ----------
        labels : mapping of str to str, optional
            Labels added to every sample, such as ``{"plant": "north"}``.

        Returns
        -------
        str
            Names are those of ``to_dict``, joined by ``_``: ``regretless_incumbent_difference``.

        Raises
        ------
        SettingsError
            If a label name is not valid.
        """
        pairs = []
        for name, value in (labels or {}).items():
            if not re.fullmatch(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*", name):
                raise SettingsError(f"prometheus: expected labels named by letters, digits and _, got {name!r}")
            escaped = str(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
            pairs.append(f'{name}="{escaped}"')
        text = f"{{{','.join(pairs)}}}" if pairs else ""
        figures = _flatten("regretless", self.to_dict())
        return "".join(f"# TYPE {name} gauge\n{name}{text} {value:.17g}\n" for name, value in figures)

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
        statements += [] if self.guard is None else [self.guard]
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
            quantity = "rewards" if self.rewards else "costs"
            error = f"prediction errors are {percent(self.relative_error)} of the {quantity}"
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
    record, last = state.health, itertools.islice(reversed(state.learned.values()), WINDOW)
    decisions = [learned.decision for learned in last][::-1]
    costs = record.compare(decisions, not state.engine.problem.has_instances, solver)
    steps, settled = record.ordered_steps(), state.made - len(state.waiting)
    relative_error, trend = _relative_errors(steps)
    sign = -1.0 if rewards else 1.0
    details = {} if state.policy is None else state.engine.describe(state.policy, state.guard_waiting)
    return Health(
        decisions=state.made,
        learned=record.learned,
        waiting=len(state.waiting),
        expired=state.expired,
        feedback_share=record.learned / settled if settled > 0 else None,
        relative_error=relative_error,
        error_trend=trend,
        **{name: _with_sign(figure, sign) for name, figure in costs._asdict().items()},
        drift=record.active_alarm(),
        details=details,
        rewards=rewards,
        guard=None if state.mode == "shadow" else describe_lost(state) or describe_guard(details),
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
    known = values[np.isfinite(values)]
    return math.hypot(*known) / math.sqrt(len(known)) if len(known) else math.nan


def _flatten(prefix: str, data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of nested dictionaries by their names joined by ``_``."""
    for name, value in data.items():
        joined = f"{prefix}_{re.sub('[^a-zA-Z0-9_]', '_', name)}"
        if isinstance(value, Mapping):
            yield from _flatten(joined, value)
        elif isinstance(value, int | float):
            yield joined, value
