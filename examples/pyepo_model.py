"""A PyEPO model as the feasible set (``regretless[pyepo]``): which crops to plant, when only the harvest is known.

The model maximises value, as PyEPO models may; ``from_pyepo`` makes an oracle of it that minimises costs. With
``sense="max"`` the learner receives harvests as they are.

    python examples/pyepo_model.py [SEASONS]
"""

import sys
from itertools import product

import numpy as np
from comparison import show
from pyepo import EPO
from pyepo.model.opt import optModel

import regretless as rg

RNG = np.random.default_rng(3)
CROPS, FEATURES = 8, 3
WATER = np.array([3.0, 2.0, 4.0, 1.0, 5.0, 2.0, 3.0, 4.0])
BASE, SLOPE = RNG.uniform(2.0, 5.0, CROPS), RNG.normal(size=(CROPS, FEATURES)) * 1.5


class Fields(optModel):
    """At most four crops, and water for twelve: the most valuable of all possible plans."""

    modelSense = EPO.MAXIMIZE  # noqa: N815

    def _getModel(self):  # noqa: N802
        plans = np.array(list(product([0.0, 1.0], repeat=CROPS)))
        self.plans = plans[(plans @ WATER <= 12.0) & (plans.sum(axis=1) <= 4)]
        return None, range(CROPS)

    def setObj(self, c):  # noqa: N802
        self.values = np.asarray(c, float)

    def solve(self):
        plan = self.plans[np.argmax(self.plans @ self.values)]
        return plan, float(plan @ self.values)


def main(seasons):
    oracle = rg.oracles.from_pyepo(Fields())
    learner = rg.Learner(rg.Problem(oracle, FEATURES, sense="max"), seed=0)
    weather = RNG.normal(size=(seasons, FEATURES))
    means = BASE + weather @ SLOPE.T
    harvests = means + RNG.normal(size=means.shape)
    spent = {"learned": []}
    for today, harvest in zip(weather, harvests, strict=True):
        choice = learner.decide(today)
        spent["learned"].append(-float(harvest @ choice.w))
        learner.learn(choice.id, total=-spent["learned"][-1])
    predictions = {
        "random": RNG.normal(size=means.shape),
        "best fixed": np.broadcast_to(-harvests.mean(axis=0), means.shape),
        "clairvoyant": -means,
    }
    for name, costs in predictions.items():
        spent[name] = -np.sum(harvests * oracle.answer(costs).w, axis=1)
    show(spent, "tonnes (negative: harvested)", since=seasons // 2)
    print(f"\n{learner.health().verdict}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
