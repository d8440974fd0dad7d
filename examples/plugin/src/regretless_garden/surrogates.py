"""A surrogate: half of SPO+ with an adjustable reach."""

import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg


class HalfSPOSurrogate(rg.surrogates.Surrogate):
    """``w*(c) − w*(ĉ + r (ĉ − c))``."""

    reach: Float[Array, ""]

    def queries(self, memory, prediction, target, noise):
        beyond = prediction + self.reach * (prediction - target)
        return jnp.stack([target, beyond])

    def gradient(
        self, memory, prediction, target, noise, solutions, instance
    ):
        best, pessimistic = solutions
        return best - pessimistic


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

    def build(self, oracle):
        """Return the gradient on a feasible set."""
        return HalfSPOSurrogate(oracle, **self.hyperparameters())
