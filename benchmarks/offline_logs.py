"""Learn from five logs with known truth: regret of each method next to full costs, and coverage of its intervals.

    python benchmarks/offline_logs.py --logs 100 --rounds 600

Paths on a 4 x 4 grid (20 of them), costs polynomial in five features. A clerk with a rough model decides; the truth is
known, so that refusals, regrets and intervals can be checked. Rows are written to the folder given by --out, and read
from it if they are there.
"""

import argparse
import itertools
import json
import pathlib
import warnings

import numpy as np

import regretless as rg
from regretless.errors import SettingsError
from regretless.offline.data import Dataset

SIDE, FEATURES, DEGREE = 4, 5, 4
EDGES = rg.oracles.grid_edges(SIDE, SIDE)
ORACLE = rg.oracles.shortest_path(EDGES)
LOGS = ("deterministic", "eps_greedy", "softmax", "wrong", "totals")
METHODS = ("dm", "iw", "dr")


def list_paths():
    """Return all paths, ``[20, d]``."""
    places = {edge: number for number, edge in enumerate(EDGES)}
    paths = []
    for downs in itertools.combinations(range(2 * SIDE - 2), SIDE - 1):
        path, node = np.zeros(len(EDGES)), 0
        for step in range(2 * SIDE - 2):
            after = node + (SIDE if step in downs else 1)
            path[places[node, after]] = 1.0
            node = after
        paths.append(path)
    return np.array(paths)


PATHS = list_paths()
WORLD = np.random.default_rng(2024)
SLOPES = WORLD.binomial(1, 0.5, (FEATURES, len(EDGES)))
ROUGH = SLOPES + WORLD.normal(0.0, 0.6, SLOPES.shape)


def draw(rng, rows):
    """Return contexts and costs."""
    x = rng.normal(size=(rows, FEATURES))
    mean = ((x @ SLOPES) / FEATURES**0.5 + 3.0) ** DEGREE / 3.5**DEGREE + 0.1
    return x, mean * rng.uniform(0.5, 1.5, mean.shape)


def decide(kind, rng, x):
    """Return the clerk's decisions and their probabilities."""
    rough = (x @ ROUGH) / FEATURES**0.5 + 3.0
    totals = rough @ PATHS.T
    best = np.argmin(totals, axis=1)
    if kind == "deterministic":
        return PATHS[best], np.ones(len(x))
    if kind == "eps_greedy":
        chance = np.full(totals.shape, 0.3 / len(PATHS))
        chance[np.arange(len(x)), best] += 0.7
    else:
        weight = np.exp(-(totals - totals.min(axis=1, keepdims=True)) / 1.5)
        chance = weight / weight.sum(axis=1, keepdims=True)
    drawn = (rng.uniform(size=(len(x), 1)) > np.cumsum(chance, axis=1)).sum(axis=1).clip(max=len(PATHS) - 1)
    return PATHS[drawn], chance[np.arange(len(x)), drawn]


def make_log(kind, seed, rounds):
    """Return a log, and the data set with all of its costs."""
    rng = np.random.default_rng([seed, LOGS.index(kind)])
    x, costs = draw(rng, rounds)
    w, chances = decide(kind, rng, x)
    if kind == "wrong":
        chances = np.full(rounds, 1.0 / len(PATHS))
    if kind == "totals":
        log = rg.History(x, w, totals=np.sum(w * costs, axis=1), propensities=chances)
    else:
        log = rg.History(x, w, costs=np.where(w > 0, costs, np.nan), propensities=chances)
    return log, Dataset(x, costs, ORACLE)


def candidate(x):
    """Return the predictions of the rule whose cost is estimated: a better model than the clerk's."""
    return ((x @ (0.5 * SLOPES + 0.5 * ROUGH)) / FEATURES**0.5 + 3.0) ** 2


def truth():
    """Return the expected cost of the candidate's decisions."""
    x, costs = draw(np.random.default_rng(1), 200_000)
    best = PATHS[np.argmin(candidate(x) @ PATHS.T, axis=1)]
    return float(np.mean(np.sum(costs * best, axis=1)))


def one(kind, seed, rounds, target):
    """Return what is learned from one log, by method."""
    log, full = make_log(kind, seed, rounds)
    test = Dataset(*draw(np.random.default_rng(seed + 10**6), 1000), ORACLE)
    training = rg.offline.Training(epochs=40, lr=0.03)

    def regret(data):
        fit = rg.offline.fit("gaussian_linear", data, training=training)
        return rg.offline.score(fit, test).relative_regret

    row = {"full": {"regret": regret(full)}}
    for method in METHODS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = rg.offline.estimate_costs(log, ORACLE, method)
        except SettingsError as error:
            row[method] = {"refused": str(error)}
            continue
        cost = rg.offline.score(candidate, data).cost
        inside = abs(cost.value - target) <= 1.96 * cost.standard_error
        interval = {"inside": bool(inside), "error": cost.value - target, "width": cost.standard_error}
        row[method] = {"regret": regret(data), **interval}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100, help="number of logs of each kind")
    parser.add_argument("--rounds", type=int, default=600, help="rounds of a log")
    parser.add_argument("--first", type=int, default=0, help="seed of the first log")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("offline_logs"), help="folder of the rows")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    target = truth()
    print("log            method  used refused  regret           full    covered   bias    width")
    for kind in LOGS:
        rows = []
        for seed in range(options.first, options.first + options.logs):
            file = options.out / f"{kind}_{options.rounds}_{seed}.json"
            if not file.exists():
                file.write_text(json.dumps(one(kind, seed, options.rounds, target)))
            rows.append(json.loads(file.read_text()))
        for method in METHODS:
            used = [row[method] for row in rows if "refused" not in row[method]]
            refused = [row[method]["refused"] for row in rows if "refused" in row[method]]
            full = np.mean([row["full"]["regret"] for row in rows])
            line = f"{kind:14s} {method:6s} {len(used):5d} {len(refused):7d}"
            if used:
                regrets = [row["regret"] for row in used]
                error = np.std(regrets) / max(1, len(used) - 1) ** 0.5
                covered, bias, width = (np.mean([row[name] for row in used]) for name in ("inside", "error", "width"))
                line += f" {np.mean(regrets):7.3f} ± {error:.3f} {full:7.3f} {covered:8.1%} {bias:+8.3f} {width:7.3f}"
            print(line)
            if refused:
                print(f"{'':21s} {refused[0][16:180]}")


if __name__ == "__main__":
    main()
