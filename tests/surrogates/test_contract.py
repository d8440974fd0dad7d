"""What every surrogate must do, on every problem: agree with the recorded gradients, and descend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, surrogates

ORACLES = {
    "topk": oracles.top_k(15, 2),
    "shortest_path": oracles.shortest_path(oracles.grid_edges(5, 5)),
    "pricing": oracles.pricing(6, 4, 2, 3),
}


@pytest.fixture(params=surrogates.REGISTRY)
def name(request):
    return request.param


@pytest.mark.parametrize("problem", ["topk", "shortest_path"])
@pytest.mark.usefixtures("float64")
def test_agrees_with_the_recorded_gradients(golden, name, problem):
    recorded = golden("surrogate_gradients")
    oracle = ORACLES[problem]
    if problem == "shortest_path":
        assert np.array_equal(recorded["shortest_path_edges"], oracle.edges)
    surrogate = surrogates.REGISTRY[name](oracle)
    memory = surrogate.init()
    noises = recorded.get(f"{problem}_noise_{name}", [None] * 12)
    for call, noise in enumerate(noises):
        prediction, target = recorded[f"{problem}_prediction"][call], recorded[f"{problem}_target"][call]
        gradient, memory = surrogate(memory, jnp.asarray(prediction), jnp.asarray(target), noise)
        np.testing.assert_allclose(gradient, recorded[f"{problem}_grad_{name}"][call], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", ORACLES)
def test_a_step_along_the_negative_gradient_lowers_the_task_cost(name, problem):
    """Mean change of ``E c·w*(ĉ + ½ξ)`` over random instances, below zero with one-sided confidence 99.9 % (z < −3.1).

    A prediction far from the target takes twenty small steps, so that surrogates with a memory have one. The cost is that of
    a policy that plays around its prediction: ``pg`` with a backward difference pushes worse neighbours away and never
    changes the decision at the prediction itself.
    """
    oracle = ORACLES[problem]
    surrogate = surrogates.REGISTRY[name](oracle)

    def change(key):
        keys = jax.random.split(key, 23)
        target = jax.random.normal(keys[0], (oracle.dim,))
        start = jax.random.normal(keys[1], (oracle.dim,))
        around = 0.5 * jax.random.normal(keys[2], (8, oracle.dim))
        spent = lambda c: jnp.mean(oracle.solve(c + around).w @ target)  # noqa: E731

        def step(carry, key):
            prediction, memory = carry
            gradient, memory = surrogate(memory, prediction, target, surrogate.draw(key))
            gradient = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1e-12)
            return (prediction - 0.1 * gradient, memory), None

        (end, _), _ = jax.lax.scan(step, (start, surrogate.init()), keys[3:])
        return spent(end) - spent(start)

    changes = np.asarray(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), 400)))
    z = changes.mean() / (changes.std(ddof=1) / len(changes) ** 0.5)
    assert z < -3.1, f"mean change {changes.mean():.3g}, z = {z:.1f}"
