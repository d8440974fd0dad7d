"""The benchmarks of the literature next to PyEPO's generators and models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from extra import required

generators = required("pyepo.data")
solvers = required("pyepo.model.ort")
B = rg.benchmarks
SEEDS, ROWS, FEATURES = 24, 100, 5


def pyepos(name, degree, seed):
    """Return costs to minimise, drawn by PyEPO."""
    drawn = getattr(generators, name).genData
    common = {"num_data": ROWS, "num_features": FEATURES, "deg": degree, "seed": seed}
    if name == "shortestpath":
        return drawn(grid=(3, 3), noise_width=0.5, **common)[1]
    if name == "knapsack":
        return -drawn(num_items=8, dim=2, noise_width=0.5, **common)[2]
    if name == "tsp":
        return drawn(num_nodes=5, noise_width=0.5, **common)[1]
    return -drawn(num_assets=8, noise_level=1, **common)[2]


SPECS = {
    "shortestpath": lambda degree: B.GridPath(side=3, degree=degree),
    "knapsack": lambda degree: B.Knapsack(items=8, degree=degree),
    "tsp": lambda degree: B.TravellingSalesman(nodes=5, degree=degree),
    "portfolio": lambda degree: B.Portfolio(assets=8, degree=degree),
}


@pytest.mark.parametrize("degree", [1, 4])
@pytest.mark.parametrize("name", SPECS)
def test_moments_agree_with_pyepos_generators(name, degree):
    """Mean and mean logarithmic size of the costs agree within four standard errors over data sets."""
    benchmark = SPECS[name](degree).build()

    @jax.jit
    @jax.vmap
    def ours(key):
        world, rest = jax.random.split(key)
        environment = benchmark.environment(world)
        keys = jax.random.split(rest, ROWS)
        return jax.vmap(lambda key: benchmark.round(key, environment, jnp.int32(1)).cost)(keys)

    drawn = np.asarray(ours(jax.random.split(jax.random.key(0), SEEDS)), np.float64)
    others = np.stack([pyepos(name, degree, seed) for seed in range(SEEDS)]).astype(np.float64)
    assert drawn.shape == others.shape
    for measure in (lambda costs: costs, lambda costs: np.log1p(np.abs(costs)), lambda costs: costs.std(axis=1)):
        one, other = (measure(costs).reshape(SEEDS, -1).mean(axis=1) for costs in (drawn, others))
        error = (one.var(ddof=1) / SEEDS + other.var(ddof=1) / SEEDS) ** 0.5
        assert abs(one.mean() - other.mean()) < 4 * error, f"{one.mean():.4g} and {other.mean():.4g} ± {error:.2g}"


def test_pyepos_models_are_oracles_of_a_fit():
    """PyEPO's OR-Tools knapsack and our own oracle: the same optima and the same fit."""
    weights, x, values = generators.knapsack.genData(40, FEATURES, 6, dim=2, deg=2, noise_width=0.5, seed=3)
    model = solvers.knapsackModel(weights=weights, capacity=[12.0, 12.0])
    data = [
        rg.offline.Dataset(x, -values + np.arange(6) / 997, oracle)  # no ties
        for oracle in (rg.oracles.from_pyepo(model), rg.oracles.knapsack(weights, [12.0, 12.0]))
    ]
    assert np.array_equal(data[0].optima, data[1].optima)
    training = rg.offline.Training(epochs=3, batch=20)
    fits = [rg.offline.fit("gaussian_linear", part, training=training, surrogate="spo_plus") for part in data]
    for one, other in zip(jax.tree.leaves(fits[0].params), jax.tree.leaves(fits[1].params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    scores = [rg.offline.score(fit, part).regret for fit, part in zip(fits, data, strict=True)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-3)
    assert np.array_equal(data[0].oracle.answer(-values[:3]).w @ weights.T <= 12, np.ones((3, 2), bool))
