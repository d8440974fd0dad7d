"""How a live learner is doing: numbers over the last rounds, and a verdict in words."""

from typing import NamedTuple

import numpy as np

WINDOW = 400
"""Rounds that the figures are about."""

EARLY = 40
"""Learnt decisions before which nothing is said about a trend."""

NAMES = ("residual", "total", "score_norm", "plug_in_norm")


class Health(NamedTuple):
    """What ``Learner.health`` tells; None: unavailable for this policy, or not known yet."""

    decisions: int
    learnt: int
    waiting: int
    expired: int
    feedback_share: float | None  # of the decisions that are no longer waiting
    relative_residual: float | None  # root mean square residual over root mean square total, recent half of the window
    residual_trend: float | None  # the same, recent half over earlier half: below 1 the predictions get better
    score_norm: float | None
    plug_in_norm: float | None
    details: dict[str, float]  # what the policy tells of itself, such as how much say each of its learners has
    verdict: str


class Recorder:
    """A ring of the last WINDOW learning steps; what is not ``known`` of a step is kept as 0."""

    def __init__(self) -> None:
        self.steps = np.zeros((WINDOW, len(NAMES)))
        self.known = np.zeros((WINDOW, len(NAMES)), bool)
        self.learnt = 0

    def learn(self, info: dict[str, float]) -> None:
        """Notes a learning step."""
        values = np.array([info.get(name, np.nan) for name in NAMES])
        place = self.learnt % WINDOW
        self.known[place] = np.isfinite(values)
        self.steps[place] = np.where(self.known[place], values, 0.0)
        self.learnt += 1

    def report(self, decisions: int, waiting: int, expired: int, details: dict[str, float]) -> Health:
        """The figures with their verdict; ``details`` are what the policy tells of itself now."""
        steps = np.where(self.known, self.steps, np.nan)[: self.learnt]
        if self.learnt > WINDOW:
            steps = np.roll(steps, -(self.learnt % WINDOW), axis=0)
        half = len(steps) // 2
        relative = trend = None
        if half:
            early, late = (_size(part[:, 0]) / max(_size(part[:, 1]), 1e-300) for part in (steps[:half], steps[half:]))
            relative = late if np.isfinite(late) else None
            if np.isfinite(early) and np.isfinite(late) and early > 0:
                trend = late / early
        settled = decisions - waiting
        share = self.learnt / settled if settled > 0 else None
        return Health(
            decisions=decisions,
            learnt=self.learnt,
            waiting=waiting,
            expired=expired,
            feedback_share=share,
            relative_residual=relative,
            residual_trend=trend,
            score_norm=_mean(steps[:, 2]),
            plug_in_norm=_mean(steps[:, 3]),
            details=details,
            verdict=_verdict(self.learnt, share, relative, trend, details),
        )


def _verdict(
    learnt: int, share: float | None, relative: float | None, trend: float | None, details: dict[str, float]
) -> str:
    if learnt < EARLY:
        return f"too early to tell: {learnt} of the first {EARLY} decisions have been learnt from"
    said = []
    if share is not None and share < 0.5:
        said.append(f"feedback is lost: only {share:.0%} of the settled decisions were learnt from")
    if relative is None or trend is None:
        said.append("totals are not known, so that the error cannot be judged")
    elif trend > 1.25:
        said.append(f"getting worse: errors are {trend:.2f} times those before; has the world changed? (forgetting)")
    elif relative > 1.0:
        said.append(f"not predicting yet: errors are {relative:.2f} times the costs themselves")
    elif trend < 0.9:
        said.append(f"learning: errors are {trend:.2f} times those before")
    else:
        said.append(f"steady: errors are {relative:.0%} of the costs")
    return "; ".join([*said, *who_decides(details)])


def who_decides(details: dict[str, float]) -> list[str]:
    """A sentence on a policy of several learners: how much say each has, and the relative error that it has it for."""
    says = {name.removeprefix("weight_"): say for name, say in details.items() if name.startswith("weight_")}
    told = [
        f"{name} {f'{says[name]:.0%}' if says[name] > 0 else 'none'} ({details[f'error_{name}']:.2f})"
        for name in sorted(says, key=lambda name: -says[name])
    ]
    return [f"who decides, by its relative error: {', '.join(told)}"] if told else []


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
