"""Solutions that health asks for beside the learner's own, without making anybody wait."""

import time
from typing import Any

import jax
import numpy as np

from regretless.live.health_costs import Solver
from regretless.live.kernel import Kernel
from regretless.live.process import Turns

DRAWN = 64
"""Random decisions that stand for all of them."""

LAST = 32
"""The same where the feasible set changes: one for each of the last rounds."""

FEWEST = 8
PATIENCE = 0.5
"""Seconds that a call of ``health`` spends at most on a solver on the host."""


class Bystander:
    """Asks the oracle if that is quick: one in pure JAX always, a solver on the host while no other call needs it."""

    def __init__(self, turns: Turns):
        self.turns = turns
        self.drawn: list[np.ndarray] = []  # decisions for random costs, under no instance
        self.slow = False  # the solver takes longer than PATIENCE, or fails for such costs

    def solver(self, kernel: Kernel) -> Solver:
        """What answers the questions of health."""
        costs = np.random.default_rng(0).normal(size=(DRAWN, kernel.problem.dim))

        def solve(asked: np.ndarray | None, instances: list[Any] | None) -> np.ndarray | None:
            if instances is not None:
                last = instances[-LAST:]
                found = self._solved(kernel, costs[:LAST], _stacked([last[0]] * (LAST - len(last)) + last))
                return None if found is None or len(found) < FEWEST else found[-len(last) :]
            if asked is not None:
                return self._solved(kernel, asked, None)
            if len(self.drawn) < (LAST if kernel.oracle.on_host else DRAWN):
                more = self._solved(kernel, costs[len(self.drawn) :], None)
                self.drawn += [] if more is None else list(more)
            return np.stack(self.drawn) if len(self.drawn) >= FEWEST else None

        return solve

    def warm_up(self, kernel: Kernel) -> None:
        """Compiles what an oracle in pure JAX will be asked."""
        if kernel.oracle.on_host:
            return
        solve, dim = self.solver(kernel), kernel.problem.dim
        if kernel.problem.has_instances:
            with jax.enable_x64(True):
                example = jax.tree.map(np.asarray, kernel.problem.example_instance())
            solve(None, [example])
        else:
            solve(np.zeros((1, dim)), None)
            solve(None, None)

    def _solved(self, kernel: Kernel, costs: np.ndarray, instances: Any) -> np.ndarray | None:
        """Solutions of the costs, of the first ones (with instances: the last) if there is no time for all; None: of none."""
        try:
            if not kernel.oracle.on_host:
                return np.asarray(kernel.oracle.answer(costs, instances).w, float)
            with self.turns.if_free() as free:
                return self._in_time(kernel, costs, instances) if free and not self.slow else None
        except Exception:  # health tells what it can: whatever a solver does with costs that nobody meant is no news
            self.slow = True
            return None

    def _in_time(self, kernel: Kernel, costs: np.ndarray, instances: Any) -> np.ndarray | None:
        found: list[np.ndarray] = []
        began = time.monotonic()
        order = range(min(len(costs), LAST))
        for row in order if instances is None else reversed(order):
            own = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], instances)
            found.append(np.asarray(kernel.oracle.answer(costs[row : row + 1], own).w[0], float))
            if time.monotonic() - began > PATIENCE:
                self.slow = len(found) == 1
                break
        return np.stack(found if instances is None else found[::-1])


def _stacked(instances: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *instances)
