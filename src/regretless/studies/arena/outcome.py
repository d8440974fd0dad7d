"""What the arena comes to: the stored results of worlds and policies as one JSON object."""

import math
from collections.abc import Sequence
from typing import Any

from regretless.studies.arena import contenders
from regretless.studies.arena.scores import Overall, Score, label, overall, score
from regretless.studies.arena.study import REPLICATIONS, cell
from regretless.studies.arena.world import THIRTEEN, World
from regretless.studies.cells import key
from regretless.studies.store import Store
from regretless.studies.study import Scale


def outcome(worlds: Sequence[World], names: Sequence[str], scale: Scale, store: Store) -> dict[str, Any]:
    """What the store knows about these worlds and policies, as one JSON object."""
    scores: dict[str, list[Score]] = {world.name: [] for world in worlds}
    failed: dict[str, str] = {}
    for world in worlds:
        for name in names:
            address = key(cell(world, contenders.arm(name), scale))
            if not store.sound(address):
                failure = store.failure(address)
                failed[f"{world.name}, {name}"] = failure.error.strip().splitlines()[-1] if failure else "not computed"
                continue
            result = store.load(address)
            trace = result.traces[name]
            found = score(label(world), name, trace.final(), trace.diverged, result.record)
            scores[world.name] += [] if found is None else [found]
    parts = {
        "all": worlds,
        "thirteen": [world for world in worlds if world.group in THIRTEEN],
        "held_out": [world for world in worlds if world.group == "held_out"],
    }
    return {
        "worlds": [_world(world, scores[world.name]) for world in worlds],
        "overall": {
            part: [_policy(each) for each in overall(one for world in members for one in scores[world.name])]
            for part, members in parts.items()
        },
        "seeds": len(scale.seeds_or(REPLICATIONS)),
        "first_seed": scale.first_seed,
        "failed": failed,
    }


def _world(world: World, scores: Sequence[Score]) -> dict[str, Any]:
    """A world with everybody's score."""
    return {
        "world": world.name,
        "group": world.group,
        "judge": world.judge,
        "random": scores[0].random if scores else None,
        "best_fixed": scores[0].fixed if scores else None,
        "results": [
            {
                "policy": each.policy,
                "regret": each.regret,
                "standard_error": _finite(each.error),
                "relative": each.relative,
                "below_best_fixed": each.below_fixed,
                "microseconds": _finite(each.microseconds),
                "diverged": each.diverged,
            }
            for each in scores
        ],
    }


def _policy(each: Overall) -> dict[str, Any]:
    """A policy over its worlds."""
    return {
        "policy": each.policy,
        "worlds": each.worlds,
        "relative": each.relative,
        "interval": list(each.interval),
        "worst_world": each.worst,
        "worst_relative": each.worst_relative,
        "below_best_fixed": each.below_fixed,
        "of_worlds_where_it_matters": each.fixed_matters,
        "microseconds": _finite(each.microseconds),
        "ratio_to_linear_old": each.ratio,
        "ratio_interval": None if each.ratio_interval is None else list(each.ratio_interval),
    }


def _finite(value: float) -> float | None:
    """A number that JSON can write; None for any other."""
    return value if math.isfinite(value) else None
