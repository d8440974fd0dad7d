"""Round trips against all permutations, with edges closed and without."""

import itertools

import jax
import numpy as np
import pytest

from regretless import oracles
from regretless.errors import SettingsError


def all_trips(oracle):
    number = {edge: e for e, edge in enumerate(oracle.names)}
    trips = set()
    for order in itertools.permutations(range(1, oracle.nodes)):
        stops = (0, *order, 0)
        trips.add(tuple(sorted(number[min(pair), max(pair)] for pair in itertools.pairwise(stops))))
    rows = np.zeros((len(trips), oracle.dim))
    for row, trip in zip(rows, sorted(trips), strict=True):
        row[list(trip)] = 1
    return rows


@pytest.mark.parametrize("nodes", [3, 6, 7])
def test_is_the_shortest_of_all_trips(nodes):
    oracle = oracles.travelling_salesman(nodes)
    trips = all_trips(oracle)
    assert oracle.contained(trips).all()
    rng = np.random.default_rng(nodes)
    costs = rng.normal(size=(40, oracle.dim)) * np.array([1.0, 1e6] * 20)[:, None]
    costs[::5] = np.round(costs[::5])  # ties and zeros
    masks = rng.uniform(size=costs.shape) < 0.8
    with jax.enable_x64(True):
        for instances, priced in ((None, costs), (masks, np.where(masks, costs, np.inf))):
            solution = oracle.solve(costs, instances)
            w = np.asarray(solution.w)
            lengths = np.where(trips[None] > 0, priced[:, None, :], 0.0).sum(axis=2)
            best, possible = lengths.min(axis=1), np.isfinite(lengths.min(axis=1))
            assert np.array_equal(np.asarray(solution.status) == 0, possible)
            np.testing.assert_allclose(np.sum(costs * w, axis=1)[possible], best[possible], rtol=1e-9)
            assert oracle.contained(w, instances)[possible].all()


def test_two_rings_are_not_a_trip():
    oracle = oracles.travelling_salesman(6)
    rings = {(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)}
    w = np.array([[float(edge in rings) for edge in oracle.names]])
    assert not oracle.contained(w).any()
    assert oracle.contained(oracle.answer(-w).w).all()


@pytest.mark.parametrize("nodes", [2, 17, 5.0, True])
def test_refuses_sizes_it_cannot_solve(nodes):
    with pytest.raises(SettingsError, match="travelling salesman: "):
        oracles.travelling_salesman(nodes)
