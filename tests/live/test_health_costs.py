"""What decisions cost beside others: the estimates against worlds whose costs are known."""

import numpy as np
import pytest

from regretless.live.health_costs import Costs, Seen, compared, estimate, features
from regretless.live.health_model import Rounds, fitted
from regretless.live.health_words import judged

ITEMS, CHOSEN, COLUMNS = 12, 3, 2


def top(costs):
    w = np.zeros_like(costs)
    np.put_along_axis(w, np.argsort(costs, axis=1)[:, :CHOSEN], 1.0, axis=1)
    return w


def solve(costs, instances):
    return top(np.random.default_rng(9).normal(size=(64, ITEMS)) if costs is None else costs)


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
        opening = Rounds(features(self.contexts[first], self.w[first]), self.w[first])
        kinds = np.zeros(120, int) if kinds is None else kinds
        paid = self.totals[last], kinds
        seen = Seen(self.contexts[last], self.w[last], self.totals[last], kinds, [None] * 120, paid)
        return compared(opening, self.totals[first], seen, True, solve)

    def more_than(self, w):
        """What the decisions truly cost more, in the last rounds."""
        return float(np.mean(np.sum(self.costs[120:] * (self.w[120:] - w), axis=1)))


@pytest.mark.parametrize("by_row", [False, True], ids=["a vector", "rows"])
def test_intervals_hold_the_truth_and_verdicts_are_right(by_row):
    held = []
    for seed in range(4):
        good, bad = World(seed, 1.0, by_row), World(seed, 0.0, by_row)
        for world in (good, bad):
            told = world.compared().random
            true = world.more_than(solve(None, None).mean(axis=0))
            held.append(told.low <= true <= told.high)
        costs = good.compared()
        assert costs.random.high < 0
        assert "cheaper than random by" in judged(costs, False)[-1]
        assert "earns more than random by" in judged(costs, True)[-1]
        assert judged(bad.compared(), False) == ["decides no better than random"]
        best = top(good.costs[120:].mean(axis=0)[None])[0]
        assert costs.best_fixed.low <= good.more_than(best) + 0.5
    assert all(held)


def test_single_absurd_totals_change_little():
    world = World(0, 1.0)
    before = world.compared().random.difference
    world.totals[::40] *= 50.0
    assert world.compared().random.difference == pytest.approx(before, rel=0.25)


def test_the_incumbent_is_judged_by_what_it_paid():
    world = World(1, 1.0)
    kinds = np.arange(120) % 4 == 0
    world.totals[120:][kinds] += 5.0
    told = world.compared(kinds.astype(int)).incumbent
    own, theirs = world.totals[120:][~kinds], world.totals[120:][kinds]
    assert (told.cost, told.difference) == pytest.approx((theirs.mean(), own.mean() - theirs.mean()))
    assert told.low < told.difference < told.high < 0
    assert (told.estimated, told.rounds) == (False, 90)


def test_too_few_rounds_or_totals_that_say_nothing_tell_nothing():
    world = World(2, 1.0)
    assert world.compared(np.r_[np.zeros(39, int), np.full(81, 2)]) == Costs()
    assert judged(Costs(), False) == ["how good its decisions are cannot be told yet"]
    world.totals[:] = 3.0
    costs = world.compared()
    assert (costs.paid.mean, costs.best_fixed, costs.random) == (3.0, None, None)


def test_a_mean_has_an_interval_from_batches():
    told = estimate(np.repeat([1.0, 3.0], 20))
    assert (told.mean, told.rounds) == (2.0, 40)
    assert told.high - 2.0 == pytest.approx(1.96 * np.std([1, 1, 3, 3], ddof=1) / 2.0)


def test_mean_costs_are_what_the_model_expects_of_each_coordinate():
    for by_row in (False, True):
        world = World(3, 0.0, by_row)
        model = fitted(Rounds(features(world.contexts, world.w), world.w), world.totals, by_row)
        means = model.mean_costs(world.contexts)
        w = np.broadcast_to(world.w[0], world.w.shape)
        expected, _ = model.difference(Rounds(features(world.contexts, w), w))
        assert means @ world.w[0] == pytest.approx(expected.mean())
        np.testing.assert_allclose(means, world.costs.mean(axis=0), atol=0.8)
