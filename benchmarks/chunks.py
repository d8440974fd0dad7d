"""Print how much results depend on the size of chunks: ``python benchmarks/chunks.py [BENCHMARK …]``.

The same seeds are played at once, in chunks of two, and together with another policy. Programs of other sizes sum in
another order, so a choice between two almost equal decisions may differ, and the replication differs from there on.
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
    """Print a row for each benchmark, policy and chunk size."""
    configure("auto")
    from regretless import benchmarks, policies
    from regretless.policies.scaling import Scaled
    from regretless.simulation.simulator import Execution, Recording, simulate

    print("| benchmark | policy | cut | same decisions for 100 rounds | first other decision | mean regret | s.e. |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, policy in itertools.product(names, POLICIES):
        world = benchmarks.parse(name).build()
        problem = world.problem("bandit")
        tested, other = Scaled(problem, policies.parse(policy).build(problem)), policies.parse("greedy").build(problem)
        play: Any = functools.partial(
            simulate,
            benchmark=world,
            seeds=SEEDS,
            horizon=min(ROUNDS, world.horizon),
            recording=Recording(decisions=True),
        )
        whole = play({"tested": tested}, execution=Execution(chunk=len(SEEDS)))["tested"]
        in_twos = play({"tested": tested}, execution=Execution(chunk=2))["tested"]
        together = play({"other": other, "tested": tested})["tested"]
        for way, trace in {"in twos": in_twos, "with greedy": together}.items():
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
