"""Print the excess cost of a guarded policy over its incumbent on ten worlds of the arena.

    python benchmarks/guarded.py --runs 200

For each seed, the incumbent is the best fixed decision of the first 200 rounds. The excess is the cost beyond the
incumbent's, as a fraction of it, over the whole run, in mean costs that no policy observes. The last quarter is
compared by paired differences.
"""

import argparse
import sys
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import policies
from regretless.experiments.arena import WORLDS
from regretless.policies.guard import Guarded, add_guard
from regretless.simulation import stream
from regretless.simulation.programs import Replicas
from regretless.simulation.stream import SimulationSpec
from regretless.startup import configure

TEN = (
    "lin100",
    "relu30",
    "exp30",
    "relu30out",
    "tails30",
    "rewards30",
    "lin30drift",
    "lin30late",
    "lin30lost",
    "assignment8",
)
FIRST = 200


class Run(NamedTuple):
    """The costs of one run, as fractions of the incumbent's."""

    excess: Any
    worst: Any  # largest excess so far at any time from round FIRST on
    quarter: Any  # excess of the last quarter
    by_policy: Any  # share of the rounds that the policy decided


def play(name: str, policy: str, seeds: list[int], budget: float, length: int | None) -> list[Run]:
    """Play one world, all seeds in one program."""
    world = WORLDS[name]
    benchmark = world.make()
    horizon = length or world.horizon or benchmark.horizon
    game = SimulationSpec(benchmark, world.delay, world.missing, keep_decisions=True)
    replicas = Replicas(len(seeds), benchmark.oracle)
    with jax.enable_x64(True):
        problem = benchmark.problem(world.feedback, may_miss=world.missing > 0)
        inner = policies.Scaled(problem, policies.parse(policy).build(problem))
        whole = add_guard(inner, jnp.zeros(problem.dim), budget=budget)
        padded = seeds + seeds[-1:] * (-len(seeds) % replicas.width)
        keys = replicas.place(jax.vmap(jax.random.key)(np.asarray(padded, np.uint32)))
        runs = jax.tree.map(np.asarray, replicas.run(_one, (whole, game, horizon), keys))
    return [Run(*map(float, row)) for row in zip(*runs, strict=True)][: len(seeds)]


def _one(shared: tuple[Guarded, SimulationSpec, int], key: Any) -> Run:
    """Play one seed with its incumbent."""
    policy, game, horizon = shared
    segment = stream.draw(game, key, jnp.int32(0), jnp.int32(horizon), horizon)
    costs = jax.vmap(game.benchmark.regret_cost)(segment.rounds)
    usual = jnp.mean(costs[:FIRST], axis=0)
    fixed = game.benchmark.oracle.solve(jnp.broadcast_to(usual, costs.shape), segment.rounds.instance).w
    guarded_policy = eqx.tree_at(lambda whole: whole.incumbent, policy, usual)
    _, record = stream.play_segment(
        guarded_policy, game, stream.begin(guarded_policy, game, key), key, segment, jnp.int32(0), jnp.int32(horizon)
    )
    paid, would = jnp.sum(costs * record.w, axis=1), jnp.sum(costs * fixed, axis=1)
    sums = jnp.cumsum(paid - would)[FIRST - 1 :] / jnp.abs(jnp.cumsum(would))[FIRST - 1 :]
    last = slice(-(horizon // 4), None)
    quarter = jnp.sum((paid - would)[last]) / jnp.abs(jnp.sum(would[last]))
    return Run(sums[-1], jnp.max(sums), quarter, jnp.mean(record.info["guard_incumbent"] == 0))


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="over all worlds")
    parser.add_argument(
        "--first-seed", type=int, default=1000, help="choose on seeds from 100000, report on 1000 and after"
    )
    parser.add_argument("--worlds", nargs="*", default=TEN)
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, help="of each run; default: the world's")
    given = parser.parse_args()
    configure("auto")
    count = max(1, given.runs // len(given.worlds))
    seeds = list(range(given.first_seed, given.first_seed + count))
    every: list[Run] = []
    better = 0
    began = time.perf_counter()
    print("world         excess  largest of any run  last quarter ± 2 SE  rounds decided by the policy", flush=True)
    for name in given.worlds:
        runs = play(name, given.policy, seeds, given.budget, given.rounds)
        quarter = np.array([run.quarter for run in runs])
        doubt = 2 * quarter.std(ddof=1) / len(quarter) ** 0.5 if len(quarter) > 1 else float("nan")
        better += bool(quarter.mean() + doubt < 0)
        every += runs
        mean, largest, by_policy = (
            np.mean([run.excess for run in runs]),
            max(run.excess for run in runs),
            np.mean([run.by_policy for run in runs]),
        )
        anytime = max(run.worst for run in runs)
        print(
            f"{name:12} {mean:+7.1%}  {largest:+7.1%} (at any time {anytime:+.1%})  "
            f"{quarter.mean():+7.1%} ± {doubt:.1%}  {by_policy:.0%}",
            flush=True,
        )
        print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    kept = np.mean([run.excess <= given.budget for run in every])
    always = np.mean([run.worst <= given.budget for run in every])
    print(
        f"{len(every)} runs: {kept:.1%} stayed within {given.budget:.0%} at the end, {always:.1%} at every time; "
        f"lower cost than the incumbent in the last quarter on {better} of {len(given.worlds)} worlds"
    )


if __name__ == "__main__":
    main()
