"""Models of the cost given the context: ``p_θ(·|x)``.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> model = rg.models.GaussianLinear.build(dim=3, context_shape=(2,), scale=0.1)
>>> theta = model.init(jax.random.key(0))
>>> model.sample(theta, jnp.ones(2), model.draw(jax.random.key(1))).shape
(3,)
"""

from typing import TYPE_CHECKING, Any

from regretless.models.base import GenerativeModel, Model, PointModel
from regretless.registry import Later, Registry, late_name

if TYPE_CHECKING:
    from regretless.models.diffusion import Diffusion
    from regretless.models.flow import Flow
    from regretless.models.gaussian import Gaussian, GaussianLinear, GaussianNN


_LATE: dict[str, Later[Any]] = {
    "Diffusion": Later("regretless.models.diffusion", "Diffusion"),
    "Flow": Later("regretless.models.flow", "Flow"),
    "Gaussian": Later("regretless.models.gaussian", "Gaussian"),
    "GaussianLinear": Later("regretless.models.gaussian", "GaussianLinear"),
    "GaussianNN": Later("regretless.models.gaussian", "GaussianNN"),
}

REGISTRY: Registry[type[Model]] = Registry(
    "model",
    "models",
    {
        "gaussian_linear": _LATE["GaussianLinear"],
        "gaussian_nn": _LATE["GaussianNN"],
        "flow": _LATE["Flow"],
        "diffusion": _LATE["Diffusion"],
    },
    ("Settings", "build"),
    "a class that subclasses PointModel or GenerativeModel of regretless.models",
)


def __getattr__(name: str) -> Any:
    return late_name(__name__, _LATE, name)


def __dir__() -> list[str]:
    return __all__


def is_generative(name: str) -> bool:
    """Whether a model is known by its samples; the others are around a point prediction.

    >>> [name for name in ("gaussian_linear", "gaussian_nn", "flow", "diffusion") if is_generative(name)]
    ['flow', 'diffusion']
    """
    return issubclass(REGISTRY[name], GenerativeModel)


__all__ = [
    "REGISTRY", "Diffusion", "Flow", "Gaussian", "GaussianLinear", "GaussianNN", "GenerativeModel", "Model", "PointModel",
]  # fmt: skip
