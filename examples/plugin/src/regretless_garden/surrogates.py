"""A surrogate: half of SPO+ with a reach of its own."""

import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg


class HalfSPO(rg.surrogates.Surrogate):
    """``w*(c) − w*(ĉ + r (ĉ − c))``: half the subgradient of SPO+ where the reach r is 1."""

    class Settings(rg.Settings):
        """r."""

        reach: float = Field(1.0, gt=0, description="r, how far beyond the prediction the pessimist looks")

    reach: Float[Array, ""]

    def queries(self, memory, prediction, target, noise):
        return jnp.stack([target, prediction + self.reach * (prediction - target)])

    def gradient(self, memory, prediction, target, noise, solutions, instance):
        best, pessimistic = solutions
        return best - pessimistic
