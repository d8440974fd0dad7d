"""A model of the cost: linear, with an intercept."""

import jax.numpy as jnp

from regretless.models import Gaussian


class GaussianIntercept(Gaussian):
    """``μ = M (x, 1)`` for a context vector, ``μ = (X, 1) θ`` for feature rows; weights start at a hundredth of one."""

    def init(self, key):
        features = self.context_shape[-1] + 1
        shape = (self.dim, features) if len(self.context_shape) == 1 else (features,)
        return 0.01 * jnp.ones(shape)

    def mean(self, params, context):
        ones = jnp.ones((*context.shape[:-1], 1), context.dtype)
        features = jnp.concatenate([context, ones], axis=-1)
        return params @ features if context.ndim == 1 else features @ params
