"""A knapsack as a mixed-integer program: which projects to fund each week, when only the week's total return is known.

Returns are rewards, so the problem has ``sense="max"`` and the learner receives them as they are. The budget changes
from week to week and is passed as the instance.

    python examples/knapsack.py [WEEKS]
"""

import sys

import numpy as np
from comparison import show

import regretless as rg

RNG = np.random.default_rng(7)
PROJECTS, FEATURES = 12, 4
PRICES = RNG.integers(2, 9, PROJECTS).astype(float)
BASE, SLOPE = RNG.uniform(2.0, 6.0, PROJECTS), RNG.normal(size=(PROJECTS, FEATURES))


def main(weeks):
    oracle = rg.oracles.milp(A_ub=[PRICES], b_ub=[20.0], integrality=1)
    learner = rg.Learner(rg.Problem(oracle, FEATURES, sense="max"), seed=0)
    markets = RNG.normal(size=(weeks, FEATURES))
    means = BASE + markets @ SLOPE.T  # expected returns
    returns = means + RNG.normal(size=(weeks, PROJECTS))
    budgets = [{"b_ub": np.array([float(budget)])} for budget in RNG.integers(15, 26, weeks)]

    earned = []
    for market, budget, yields in zip(markets, budgets, returns, strict=True):
        choice = learner.decide(market, instance=budget)
        earned.append(float(yields @ choice.w))
        learner.learn(choice.id, total=earned[-1])

    together = {"b_ub": np.stack([budget["b_ub"] for budget in budgets])}
    predictions = {
        "random": RNG.normal(size=(weeks, PROJECTS)),
        "best fixed": np.broadcast_to(-returns.mean(axis=0), (weeks, PROJECTS)),
        "clairvoyant": -means,
    }
    spent = {"learned": -np.array(earned)}
    for name, costs in predictions.items():
        spent[name] = -np.sum(returns * oracle.answer(costs, together).w, axis=1)
    show(spent, "thousands (negative: earned)", since=weeks // 2)
    print(f"\n{learner.health().verdict}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
