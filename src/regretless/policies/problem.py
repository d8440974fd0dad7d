"""What a policy is built for: the feasible set, the shape of the contexts, the feedback and the model of the cost."""

from typing import Any, NamedTuple

import numpy as np

from regretless import models
from regretless.feedback import Measurement
from regretless.models.base import Model
from regretless.oracles.base import Oracle
from regretless.settings import require_known


class Problem(NamedTuple):
    """The setting that a policy meets."""

    oracle: Oracle
    context_shape: tuple[int, ...]
    feedback: Measurement
    model_name: str = "gaussian_linear"
    may_miss: bool = False  # whether rows of the feedback may fail to arrive

    def model(self, scale: float) -> Model:
        """The model of the cost, with exploration scale σ."""
        require_known("model", self.model_name, models.REGISTRY)
        return models.REGISTRY[self.model_name](self.oracle.dim, self.context_shape, number(scale))


def number(value: float) -> Any:
    """A hyper-parameter as an array leaf: its value may change without a new compilation."""
    return np.asarray(value, np.float64)
