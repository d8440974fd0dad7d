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

from regretless.models.base import REGISTRY as REGISTRY
from regretless.models.base import GenerativeModel as GenerativeModel
from regretless.models.base import GenerativeModelSpec as GenerativeModelSpec
from regretless.models.base import Model as Model
from regretless.models.base import ModelSpec as ModelSpec
from regretless.models.base import PointModel as PointModel
from regretless.models.base import PointModelSpec as PointModelSpec
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.models import networks as networks
    from regretless.models.diffusion import Diffusion as Diffusion
    from regretless.models.flow import Flow as Flow
    from regretless.models.gaussian import GaussianLinear as GaussianLinear
    from regretless.models.gaussian import GaussianModel as GaussianModel
    from regretless.models.gaussian import GaussianNN as GaussianNN
    from regretless.models.gaussian import Module as Module
    from regretless.models.gaussian import Torch as Torch
    from regretless.models.nuisance import MLPNuisance as MLPNuisance
    from regretless.models.nuisance import Nuisance as Nuisance
    from regretless.models.nuisance import NuisanceSpec as NuisanceSpec
    from regretless.models.nuisance import Regressor as Regressor

parse = REGISTRY.parse
"""Return a model's specification from its name, such as ``"flow"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a model of your own under a name."""

__all__, __getattr__, __dir__ = lazy_exports(__name__, "is_generative", "parse", "register")


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
