"""Knapsacks by sets, by capacity and by HiGHS: the same optimum as the mixed-integer program, whatever the method."""

import numpy as np
import pytest

from regretless import oracles, testing
from regretless.errors import SettingsError

RNG = np.random.default_rng(0)
CASES = {
    "sets": ((RNG.integers(300, 800, (2, 16)) / 100), [20, 20]),
    "capacity": (RNG.integers(5, 60, 24) / 10, [30.0]),
    "highs": (RNG.uniform(3, 8, (2, 28)), [60, 55]),
}


@pytest.fixture(scope="module")
def bags():
    return {name: oracles.knapsack(*case) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_method_finds_the_optimum_of_the_program(name, bags):
    weights, capacity = CASES[name]
    bag = bags[name]
    assert bag.method == name
    rows = 12
    costs = np.random.default_rng(1).normal(-0.5, 1.0, (rows, bag.dim))
    costs[::4] = np.round(costs[::4])  # ties and zeros
    costs[1::4] *= 1e6
    masks = np.random.default_rng(2).uniform(size=costs.shape) < 0.7
    program = oracles.milp(A_ub=np.atleast_2d(weights), b_ub=capacity, integrality=1)
    for instances, known in ((None, None), (masks, {"available": masks})):
        w = bag.answer(costs, instances).w
        best = np.sum(costs * program.answer(costs, known).w, axis=1)
        np.testing.assert_allclose(np.sum(costs * w, axis=1), best, rtol=1e-9, atol=1e-9)
        assert bag.contained(w, instances).all()
        assert program.contained(w).all()
        assert np.max(np.sum(w, axis=1)) <= bag.support
    assert not np.any(w[~masks])


@pytest.mark.parametrize("name", ["capacity", "highs"])
def test_keeps_the_contract(name, bags):
    testing.check_oracle(bags[name])


def test_the_bound_is_met_to_the_last_unit():
    """0.1 + 0.2 is 0.3 for these weights, although it is more in floating-point numbers."""
    bag = oracles.knapsack([0.1, 0.2, 0.3], 0.3)
    assert bag.contained([[1, 1, 0], [0, 0, 1], [1, 0, 1]]).tolist() == [True, True, False]
    assert bag.answer([[-2.0, -2.0, -3.0]]).w.tolist() == [[1, 1, 0]]
    thirds = oracles.knapsack([1 / 3, 1 / 3, 1 / 3], 1.0)
    assert thirds.contained([[1, 1, 1]]).all()
    assert not oracles.knapsack([1 / 3, 1 / 3, 1 / 3], 0.99).contained([[1, 1, 1]]).any()


def test_nothing_fits_or_everything_does():
    assert oracles.knapsack([2.0, 3.0], 1.0).answer([[-1.0, -1.0]]).w.tolist() == [[0, 0]]
    assert oracles.knapsack([0.0, 0.0], 0.0).answer([[-1.0, 1.0]]).w.tolist() == [[1, 0]]
    assert oracles.knapsack([0, 2, 3], 1).answer([[-1.0, -5.0, 1.0]]).w.tolist() == [[1, 0, 0]]


def test_the_number_of_sets_decides_about_the_method():
    many = oracles.knapsack(np.full((2, 40), 0.3) + np.arange(80).reshape(2, 40) % 7 / 100, [9, 9])
    assert many.method == "highs"
    assert oracles.knapsack(np.ones((2, 12)), [12, 12]).method == "sets"


@pytest.mark.parametrize(
    ("weights", "capacity", "message"),
    [
        ([[1, 2]], [1, 2], r"got shapes \(1, 2\) and \(2,\)"),
        ([], 1, "expected weights of shape"),
        ([1, -2], 1, "expected weights and capacities of at least 0"),
        ([1, 2], -1, "expected weights and capacities of at least 0"),
        ([1, np.nan], 1, "knapsack: weights: expected finite numbers"),
        (["1"], 1, "knapsack: weights: expected numbers, got text"),
    ],
)
def test_refuses_what_is_no_knapsack(weights, capacity, message):
    with pytest.raises(SettingsError, match=message):
        oracles.knapsack(weights, capacity)
