"""A surrogate: half of SPO+ with an adjustable reach."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg
from regretless.types import Cost


class HalfSPOSurrogate(rg.surrogates.Surrogate):
    """``w*(c) − w*(ĉ + r (ĉ − c))``."""

    reach: Float[Array, ""]

    def queries(
        self, memory: Any, prediction: Cost, target: Cost, noise: Any
    ) -> Array:
        beyond = prediction + self.reach * (prediction - target)
        return jnp.stack([target, beyond])

    def gradient(
        self,
        memory: Any,
        prediction: Cost,
        target: Cost,
        noise: Any,
        solutions: Array,
    ) -> Cost:
        return solutions[0] - solutions[1]


class HalfSPO(rg.surrogates.SurrogateSpec):
    """Half the subgradient of SPO+ where the reach r is 1.

    Parameters
    ----------
    reach : float, default 1.0
        r, how far beyond the prediction the second solve is.
    """

    reach: float = Field(
        default=1.0, gt=0, description="r, how far beyond the prediction"
    )

    def build(self, oracle: rg.oracles.Oracle) -> HalfSPOSurrogate:
        """Return the gradient on a feasible set."""
        return HalfSPOSurrogate(oracle, **self.hyperparameters())
