"""The nuisance ``f_φ(x) ≈ E[c|x]``: a point regression of the cost, fitted on what the feedback shows of it.

Loss of one round: ``½ · mean over the rows seen of (H(w) f_φ(x) − v)²``.
"""

import abc
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

import regretless.models.networks as networks
from regretless.problem import Problem
from regretless.registry import SpecRegistry
from regretless.schedules import RateSpec, shifted_inverse
from regretless.spec import Spec
from regretless.types import Context, Cost, Feedback, Key


class Nuisance(eqx.Module):
    """A regression of the cost with its own optimiser; ``state`` holds both.

    Parameters
    ----------
    lr : array
        η_0, the initial learning rate.
    dim : int
        Number of cost coordinates.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per coordinate.
    support : int or None
        The loss depends on at most this many coordinates; None: on any number.
    """

    lr: Float[Array, ""]
    dim: int = eqx.field(static=True)
    context_shape: tuple[int, ...] = eqx.field(static=True)
    support: int | None = eqx.field(static=True)

    @abc.abstractmethod
    def init(self, key: Key) -> Any:
        """Return fresh parameters and optimiser state.

        Parameters
        ----------
        key : Key
            For random initial values.
        """

    @abc.abstractmethod
    def predict(self, state: Any, context: Context) -> Cost:
        """Return ``f_φ(x)``.

        Parameters
        ----------
        state : pytree
            Parameters and optimiser state.
        context : array of shape ``context_shape``
            ``x``.
        """

    @abc.abstractmethod
    def step(self, state: Any, context: Context, feedback: Feedback) -> tuple[Any, Float[Array, ""]]:
        """Take one step on this round's loss; return the new state and the norm of the gradient (before clipping).

        Parameters
        ----------
        state : pytree
            Parameters and optimiser state.
        context : array of shape ``context_shape``
            The context of the decision.
        feedback : Feedback
            What was seen of its cost.
        """

    def predict_and_step(
        self, state: Any, context: Context, feedback: Feedback, whole: Bool[Array, ""]
    ) -> tuple[Cost, Any, Float[Array, ""]]:
        """Return ``f_φ(x)`` before the step, and take the step; unless ``whole``, only chosen coordinates count.

        Parameters
        ----------
        state, context, feedback
            As in ``step``.
        whole : boolean array
            Whether all coordinates of the prediction are needed.
        """
        return self.predict(state, context), *self.step(state, context, feedback)


class MLPState(eqx.Module):
    """Weights and Adam's moments."""

    layers: networks.Layers
    adam: networks.AdamState


