"""What a model of the cost is: a conditional distribution ``p_θ(·|x)`` with a reparameterisation ``ĉ = μ_θ(x, ε)``."""

import abc
from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless import draws
from regretless.parts import Part, fields, number
from regretless.settings import Settings
from regretless.types import Context, Cost, Key

Params = Any
Noise = Float[Array, " d"]
"""``ε``: one number per cost coordinate, so that every Decision has room for it."""

Pullback = Callable[[Float[Array, "k d"]], Params]
"""``(∇_θ scenarios)ᵀ``: one cotangent per scenario carried back to the parameters; a pytree that a program can hand on."""


class Model(Part):
    """``p_θ(·|x)``; the parameters ``θ`` travel apart, as a pytree."""

    dim: int = eqx.field(static=True)  # number of cost coordinates
    context_shape: tuple[int, ...] = eqx.field(static=True)

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
    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""] | None:
        """``log p_θ(ĉ|x)``, or None for a model that has none."""


class PointModel(Model):
    """A model around a point prediction: its mean is a function of ``θ`` that can be written down.

    ``scale`` is the exploration scale σ, which belongs to the policy that samples from the model.
    """

    scale: Float[Array, ""]

    @classmethod
    def build(
        cls, dim: int, context_shape: tuple[int, ...], scale: float = 1.0, settings: Settings | None = None
    ) -> Self:
        """The model for ``dim`` costs and contexts of this shape."""
        return cls(dim, context_shape, number(scale), **fields(settings or cls.Settings()))

    @abc.abstractmethod
    def mean(self, params: Params, context: Context) -> Cost:
        """``E ĉ``."""

    @abc.abstractmethod
    def pullback(self, params: Params, context: Context, cotangent: Cost) -> Params:
        """``(∇_θ mean)ᵀ · cotangent``: a gradient with respect to the mean carried back to the parameters."""

    @abc.abstractmethod
    def score(self, params: Params, context: Context, cost: Cost, noise: Noise, fresh: Bool[Array, ""]) -> Params:
        """``∇_θ log p_θ(ĉ|x)``; ``fresh`` says that ``noise`` led to ``cost`` under these very parameters."""


class GenerativeModel(Model):
    """A model that is known by its samples: ``K`` scenarios at once, and a loss that makes a given cost likely.

    It computes in the precision of its parameters, which ``init`` makes single, as in the published runs. ``ε`` is a standard
    normal vector. The loss sums over the coordinates for a context vector, and is a mean over the rows for feature rows.
    """

    @classmethod
    def build(cls, dim: int, context_shape: tuple[int, ...], settings: Settings | None = None) -> Self:
        """The model for ``dim`` costs and contexts of this shape."""
        return cls(dim, context_shape, **fields(settings or cls.Settings()))

    def draw(self, key: Key) -> Cost:
        return draws.normal(key, (self.dim,))

    @abc.abstractmethod
    def scenarios(
        self, params: Params, context: Context, noise: Float[Array, "k d"]
    ) -> tuple[Float[Array, "k d"], Pullback]:
        """``ĉ_k = μ_θ(x, ε_k)`` for each row of noise, and how cotangents of them are carried back to ``θ``."""

    @abc.abstractmethod
    def draw_loss(self, key: Key) -> Any:
        """What the loss is random in; None for a loss that is not."""

    @abc.abstractmethod
    def loss(self, params: Params, context: Context, cost: Cost, drawn: Any) -> Float[Array, ""]:
        """``−log p_θ(c|x)``, or what stands in for it."""

    def loss_gradient(self, params: Params, context: Context, cost: Cost, drawn: Any) -> Params:
        """``∇_θ loss``: minus the score at a sample."""
        return jax.grad(self.loss)(params, context, cost, drawn)

    def regulariser_gradient(self, params: Params, context: Context, cost: Cost, key: Key) -> Params:
        """``g^reg``, which makes a target likely: ``∇_θ loss`` of fresh draws, unless a model knows another one."""
        return self.loss_gradient(params, context, cost, self.draw_loss(key))


def single(tree: Any) -> Any:
    """The leaves in single precision, which is what generative models begin with."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def alike(params: Params, array: Array) -> Array:
    """An array in the precision of the parameters."""
    return array.astype(jax.tree.leaves(params)[0].dtype)
