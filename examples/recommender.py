"""Recommendations from a CSV file: three of twelve articles a visit, and only the clicks on them are observed.

``data/visits.csv`` is synthetic: features of a visitor (x0 …), which articles they would click (click0 …), and the
probability of each click (p0 …), which only the clairvoyant line uses. A click is a reward.

    python examples/recommender.py [VISITS]
"""

import csv
import sys
from pathlib import Path

import numpy as np
from comparison import show

import regretless as rg

SHOWN = 3


def read(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = lambda start: [name for name in rows[0] if name.startswith(start)]  # noqa: E731
    return (np.array([[float(row[name]) for name in columns(start)] for row in rows]) for start in ("x", "click", "p"))


def main(visits):
    visitors, clicks, chances = (table[:visits] for table in read(Path(__file__).parent / "data" / "visits.csv"))
    articles = clicks.shape[1]
    oracle = rg.oracles.top_k(articles, SHOWN)
    learner = rg.Learner(rg.Problem(oracle, visitors.shape[1], "semi_bandit", sense="max"))
    spent = {name: [] for name in ("learned", "random", "best fixed", "clairvoyant")}
    rng = np.random.default_rng(0)
    popular = np.argsort(-clicks.mean(axis=0))[:SHOWN]
    for x, clicked, chance in zip(visitors, clicks, chances, strict=True):
        choice = learner.decide(x)
        shown = np.flatnonzero(choice.w)
        learner.learn(choice.id, components={int(article): clicked[article] for article in shown})
        spent["learned"].append(-clicked[shown].sum())
        spent["random"].append(-clicked[rng.choice(articles, SHOWN, replace=False)].sum())
        spent["best fixed"].append(-clicked[popular].sum())
        spent["clairvoyant"].append(-clicked[np.argsort(-chance)[:SHOWN]].sum())
    show(spent, "clicks (negative: clicked)", since=len(visitors) // 2)
    print(f"\n{learner.health().verdict}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
