"""Models of the cost given the context: ``p_θ(·|x)``.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> model = rg.models.GaussianLinear(dim=3, context_shape=(2,), scale=0.1)
>>> theta = model.init(jax.random.key(0))
>>> model.sample(theta, jnp.ones(2), model.draw(jax.random.key(1))).shape
(3,)
"""

from collections.abc import Callable

from regretless.models.base import Model
from regretless.models.gaussian import GaussianLinear, GaussianNN

REGISTRY: dict[str, Callable[..., Model]] = {
    "gaussian_linear": GaussianLinear,
    "gaussian_nn": GaussianNN,
}

__all__ = ["REGISTRY", "GaussianLinear", "GaussianNN", "Model"]
