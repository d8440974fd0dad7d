"""Models of the cost given the context, ``p_θ(·|x)``, and nuisance regressions ``f_φ(x) ≈ E[c|x]``.

Each is a specification, such as ``GaussianLinear()``, whose ``build`` makes the model for a number of costs and a
shape of contexts.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> model = rg.models.GaussianLinear().build(dim=3, context_shape=(2,), scale=0.1)
>>> theta = model.init(jax.random.key(0))
>>> model.sample(theta, jnp.ones(2), model.draw(jax.random.key(1))).shape
(3,)
"""

from typing import TYPE_CHECKING

from regretless.models.base import (
    REGISTRY,
    GenerativeModel,
    GenerativeModelSpec,
    Model,
    ModelSpec,
    PointModel,
    PointModelSpec,
)
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.models import networks
    from regretless.models.diffusion import Diffusion
    from regretless.models.flow import Flow
    from regretless.models.gaussian import GaussianLinear, GaussianModel, GaussianNN
    from regretless.models.nuisance import MLPNuisance, Nuisance, NuisanceSpec

__all__ = [
    "REGISTRY",
    "Diffusion",
    "Flow",
    "GaussianLinear",
    "GaussianModel",
    "GaussianNN",
    "GenerativeModel",
    "GenerativeModelSpec",
    "MLPNuisance",
    "Model",
    "ModelSpec",
    "Nuisance",
    "NuisanceSpec",
    "PointModel",
    "PointModelSpec",
    "is_generative",
    "networks",
    "parse",
    "register",
]

parse = REGISTRY.parse
"""Return a model's specification from its name, such as ``"flow"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a model of your own under a name."""

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    {
        **REGISTRY.locations,
        "GaussianModel": "regretless.models.gaussian:GaussianModel",
        "MLPNuisance": "regretless.models.nuisance:MLPNuisance",
        "Nuisance": "regretless.models.nuisance:Nuisance",
        "NuisanceSpec": "regretless.models.nuisance:NuisanceSpec",
    },
)


def is_generative(name: str) -> bool:
    """Return whether a model of this name is generative; the other models add noise to a point prediction.

    Parameters
    ----------
    name : str
        A name of ``REGISTRY``.

    Examples
    --------
    >>> [name for name in ("gaussian_linear", "gaussian_nn", "flow", "diffusion") if is_generative(name)]
    ['flow', 'diffusion']
    """
    return issubclass(REGISTRY[name], GenerativeModelSpec)
