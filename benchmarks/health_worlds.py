"""Measures on the arena's worlds how true the verdicts of a learner's health are, and when it tells that the world has changed.

    python benchmarks/health_worlds.py --worlds relu30out lin30drift --seeds 1000 --runs 30

Runs are played as a live learner would play them, and their rounds given to the recorder that a learner has. Every ``EVERY``
rounds costs are compared; what they truly are is known from the worlds' mean costs. ``covered`` is the share of the 95 %
intervals that hold the true difference; a verdict is ``wrong`` if it says cheaper, dearer or no better than random and the
truth is the opposite (a learner that is a tenth cheaper than random is better). Where a world changes at half time, the delay
is that of the first alarm after it; every other alarm is false.
"""

import argparse
import contextlib
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from health_play import Played, play

from regretless.live.comparison import BackgroundSolver, CostComparison, CostReport, compare_costs
from regretless.live.health import NEGLIGIBLE_SAVING, WINDOW, HealthRecord, is_no_better_than_random
from regretless.startup import configure
from regretless.studies.arena.world import World
from regretless.studies.arena.worlds import WORLDS

EVERY = 200
_MIDDLE = {"items": 30, "k": 5, "drift": "abrupt"}

CHANGED = {
    world.name: world
    for world in (
        World("relu30drift", "own", "world_topk", {**_MIDDLE, "shape": "relu"}, horizon=2000, stationary=False),
        World("exp30drift", "own", "world_topk", {**_MIDDLE, "shape": "exp"}, horizon=2000, stationary=False),
        World(
            "out30drift", "own", "world_topk", {**_MIDDLE, "shape": "relu", "outliers": 0.005}, horizon=2000, stationary=False
        ),
        World(
            "tails30drift", "own", "world_topk", {**_MIDDLE, "shape": "relu", "noise": "student", "noise_size": 0.5},
            horizon=2000, stationary=False,
        ),
        World("late30drift", "own", "world_topk", _MIDDLE, delay=50, horizon=2000, stationary=False),
        World(
            "const100drift", "own", "world_topk", {"items": 100, "k": 10, "shape": "const", "drift": "abrupt"}, horizon=2000,
            stationary=False,
        ),
        World("assignment8drift", "own", "world_assignment", {"side": 8, "drift": "abrupt"}, horizon=2000, stationary=False),
    )
}  # fmt: skip
"""Worlds that change at half time, beside those of the arena."""


class Look(NamedTuple):
    """What health said at one moment, and the truth: the learner's mean cost, the best fixed decision's, random's."""

    at: int
    costs: CostReport
    own: float
    fixed: float
    random: float


class Run(NamedTuple):
    """One run: what was said of costs, and when an alarm was raised."""

    looks: list[Look]
    alarms: list[tuple[int, int]]  # noticed, since


def watched(played: Played, run: int, oracle: Any) -> Run:
    """Gives the rounds of a run to a recorder, in the order in which their feedback came."""
    contexts, decisions, means = (np.asarray(part[run], float) for part in played[:3])
    record = HealthRecord.empty(contexts.shape[1:], decisions.shape[1])
    instances = None if played.instances is None else played.instances[run]
    solver = BackgroundSolver(oracle, contextlib.nullcontext)
    learned: list[Any] = []
    found = Run([], [])
    for t, id in enumerate(played.id[run].tolist(), 1):
        if id:
            own = None if instances is None else instances[id - 1]
            decision: Any = SimpleNamespace(
                id=id, member=0, cost_sample=np.ones(1), context=contexts[id - 1], w=decisions[id - 1], instance=own
            )
            learned = [*learned[-WINDOW:], decision]
            info = {"residual": float(played.residual[run, t - 1]), "total": float(played.total[run, t - 1])}
            before, record = record, record.after_feedback(info, id, decision)
            if record.drift.alarm[0] != before.drift.alarm[0]:
                found.alarms.append((t, int(record.drift.alarm[1])))
        recent = record.recent_rounds(learned) if t % EVERY == 0 or t == EVERY // 2 else None
        if recent is not None:
            costs = compare_costs(*record.opening_rounds(len(recent.totals)), recent, instances is None, solver)
            last = [int(decision.id) - 1 for decision in learned[-len(recent.totals) :]]
            true, drawn = means[last], np.asarray(played.at_random[run], float)
            usual = true.mean(axis=0)
            fixed = float("nan")
            if instances is None:
                fixed = float(usual @ np.asarray(oracle.answer(usual[None], None).w[0]))
            at_random = usual @ drawn.mean(axis=0) if instances is None else np.mean(np.sum(true * drawn[last], axis=1))
            found.looks.append(
                Look(t, costs, float(np.mean(np.sum(true * decisions[last], axis=1))), fixed, float(at_random))
            )
    return found


