"""The synthetic benchmarks against their descriptions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks
from regretless.errors import SettingsError


def first_round(benchmark, seed=0):
    environment = benchmark.environment(jax.random.key(seed))
    return np.asarray(environment), benchmark.round(jax.random.key(seed + 1), environment, jnp.int32(1))


@pytest.mark.parametrize("name", ["topk", "shortest_path"])
@pytest.mark.parametrize("degree", [2, 8])
@pytest.mark.usefixtures("float64")
def test_polynomial_costs(name, degree):
    benchmark = benchmarks.parse(name, {"degree": degree}).build()
    omega, played = first_round(benchmark)
    p = benchmark.context_shape[0]
    assert set(np.unique(omega)) == {0.0, 1.0}
    assert 0.3 < omega.mean() < 0.7
    mean = 1 + (1 + omega @ np.asarray(played.observation) / p**0.5) ** degree
    np.testing.assert_allclose(played.mean, mean, rtol=1e-9)
    ratio = np.asarray(played.cost) / mean
    assert np.all((ratio >= 0.5) & (ratio <= 1.5))
    assert ratio.std() > 0.1


def test_sizes_are_the_papers():
    shapes = {name: (b.oracle.dim, b.context_shape, b.horizon) for name, b in built().items()}
    assert shapes == {"topk": (15, (5,), 2000), "shortest_path": (40, (10,), 2000), "pricing": (80, (80, 60), 2000)}


def built():
    return {name: benchmarks.parse(name).build() for name in ("topk", "shortest_path", "pricing")}


def test_sign_option_gives_the_papers_text():
    _, plus = first_round(benchmarks.parse("topk").build())
    _, minus = first_round(benchmarks.parse("topk", {"sign": "-1"}).build())
    np.testing.assert_array_equal(plus.cost, -minus.cost)
    with pytest.raises(SettingsError, match="'sign': Input should be 1 or -1, got 3"):
        benchmarks.parse("topk", {"sign": 3}).build()


@pytest.mark.usefixtures("float64")
def test_pricing_demand_and_features(golden):
    """Means against the recorded ones, features against a plain construction."""
    recorded = golden("dfhpg_pricing")
    benchmark = benchmarks.parse("pricing").build()
    directions, prices = recorded["environment"], np.linspace(0.1, 0.9, 4)
    for x, expected, cost in zip(recorded["context"], recorded["cost_mean"], recorded["cost"], strict=True):
        played = np.abs(directions @ x) ** 8
        demand = np.logaddexp(0, np.minimum(played[:, None] + (1 - prices) ** 8, 50)).clip(1e-6)
        np.testing.assert_allclose(-(prices * demand).reshape(-1), expected, rtol=1e-6)
        sold = -cost.reshape(20, 4) / prices
        np.testing.assert_allclose(sold, np.round(sold), atol=1e-6)
    rows = np.asarray(benchmark.context(directions, recorded["context"][3]))
    x, product, level = recorded["context"][3], 7, 2
    match = directions[product] @ x
    expected = [*x, *directions[product], match, abs(match) ** 8, prices[2], (1 - prices[2]) ** 8, 0, 0, 0, 1, 0, 1]
    np.testing.assert_allclose(rows[4 * product + level], expected, rtol=1e-9)
    assert rows[4 * product + 1, 54] == 1  # the second price is a promotion


@pytest.mark.usefixtures("float64")
def test_pricing_draws_follow_the_recorded_kind_of_mean():
    benchmark = benchmarks.parse("pricing").build()
    directions, played = first_round(benchmark)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, rtol=1e-6)
    match = np.abs(directions @ np.asarray(played.observation)) ** 8
    prices = np.linspace(0.1, 0.9, 4)
    demand = np.logaddexp(0, np.minimum(match[:, None] + (1 - prices) ** 8, 50))
    np.testing.assert_allclose(played.mean, -(prices * demand).reshape(-1), rtol=1e-6)
