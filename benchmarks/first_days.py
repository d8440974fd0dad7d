"""Play the first thousand days of a live learner that takes over from a person, with and without guard and history.

    python benchmarks/first_days.py --seeds 5

The arena's 12 × 12 assignment, totals only, a day late, a tenth lost. The person decides the same every day: the
assignment that is best under a fixed misjudgement of the mean costs, set so that it costs 1.15 times the best fixed
decision. 600 of these days are the history. All costs are the world's mean costs, as shares of what the person would
have paid on the same days.
"""

import argparse
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless.experiments.arena import WORLDS
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.live.options import Rollout
from regretless.oracles.base import Oracle
from regretless.simulation import stream
from regretless.startup import configure

WORLD = WORLDS["assignment12"]
BEFORE, LIVE = 600, 1000
COST_RATIO = 1.15
PERIODS = {"days 1-100": slice(0, 100), "101-500": slice(100, 500), "501-1000": slice(500, 1000)}
VARIANTS = {
    "guard and history": (True, True),
    "no guard": (False, True),
    "no history": (True, False),
    "neither": (False, False),
}


class Days(NamedTuple):
    """The days of a plant in order, and the fixed decision of its planner."""

    oracle: Oracle
    contexts: np.ndarray
    costs: np.ndarray  # as they come
    means: np.ndarray  # on average; unknown to the learner
    person: np.ndarray
    fixed: np.ndarray  # the best fixed decision
    lost: np.ndarray  # days whose total is never reported


def days(seed: int) -> Days:
    """Return the days of one seed."""
    benchmark: Any = WORLD.make()
    with jax.enable_x64(True):
        spec, key = stream.SimulationSpec(benchmark), jax.random.key(seed)
        drawn = stream.draw_rounds(spec, key, jnp.int32(0), BEFORE + LIVE)
        contexts, costs, means = map(np.asarray, (drawn.observation, drawn.cost, drawn.mean))
    usual = means.mean(axis=0)
    rng = np.random.default_rng(seed)
    wrong, lost = rng.normal(size=(20, *usual.shape)), rng.random(BEFORE + LIVE) < WORLD.missing
    fixed = best(benchmark.oracle, usual)
    return Days(benchmark.oracle, contexts, costs, means, misjudged(benchmark.oracle, usual, wrong), fixed, lost)


def best(oracle: Oracle, costs: np.ndarray) -> np.ndarray:
    """Return the cheapest decision for costs."""
    return np.asarray(oracle.answer(costs[None], None).w[0])


def misjudged(oracle: Oracle, usual: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return the decision for misjudged costs ``usual · exp(s · wrong)`` that costs nearest COST_RATIO."""
    sizes = np.linspace(0.05, 2.0, 40)
    taken = usual * np.exp(sizes[:, None, None] * wrong)
    decisions = np.asarray(oracle.answer(taken.reshape(-1, len(usual)), None).w)
    shares = decisions @ usual / (best(oracle, usual) @ usual)
    return decisions[np.argmin(np.abs(shares - COST_RATIO))]


def play(
    plant: Days, seed: int, guard: bool, history: bool, budget: float, policy: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cost of each live day, and whether the learner decided."""
    rollout = Rollout(plant.person, budget) if guard else None
    learner = Learner(plant.oracle, context=plant.contexts.shape[1:], policy=policy, seed=seed, rollout=rollout)
    if history:
        totals = np.where(plant.lost, np.nan, plant.costs @ plant.person)[:BEFORE]
        learner.learn_from(History(plant.contexts[:BEFORE], np.tile(plant.person, (BEFORE, 1)), totals=totals))
    paid, by_learner = np.zeros(LIVE), np.zeros(LIVE, bool)
    waiting: list[tuple[int, float]] = []
    for i, day in enumerate(range(BEFORE, BEFORE + LIVE)):
        choice = learner.decide(plant.contexts[day])
        paid[i], by_learner[i] = plant.means[day] @ choice.w, choice.by == "learner"
        while len(waiting) >= WORLD.delay:
            id, total = waiting.pop(0)
            if not np.isnan(total):
                learner.learn(id, total=total)
        waiting.append((choice.id, float("nan") if plant.lost[day] else float(plant.costs[day] @ choice.w)))
    return paid, by_learner


def main() -> None:
    """Print a line for each variant and seed, and one for all seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--first-seed", type=int, default=1000, help="choose on seeds from 100000, report on 1000 and after"
    )
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--policy", default="adaptive")
    given = parser.parse_args()
    configure("auto")
    print(
        f"{'variant':18} {'seed':>7}  " + "  ".join(f"{name:>10}" for name in PERIODS) + "  learner's days", flush=True
    )
    for variant in given.variants:
        guard, history = VARIANTS[variant]
        every = []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            began, plant = time.perf_counter(), days(seed)
            paid, by_learner = play(plant, seed, guard, history, given.budget, given.policy)
            would = plant.means[BEFORE:] @ plant.person
            shares = [paid[period].sum() / would[period].sum() for period in PERIODS.values()]
            every.append(shares)
            print(_line(variant, str(seed), shares) + f"  {by_learner.mean():8.0%}", flush=True)
            print(f"seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        print(_line(variant, "all", list(np.mean(every, axis=0))), flush=True)
        print(_line(variant, "worst", list(np.max(every, axis=0))), flush=True)


def _line(variant: str, seed: str, shares: list[float]) -> str:
    return f"{variant:18} {seed:>7}  " + "  ".join(f"{share:10.3f}" for share in shares)


if __name__ == "__main__":
    main()
