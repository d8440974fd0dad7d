"""What a policy is built for: the feasible set, the shape of the contexts, the feedback and the model of the cost."""

from typing import Any, NamedTuple

import numpy as np

from regretless import models
from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.models.base import GenerativeModel, PointModel
from regretless.oracles.base import Oracle
from regretless.settings import Settings, require_known


class Problem(NamedTuple):
    """The setting that a policy meets."""

    oracle: Oracle
    context_shape: tuple[int, ...]
    feedback: Measurement
    model_name: str = "gaussian_linear"
    may_miss: bool = False  # whether rows of the feedback may fail to arrive

    @property
    def generative(self) -> bool:
        """Whether the model of the cost is a generative one."""
        require_known("model", self.model_name, models.REGISTRY)
        return self.model_name in models.GENERATIVE

    def model(self, scale: float) -> PointModel:
        """The point model of the cost, with exploration scale σ."""
        if self.generative:
            raise SettingsError(f"expected a point model ({', '.join(models.POINT)}), got {self.model_name!r}")
        return models.POINT[self.model_name](self.oracle.dim, self.context_shape, number(scale))

    def generative_model(self, settings: Settings) -> GenerativeModel:
        """The generative model of the cost, as the settings say."""
        shape = self.oracle.dim, self.context_shape
        if self.model_name == "flow":
            return models.Flow(*shape)
        return models.Diffusion(
            *shape, settings.diffusion_train_steps, settings.diffusion_sample_steps, settings.diffusion_weights
        )


def number(value: float) -> Any:
    """A hyper-parameter as an array leaf: its value may change without a new compilation."""
    return np.asarray(value, np.float64)
