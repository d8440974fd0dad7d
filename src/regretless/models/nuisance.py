"""Point regressions of the cost, fitted on what the feedback shows of it: the nuisance, and regressors of scikit-learn.

The nuisance ``f_φ(x) ≈ E[c|x]`` takes a step on the loss of each round, ``½ · mean over the rows seen of
(H(w) f_φ(x) − v)²``. A regressor is fitted to the last rounds, from time to time.
"""

import abc
import dataclasses
import hashlib
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

import regretless.models.networks as networks
from regretless.errors import SettingsError
from regretless.host_calls import BoundedDict, RowFunction
from regretless.models.base import Params, PointModel, PointModelSpec
from regretless.problem import Problem
from regretless.registry import SpecRegistry
from regretless.replay import MeasuredRound, Replay, empty, measured_round
from regretless.schedules import RateSpec, shifted_inverse
from regretless.spec import FactorySpec, Spec, number
from regretless.types import Context, Cost, Decision, Feedback, Key


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
        rate = shifted_inverse(jnp.asarray(self.lr, float), count, self.rate_offset, self.rate_start)
        scale = networks.clip_factor(norm, self._cast(self.clip))
        if self.optimiser == "sgd":
            layers = jax.tree.map(lambda p, g: p - self._cast(rate) * scale * g, state.layers, grads)
            adam = networks.AdamState(state.adam.first, state.adam.second, count)
        else:
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


PASSES = 5
"""Fits to totals: each time to the last prediction plus the coordinates' shares of what it misses."""

MAX_FITS = 1024
"""Fits that are kept; others are repeated when they are needed."""


@dataclasses.dataclass(frozen=True)
class RegressorCall(RowFunction):
    """Predictions of regressors fitted to remembered rounds, as a function of rows."""

    spec: "Regressor"
    fits: BoundedDict = dataclasses.field(default_factory=lambda: BoundedDict(MAX_FITS), compare=False)

    def row(self, rounds: MeasuredRound, added: Any, context: np.ndarray) -> np.ndarray:
        """Return the costs in a context, by a fit to the rounds before the last refit."""
        count, every = int(added), self.spec.refit_every
        last = count - count % every if count >= every else 1 << count.bit_length() >> 1
        places = np.arange(max(0, last - self.spec.memory), last) % len(rounds.used)
        fitted_to = [np.asarray(leaf)[places] for leaf in jax.tree.leaves(rounds)]
        key = hashlib.blake2b(b"".join(leaf.tobytes() for leaf in fitted_to)).digest()
        if key not in self.fits:
            self.fits[key] = self.fit(*fitted_to)
        return _predict(self.fits[key], context[None])[0]

    def fit(self, x: np.ndarray, weights: np.ndarray, values: np.ndarray, used: np.ndarray) -> list[Any]:
        """Return a regressor for each coordinate, or one for all feature rows; None where nothing was seen."""
        if weights.shape == values.shape:  # coordinates are seen one by one
            known = used & (weights != 0)
            return self._fit(x, values / np.where(known, weights, 1.0), known)
        rows = (weights if weights.ndim == 3 else weights[:, None]).astype(float) * used[:, :, None]
        known, predicted = np.any(rows != 0, axis=1), np.zeros((len(rows), rows.shape[2]))
        squares = np.maximum(np.sum(np.square(rows), axis=2), 1e-30)
        for _ in range(PASSES):
            missed = (values * used - np.einsum("nms,ns->nm", rows, predicted)) / squares
            fitted = self._fit(x, predicted + np.einsum("nms,nm->ns", rows, missed), known)
            predicted = _predict(fitted, x)
        return fitted

    def _fit(self, x: np.ndarray, targets: np.ndarray, known: np.ndarray) -> list[Any]:
        fitted: list[Any] = []
        for seen, column in [(known, targets)] if x.ndim == 3 else zip(known.T, targets.T, strict=True):
            fitted.append(self.spec.create() if seen.any() else None)
            if seen.any():
                (getattr(fitted[-1], "fit", None) or fitted[-1].partial_fit)(x[seen], column[seen])
        return fitted


def _predict(fitted: list[Any], x: np.ndarray) -> np.ndarray:
    """Return the costs of contexts; zeros where nothing was fitted."""
    rows = x.reshape(-1, x.shape[-1])
    parts = [np.zeros(len(rows)) if part is None or not len(rows) else part.predict(rows) for part in fitted]
    return np.stack(parts, axis=1) if x.ndim == 2 else np.reshape(parts, x.shape[:2])


class RegressorModel(PointModel):
    """A mean by regressors that are fitted again and again; its parameters are the remembered rounds."""

    problem: Problem
    call: RegressorCall = eqx.field(static=True)
    calls_python = True

    def init(self, key: Key) -> Replay:
        example = measured_round(self.problem, self.problem.example_decision(), self.problem.example_feedback())
        return empty(example, self.call.spec.memory + self.call.spec.refit_every)

    def refit(self, params: Replay, decision: Decision, feedback: Feedback) -> Replay:
        return params.add(measured_round(self.problem, decision, feedback), jnp.any(feedback.used()))

    def mean(self, params: Replay, context: Context) -> Cost:
        form = jax.ShapeDtypeStruct((self.dim,), jnp.result_type(float))
        return self.call.one(form, params.records, params.added, context)

    def sample(self, params: Replay, context: Context, noise: Cost) -> Cost:
        return self.mean(params, context) + self.scale * noise

    def pullback(self, *_: Any) -> Params:
        raise SettingsError(NO_GRADIENT)

    score = pullback  # type: ignore[assignment]


NO_GRADIENT = "model: a regressor has no gradient; expected a network, or rg.policies.Greedy, EpsilonGreedy or Thompson"


class Regressor(FactorySpec, PointModelSpec):
    """A regressor in the style of scikit-learn, fitted to the last rounds, as a model for ``EpsilonGreedy`` and others.

    There is one for each coordinate of the cost, or with feature rows one for all rows. Where only totals are seen,
    what a prediction misses is shared among the chosen coordinates.

    Parameters
    ----------
    make : callable, or where it is as "module:name"
        Called without arguments, or with the settings that a subclass adds as keyword arguments. It returns an object
        with ``fit(x, y)`` or ``partial_fit(x, y)``, and ``predict(x)``. Equal data must give equal fits: set a
        ``random_state``.
    refit_every : int, default 50
        Rounds between two fits; before the first of them, fits are at 1, 2, 4, 8, … rounds.
    memory : int, default 1000
        Rounds that are fitted to.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> class Mean:
    ...     def fit(self, x, y):
    ...         self.mean = np.mean(y)
    ...     def predict(self, x):
    ...         return np.full(len(x), self.mean)
    >>> spec = rg.policies.EpsilonGreedy(model=rg.models.Regressor(make=Mean), epsilon=0.05)
    >>> rg.simulate(spec, "topk", seeds=2, horizon=20).diverged
    0
    """

    needs = ("predict",)

    refit_every: int = Field(default=50, ge=1)
    memory: int = Field(default=1000, ge=1)

    def build(self, dim: int, context_shape: tuple[int, ...], scale: float = 1.0) -> PointModel:
        """Refuse a policy that needs a gradient."""
        raise SettingsError(NO_GRADIENT)

    def build_for(self, problem: Problem) -> RegressorModel:
        """Return the model for a problem."""
        self.create()
        return RegressorModel(problem.dim, problem.context_shape, number(1.0), problem, RegressorCall(self))
