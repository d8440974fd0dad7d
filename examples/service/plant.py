"""A workshop: each of four crews gets one of four jobs every morning; what a pair costs depends on the weather."""

import numpy as np

import regretless as rg

CREWS = 4
columns = rg.Columns(numbers=["temperature", "orders"])
problem = rg.Problem(rg.oracles.assignment(CREWS), columns)


def foreman(context):
    """Return the plan of today's rule: crew i has job i, whatever the weather."""
    return np.eye(CREWS).reshape(-1)


class Workshop:
    """The conditions and costs of each day; in a real plant they come from outside."""

    def __init__(self, seed=2026):
        rng = np.random.default_rng(seed)
        self.base = rng.uniform(20.0, 60.0, CREWS**2)
        self.slope = rng.normal(size=(CREWS**2, 2)) * 8.0

    def conditions(self, day):
        standard = np.random.default_rng([day, 1]).normal(size=2)
        return {"temperature": round(12.0 + 8.0 * standard[0], 2), "orders": round(40.0 + 10.0 * standard[1], 2)}

    def total(self, day, w):
        x = self.conditions(day)
        mean = self.base + self.slope @ [(x["temperature"] - 12.0) / 8.0, (x["orders"] - 40.0) / 10.0]
        noise = np.random.default_rng([day, 2]).uniform(0.8, 1.2, CREWS**2)
        return round(float(np.maximum(mean, 5.0) * noise @ w), 2)
