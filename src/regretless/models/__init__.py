"""Models of the cost given the context, ``p_θ(·|x)``, and nuisance regressions ``f_φ(x) ≈ E[c|x]``.

Each is a specification, such as ``GaussianLinear()``, whose ``build`` makes the model for a number of costs and a
shape of contexts.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> model = rg.models.GaussianLinear().build(dim=3, context_shape=(2,), scale=0.1)
>>> theta = model.init(jax.random.key(0))
>>> model.sample(theta, jnp.ones(2), model.draw(jax.random.key(1))).shape
(3,)
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.models.base import (
    REGISTRY,
    GenerativeModel,
    GenerativeModelSpec,
    Model,
    ModelSpec,
    PointModel,
    PointModelSpec,
)
from regretless.registry import lazy_attribute

if TYPE_CHECKING:
    from regretless.models import networks
    from regretless.models.diffusion import Diffusion
    from regretless.models.flow import Flow
    from regretless.models.gaussian import GaussianLinear, GaussianModel, GaussianNN
    from regretless.models.nuisance import LinearNuisance, MLPNuisance, Nuisance, NuisanceSpec

__all__ = [
    "REGISTRY",
    "Diffusion",
    "Flow",
    "GaussianLinear",
    "GaussianModel",
    "GaussianNN",
    "GenerativeModel",
    "GenerativeModelSpec",
    "LinearNuisance",
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

_LOCATIONS = {
    **REGISTRY.locations,
    "GaussianModel": "regretless.models.gaussian:GaussianModel",
    "LinearNuisance": "regretless.models.nuisance:LinearNuisance",
    "MLPNuisance": "regretless.models.nuisance:MLPNuisance",
    "Nuisance": "regretless.models.nuisance:Nuisance",
    "NuisanceSpec": "regretless.models.nuisance:NuisanceSpec",
}


def parse(name: str, settings: Mapping[str, Any] | None = None) -> ModelSpec:
    """Return a model's specification from its name.

    Parameters
    ----------
    name : str
        A key of ``REGISTRY``, such as ``"gaussian_nn"``.
    settings : mapping, optional
        Its settings by name.

    Raises
    ------
    SettingsError
        If the name or a setting is unknown, or a value cannot be used.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.models.parse("gaussian_nn", {"width": 64})
    rg.models.GaussianNN(width=64)
    """
    spec: ModelSpec = REGISTRY.parse(name, settings)
    return spec


register = REGISTRY.register


def is_generative(name: str) -> bool:
    """Return whether a model is known by its samples; the others are around a point prediction.

    >>> [name for name in ("gaussian_linear", "gaussian_nn", "flow", "diffusion") if is_generative(name)]
    ['flow', 'diffusion']
    """
    return issubclass(REGISTRY[name], GenerativeModelSpec)


def __getattr__(name: str) -> Any:
    return lazy_attribute(__name__, _LOCATIONS, name)


def __dir__() -> list[str]:
    return __all__
