"""Plays a guarded policy on ten worlds of the arena and tells how much it cost beyond the incumbent.

    python tools/guarded.py --runs 200

The incumbent is the best fixed decision of the first 200 rounds, seed by seed. Excess is what was paid beyond it, as a share of
what it would have paid, over the whole run; on the worlds' own mean costs, which no policy sees. The last quarter is judged by
paired differences.
"""

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless import policies
from regretless.policies.guard import guarded
from regretless.simulate import stream
from regretless.simulate.simulation import simulate
from regretless.startup import configure
from regretless.studies.arena.worlds import WORLDS

TEN = (
    "lin100", "relu30", "exp30", "relu30out", "tails30", "rewards30", "lin30drift", "lin30late", "lin30lost", "assignment8",
)  # fmt: skip
FIRST = 200
FIRST_SEED = 1000


class Run(NamedTuple):
    """What one run cost, in shares of what the incumbent would have paid."""

    excess: float
    worst: float  # largest excess so far at any time from round FIRST on
    quarter: float  # excess of the last quarter
    own: float  # share of the rounds that the policy decided


def play(name: str, policy: str, seeds: list[int], budget: float, rounds: int | None) -> list[Run]:
    """The runs of one world; the incumbent's costs are numbers, so that one program serves all."""
    world = WORLDS[name]
    benchmark = world.make()
    horizon = rounds or world.horizon or benchmark.horizon
    problem = benchmark.problem(world.feedback, may_miss=world.missing > 0)
    found = []
    for seed in seeds:
        with jax.enable_x64(True):
            drawn = jax.jit(lambda key: stream.draw(stream.Game(benchmark), key, jnp.int32(0), horizon).rounds)(
                jax.random.key(seed)
            )
            costs = np.asarray(jax.vmap(benchmark.judged)(drawn))
            usual = costs[:FIRST].mean(axis=0)
            instances = jax.tree.map(np.asarray, drawn.instance)
            fixed: Any = benchmark.oracle.answer(np.broadcast_to(usual, costs.shape), instances).w
            inner = policies.build(policy, problem)
            whole = guarded(policies.Scaled(problem, inner), jnp.asarray(usual), budget=budget)
        trace = simulate(
            whole,
            benchmark,
            seeds=[seed],
            horizon=horizon,
            delay=world.delay,
            missing=world.missing,
            keep_decisions=True,
        )
        assert trace.decisions is not None
        decided = np.asarray(trace.decisions[0])
        paid, would = np.sum(costs * decided, axis=1), np.sum(costs * fixed, axis=1)
        sums = np.cumsum(paid - would)[FIRST - 1 :] / np.abs(np.cumsum(would))[FIRST - 1 :]
        last = slice(-(horizon // 4), None)
        quarter = float(np.sum((paid - would)[last]) / abs(np.sum(would[last])))
        own = float(np.mean(np.asarray(trace.diagnostics["guard_incumbent"])[0] == 0))
        found.append(Run(float(sums[-1]), float(sums.max()), quarter, own))
    return found


def main() -> None:
    """Plays, and prints a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="over all worlds")
    parser.add_argument("--worlds", nargs="*", default=TEN)
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, help="of each run; default: the world's")
    given = parser.parse_args()
    configure("auto")
    each = max(1, given.runs // len(given.worlds))
    seeds = list(range(FIRST_SEED, FIRST_SEED + each))
    every: list[Run] = []
    better = 0
    print("world         excess  largest of any run  last quarter ± 2 SE  rounds decided by the policy", flush=True)
    for name in given.worlds:
        runs = play(name, given.policy, seeds, given.budget, given.rounds)
        quarter = np.array([run.quarter for run in runs])
        doubt = 2 * quarter.std(ddof=1) / len(quarter) ** 0.5 if len(quarter) > 1 else float("nan")
        better += bool(quarter.mean() + doubt < 0)
        every += runs
        mean, largest, own = (
            np.mean([run.excess for run in runs]), max(run.excess for run in runs), np.mean([run.own for run in runs])
        )  # fmt: skip
        anytime = max(run.worst for run in runs)
        print(
            f"{name:12} {mean:+7.1%}  {largest:+7.1%} (at any time {anytime:+.1%})  {quarter.mean():+7.1%} ± {doubt:.1%}  "
            f"{own:.0%}",
            flush=True,
        )
    kept = np.mean([run.excess <= given.budget for run in every])
    always = np.mean([run.worst <= given.budget for run in every])
    print(
        f"{len(every)} runs: {kept:.1%} stayed within {given.budget:.0%} at the end, {always:.1%} at every time; "
        f"cheaper than the incumbent in the last quarter on {better} of {len(given.worlds)} worlds"
    )


if __name__ == "__main__":
    main()
