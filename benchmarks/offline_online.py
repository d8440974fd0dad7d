"""Start policies from a fit on 500 logged rounds, and cold: regret of the first 100 rounds on eight arena worlds.

    python benchmarks/offline_online.py --policy linear_thompson --seeds 16

The log of a replication are rounds 1,001 to 1,500 of its own world; half of its decisions are those for random costs,
half the best fixed ones. Only totals are logged; the fit is a linear model of costs that the direct method estimates.
"""

import argparse
import warnings

import jax
import numpy as np

import regretless as rg
from regretless.experiments.arena import choose_worlds
from regretless.offline.data import draw_rounds

WORLDS = ("topk", "shortest_path", "relu15", "inter30", "irrelevant15", "tails30", "rows_lin", "grid6")
"""Named before the first run."""

ROUNDS, FIRST, AFTER = 500, 100, 1000


def make_log(world, seed):
    """Return the rounds of a log of totals."""
    x, costs, instances, oracle = draw_rounds(world, ROUNDS, seed, AFTER)
    rng = np.random.default_rng(seed)
    asked = rng.normal(size=costs.shape)
    asked[::2] = costs.mean(axis=0)
    w = np.asarray(oracle.answer(asked, instances).w)
    rows = None if instances is None else [jax.tree.map(lambda leaf, i=i: leaf[i], instances) for i in range(ROUNDS)]
    return rg.History(x, w, totals=np.einsum("nd,nd->n", costs, w), instances=rows)


def compare(name, policy, seeds, other):
    """Return the regret of the first rounds, cold and started, by seed; with ``other`` the fit is of another world."""
    world = choose_worlds([name])[0]
    bench = rg.benchmarks.parse(world.benchmark, world.settings).build()
    problem = bench.problem("bandit")
    cold = rg.simulate(policy, bench, seeds=seeds, horizon=FIRST).final()
    started = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = rg.offline.estimate_costs(make_log(bench, seed + 500 * other), problem, "dm")
        training = rg.offline.Training(epochs=60)
        fit = rg.offline.fit("gaussian_linear", data, surrogate="mse", training=training)
        started.append(rg.simulate(fit.start(policy, problem), bench, seeds=[seed], horizon=FIRST).final()[0])
    return cold, np.array(started)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="linear_thompson", help="what learns online")
    parser.add_argument("--seeds", type=int, default=16, help="number of replications")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--other", action="store_true", help="fits of another replication's world, which mislead")
    parser.add_argument("--worlds", nargs="*", default=WORLDS, help="names of the arena")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    for name in options.worlds:
        cold, started = compare(name, options.policy, seeds, options.other)
        ratio, difference = started.mean() / cold.mean(), started - cold
        error = difference.std(ddof=1) / len(cold) ** 0.5 / cold.mean()
        print(
            f"{name:15s} cold {cold.mean():10.4g}  started {started.mean():10.4g}  {ratio - 1:+.1%} ± {error:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
