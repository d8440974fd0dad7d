"""The published formulas, written out again in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks
from regretless.benchmarks.published import _mean_of_ceiling

B = benchmarks


def rounds_of(spec, count=2000, seed=0):
    benchmark = spec.build()
    with jax.enable_x64(True):
        environment = benchmark.environment(jax.random.key(seed))
        keys = jax.random.split(jax.random.key(seed + 1), count)
        played = jax.jit(jax.vmap(lambda key: benchmark.round(key, environment, jnp.int32(1))))(keys)
    return benchmark, *jax.tree.map(np.asarray, (environment, played))


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (B.GridPath(side=3, degree=3), lambda s, base: ((3 + s) ** 3 + 1) / 3.5**3),
        (B.Matching(side=3, degree=4), lambda s, base: ((3 + s) ** 4 + 1) / 3.5**4),
        (B.TravellingSalesman(nodes=4, degree=5), lambda s, base: base + (3 + s) ** 5 / 3**4),
        (B.Portfolio(assets=6, degree=2), lambda s, base: -((0.05 * s + 0.1 ** (1 / 2)) ** 2)),
        (B.Portfolio(assets=6, degree=3), lambda s, base: -((0.05 * s + 0.1 ** (1 / 3)) ** 3)),
    ],
    ids=lambda part: getattr(part, "registered_name", ""),
)
def test_means_are_the_formula(spec, formula):
    _, world, played = rounds_of(spec, 100)
    s = played.observation @ world.matrix.T / spec.features**0.5
    np.testing.assert_allclose(played.mean, formula(s, world.base), rtol=1e-9)


def test_the_random_factor_is_uniform():
    _, world, played = rounds_of(B.GridPath(side=3, noise_width=0.25))
    factor = played.cost / played.mean
    assert 0.75 <= factor.min() < 0.76
    assert 1.24 < factor.max() <= 1.25
    assert abs(factor.mean() - 1) < 6 * (0.25 / 3**0.5) / factor.size**0.5
    assert set(np.unique(world.matrix)) == {0, 1}


def test_values_of_items_are_whole_and_their_mean_is_that_of_the_ceiling():
    benchmark, world, played = rounds_of(B.Knapsack(degree=3))
    assert np.array_equal(played.cost, np.round(played.cost))
    value = 5 * ((3 + played.observation @ world.matrix.T / 5**0.5) ** 3 + 1) / 3.5**3
    assert np.all(-played.cost < value * 1.5 + 1)
    assert np.all(-played.cost >= value * 0.5)
    weights = np.array(benchmark.oracle.weights)
    assert weights.shape == (2, 16)
    assert 3 <= weights.min() < 3.6
    assert 7.4 < weights.max() <= 7.99
    factors = 1 + 0.5 * (2 * (np.arange(20_001) + 0.5) / 20_001 - 1)
    with jax.enable_x64(True):
        for number in (0.3, 2.0, 7.3, -1.2, 0.0):
            expected = np.mean(np.ceil(number * factors))
            assert float(_mean_of_ceiling(jnp.asarray(number), jnp.asarray(0.5))) == pytest.approx(expected, abs=1e-3)
        assert float(_mean_of_ceiling(jnp.asarray(2.4), jnp.asarray(0.0))) == 3


def test_distances_are_those_of_points():
    """Of four points in a plane, the sum of two opposite distances is at most that of the other pairs."""
    _, world, _ = rounds_of(B.TravellingSalesman(nodes=8), 2)
    place = {pair: number for number, pair in enumerate(itertools.combinations(range(8), 2))}
    for i, j, k in itertools.combinations(range(8), 3):
        one, two, three = (world.base[place[pair]] for pair in ((i, j), (j, k), (i, k)))
        assert one + two >= three - 1e-9
    assert np.abs(world.matrix).max() <= 2


def test_returns_have_the_covariance_of_the_constraint():
    spec = B.Portfolio(assets=5, noise_level=2.0, risk=3.0)
    benchmark, _, played = rounds_of(spec, 4000)
    expected = np.array(benchmark.oracle.covariance)
    assert benchmark.oracle.risk == pytest.approx(3 * expected.mean())
    found = np.cov((played.cost - played.mean).T)
    assert np.max(np.abs(found - expected)) < 6 * expected.max() * (2 / 4000) ** 0.5
