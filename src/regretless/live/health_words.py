"""A verdict in words on a learner's health."""

from regretless.live.health_costs import Comparison, Costs
from regretless.live.health_drift import DriftAlarm

EARLY = 40
"""Learnt decisions before which nothing is said."""

ENOUGH = 100
"""Rounds after which decisions can be called no better than random: before, a learner explores."""

NEAR = 0.1
"""Share of random decisions' cost that no better than random is at most away from them."""


def verdict(
    learnt: int,
    share: float | None,
    relative: float | None,
    costs: Costs,
    drift: DriftAlarm | None,
    rewards: bool,
    details: dict[str, float],
) -> str:
    """What an engineer should know first comes first."""
    if learnt < EARLY:
        return f"too early to tell: {learnt} of the first {EARLY} decisions have been learnt from"
    said = [] if drift is None else [f"the world has changed since about decision {drift.since}"]
    if share is not None and share < 0.5:
        said.append(f"feedback is lost: only {share:.0%} of the settled decisions were learnt from")
    said += judged(costs, rewards)
    if relative is None:
        said.append("totals are not known, so that the error cannot be judged")
    else:
        said.append(f"errors are {relative:.0%} of the {'rewards' if rewards else 'costs'}")
    return "; ".join([*said, *who_decides(details)])


def judged(costs: Costs, rewards: bool) -> list[str]:
    """How good the decisions are, beside whom."""
    if costs.random is not None and no_better(costs.random):
        return ["decides no better than random"]
    others = {
        "the incumbent": costs.incumbent, "the best fixed decision": costs.best_fixed, "random": costs.random
    }  # fmt: skip
    told = [_said(name, other, rewards) for name, other in others.items() if other is not None]
    known = [words for words in told if words is not None]
    if known:
        return known
    return ["how good its decisions are cannot be told yet"]


def no_better(random: Comparison) -> bool:
    """Whether decisions are dearer than random ones, or after enough rounds may be no cheaper and are not much cheaper."""
    return random.low > 0.0 or (random.rounds >= ENOUGH and random.high >= 0.0 and random.share(random.low) > -NEAR)


def _said(name: str, other: Comparison, rewards: bool) -> str | None:
    """A difference that is sure, in per cent of the other's cost; None for any other."""
    if other.low <= 0.0 <= other.high:
        return None
    cheaper = other.difference < 0.0
    word = ("earns more" if cheaper else "earns less") if rewards else ("cheaper" if cheaper else "dearer")
    least, most = sorted(abs(other.share(end)) for end in (other.low, other.high))
    return f"{word} than {name} by {abs(other.share(other.difference)):.0%} ({least:.0%} to {most:.0%})"


def who_decides(details: dict[str, float]) -> list[str]:
    """A sentence on a policy of several learners: how much say each has, and the relative error that it has it for."""
    says = {name.removeprefix("weight_"): say for name, say in details.items() if name.startswith("weight_")}
    told = [
        f"{name} {f'{says[name]:.0%}' if says[name] > 0 else 'none'} ({details[f'error_{name}']:.2f})"
        for name in sorted(says, key=lambda name: -says[name])
    ]
    return [f"who decides, by its relative error: {', '.join(told)}"] if told else []
