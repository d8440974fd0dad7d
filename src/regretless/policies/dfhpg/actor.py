"""The policy's distribution in ``dfhpg_auto``: a Gaussian around a bypassed network, in the size of the context's own costs."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.models.base import Params
from regretless.models.gaussian import Gaussian
from regretless.policies.dfhpg import bypass
from regretless.types import Context, Cost, Key

Scalar = Float[Array, ""]

SMALLEST = 1e-6
"""Size of predicted costs, in cost units, below which they count as none."""

LEAST_SPREAD = 0.01
"""Spread of predicted costs, relative to their size, that exploration assumes at least."""


class Actor(Gaussian):
    """``N(s μ_θ(x), (s σ)² I)`` with a bypassed network ``μ_θ``: ``size`` is s, ``scale`` is s σ, both of the context at hand."""

    size: Scalar
    width: int = eqx.field(static=True)

    def init(self, key: Key) -> bypass.Bypassed:
        outputs = bypass.outputs(self.dim, self.context_shape)
        return bypass.init(key, self.context_shape[-1], self.width, outputs)

    def mean(self, params: Params, context: Context) -> Cost:
        return self.size * bypass.costs(params, context).astype(jnp.result_type(float))

    def around(self, expected: Cost, share: Scalar) -> "Actor":
        """The distribution where costs ``expected`` (f_φ(x)) are predicted; σ is this ``share`` of their relative spread."""
        size = size_of(expected)
        spread = jnp.maximum(jnp.std(expected / size), LEAST_SPREAD)
        return Actor(self.dim, self.context_shape, size * share * spread, size, self.width)


def size_of(expected: Cost) -> Scalar:
    """``s(x)``: the root mean square of the predicted costs."""
    return jnp.sqrt(jnp.mean(jnp.square(expected))) + SMALLEST
