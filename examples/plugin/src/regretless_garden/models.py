"""A model of the cost: linear, with an intercept."""

import jax.numpy as jnp

from regretless.models import GaussianModel, PointModelSpec
from regretless.spec import number


class GaussianInterceptModel(GaussianModel):
    """``μ = M (x, 1)`` for a context vector, ``μ = (X, 1) θ`` for feature rows; weights start at a hundredth of one."""

    def init(self, key):
        features = self.context_shape[-1] + 1
        shape = (self.dim, features) if len(self.context_shape) == 1 else (features,)
        return 0.01 * jnp.ones(shape)

    def mean(self, params, context):
        ones = jnp.ones((*context.shape[:-1], 1), context.dtype)
        features = jnp.concatenate([context, ones], axis=-1)
        return params @ features if context.ndim == 1 else features @ params


class GaussianIntercept(PointModelSpec):
    """A linear mean with an intercept."""

    def build(self, dim, context_shape, scale=1.0):
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return GaussianInterceptModel(dim, context_shape, number(scale))
