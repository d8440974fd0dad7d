"""Where a policy of the arena loses, in words: what stands below the arena's tables."""

from collections.abc import Mapping, Sequence

from regretless.report.kinds import arena as kind
from regretless.show.words import number
from regretless.studies.arena.contenders import REFERENCES
from regretless.studies.arena.scores import BY_MEDIAN, REFERENCE, Score

BASES = tuple(name for name in REFERENCES if name != REFERENCE)
"""The base learners that nobody should be much worse than."""

TOLERATED = 1.3
"""Times the best of these that is not yet called a loss."""

Found = dict[str, dict[str, Score]]
"""Scores by the world's label and the policy's name."""


def losses(found: Found, policy: str) -> list[str]:
    """Where a policy is not the best, far behind the base learners, not below the best fixed decision, or above random."""
    mine = {world: each for world, each in found.items() if policy in each}
    if not mine:
        return [f"{code(policy)} was not played."]
    played = kind.names(found)
    bases = [name for name in BASES if name in played and name != policy]
    lines = [f"Where {code(policy)} loses, with its regret relative to random and that of whoever is better:", ""]
    lines.append(f"- Not the best of these policies: {_behind(mine, policy, played, 1.0)}.")
    if bases:
        words = f"- Above {TOLERATED:g} times the best of {_listed(bases)}: "
        lines.append(f"{words}{_behind(mine, policy, bases, TOLERATED)}.")
    matters = {world: each[policy] for world, each in mine.items() if each[policy].fixed_matters}
    above = [
        f"{code(world)} ({number(one.relative)}, best fixed {number((one.fixed or 0.0) / one.random)})"
        for world, one in matters.items()
        if not one.below_fixed
    ]
    lines.append(f"- Not below the best fixed decision, where that matters: {_counted(above, len(matters))}.")
    worse = [
        f"{code(world)} ({number(each[policy].relative)})" for world, each in mine.items() if each[policy].relative > 1
    ]
    return [*lines, f"- Above random: {_counted(worse, len(mine))}."]


def _behind(found: Mapping[str, Mapping[str, Score]], policy: str, others: Sequence[str], factor: float) -> str:
    """The worlds where a policy's regret is more than ``factor`` times that of the best of others."""
    told, compared = [], 0
    for world, each in found.items():
        rivals = [each[name] for name in others if name in each and name != policy]
        if rivals:
            compared += 1
            best = min(rivals, key=lambda one: one.regret)
            if each[policy].regret > factor * best.regret:
                told.append(
                    f"{code(world)} ({number(each[policy].relative)}, {code(best.policy)} {number(best.relative)})"
                )
    return _counted(told, compared)


def _counted(told: Sequence[str], of: int) -> str:
    return f"{len(told)} of {of} worlds: {', '.join(told)}" if told else f"none of {of} worlds"


def _listed(names: Sequence[str]) -> str:
    *most, last = map(code, names)
    return f"{', '.join(most)} and {last}" if most else last


def code(name: str) -> str:
    """A name as code; how a world is judged stands behind it."""
    return f"`{name.removesuffix(BY_MEDIAN)}`" + (BY_MEDIAN if name.endswith(BY_MEDIAN) else "")
