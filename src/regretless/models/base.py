"""Models of the cost: conditional distributions ``p_θ(·|x)`` with a reparameterisation ``ĉ = μ_θ(x, ε)``."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from regretless import draws
from regretless.problem import Problem
from regretless.registry import SpecRegistry
from regretless.spec import Spec
from regretless.types import Context, Cost, Decision, Feedback, Key

Params = Any
Noise = Float[Array, " d"]
"""``ε``: one number per cost coordinate, so that every Decision has room for it."""

Pullback = Callable[[Float[Array, "k d"]], Params]
"""``(∇_θ scenarios)ᵀ``: carries one cotangent per scenario back to the parameters; a pytree."""


class Model(eqx.Module):
    """``p_θ(·|x)``; the parameters ``θ`` are passed separately, as a pytree.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    """

    dim: int = eqx.field(static=True)
    context_shape: tuple[int, ...] = eqx.field(static=True)

    @abc.abstractmethod
    def init(self, key: Key) -> Params:
        """Return fresh parameters.

        Parameters
        ----------
        key : Key
            For random initial values.
        """

    def draw(self, key: Key) -> Noise:
        """Draw ``ε ~ ν``, which does not depend on ``θ``: a standard normal vector unless a model overrides it.

        Parameters
        ----------
        key : Key
            For the draw.
        """
        return draws.normal(key, (self.dim,))

    @abc.abstractmethod
    def sample(self, params: Params, context: Context, noise: Noise) -> Cost:
        """Return ``ĉ = μ_θ(x, ε)``.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        noise : array of shape (d,)
            ``ε``, as ``draw`` returns it.
        """

    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""] | None:
        """Return ``log p_θ(ĉ|x)``, or None for a model without a density.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        cost : array of shape (d,)
            ``ĉ``.
        """
        return None


class PointModel(Model):
    """A model around a point prediction, whose mean is a known function of ``θ``.

    ``scale`` is the exploration scale σ, which belongs to the policy that samples from the model.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    scale : array
        σ.
    """

    scale: Float[Array, ""]

    @abc.abstractmethod
    def mean(self, params: Params, context: Context) -> Cost:
        """Return ``E ĉ``.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        """

    @abc.abstractmethod
    def pullback(self, params: Params, context: Context, cotangent: Cost) -> Params:
        """Return ``(∇_θ mean)ᵀ · cotangent``: a gradient with respect to the mean carried back to the parameters.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        cotangent : array of shape (d,)
            A gradient with respect to the mean.
        """

    @abc.abstractmethod
    def score(self, params: Params, context: Context, cost: Cost, noise: Noise, fresh: Bool[Array, ""]) -> Params:
        """Return ``∇_θ log p_θ(ĉ|x)``; ``fresh`` says that ``noise`` led to ``cost`` under these very parameters.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        cost : array of shape (d,)
            ``ĉ``.
        noise : array of shape (d,)
            ``ε`` of the draw.
        fresh : boolean array
            Whether ``θ`` is still that of the draw.
        """

    def refit(self, params: Params, decision: Decision, feedback: Feedback) -> Params | None:
        """Return ``θ`` after a round if the model is fitted without gradients; None if it learns by them.

        Parameters
        ----------
        params : pytree
            ``θ``.
        decision : Decision
            What was done.
        feedback : Feedback
            What was seen of its cost.
        """
        return None


class GenerativeModel(Model):
    """A model that is known by its samples: ``K`` scenarios at once, and a loss that makes a given cost likely.

    It computes in the precision of its parameters, which ``init`` makes single, as in the published runs. The loss sums
    over the coordinates for a context vector, and is a mean over the rows for feature rows.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    """

    @abc.abstractmethod
    def scenarios(
        self, params: Params, context: Context, noise: Float[Array, "k d"]
    ) -> tuple[Float[Array, "k d"], Pullback]:
        """Return ``ĉ_k = μ_θ(x, ε_k)`` for each row of noise, and the pullback of cotangents to ``θ``.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        noise : array of shape (k, d)
            ``ε_1, …, ε_k``.
        """

    def draw_loss(self, key: Key) -> Any:
        """Draw the random numbers of the loss; None for a loss without any.

        Parameters
        ----------
        key : Key
            For the draw.
        """
        return None

    @abc.abstractmethod
    def loss(self, params: Params, context: Context, cost: Cost, drawn: Any) -> Float[Array, ""]:
        """Return ``−log p_θ(c|x)``, or its substitute.

        Parameters
        ----------
        params : pytree
            ``θ``.
        context : array of shape ``context_shape``
            ``x``.
        cost : array of shape (d,)
            ``c``.
        drawn : pytree
            What ``draw_loss`` returned.
        """

    def loss_gradient(self, params: Params, context: Context, cost: Cost, drawn: Any) -> Params:
        """Return ``∇_θ loss``: minus the score at a sample.

        Parameters
        ----------
        params, context, cost, drawn
            As in ``loss``.
        """
        return jax.grad(self.loss)(params, context, cost, drawn)

    def regulariser_gradient(self, params: Params, context: Context, cost: Cost, key: Key) -> Params:
        """Return ``g^reg``, which makes a target likely: ``∇_θ loss`` of fresh draws, unless a model overrides it.

        Parameters
        ----------
        params, context, cost
            As in ``loss``.
        key : Key
            For the draws.
        """
        return self.loss_gradient(params, context, cost, self.draw_loss(key))


REGISTRY: SpecRegistry["ModelSpec"] = SpecRegistry(
    "model",
    "models",
    {
        "gaussian_linear": "regretless.models.gaussian:GaussianLinear",
        "gaussian_nn": "regretless.models.gaussian:GaussianNN",
        "flow": "regretless.models.flow:Flow",
        "diffusion": "regretless.models.diffusion:Diffusion",
    },
    ("registry", "build"),
    "a subclass of PointModelSpec or GenerativeModelSpec of regretless.models",
)


class ModelSpec(Spec):
    """Base class of models as settings: of point models and of generative models."""

    registry: ClassVar[SpecRegistry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.models."

    @abc.abstractmethod
    def build(self, dim: int, context_shape: tuple[int, ...]) -> Model:
        """Return the model for ``dim`` costs and contexts of this shape.

        Parameters
        ----------
        dim : int
            Number of cost coordinates.
        context_shape : tuple of int
            ``(p,)``, or ``(d, p)`` for a row per coordinate.
        """


class PointModelSpec(ModelSpec):
    """Base class of models around a point prediction, as settings: subclass it and write ``build``."""

    @abc.abstractmethod
    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> PointModel:
        """Return the model for ``dim`` costs and contexts of this shape, with exploration scale σ.

        Parameters
        ----------
        dim : int
            Number of cost coordinates.
        context_shape : tuple of int
            ``(p,)``, or ``(d, p)`` for a row per coordinate.
        scale : float, default 1
            σ.
        """

    def build_for(self, problem: Problem) -> PointModel:
        """Return the model of a policy that also has models without a gradient.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        """
        return self.build(problem.dim, problem.context_shape)


class GenerativeModelSpec(ModelSpec):
    """Base class of models that are known by their samples, as settings: subclass it and write ``build``."""

    @abc.abstractmethod
    def build(self, dim: int, context_shape: tuple[int, ...]) -> GenerativeModel:
        """Return the model for ``dim`` costs and contexts of this shape.

        Parameters
        ----------
        dim : int
            Number of cost coordinates.
        context_shape : tuple of int
            ``(p,)``, or ``(d, p)`` for a row per coordinate.
        """


def single(tree: Any) -> Any:
    """Return the leaves in single precision, in which generative models start."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def cast(params: Params, array: Array) -> Array:
    """Return an array in the precision of the parameters."""
    return array.astype(jax.tree.leaves(params)[0].dtype)


class BatchedModel(GenerativeModel):
    """A generative model that makes all scenarios at once, in the precision of its parameters."""

    @abc.abstractmethod
    def generate(self, params: Params, context: Context, noise: Float[Array, "k d"]) -> Float[Array, "k d"]:
        """Return ``μ_θ(x, ε_k)`` for each row of noise."""

    def sample(self, params: Params, context: Context, noise: Cost) -> Cost:
        costs = self.generate(params, cast(params, context), cast(params, noise)[None])
        return costs[0].astype(jnp.result_type(float))

    def scenarios(
        self, params: Params, context: Context, noise: Float[Array, "k d"]
    ) -> tuple[Float[Array, "k d"], Pullback]:
        x, z = cast(params, context), cast(params, noise)
        costs, pullback = jax.vjp(lambda theta: self.generate(theta, x, z), params)
        return costs, Partial(_pull_back, pullback, params)


def _pull_back(pullback: Any, params: Params, cotangents: Float[Array, "k d"]) -> Params:
    return pullback(cast(params, cotangents))[0]
