"""Measure the coverage and the width of the intervals of ``rg.evaluate`` on simulated logs with awkward noise.

    python benchmarks/evaluation_coverage.py --logs 300 --rounds 400 --seed 1000

One of four items is chosen, with probabilities that depend on the context (0.1 to 0.7) and are recorded. Costs are
``5 + b·x`` plus a curve that the model does not know, plus noise: normal, lognormal (σ = 1), Student's t with three
degrees of freedom, noise of which half the variance is shared by 20 rounds in a row, noise of an AR(1) process with
0.8, and Pareto with index 1.6, which has no variance. The candidate is a rule that differs from the log's.

``covers`` is the share of the answered logs whose 95 % interval holds the candidate's true cost, ``misses`` the share
of all logs with an interval that does not. ``width`` is the median length of the intervals over that of the best
standard estimator on the same rounds: inverse propensity weighting, self-normalised weights, doubly robust, its
self-normalised form, and doubly robust with shrunken weights (λ by the estimated mean squared error), as in the Open
Bandit Pipeline, with normal intervals of independent rounds and the same model. ``standard covers`` is the coverage of
the doubly robust one. Both are computed for every third log, to save time.
"""

import argparse
import time

import numpy as np

import regretless as rg

ITEMS, FEATURES = 4, 3
KINDS = ("normal", "lognormal", "t3", "blocks", "ar80", "clicks", "pareto")


def draw_noise(rng: np.random.Generator, kind: str, rounds: int) -> np.ndarray:
    """Return noise of mean zero."""
    normal = rng.normal(size=rounds)
    if kind == "lognormal":
        return np.exp(normal) - np.exp(0.5)
    if kind == "t3":
        return rng.standard_t(3, size=rounds)
    if kind == "blocks":
        start = int(rng.integers(20))
        return np.repeat(rng.normal(size=rounds // 20 + 2), 20)[start : start + rounds] + normal
    if kind == "ar80":
        for t in range(1, rounds):
            normal[t] = 0.8 * normal[t - 1] + 0.6 * normal[t]
    if kind == "pareto":
        return rng.pareto(1.6, size=rounds) - 1.0 / 0.6
    return normal


def standard_estimates(y: np.ndarray, own: np.ndarray, model: np.ndarray, w: np.ndarray) -> dict[str, np.ndarray]:
    """Return scores of the rounds, whose mean is the estimate, for the estimators of the Open Bandit Pipeline.

    ``own`` and ``model`` are the predictions for the logged and for the candidate's decision, ``w`` the weights.
    """

    def normalised(base: np.ndarray, values: np.ndarray) -> np.ndarray:
        ratio = np.sum(w * values) / np.sum(w)
        return base + ratio + w / np.mean(w) * (values - ratio)

    residual = y - own

    def shrunken(strength: float) -> tuple[float, np.ndarray]:
        v = strength * w / (w**2 + strength)
        scores = model + v * residual
        return float(np.mean((w - v) * residual)) ** 2 + float(np.var(scores)) / len(y), scores

    return {
        "ipw": w * y,
        "snipw": normalised(np.zeros(len(y)), y),
        "dr": model + w * residual,
        "sndr": normalised(model, residual),
        "dros": min((shrunken(strength) for strength in np.geomspace(1.0, 1e4, 9)), key=lambda pair: pair[0])[1],
    }


def play(rng: np.random.Generator, kind: str, rounds: int) -> tuple[rg.History, np.ndarray, float]:
    """Return a log, the candidate's decisions in it and its true cost."""
    slopes, curves = rng.normal(size=(ITEMS, FEATURES)), 0.4 * rng.normal(size=(ITEMS, FEATURES))

    def mean(x: np.ndarray) -> np.ndarray:
        costs = 5.0 + x @ slopes.T + (x**2 - 1.0) @ curves.T
        return 0.05 / (1.0 + np.exp(costs - 5.0)) if kind == "clicks" else costs

    rule = slopes + rng.normal(size=slopes.shape)
    x = rng.normal(size=(rounds, FEATURES))
    preferred = np.argmax(x @ slopes.T + rng.normal(size=slopes.shape).sum(axis=1), axis=1)
    p = np.full((rounds, ITEMS), 0.1)
    p[np.arange(rounds), preferred] = 0.7
    drawn = (rng.random(rounds)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, ITEMS - 1)
    means = mean(x)[np.arange(rounds), drawn]
    totals = (rng.random(rounds) < means) * 1.0 if kind == "clicks" else means + draw_noise(rng, kind, rounds)
    history = rg.History(x, np.eye(ITEMS)[drawn], totals=totals, propensities=p[np.arange(rounds), drawn])
    fresh = rng.normal(size=(50_000, FEATURES))
    true = float(np.mean(np.take_along_axis(mean(fresh), np.argmin(fresh @ rule.T, axis=1)[:, None], axis=1)))
    return history, np.eye(ITEMS)[np.argmin(x @ rule.T, axis=1)], true


def measure(kind: str, logs: int, rounds: int, seed: int) -> str:
    """Return a row of the table."""
    from regretless.live.evaluation import BLOCKS, _predict_costs

    answered, covered, standard, widths, times = 0, 0, 0, [], []
    for number in range(logs):
        rng = np.random.default_rng([seed, KINDS.index(kind), number])
        history, decided, true = play(rng, kind, rounds)
        rule = {x.tobytes(): w for x, w in zip(history.contexts, decided, strict=True)}
        began = time.process_time()
        estimate = rg.evaluate({"rule": lambda x, rule=rule: rule[x.tobytes()]}, history)["rule"]
        times.append(time.process_time() - began)
        if estimate.cost is not None:
            answered += 1
            covered += estimate.cost.low <= true <= estimate.cost.high
        if number % 3:
            continue
        blocks = np.array_split(np.arange(rounds), BLOCKS)
        judged = np.arange(len(blocks[0]), rounds)
        costs = _predict_costs(history, blocks, "linear_thompson")[judged]
        own, model = (np.sum(costs * w[judged], axis=1) for w in (history.decisions, decided))
        match = np.all(history.decisions == decided, axis=1)[judged]
        weights = match / history.propensities[judged]  # type: ignore[index]
        scores = standard_estimates(history.totals[judged], own, model, weights)  # type: ignore[index]
        halves = {name: 1.96 * float(np.std(part, ddof=1)) / len(part) ** 0.5 for name, part in scores.items()}
        standard += abs(float(scores["dr"].mean()) - true) <= halves["dr"]
        if estimate.cost is not None:
            widths.append(
                (estimate.cost.high - estimate.cost.low) / (2.0 * min(half for half in halves.values() if half > 0))
            )
    share = covered / max(answered, 1)
    width = f"{np.median(widths):.2f} ({np.quantile(widths, 0.9):.2f})" if widths else "-"
    return (
        f"{kind:10} {logs} × {rounds:<5} {answered / logs:8.1%} {share:8.1%} {(answered - covered) / logs:8.1%}  "
        f"{width:12} {standard / len(range(0, logs, 3)):8.1%}  {1e3 * np.median(times):6.0f} ms"
    )


def main() -> None:
    """Print a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000)
    given = parser.parse_args()
    print("noise      logs      answered   covers   misses  width (90 %)  standard covers  processor time")
    for kind in given.kinds:
        print(measure(kind, given.logs, given.rounds, given.seed), flush=True)


if __name__ == "__main__":
    main()
