"""What a model of the cost is: a conditional distribution ``p_θ(·|x)`` with a reparameterisation ``ĉ = μ_θ(x, ε)``."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Bool, Float

from regretless.types import Context, Cost, Key

Params = Any
Noise = Any


class Model(eqx.Module):
    """``p_θ(·|x)``; the parameters ``θ`` travel apart, as a pytree."""

    dim: int = eqx.field(static=True)  # number of cost coordinates
    context_shape: tuple[int, ...] = eqx.field(static=True)

    def require(self, context: Context) -> None:
        """Refuses a context of another shape than this model was built for."""
        if context.shape != self.context_shape:
            raise ValueError(f"context: expected shape {self.context_shape}, got {context.shape}")

    @abc.abstractmethod
    def init(self, key: Key) -> Params:
        """Fresh parameters."""

    @abc.abstractmethod
    def draw(self, key: Key) -> Noise:
        """``ε ~ ν``, which does not depend on ``θ``."""

    @abc.abstractmethod
    def sample(self, params: Params, context: Context, noise: Noise) -> Cost:
        """``ĉ = μ_θ(x, ε)``."""

    @abc.abstractmethod
    def mean(self, params: Params, context: Context) -> Cost:
        """``E ĉ``."""

    @abc.abstractmethod
    def pullback(self, params: Params, context: Context, cotangent: Cost) -> Params:
        """``(∇_θ mean)ᵀ · cotangent``: a gradient with respect to the mean carried back to the parameters."""

    @abc.abstractmethod
    def score(self, params: Params, context: Context, cost: Cost, noise: Noise, fresh: Bool[Array, ""]) -> Params:
        """``∇_θ log p_θ(ĉ|x)``; ``fresh`` says that ``noise`` led to ``cost`` under these very parameters."""

    @abc.abstractmethod
    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""] | None:
        """``log p_θ(ĉ|x)``, or None for a model that has none."""
