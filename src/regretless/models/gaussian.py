"""Gaussian models ``p_θ(·|x) = N(μ_θ(x), σ² I)`` with a fixed exploration scale σ.

A context vector ``[p]`` predicts all costs at once; feature rows ``[d, p]`` share one predictor, row by row.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import Field

import regretless.models.networks as networks
from regretless import draws
from regretless.models.base import Params, PointModel, PointModelSpec
from regretless.spec import number
from regretless.types import Context, Cost, Key


class GaussianModel(PointModel):
    """Base class of the Gaussian models, which differ in ``init`` and ``mean``.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    scale : array
        σ, the standard deviation of each coordinate.
    """

    def sample(self, params: Params, context: Context, noise: Cost) -> Cost:
        return self.mean(params, context) + self.scale * noise

    def pullback(self, params: Params, context: Context, cotangent: Cost) -> Params:
        return jax.vjp(lambda theta: self.mean(theta, context), params)[1](cotangent)[0]

    def score(self, params: Params, context: Context, cost: Cost, noise: Cost, fresh: Bool[Array, ""]) -> Params:
        # ε/σ and not (ĉ − μ)/σ²: σ goes down to 5e-6, where the difference would be nothing but rounding.
        standard = jnp.where(fresh, noise, (cost - self.mean(params, context)) / self.scale)
        return self.pullback(params, context, standard / self.scale)

    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""]:
        standard = (cost - self.mean(params, context)) / self.scale
        return -0.5 * jnp.sum(jnp.square(standard) + jnp.log(2 * jnp.pi)) - self.dim * jnp.log(self.scale)


class GaussianLinearModel(GaussianModel):
    """``μ = M x`` for a context vector, ``μ = X θ`` for feature rows."""

    start: Float[Array, ""] = eqx.field(default_factory=lambda: number(0.01))

    def init(self, key: Key) -> Array:
        features = self.context_shape[-1]
        shape = (self.dim, features) if len(self.context_shape) == 1 else (features,)
        return self.start * draws.normal(key, shape)

    def mean(self, params: Array, context: Context) -> Cost:
        return params @ context if len(self.context_shape) == 1 else context @ params


class GaussianLinear(PointModelSpec):
    """Linear mean without intercept: ``μ = M x`` for a context vector, ``μ = X θ`` for feature rows.

    Parameters
    ----------
    start : float, default 0.01
        Standard deviation of the initial weights.
    """

    start: float = Field(default=0.01, ge=0)

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> GaussianLinearModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return GaussianLinearModel(dim, context_shape, number(scale), **self.hyperparameters())


class GaussianNNModel(GaussianModel):
    """``μ = W₂ relu(W₁ x + b₁) + b₂``; for feature rows the same net on each row, with one output."""

    width: int = eqx.field(static=True, default=128)

    def init(self, key: Key) -> networks.Layers:
        outputs = self.dim if len(self.context_shape) == 1 else 1
        return networks.init_he(key, (self.context_shape[-1], self.width, outputs))

    def mean(self, params: Any, context: Context) -> Cost:
        return networks.apply(params, context).reshape(self.dim)


class GaussianNN(PointModelSpec):
    """A mean with one hidden layer, ``μ = W₂ relu(W₁ x + b₁) + b₂``; for feature rows the same net on each row.

    Parameters
    ----------
    width : int, default 128
        Hidden units.
    """

    width: int = Field(default=128, ge=1)

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> GaussianNNModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ."""
        return GaussianNNModel(dim, context_shape, number(scale), **self.hyperparameters())
