"""A surrogate: half of SPO+ with a reach of its own."""

import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg


class HalfSPOSurrogate(rg.surrogates.Surrogate):
    """``w*(c) − w*(ĉ + r (ĉ − c))``."""

    reach: Float[Array, ""]

    def queries(self, memory, prediction, target, noise):
        return jnp.stack([target, prediction + self.reach * (prediction - target)])

    def gradient(self, memory, prediction, target, noise, solutions, instance):
        best, pessimistic = solutions
        return best - pessimistic


class HalfSPO(rg.surrogates.SurrogateSpec):
    """Half the subgradient of SPO+ where the reach r is 1: ``w*(c) − w*(ĉ + r (ĉ − c))``."""

    reach: float = Field(default=1.0, gt=0, description="r, how far beyond the prediction the pessimist looks")

    def build(self, oracle):
        """Return the gradient on a feasible set."""
        return HalfSPOSurrogate(oracle, **self.hyperparameters())
