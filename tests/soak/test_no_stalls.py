"""After ``warm_up`` no call of a learner compiles or stalls.

Decisions (one context or several), feedback that is complete, partial, late, in pieces or never comes, explanations
and health, in random order. Of each call the processor time of all threads is taken, less the solver's own. No call
may compile, and the 99.9th percentile must stay below 50 ms (asserted from 1,000 calls on).
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from regretless import oracles
from regretless.live.learner import Learner
from regretless.live.records import Choice
from regretless.oracles.base import Oracle
from soak.sizes import size

COMPILED = "/jax/core/compile/backend_compile_duration"
LIMIT = 50.0
"""Milliseconds of processor time that one call in a thousand may exceed."""

SIDE, ITEMS, CHOSEN = 12, 8, 3
SEVERAL = 5
"""Contexts of one batch."""

MOST_LATE = 200
"""Number of waiting decisions from which on the oldest gets its feedback."""


class Solver:
    """The cheapest assignment of rows to columns; ``seconds`` is the processor time spent so far."""

    def __init__(self, side: int):
        self.side, self.seconds = side, 0.0

    def __call__(self, cost: np.ndarray) -> np.ndarray:
        began = time.process_time()
        w = np.zeros((self.side, self.side))
        w[linear_sum_assignment(cost.reshape(self.side, self.side))] = 1.0
        self.seconds += time.process_time() - began
        return w.ravel()


class World(NamedTuple):
    """A problem for a learner."""

    oracle: Oracle
    features: int
    feedback: str
    solver: Solver | None  # whose time is not the learner's


def worlds() -> dict[str, World]:
    """Return the problems by name."""
    problems = {}
    for feedback in ("semi_bandit", "bandit"):
        solver = Solver(SIDE)
        oracle = oracles.external(solver, SIDE * SIDE)
        problems[f"assignment, {SIDE} by {SIDE}, {feedback}"] = World(oracle, 6, feedback, solver)
    problems[f"{CHOSEN} of {ITEMS} items, full"] = World(oracles.top_k(ITEMS, CHOSEN), 3, "full", None)
    return problems


class Stream:
    """Random calls of one learner, with the processor time of each without the solver's, by method."""

    def __init__(self, world: World, policy: str, seed: int):
        self.world = world
        self.learner = Learner(world.oracle, context=world.features, feedback=world.feedback, policy=policy)
        self.rng = np.random.default_rng(seed)
        self.slopes = self.rng.normal(size=(world.oracle.dim, world.features))
        self.open: list[Choice] = []
        self.spent: dict[str, list[float]] = {}

    def step(self) -> None:
        """Make one call, or two if feedback arrives in parts."""
        draw = self.rng.random()
        if not self.open or draw < 0.45:
            x = self.rng.normal(size=self.world.features)
            self.open.append(self._timed("decide", lambda: self.learner.decide(x)))
        elif draw < 0.47:
            several = self.rng.normal(size=(SEVERAL, self.world.features))
            self.open += self._timed(f"decide {SEVERAL}", lambda: self.learner.decide_batch(several))
        elif draw < 0.95:
            late = len(self.open) > MOST_LATE or self.rng.random() < 0.3
            self._feedback(self.open.pop(0 if late else -1))
        elif draw < 0.98:
            choice = self.open[-1]
            self._timed("explain", lambda: self.learner.explain(choice))
        else:
            self._timed("health", self.learner.health)

    def _feedback(self, choice: Choice) -> None:
        kind = self.rng.random()
        if kind < 0.02:
            return  # never comes
        costs = 5.0 + self.slopes @ choice.context + self.rng.normal(size=self.world.oracle.dim)
        id, chosen = choice.id, np.flatnonzero(choice.w)
        if self.world.feedback == "bandit":
            self._timed("learn", lambda: self.learner.learn(id, total=float(costs @ choice.w)))
            return
        parts = {int(i): float(costs[i]) for i in chosen}
        some = dict(list(parts.items())[: len(parts) // 2])
        if kind < 0.2:
            self._timed("learn a part", lambda: self.learner.learn(id, components=some))
        elif kind < 0.3:
            rest = {i: cost for i, cost in parts.items() if i not in some}
            self._timed("hold a piece", lambda: self.learner.learn(id, components=some, final=False))
            self._timed("learn the last piece", lambda: self.learner.learn(id, components=rest))
        else:
            self._timed("learn", lambda: self.learner.learn(id, costs=costs))

    def _timed(self, verb: str, call: Callable[[], Any]) -> Any:
        solver = self.world.solver
        solved = 0.0 if solver is None else solver.seconds
        began = time.process_time()
        result = call()
        spent = time.process_time() - began
        solving = 0.0 if solver is None else solver.seconds - solved
        self.spent.setdefault(verb, []).append(1000.0 * (spent - solving))
        return result


@pytest.fixture(scope="module")
def compilations() -> list[str]:
    """Names of the compilations of this process so far."""
    names: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **about: names.append(name) if name == COMPILED else None
    )
    return names


@pytest.mark.parametrize("name", worlds())
def test_no_call_compiles_or_stalls_after_warm_up(name, compilations):
    calls = size("stall_calls", 60)
    stream = Stream(worlds()[name], "adaptive", seed=0)
    stream.learner.warm_up([SEVERAL])
    before = len(compilations)
    while sum(map(len, stream.spent.values())) < calls:
        stream.step()
    assert len(compilations) == before
    if calls >= 1000:
        milliseconds = {verb: np.percentile(spent, [50, 99, 99.9]).round(2) for verb, spent in stream.spent.items()}
        assert np.percentile(np.concatenate([*map(np.array, stream.spent.values())]), 99.9) <= LIMIT, milliseconds
