"""The policy's distribution in ``dfhpg_auto``: a Gaussian around a bypassed network, in the size of the context's own costs."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.bypass import Bypassed, Weights
from regretless.models.gaussian import GaussianModel
from regretless.types import Context, Cost, Key

Scalar = Float[Array, ""]

SMALLEST = 1e-6
"""Size of predicted costs, in cost units, below which they count as none."""

LEAST_SPREAD = 0.01
"""Spread of predicted costs, relative to their size, that exploration assumes at least."""


class Actor(GaussianModel):
    """``N(s μ_θ(x), (s σ)² I)`` with a network ``μ_θ``: ``size`` is s, ``scale`` is s σ, both of the context at hand."""

    size: Scalar
    net: Bypassed

    def init(self, key: Key) -> Weights:
        return self.net.init(key)

    def mean(self, params: Weights, context: Context) -> Cost:
        return self.size * self.net.apply(params, context[None])[0].astype(jnp.result_type(float))

    def around(self, expected: Cost, share: Scalar) -> "Actor":
        """The distribution where costs ``expected`` (f_φ(x)) are predicted; σ is this ``share`` of their relative spread."""
        size = size_of(expected)[0]
        spread = jnp.maximum(jnp.std(expected / size), LEAST_SPREAD)
        return Actor(self.dim, self.context_shape, size * share * spread, size, self.net)


def size_of(expected: Float[Array, "*k d"]) -> Float[Array, "*k 1"]:
    """``s(x)``: the root mean square of the predicted costs."""
    return jnp.sqrt(jnp.mean(jnp.square(expected), axis=-1, keepdims=True)) + SMALLEST