def line(name: str, policy: str, runs: list[Run], rounds: int, change: int | None) -> str:
    """A row of the table."""
    looks = [look for run in runs for look in run.looks]
    fixed = [(look.costs.best_fixed, look.own - look.fixed) for look in looks if look.costs.best_fixed is not None]
    random = [
        (look.costs.random, look.own - look.random, look.random) for look in looks if look.costs.random is not None
    ]
    plain = [(told, true) for told, true, _ in random]
    called = [(is_no_better_than_random(told), true / abs(cost)) for told, true, cost in random]
    cells = [
        f"{name:17} {policy:9}", f"{len(runs):3d} × {rounds}",
        f"{np.mean([true for _, true in called]):+6.0%}" if called else "  none",
        f"{np.mean([said for said, _ in called]):5.0%}" if called else " none",
        f"{np.mean([said and true < -NEGLIGIBLE_SAVING for said, true in called]):5.1%}" if called else " none",
        _told(plain), _told(fixed),
    ]  # fmt: skip
    first = [next((t for t, _ in run.alarms if change is not None and t > change), None) for run in runs]
    false = sum(sum(change is None or t <= change for t, _ in run.alarms) for run in runs)
    steps = len(runs) * (rounds if change is None else change)
    cells.append(f"{false} ({5000 * false / steps:.2f})")
    if change is not None:
        late = [t - change for t in first if t is not None]
        inside = sum(delay <= 150 for delay in late)
        cells.append(
            f"{inside}/{len(runs)} (median {np.median(late) if late else float('nan'):.0f}, most {max(late, default=-1)})"
        )
    return "  ".join(cells)


def _told(pairs: list[tuple[CostComparison, float]]) -> str:
    """Shares of the verdicts cheaper and dearer, of wrong ones, and of intervals that hold the truth."""
    if not pairs:
        return f"{'none':27}"
    cheaper = np.mean([told.high < 0 for told, _ in pairs])
    dearer = np.mean([told.low > 0 for told, _ in pairs])
    wrong = np.mean([(told.high < 0 <= true) or (told.low > 0 >= true) for told, true in pairs])
    covered = np.mean([told.low <= true <= told.high for told, true in pairs])
    return f"{cheaper:4.0%} {dearer:4.0%} {wrong:5.1%}  {covered:4.0%}   "


def change_of(world: World, rounds: int) -> int | None:
    """The round after which the world is another; None: it stays."""
    kind = world.settings.get("drift", "none")
    at = {"abrupt": rounds // 2, "seasons": rounds // 8}.get(kind)
    return None if at is None else at + world.delay


HEADER = (
    "world             policy     runs        true   no better than random, wrong  than random: cheaper dearer wrong covered  "
    "than the best fixed: the same  false alarms (in 5,000 rounds)  noticed within 150"
)


def main() -> None:
    """Plays, and prints a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = {**WORLDS, **CHANGED}
    parser.add_argument("--worlds", nargs="*", default=["relu30out", "tails30", "lin30late", "lin30lost", "lin30drift"])
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=1000, help="the first of them")
    given = parser.parse_args()
    configure("auto")
    print(HEADER, flush=True)
    for name in given.worlds:
        world = every[name]
        played = play(world, given.policy, list(range(given.seeds, given.seeds + given.runs)))
        rounds = played.id.shape[1]
        runs = [watched(played, run, world.make().oracle) for run in range(given.runs)]
        print(line(name, given.policy, runs, rounds, change_of(world, rounds)), flush=True)


if __name__ == "__main__":
    main()
