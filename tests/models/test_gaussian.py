"""The Gaussian models: where their weights start, and how wide they are."""

import jax
import numpy as np
import pytest

from regretless.models import GaussianLinear, GaussianNN


@pytest.mark.parametrize("shape", [(50,), (400, 5000)], ids=["vector", "rows"])
@pytest.mark.parametrize("start", [0.01, 0.5])
def test_initial_weights_have_the_stated_spread(shape, start):
    model = GaussianLinear(start=start).build(400, shape)
    theta = np.asarray(model.init(jax.random.key(0)))
    assert theta.std() == pytest.approx(start, rel=0.05)
    assert abs(theta.mean()) < 0.1 * start


def test_the_net_has_the_width_that_was_set():
    model = GaussianNN(width=7).build(4, (3,))
    assert [layer.weight.shape for layer in model.init(jax.random.key(0))] == [(3, 7), (7, 4)]
