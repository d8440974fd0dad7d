"""Feasible sets as PyEPO models, written without a line of ours, in both directions of optimisation."""

import itertools

import numpy as np

from extra import required

EPO, opt = required("pyepo.EPO"), required("pyepo.model.opt")
SENSES = {"minimise": EPO.MINIMIZE, "maximise": EPO.MAXIMIZE}


class Listed(opt.optModel):
    """All decisions in a list, of which the best is taken; ``solves`` counts."""

    def __init__(self, decisions, sense=EPO.MINIMIZE):
        self.modelSense = sense
        self.decisions = np.asarray(decisions, float)
        self.solves = 0
        super().__init__()

    def _getModel(self):  # noqa: N802
        return None, range(self.decisions.shape[1])

    def setObj(self, c):  # noqa: N802
        self.objective = np.asarray(c, float)
        if self.objective.shape != (self.num_cost,):
            raise ValueError(f"expected {self.num_cost} coefficients, got {self.objective.shape}")

    def solve(self):
        self.solves += 1
        values = self.decisions @ self.objective
        best = np.argmin(self.modelSense * values)
        return self.decisions[best], float(values[best])


def choices(n, k):
    """Every choice of k out of n."""
    return [np.isin(np.arange(n), chosen).astype(float) for chosen in itertools.combinations(range(n), k)]


def paths(edges, source, sink):
    """Every path, as the edges that it takes."""
    found, open_ends = [], [(source, ())]
    while open_ends:
        node, taken = open_ends.pop()
        if node == sink:
            found.append(np.isin(np.arange(len(edges)), taken).astype(float))
        open_ends += [(head, (*taken, i)) for i, (tail, head) in enumerate(edges) if tail == node]
    return found
