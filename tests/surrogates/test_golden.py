"""Our surrogates against recorded gradients of an independent program."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, surrogates

ORACLES = {"topk": oracles.top_k(15, 2), "shortest_path": oracles.shortest_path(oracles.grid_edges(5, 5))}
with np.load(Path(__file__).parents[1] / "golden" / "surrogate_gradients.npz") as file:
    RECORDED = dict(file)
NAMES = sorted({key.partition("_grad_")[2] for key in RECORDED if "_grad_" in key})


def test_every_surrogate_of_the_paper_is_recorded():
    assert set(NAMES) <= set(surrogates.REGISTRY)
    assert len(NAMES) == 19


@pytest.mark.parametrize("problem", ORACLES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("float64")
def test_agrees_with_the_recorded_gradients(name, problem):
    oracle = ORACLES[problem]
    if problem == "shortest_path":
        assert np.array_equal(RECORDED["shortest_path_edges"], oracle.edges)
    surrogate = surrogates.parse(name).build(oracle)
    memory = surrogate.init()
    noises = RECORDED.get(f"{problem}_noise_{name}", [None] * 12)
    for call, noise in enumerate(noises):
        prediction, target = RECORDED[f"{problem}_prediction"][call], RECORDED[f"{problem}_target"][call]
        gradient, memory = surrogate(memory, jnp.asarray(prediction), jnp.asarray(target), noise)
        np.testing.assert_allclose(gradient, RECORDED[f"{problem}_grad_{name}"][call], rtol=1e-9, atol=1e-12)
