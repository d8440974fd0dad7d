"""A model of the cost: linear, with an intercept."""

import jax.numpy as jnp
from jaxtyping import Array

import regretless as rg
from regretless.spec import number
from regretless.types import Context, Cost, Key


class GaussianInterceptModel(rg.models.GaussianModel):
    """``μ = M (x, 1)`` for a vector, ``μ = (X, 1) θ`` for rows."""

    def init(self, key: Key) -> Array:
        features = self.context_shape[-1] + 1
        vector = len(self.context_shape) == 1
        shape = (self.dim, features) if vector else (features,)
        return 0.01 * jnp.ones(shape)

    def mean(self, params: Array, context: Context) -> Cost:
        ones = jnp.ones((*context.shape[:-1], 1), context.dtype)
        features = jnp.concatenate([context, ones], axis=-1)
        vector = context.ndim == 1
        return params @ features if vector else features @ params


class GaussianIntercept(rg.models.PointModelSpec):
    """A linear mean with an intercept."""

    def build(
        self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0
    ) -> GaussianInterceptModel:
        """Return the model with exploration scale σ."""
        return GaussianInterceptModel(dim, context_shape, number(scale))
