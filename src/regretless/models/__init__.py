"""Models of the cost given the context: ``p_θ(·|x)``.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> model = rg.models.GaussianLinear(dim=3, context_shape=(2,), scale=0.1)
>>> theta = model.init(jax.random.key(0))
>>> model.sample(theta, jnp.ones(2), model.draw(jax.random.key(1))).shape
(3,)
"""

from collections.abc import Callable

from regretless.models.base import GenerativeModel, Model, PointModel
from regretless.models.diffusion import Diffusion
from regretless.models.flow import Flow
from regretless.models.gaussian import GaussianLinear, GaussianNN

POINT: dict[str, Callable[..., PointModel]] = {
    "gaussian_linear": GaussianLinear,
    "gaussian_nn": GaussianNN,
}
"""Around a point prediction; built from ``dim``, ``context_shape`` and the exploration scale."""

GENERATIVE: dict[str, Callable[..., GenerativeModel]] = {
    "flow": Flow,
    "diffusion": Diffusion,
}
"""Known by their samples; built from ``dim``, ``context_shape`` and options of their own."""

REGISTRY: dict[str, Callable[..., Model]] = {**POINT, **GENERATIVE}

__all__ = [
    "GENERATIVE", "POINT", "REGISTRY", "Diffusion", "Flow", "GaussianLinear", "GaussianNN", "GenerativeModel", "Model",
    "PointModel",
]  # fmt: skip
