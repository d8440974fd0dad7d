"""Train twelve losses with PyEPO and with rg.offline on PyEPO's data: test regret and processor time of both.

    python benchmarks/offline_pyepo.py                      run the missing rows, then print the table
    python benchmarks/offline_pyepo.py --table              print the table of the rows that there are

Both sides have the same linear model, initial weights, optimiser (Adam, 0.01), batches and order of rows. Times are
processor seconds of one thread for data, training, compiling and the test; 30 epochs of PyEPO are the first 30 of its
100, ours are compiled again. Rows are kept in the folder given by --out: a run that was ended continues.
"""

import argparse
import itertools
import json
import os
import pathlib
import time

os.environ.setdefault("REGRETLESS_CACHE", "off")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

FEATURES, TRAIN, TEST, EPOCHS = 5, 100, 1000, (30, 100)
PROBLEMS = {"shortest_path": 25, "knapsack16": 25, "knapsack32": 32}
"""Rows of a batch."""

POOL = 1024
"""Decisions of a pool of knapsacks; there are 70 shortest paths."""

SAMPLED = ("pfyl", "imle", "dpo")
POOLED = ("nce", "contrastive_map", "pointwise_ltr", "pairwise_ltr", "listwise_ltr")
LOSSES = {
    "spo_plus": "SPOPlus",
    "pg": "perturbationGradient",
    "dbb": "blackboxOpt",
    "nid": "negativeIdentity",
    "nce": "noiseContrastiveEstimation",
    "contrastive_map": "contrastiveMAP",
    "pointwise_ltr": "pointwiseLearningToRank",
    "pairwise_ltr": "pairwiseLearningToRank",
    "listwise_ltr": "listwiseLearningToRank",
    "pfyl": "perturbedFenchelYoung",
    "imle": "implicitMLE",
    "dpo": "perturbedOpt",
}


def make(problem, degree, seed):
    """Return PyEPO's model, features, costs, and our oracle."""
    import pyepo
    from pyepo.model import ort

    import regretless as rg

    rows = TRAIN + TEST
    if problem == "shortest_path":
        model = ort.shortestPathModel((5, 5))
        x, c = pyepo.data.shortestpath.genData(rows, FEATURES, (5, 5), deg=degree, noise_width=0.5, seed=seed)
        return model, x, c, rg.oracles.shortest_path(list(model.arcs))
    items = int(problem.removeprefix("knapsack"))
    weights, x, c = pyepo.data.knapsack.genData(rows, FEATURES, items, dim=2, deg=degree, noise_width=0.5, seed=seed)
    capacity = weights.sum(axis=1) // 2
    return ort.knapsackModel(weights, capacity), x, c, rg.oracles.knapsack(weights, capacity)


def order(seed, epoch):
    """Return the rows of an epoch in order."""
    return np.random.default_rng((seed, epoch)).permutation(TRAIN)


def start(dim, seed):
    """Return the initial weights and biases."""
    rng = np.random.default_rng((seed, 7))
    bound = FEATURES**-0.5
    return rng.uniform(-bound, bound, (dim, FEATURES)), rng.uniform(-bound, bound, dim)


def theirs(problem, loss, degree, seed, double):
    """Return PyEPO's test regret and processor seconds after each number of epochs."""
    import pyepo
    import torch
    from pyepo.data.dataset import optDataset
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    kind = torch.float64 if double else torch.float32
    model, x, c, _ = make(problem, degree, seed)
    began = time.process_time()
    train, test = optDataset(model, x[:TRAIN], c[:TRAIN]), optDataset(model, x[TRAIN:], c[TRAIN:])
    for data in (train, test):
        data.feats, data.costs = torch.as_tensor(data.feats, dtype=kind), torch.as_tensor(data.costs, dtype=kind)
        if double:
            rows = slice(None, TRAIN) if data is train else slice(TRAIN, None)
            data.feats, data.costs = torch.as_tensor(x[rows]), torch.as_tensor(c[rows])
        data.sols, data.objs = data.sols.to(kind), data.objs.to(kind)
    net = torch.nn.Linear(FEATURES, c.shape[1]).to(kind)
    weights, bias = start(c.shape[1], seed)
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(weights))
        net.bias.copy_(torch.as_tensor(bias))
    batch = PROBLEMS[problem]
    options = {"processes": 1}
    options |= {"lambd": 10.0 * batch} if loss in ("dbb", "imle") else {}
    options |= {"variance_reduction": False} if loss == "dpo" else {}
    options |= {"dataset": train} if loss in POOLED else {}
    layer = getattr(pyepo.func, LOSSES[loss])(model, **options)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    results = {}
    for epoch in range(max(EPOCHS)):
        rows = order(seed, epoch)
        for first in range(0, TRAIN, batch):
            chosen = rows[first : first + batch]
            px, pc, pw, pz = (part[chosen] for part in (train.feats, train.costs, train.sols, train.objs))
            predicted = net(px)
            if loss == "spo_plus":
                value = layer(predicted, pc, pw, pz)
            elif loss in ("nce", "contrastive_map", "pfyl"):
                value = layer(predicted, pw)
            elif loss in ("dbb", "nid", "imle", "dpo"):
                value = model.modelSense * (layer(predicted) * pc).sum(dim=1).mean()
            else:
                value = layer(predicted, pc)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
        if epoch + 1 in EPOCHS:
            trained = time.process_time() - began
            before = time.process_time()
            regret = pyepo.metric.regret(net, model, DataLoader(test, batch_size=250))
            tested = time.process_time() - before
            began += tested if epoch + 1 < max(EPOCHS) else 0.0
            results[epoch + 1] = {"regret": float(regret), "seconds": trained + tested}
    return results


