"""A regressor of scikit-learn with epsilon-greedy exploration."""

from sklearn.ensemble import RandomForestRegressor

import regretless as rg
from regretless.spec import Factory


def forest(trees):
    return RandomForestRegressor(trees, random_state=0)


class Forest(rg.models.Regressor):
    make: Factory = forest
    trees: int = 10


rg.models.register("forest", Forest)
policy = rg.policies.EpsilonGreedy(model=Forest(), epsilon=0.05)