class MLPNuisanceModel(Nuisance):
    """Two hidden layers of 256 ReLU (for feature rows the same net on each row), Adam, gradient norm clipped to 10.

    It computes in single precision, as in the published runs, unless ``precision`` and the program allow more. With
    feature rows a step leaves out the rows that ``support`` excludes. ``loss="sum"`` is the paper's ``‖v − H
    f_φ(x)‖²`` and not half the mean, ``optimiser="sgd"`` its plain step.
    """

    rate_offset: Float[Array, ""]
    rate_start: Float[Array, ""]
    clip: Float[Array, ""]
    precision: Literal["single", "double"] = eqx.field(static=True)
    width: int = eqx.field(static=True)
    optimiser: Literal["adam", "sgd"] = eqx.field(static=True)
    loss: Literal["half_mean", "sum"] = eqx.field(static=True)

    def init(self, key: Key) -> MLPState:
        outputs = self.dim if len(self.context_shape) == 1 else 1
        layers = self._cast(networks.init_uniform(key, (self.context_shape[-1], self.width, self.width, outputs)))
        return MLPState(layers, networks.adam_init(layers))

    def predict(self, state: MLPState, context: Context) -> Cost:
        return self._forward(state.layers, self._cast(context))[0]

    def step(self, state: MLPState, context: Context, feedback: Feedback) -> tuple[MLPState, Float[Array, ""]]:
        return self.predict_and_step(state, context, feedback, jnp.asarray(False))[1:]

    def predict_and_step(
        self, state: MLPState, context: Context, feedback: Feedback, whole: Bool[Array, ""]
    ) -> tuple[Cost, MLPState, Float[Array, ""]]:
        rows = self._chosen_rows(feedback)
        prediction, inputs = self._predict_rows(state.layers, self._cast(context), rows, whole)
        slope = feedback.loss_gradient(prediction) if self.loss == "half_mean" else feedback.sum_gradient(prediction)
        cotangent = self._cast(slope)
        if rows is not None:
            cotangent = jnp.take(cotangent, rows, fill_value=0.0)
        if len(self.context_shape) == 2:
            cotangent = cotangent[:, None]
        factors = networks.backward(state.layers, inputs, cotangent)
        grads = [networks.gradient(factor) for factor in factors]
        norm = networks.tree_norm(grads)
        if len(self.context_shape) == 1:
            # One sample: ‖h δᵀ‖ = ‖h‖‖δ‖, so that the gradient itself never has to be stored.
            norm = jnp.sqrt(sum(jnp.sum(jnp.square(d)) * (1.0 + jnp.sum(jnp.square(h))) for h, d in factors))
        count = state.adam.count + 1
        rate = self._cast(shifted_inverse(jnp.asarray(self.lr), count, self.rate_offset, self.rate_start))
        scale = networks.clip_factor(norm, self._cast(self.clip))
        if self.optimiser == "sgd":
            layers = jax.tree.map(lambda p, g: p - rate * scale * g, state.layers, grads)
            adam = networks.AdamState(state.adam.first, state.adam.second, count)
            return prediction, MLPState(layers, adam), norm
        layers, adam = networks.adam_step(state.layers, state.adam, grads, rate, scale)
        return prediction, MLPState(layers, adam), norm

    def _cast(self, tree: Any) -> Any:
        """Return arrays in the precision that this network computes in."""
        kind = jnp.result_type(float) if self.precision == "double" else jnp.float32
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), tree)

    def _chosen_rows(self, feedback: Feedback) -> Int[Array, " support"] | None:
        """Return the feature rows of what was chosen, filled up with ``dim`` to ``support``; None: all may matter."""
        if len(self.context_shape) == 1 or self.support is None or self.support >= self.dim:
            return None
        w = feedback.operator.rmatvec(feedback.linkage)  # H(w)ᵀ e(w) = w
        return jnp.nonzero(w, size=self.support, fill_value=self.dim)[0]

    def _predict_rows(
        self, layers: networks.Layers, context: Context, rows: Int[Array, " support"] | None, whole: Bool[Array, ""]
    ) -> tuple[Cost, list[Array]]:
        """Return the prediction (unless ``whole``, only for ``rows``), and the inputs of each layer for ``rows``."""
        if rows is None:
            return self._forward(layers, context)

        def all_rows() -> tuple[Cost, list[Array]]:
            prediction, inputs = self._forward(layers, context)
            return prediction, [jnp.take(h, rows, axis=0, mode="clip") for h in inputs]

        def chosen_rows() -> tuple[Cost, list[Array]]:
            prediction, inputs = self._forward(layers, jnp.take(context, rows, axis=0, mode="clip"))
            return jnp.zeros(self.dim).at[rows].set(prediction, mode="drop"), inputs

        return jax.lax.cond(whole, all_rows, chosen_rows)

    def _forward(self, layers: networks.Layers, context: Context) -> tuple[Cost, list[Array]]:
        """Return the prediction, in the program's precision, and the inputs of each layer."""
        output, inputs = networks.forward(layers, context)
        return output.reshape(-1).astype(jnp.result_type(float)), inputs


REGISTRY: SpecRegistry["NuisanceSpec"] = SpecRegistry(
    "nuisance",
    "nuisances",
    {"mlp": "regretless.models.nuisance:MLPNuisance"},
    ("registry", "build"),
    "a subclass of regretless.models.NuisanceSpec",
)


class NuisanceSpec(Spec):
    """Base class of nuisance regressions as settings: subclass it, list the settings as fields and write ``build``.

    Parameters
    ----------
    lr : float, default 0.01
        η_0 of φ.
    """

    registry: ClassVar[SpecRegistry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.models."

    lr: float = Field(default=0.01, ge=0)

    @abc.abstractmethod
    def build(self, problem: Problem) -> Nuisance:
        """Return the regression for a problem.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        """

    def _shape(self, problem: Problem) -> dict[str, Any]:
        """Return the fields of the running regression that depend on the problem."""
        support = problem.oracle.support if problem.feedback.sparse else None
        return {"dim": problem.dim, "context_shape": problem.context_shape, "support": support}


class MLPNuisance(NuisanceSpec, RateSpec):
    """The nuisance of the published runs: two hidden layers of ReLU, one optimiser step per round.

    Parameters
    ----------
    precision : {"single", "double"}, default "single"
        Floating-point precision of the network.
    width : int, default 256
        Units of each hidden layer.
    clip : float, default 10.0
        Largest norm of a gradient.
    optimiser : {"adam", "sgd"}, default "adam"
        Adam as in the published runs, or the paper's plain step.
    loss : {"half_mean", "sum"}, default "half_mean"
        Loss of a round: half the mean of squared errors over the rows seen, or the sum that the paper writes.
    """

    precision: Literal["single", "double"] = "single"
    width: int = Field(default=256, ge=1)
    clip: float = Field(default=10.0, gt=0)
    optimiser: Literal["adam", "sgd"] = "adam"
    loss: Literal["half_mean", "sum"] = "half_mean"

    def build(self, problem: Problem) -> MLPNuisanceModel:
        """Return the regression for a problem."""
        return MLPNuisanceModel(**self._shape(problem), **self.hyperparameters())
