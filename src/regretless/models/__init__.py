"""Models of the cost given the context: ``p_θ(·|x)``."""

from collections.abc import Callable

from regretless.models.base import Model
from regretless.models.gaussian import GaussianLinear, GaussianNN

REGISTRY: dict[str, Callable[..., Model]] = {
    "gaussian_linear": GaussianLinear,
    "gaussian_nn": GaussianNN,
}

__all__ = ["REGISTRY", "GaussianLinear", "GaussianNN", "Model"]
