"""Costs compared with those of others: the estimates in worlds whose costs are known."""

import contextlib
import time

import numpy as np
import pytest

from regretless import oracles
from regretless.live.comparison import (
    BackgroundSolver,
    CostModel,
    CostReport,
    ModelRounds,
    RecentRounds,
    compare_costs,
)
from regretless.live.health import is_no_better_than_random

ITEMS, CHOSEN, COLUMNS = 12, 3, 2


def top(costs):
    w = np.zeros_like(costs)
    np.put_along_axis(w, np.argsort(costs, axis=1)[:, :CHOSEN], 1.0, axis=1)
    return w


class FixedDraws(BackgroundSolver):
    """Solve exactly, with other random decisions than a learner's solver has."""

    def __init__(self):
        super().__init__(oracles.top_k(ITEMS, CHOSEN), contextlib.nullcontext)

    def random(self):
        return top(np.random.default_rng(9).normal(size=(64, ITEMS)))


SOLVER = FixedDraws()


class World:
    """Linear costs of items with noise; ``skill``: how much of the true costs the decisions are by."""

    def __init__(self, seed, skill, by_row=False, rounds=240):
        rng = np.random.default_rng(seed)
        self.base, self.slopes = rng.uniform(2.0, 6.0, ITEMS), rng.normal(size=(ITEMS, COLUMNS))
        shape = (rounds, ITEMS, COLUMNS) if by_row else (rounds, COLUMNS)
        self.contexts = rng.normal(size=shape)
        effect = self.contexts @ self.slopes[0] if by_row else self.contexts @ self.slopes.T
        self.costs = self.base + effect
        grown = np.where(np.arange(rounds) < 80, 0.0, skill)[:, None]
        self.w = top(grown * self.costs + (1.0 - grown) * rng.normal(size=self.costs.shape))
        self.totals = np.sum(self.costs * self.w, axis=1) + 0.5 * rng.normal(size=rounds)

    def compared(self, kinds=None):
        first, last = slice(0, 120), slice(120, None)
        opening = ModelRounds.of(self.contexts[first], self.w[first])
        kinds = np.zeros(120, int) if kinds is None else kinds
        window = self.totals[last], kinds
        recent = RecentRounds(self.contexts[last], self.w[last], self.totals[last], kinds, [None] * 120, window)
        return compare_costs(opening, self.totals[first], recent, True, SOLVER)

    def true_difference(self, w):
        """Return what the decisions of the last rounds cost more than ``w``."""
        return float(np.mean(np.sum(self.costs[120:] * (self.w[120:] - w), axis=1)))


@pytest.mark.parametrize("by_row", [False, True], ids=["a vector", "rows"])
def test_intervals_hold_the_truth_and_verdicts_are_right(by_row):
    held = []
    for seed in range(4):
        good, bad = World(seed, 1.0, by_row), World(seed, 0.0, by_row)
        for world in (good, bad):
            shown = world.compared().random
            true = world.true_difference(SOLVER.random().mean(axis=0))
            held.append(shown.low <= true <= shown.high)
        costs = good.compared()
        assert costs.random.high < 0
        assert not is_no_better_than_random(costs.random)
        assert is_no_better_than_random(bad.compared().random)
        best = top(good.costs[120:].mean(axis=0)[None])[0]
        assert costs.best_fixed.low <= good.true_difference(best) + 0.5
    assert all(held)


def test_single_absurd_totals_change_little():
    world = World(0, 1.0)
    before = world.compared().random.difference
    world.totals[::40] *= 50.0
    assert world.compared().random.difference == pytest.approx(before, rel=0.25)


def test_the_incumbent_is_compared_by_its_own_rounds():
    world = World(1, 1.0)
    kinds = np.arange(120) % 4 == 0
    world.totals[120:][kinds] += 5.0
    shown = world.compared(kinds.astype(int)).incumbent
    own, theirs = world.totals[120:][~kinds], world.totals[120:][kinds]
    assert (shown.cost, shown.difference) == pytest.approx((theirs.mean(), own.mean() - theirs.mean()))
    assert shown.low < shown.difference < shown.high < 0
    assert (shown.estimated, shown.rounds, shown.all_rounds) == (False, 90, 120)


def test_too_few_rounds_or_equal_totals_give_no_comparison():
    world = World(2, 1.0)
    assert world.compared(np.r_[np.zeros(39, int), np.full(81, 2)]) == CostReport()
    world.totals[:] = 3.0
    costs = world.compared()
    assert (costs.paid.mean, costs.best_fixed, costs.random) == (3.0, None, None)


def test_mean_costs_are_what_the_model_expects_of_each_coordinate():
    for by_row in (False, True):
        world = World(3, 0.0, by_row)
        model = CostModel.fit(ModelRounds.of(world.contexts, world.w), world.totals, by_row)
        means = model.mean_costs(world.contexts)
        w = np.broadcast_to(world.w[0], world.w.shape)
        expected, _ = model.difference(ModelRounds.of(world.contexts, w))
        assert means @ world.w[0] == pytest.approx(expected.mean())
        np.testing.assert_allclose(means, world.costs.mean(axis=0), atol=0.8)


def test_a_slow_or_failing_solver_is_asked_once():
    def late(cost):
        time.sleep(0.6)
        return np.eye(ITEMS)[0]

    for function in (late, lambda cost: None):
        solver = BackgroundSolver(oracles.external(function, ITEMS), lambda: contextlib.nullcontext(True))
        assert solver.random() is None
        assert solver.slow
        assert solver.solve(np.ones(ITEMS)) is None


def test_a_host_solver_is_not_asked_while_another_call_needs_it():
    asked = []
    oracle = oracles.external(lambda cost: asked.append(cost) or top(cost[None])[0], ITEMS)
    solver = BackgroundSolver(oracle, lambda: contextlib.nullcontext(False))
    assert (solver.random(), solver.solve(np.ones(ITEMS)), asked) == (None, None, [])


def test_random_decisions_obey_the_instances_of_the_last_rounds():
    free = [np.arange(ITEMS) % 3 != t % 3 for t in range(40)]
    drawn = SOLVER.random_under(free)
    assert drawn.shape == (32, ITEMS)
    assert all(w[~own].sum() == 0 for w, own in zip(drawn, free[-32:], strict=True))
    assert SOLVER.random_under(free[:5]).shape == (5, ITEMS)
