"""Projections against exact ones, constraints that bind at optima, and the learned loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from regretless import oracles, surrogates
from regretless.errors import SettingsError
from regretless.surrogates.projection import project_on_cone

pytestmark = pytest.mark.usefixtures("float64")
RNG = np.random.default_rng(4)
PREDICTION, TARGET = (jnp.asarray(RNG.normal(size=5)) for _ in range(2))


def regularised(cost, lam):
    """The minimiser of c·w + ½ λ ‖w‖² over 0 ≤ w ≤ 1 with two items in all, by bisection of the multiplier."""
    low, high = -100.0, 100.0
    for _ in range(200):
        level = 0.5 * (low + high)
        w = np.clip((level - cost) / lam, 0.0, 1.0)
        low, high = (level, high) if w.sum() < 2 else (low, level)
    return w


def fenchel_young(cost, lam, best):
    w = regularised(cost, lam)
    return cost @ best + 0.5 * lam * best @ best - cost @ w - 0.5 * lam * w @ w


@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_frank_wolfe_is_the_gradient_of_its_loss(lam):
    oracle = oracles.top_k(5, 2)
    surrogate = surrogates.RegularizedFrankWolfe(lam=lam, iterations=3000).build(oracle)
    gradient, _ = jax.jit(lambda *given: surrogate(*given))(None, PREDICTION, TARGET, None)
    cost, best = np.asarray(PREDICTION), np.asarray(oracle.solve_one(TARGET).w)
    np.testing.assert_allclose(gradient, best - regularised(cost, lam), atol=2e-3)
    steps = 1e-5 * np.eye(5)
    numeric = [(fenchel_young(cost + h, lam, best) - fenchel_young(cost - h, lam, best)) / 2e-5 for h in steps]
    np.testing.assert_allclose(gradient, numeric, atol=2e-3)


@pytest.mark.parametrize(
    ("oracle", "instance"),
    [
        (oracles.top_k(6, 2), None),
        (oracles.top_k(6, 2), np.arange(6) != 1),
        (oracles.pricing(3, 3, 2, 1), None),
        (oracles.pricing(3, 3, 2, 1), np.asarray(2)),
        (oracles.assignment(3), None),
        (oracles.shortest_path(oracles.grid_edges(3, 3)), None),
        (oracles.milp(A_ub=[[1.0, 2.0, 1.0]], b_ub=[2.0], A_eq=[[1.0, 0.0, 1.0]], b_eq=[1.0]), None),
        (oracles.milp(A_ub=[[1.0, 2.0, 1.0]], b_ub=[2.0]), {"b_ub": [1.5], "available": [1, 0, 1]}),
    ],
    ids=["top_k", "mask", "pricing", "budget", "assignment", "path", "milp", "sides"],
)
def test_minus_the_cost_is_in_the_cone_of_its_solution(oracle, instance):
    """A decision is optimal exactly if minus its cost is a combination of the normals of binding constraints."""
    project = jax.jit(lambda cost, normals: project_on_cone(-cost, normals, 4000))
    for seed in range(3):
        cost, other = np.random.default_rng(seed).normal(size=(2, oracle.dim))
        best, elsewhere = (oracle.solve_one(jnp.asarray(c), instance).w for c in (cost, other))
        normals = np.asarray(oracle.binding_normals(jnp.asarray(best, float), instance))
        assert nnls(normals.T, -cost)[1] == pytest.approx(0.0, abs=1e-8)
        np.testing.assert_allclose(project(cost, jnp.asarray(normals)), -cost, atol=1e-3)
        if cost @ elsewhere > cost @ best + 1e-6:
            outside = np.asarray(oracle.binding_normals(jnp.asarray(elsewhere, float), instance))
            assert nnls(outside.T, -cost)[1] > 1e-6


def test_cave_is_the_gradient_of_the_cosine():
    oracle = oracles.top_k(5, 2)
    surrogate = surrogates.CaVE(iterations=3000).build(oracle)
    gradient, _ = jax.jit(lambda *given: surrogate(*given))(None, PREDICTION, TARGET, None)
    best = oracle.solve_one(TARGET).w
    normals = np.array(oracle.binding_normals(best))
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    weights, _ = nnls(normals.T, -np.asarray(PREDICTION))
    projection = weights @ normals
    loss = lambda c: 1.0 + c @ projection / jnp.linalg.norm(c) / np.linalg.norm(projection)  # noqa: E731
    np.testing.assert_allclose(gradient, jax.grad(loss)(PREDICTION), atol=1e-4)
    inside, _ = surrogate(None, TARGET, TARGET, None)
    np.testing.assert_allclose(inside, 0.0, atol=1e-3)


def test_cave_needs_an_oracle_that_knows_its_constraints():
    oracle = oracles.external(lambda cost: np.eye(3)[np.argmin(cost)], 3)
    with pytest.raises(SettingsError, match="cave: expected an oracle that knows its constraints"):
        surrogates.CaVE().build(oracle)


def test_lancer_learns_the_regret():
    """On calls that it was not fitted to; with costs of size five the first network is far off."""
    oracle, rng = oracles.top_k(5, 2), np.random.default_rng(0)
    surrogate = surrogates.LANCER(lr=0.03).build(oracle)
    targets, errors = (5.0 * rng.normal(size=(500, 5)) for _ in range(2))
    predictions = jnp.asarray(targets + errors * [1.0, 0.1, 1.0, 0.1, 1.0])
    targets = jnp.asarray(targets)
    regrets = jnp.sum(targets * (oracle.solve(predictions).w - oracle.solve(targets).w), axis=1)

    @jax.jit
    def miss(memory):
        predicted = jax.vmap(lambda e: surrogate.loss(memory.weights, jnp.square(e)))((predictions - targets)[400:])
        return jnp.mean(jnp.square(predicted - regrets[400:]))

    @jax.jit
    def train(memory):
        step = lambda memory, pair: (surrogate(memory, *pair, None)[1], None)  # noqa: E731
        return jax.lax.scan(step, memory, (predictions[:400], targets[:400]))[0]

    start = surrogate.init()
    trained = train(start)
    assert miss(start) > 50 * jnp.var(regrets[400:])
    assert miss(trained) < 1.2 * jnp.var(regrets[400:]), "least squares on these errors reaches 1.01"
    numeric = jax.grad(lambda c: surrogate.loss(trained.weights, jnp.square(c - TARGET)))(PREDICTION)
    np.testing.assert_allclose(surrogate(trained, PREDICTION, TARGET, None)[0], numeric, rtol=1e-9)
