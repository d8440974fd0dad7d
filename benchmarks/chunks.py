"""How far results depend on how replications are cut: ``python benchmarks/chunks.py [BENCHMARK …]``, a table in Markdown.

The same seeds are played all at once, in chunks of two, and beside another policy. Programs for other sizes add up in another
order, and a decision between two that are nearly as cheap may fall otherwise; from there on the replication goes another way.
"""

import functools
import itertools
import sys
from typing import Any

import numpy as np

from regretless.startup import configure

SEEDS, ROUNDS = range(200000, 200008), 400
POLICIES = ("adaptive", "linear_thompson", "dfhpg")


def main(names: list[str]) -> None:
    """Prints a row for each benchmark, policy and way of cutting."""
    configure("auto")
    from regretless import benchmarks, policies
    from regretless.policies.scaling import Scaled
    from regretless.simulation.simulator import Execution, Recording, simulate

    print("| benchmark | policy | cut | same decisions for 100 rounds | first other decision | mean regret | s.e. |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, policy in itertools.product(names, POLICIES):
        world = benchmarks.build(name)
        problem = world.problem("bandit")
        own, other = Scaled(problem, policies.build(policy, problem)), policies.build("greedy", problem)
        play: Any = functools.partial(
            simulate,
            benchmark=world,
            seeds=SEEDS,
            horizon=min(ROUNDS, world.horizon),
            recording=Recording(decisions=True),
        )
        whole = play({"own": own}, execution=Execution(chunk=len(SEEDS)))["own"]
        in_twos = play({"own": own}, execution=Execution(chunk=2))["own"]
        beside = play({"other": other, "own": own})["own"]
        for way, trace in {"in twos": in_twos, "beside greedy": beside}.items():
            differs = np.any(trace.decisions != whole.decisions, axis=-1)
            firsts = [int(np.argmax(row)) + 1 for row in differs if row.any()]
            print(
                f"| {name} | `{policy}` | {way} | {np.sum(~differs[:, :100].any(axis=1))} of {len(SEEDS)} | "
                f"{min(firsts) if firsts else 'none'} | {trace.mean() / whole.mean() - 1:+.2%} | "
                f"{whole.standard_error() / whole.mean():.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:] or ["topk", "shortest_path", "pricing", "energy"])