def ours(problem, loss, degree, seed):
    """Return our test regret and processor seconds, compiling included."""
    import jax

    import regretless as rg
    from regretless.offline.data import Dataset
    from regretless.simulation.programs import forget

    model, x, c, oracle = make(problem, degree, seed)
    sign = float(model.modelSense)
    sense = "min" if sign > 0 else "max"
    weights, bias = start(oracle.dim, seed)
    initial = sign * np.column_stack([weights, bias])[None]
    surrogate = rg.surrogates.parse(loss, {"pool": POOL} if loss in POOLED and problem != "shortest_path" else {})
    results = {}
    for epochs in EPOCHS:
        forget()
        jax.clear_caches()
        began = time.process_time()
        train = Dataset(x[:TRAIN], c[:TRAIN], oracle, sense=sense)
        test = Dataset(x[TRAIN:], c[TRAIN:], oracle, sense=sense)
        training = rg.offline.Training(epochs=epochs, batch=PROBLEMS[problem], standardise=False, shuffle=order)
        fit = rg.offline.fit(
            "gaussian_linear", train, surrogate=surrogate, training=training, seeds=[seed], initial=initial
        )
        regret = rg.offline.score(fit, test).relative_regret
        results[epochs] = {"regret": regret, "seconds": time.process_time() - began}
    return results


def run(cell, options):
    """Write the row of one cell."""
    problem, degree, seed, loss = cell
    file = options.out / f"{problem}_{degree}_{seed}_{loss}{'_double' * options.double}.json"
    if not file.exists():
        row = {"theirs": theirs(problem, loss, degree, seed, options.double), "ours": ours(problem, loss, degree, seed)}
        file.write_text(json.dumps({"cell": cell, "double": options.double, **row}))


def table(options):
    """Print a line for each problem and loss."""
    rows = [json.loads(file.read_text()) for file in sorted(options.out.glob("*.json"))]
    print("| problem | loss | cells | PyEPO | ours | largest difference | in double | PyEPO / ours 30 | 100 epochs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for problem, loss in itertools.product(PROBLEMS, LOSSES):
        chosen = [row for row in rows if row["cell"][0] == problem and row["cell"][3] == loss]
        cells = [row for row in chosen if not row["double"]]
        if not cells:
            continue
        regrets = np.array([[row[side]["100"]["regret"] for side in ("theirs", "ours")] for row in cells])
        difference = regrets[:, 1] - regrets[:, 0]
        if loss in SAMPLED:
            error = difference.std(ddof=1) / len(cells) ** 0.5 if len(cells) > 1 else np.nan
            apart = f"mean {difference.mean():+.4f} ± {error:.4f}"
        else:
            apart = f"{np.abs(difference).max():.4f}"
        double = [row["ours"]["100"]["regret"] - row["theirs"]["100"]["regret"] for row in chosen if row["double"]]
        exact = f"{np.abs(double).max():.4f}" if double else ""
        ratios = [
            sum(row["theirs"][e]["seconds"] for row in cells) / sum(row["ours"][e]["seconds"] for row in cells)
            for e in ("30", "100")
        ]
        means = " | ".join(f"{mean:.4f}" for mean in regrets.mean(axis=0))
        print(
            f"| {problem} | `{loss}` | {len(cells)} | {means} | {apart} | {exact} | {ratios[0]:.1f} | {ratios[1]:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--degrees", nargs="*", type=int, default=[4, 6])
    parser.add_argument("--seeds", type=int, default=5, help="number of data sets")
    parser.add_argument("--losses", nargs="*", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--double", action="store_true", help="PyEPO in double precision")
    parser.add_argument("--table", action="store_true", help="only print the table")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("offline_pyepo"), help="folder of the rows")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.table:
        for cell in itertools.product(options.problems, options.degrees, range(options.seeds), options.losses):
            run(cell, options)
    table(options)


if __name__ == "__main__":
    main()
