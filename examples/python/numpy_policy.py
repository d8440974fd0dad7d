"""A policy in NumPy: linear costs, learned by normalised steps."""

import numpy as np

import regretless as rg
from regretless.spec import Factory


class LinearCosts:
    def __init__(self, problem, seed, step):
        self.step, self.rounds = step, 0
        self.theta = np.zeros((problem.dim, problem.context_shape[0] + 1))

    def predict(self, context):
        return self.theta @ np.append(context, 1.0)

    def decide(self, context, rng):
        noise = rng.normal(size=len(self.theta))
        return self.predict(context) + noise / np.sqrt(1 + self.rounds)

    def update(self, decision, feedback):
        self.rounds += 1
        row = np.outer(decision.w, np.append(decision.context, 1.0))
        missed = float(feedback.total()) - np.sum(self.theta * row)
        step = self.step * missed / max(np.sum(row**2), 1.0)
        self.theta = self.theta + step * row


class NumPyLinear(rg.policies.Python):
    make: Factory = LinearCosts
    step: float = 0.5


rg.policies.register("numpy_linear", NumPyLinear)
