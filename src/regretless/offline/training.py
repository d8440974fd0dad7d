"""Training with a decision-focused loss on complete costs: all seeds in one program, a block of epochs at a time.

The loss of a batch is the mean over its rows. Every row's optimum is known from the data set, so that only what depends
on the prediction is solved. A solver on the host is called once per batch, for all rows and seeds.
"""

import dataclasses
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless.array_files import canonical, flatten_tree, read_arrays, restore_tree, write_arrays
from regretless.columns import Columns
from regretless.errors import CheckpointError, DamagedError, SettingsError
from regretless.formatting import count_text, shorten
from regretless.models.base import REGISTRY as MODELS
from regretless.models.base import ModelSpec, PointModel, PointModelSpec
from regretless.models.gaussian import GaussianLinear
from regretless.models.networks import AdamState, adam_init, adam_step
from regretless.offline.data import Dataset, encode_contexts
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.scaling import Offset, build_policy
from regretless.problem import Problem
from regretless.registry import load_attribute
from regretless.simulation.programs import Progress, Replicas, no_progress
from regretless.simulation.simulator import seeds_of
from regretless.surrogates.base import SolvedCall, Surrogate, SurrogateSpec
from regretless.types import Key

KIND = "offline fit"
"""What a fit is called in its file."""

BLOCK = 10
"""Epochs of a program's call, between two of which callbacks run and files are written."""

MAX_ORDER = 2**24
"""Row numbers of a block, over which a block has fewer epochs."""

MIN_INTERVAL_RATIO = 20.0
"""A file is written when this many times the duration of the last write has passed."""

Order = Callable[[int, int], Any]


@dataclasses.dataclass(frozen=True)
class Training:
    """How a model is trained.

    Parameters
    ----------
    epochs : int, default 100
        Passes over the training set, at most.
    batch : int, default 32
        Rows of a batch; the last one of an epoch may be smaller.
    lr : float, default 0.01
        Learning rate.
    optimiser : {"adam", "sgd"}, default "adam"
        How steps are taken.
    patience : int, optional
        Epochs without a lower validation regret after which a seed stops.
    standardise : bool, default True
        Whether model and loss meet contexts with mean 0 and variance 1 by column, and costs of order one, as policies
        do.
    shuffle : bool or callable, default True
        Whether every epoch has an order of its own; or a function of seed and epoch, from 0, that returns the rows in
        order.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.offline.Training(epochs=30, lr=0.1)
    Training(epochs=30, batch=32, lr=0.1, optimiser='adam', patience=None, standardise=True, shuffle=True)
    """

    epochs: int = 100
    batch: int = 32
    lr: float = 0.01
    optimiser: Literal["adam", "sgd"] = "adam"
    patience: int | None = None
    standardise: bool = True
    shuffle: bool | Order = True

    def __post_init__(self) -> None:
        for name, low in (("epochs", 0), ("batch", 1), ("patience", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= low
            if not whole and not (name == "patience" and value is None):
                raise SettingsError(f"training: {name}: expected an integer of at least {low}, got {value!r}")
        if not isinstance(self.lr, int | float | np.number) or not 0 < self.lr < np.inf:
            raise SettingsError(f"training: lr: expected a number above 0, got {self.lr!r}")
        if self.optimiser not in ("adam", "sgd"):
            raise SettingsError(f"training: optimiser: expected 'adam' or 'sgd', got {self.optimiser!r}")


class EpochMetrics(NamedTuple):
    """A fit after some epochs, with one number for each seed.

    Parameters
    ----------
    epoch : int
        Epochs so far.
    epochs : int
        Epochs at most.
    error : array of shape ``[seeds]``
        Mean squared error of the predictions in the last epoch, before each step.
    regret : array of shape ``[seeds]``
        Relative regret on the validation set; NaN without one.
    stopped : boolean array of shape ``[seeds]``
        Which seeds have stopped early.
    seconds : float
        Since the start.
    """

    epoch: int
    epochs: int
    error: np.ndarray
    regret: np.ndarray
    stopped: np.ndarray
    seconds: float


class Scaling(eqx.Module):
    """Centre and spread of contexts by column, and the unit of costs."""

    centre: Float[Array, " p"]
    spread: Float[Array, " p"]
    unit: Float[Array, ""]

    def scale(self, context: Float[Array, "*n p"]) -> Float[Array, "*n p"]:
        """Return contexts of order one."""
        return (context - self.centre) / self.spread


class Predictor(eqx.Module):
    """A model with its scaling: ``ĉ = unit · μ_θ(z)`` with standardised contexts ``z``."""

    model: PointModel
    scaling: Scaling
    intercept: bool = eqx.field(static=True)

    def __call__(self, params: Any, context: Float[Array, "*shape"]) -> Float[Array, " d"]:
        """Return the predicted costs of one context."""
        x = self.scaling.scale(context)
        if self.intercept:
            x = jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1), x.dtype)], axis=-1)
        return self.scaling.unit * self.model.mean(params, x)


class FittedCosts(eqx.Module):
    """The costs that a fit predicts, as a function of the context."""

    predictor: Predictor
    params: Any

    def __call__(self, context: Float[Array, "*shape"]) -> Float[Array, " d"]:
        """Return the predicted costs."""
        return self.predictor(self.params, context).astype(float)


class DataRows(eqx.Module):
    """The arrays of a data set."""

    contexts: Float[Array, "..."]
    costs: Float[Array, "n d"]
    optima: Float[Array, "n d"]
    instances: Any

    def take(self, places: Int[Array, " b"]) -> "DataRows":
        """Return some rows."""
        return jax.tree.map(lambda leaf: leaf[places], self)


class FitState(eqx.Module):
    """What one seed takes from epoch to epoch."""

    params: Any
    moments: AdamState | None
    memory: Any
    best: Any
    best_regret: Float[Array, ""]
    since_best: Int[Array, ""]
    stopped: Bool[Array, ""]
    epoch: Int[Array, ""]
    key: Key


class Learning(eqx.Module):
    """What all seeds of a fit share."""

    predictor: Predictor
    surrogate: Surrogate
    train: DataRows
    validation: DataRows | None
    lr: Float[Array, ""]
    patience: Int[Array, ""]
    adam: bool = eqx.field(static=True)
    noisy: bool = eqx.field(static=True)  # whether the surrogate draws noise
    known: tuple[bool, ...] = eqx.field(static=True)  # which queries of the surrogate are the target itself

    def fill(self, memory: Any) -> Any:
        """Return the memory before the first epoch: a pool begins with the optima of the training set."""
        surrogate = self.surrogate

        def add(memory: Any, row: tuple[Array, Array]) -> tuple[Any, None]:
            cost, w = row
            return surrogate.remember(memory, SolvedCall(cost, cost, jnp.stack([w] * len(self.known)))), None

        return jax.lax.scan(add, memory, (self.train.costs, self.train.optima))[0]

    def solve(self, memory: Any, predictions: Array, rows: DataRows, noise: Any) -> Array:
        """Return the solutions of a batch's queries, ``[b, q, d]``."""
        query = lambda c, target, eta: self.surrogate.queries(memory, c, target, eta)  # noqa: E731
        queries = jax.vmap(query)(predictions, rows.costs, noise)
        asked = [place for place, known in enumerate(self.known) if not known]
        count, dim = len(asked), queries.shape[-1]
        solutions = jnp.broadcast_to(rows.optima[:, None], queries.shape)
        if not asked:
            return solutions
        instances = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), rows.instances)
        solved = self.surrogate.oracle.solve(queries[:, asked].reshape(-1, dim), instances).w
        return solutions.at[:, jnp.array(asked)].set(solved.reshape(-1, count, dim))

    def step(self, state: FitState, places: Int[Array, " b"], used: Bool[Array, " b"], noise: Any) -> Any:
        """Return the state after one batch, and the squared errors of its predictions."""
        rows, surrogate = self.train.take(places), self.surrogate
        predict = lambda params: jax.vmap(lambda x: self.predictor(params, x))(rows.contexts)  # noqa: E731
        predictions, pull_back = jax.vjp(predict, state.params)
        prepare = lambda *arguments: surrogate.prepare(state.memory, *arguments)  # noqa: E731
        noise = jax.vmap(prepare)(predictions, rows.costs, noise, rows.instances)
        calls = SolvedCall(predictions, rows.costs, self.solve(state.memory, predictions, rows, noise))
        memory = self.fold(lambda memory, call, _: surrogate.remember(memory, call), state.memory, calls, used, None)

        def gradient(call: SolvedCall, noise: Any, instance: Any) -> Array:
            visible = memory
            if instance is not None:
                visible = surrogate.available(memory, surrogate.feasible(memory, instance))
                visible = surrogate.remember(visible, call)
            return surrogate.gradient(visible, *call[:2], noise, call.solutions)

        slopes = jax.vmap(gradient)(calls, noise, rows.instances)
        if type(surrogate).adapt is not Surrogate.adapt:
            memory = self.fold(lambda memory, call, g: surrogate.adapt(memory, g, call), memory, calls, used, slopes)
        cotangents = jnp.where(used[:, None], slopes, 0.0) / jnp.sum(used)
        grads = pull_back(cotangents)[0]
        if state.moments is None:
            params, moments = jax.tree.map(lambda p, g: p - self.lr.astype(p.dtype) * g, state.params, grads), None
        else:
            params, moments = adam_step(state.params, state.moments, grads, self.lr)
        errors = jnp.mean(jnp.square(predictions - rows.costs), axis=1)
        after = dataclasses.replace(state, params=params, moments=moments, memory=memory)
        return after, jnp.sum(jnp.where(used, errors, 0.0))

    def fold(self, update: Any, memory: Any, calls: SolvedCall, used: Bool[Array, " b"], more: Any) -> Any:
        """Return the memory after the calls of a batch, one after the other."""
        if memory is None:
            return None

        def one(memory: Any, row: Any) -> tuple[Any, None]:
            call, more, used = row
            after = update(memory, call, more)
            return jax.tree.map(lambda new, old: jnp.where(used, new, old), after, memory), None

        return jax.lax.scan(one, memory, (calls, more, used))[0]

    def validate(self, params: Any) -> Float[Array, ""]:
        """Return the relative regret on the validation set."""
        rows = self.validation
        if rows is None:
            return jnp.asarray(jnp.nan)
        predictions = jax.vmap(lambda x: self.predictor(params, x))(rows.contexts)
        w = self.surrogate.oracle.solve(predictions, rows.instances).w
        optimal = jnp.sum(rows.costs * rows.optima, axis=1)
        return jnp.sum(jnp.sum(rows.costs * w, axis=1) - optimal) / (jnp.sum(jnp.abs(optimal)) + 1e-7)

    def epoch(self, state: FitState, order: Int[Array, "batches b"]) -> tuple[FitState, Array, Array]:
        """Return the state after one pass, the mean squared error during it, and the validation regret after it."""
        epoch_key = jax.random.fold_in(state.key, state.epoch) if self.noisy else None

        def one(state: FitState, batch: Any) -> Any:
            places, number = batch
            used, noise = places >= 0, None
            if epoch_key is not None:
                keys = jax.random.split(jax.random.fold_in(epoch_key, number), len(places))
                noise = jax.vmap(self.surrogate.draw)(keys)
            return self.step(state, jnp.maximum(places, 0), used, noise)

        state, errors = jax.lax.scan(one, state, (order, jnp.arange(len(order))))
        error = jnp.sum(errors) / jnp.sum(order >= 0)
        regret = self.validate(state.params)
        better = (regret < state.best_regret) | jnp.isnan(regret) & (self.validation is None)
        since = jnp.where(better, 0, state.since_best + 1)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.params, state.best)
        finite = jnp.isfinite(error)
        stopped = (since >= self.patience) | ~finite
        lowest = jnp.where(better, regret, state.best_regret)
        return FitState(
            state.params, state.moments, state.memory, best, lowest, since, stopped, state.epoch + 1, state.key
        ), error, regret  # fmt: skip


def _init(shared: PointModel, key: Key) -> Any:
    return shared.init(key)


def _train(shared: tuple[Learning, Array, Array], mapped: tuple[FitState, Array]) -> Any:
    """Return the state after the first ``count`` epochs of a block, with errors and regrets by epoch."""
    (learning, done, count), (state, orders) = shared, mapped
    if len(learning.surrogate.points(state.memory)):
        memory = jax.lax.cond(done == 0, lambda memory: learning.fill(memory), lambda memory: memory, state.memory)
        state = dataclasses.replace(state, memory=memory)
    room = jnp.full(len(orders), jnp.nan)

    def one(i: Array, carry: Any) -> Any:
        state, errors, regrets = carry
        after, error, regret = learning.epoch(state, orders[i])
        after = jax.tree.map(lambda new, old: jnp.where(state.stopped, old, new), _bits(after), _bits(state))
        error, regret = (jnp.where(state.stopped, jnp.nan, value) for value in (error, regret))
        return _keys(after), errors.at[i].set(error), regrets.at[i].set(regret)

    return jax.lax.fori_loop(0, count, one, (state, room, room))


def _bits(state: FitState) -> FitState:
    return dataclasses.replace(state, key=jax.random.key_data(state.key))


def _keys(state: FitState) -> FitState:
    return dataclasses.replace(state, key=jax.random.wrap_key_data(state.key))


def _predict(shared: tuple[Predictor, Any], mapped: Any) -> Any:
    return shared[0](mapped, shared[1])


class Fit:
    """A trained model, for one or several seeds; ``fit[k]`` is that of one.

    Attributes
    ----------
    model : ModelSpec
        The model.
    surrogate : SurrogateSpec
        The loss that it was trained with.
    training : Training
        How it was trained.
    seeds : tuple of int
        Its seeds.
    oracle : Oracle
        The feasible set.
    history : dict of str to array of shape ``[seeds, epochs]``
        ``error``, the mean squared error in each epoch, and ``regret``, the relative regret on the validation set.
    seconds : float
        How long training took, compiling included.
    """

    def __init__(
        self,
        setup: tuple[PointModelSpec, SurrogateSpec, Training],
        oracle: Oracle,
        about: dict[str, Any],
        scaling: Scaling,
        seeds: tuple[int, ...],
        state: FitState,
        history: dict[str, np.ndarray],
        seconds: float = 0.0,
    ):
        self.model, self.surrogate, self.training = setup
        self.oracle, self.seeds, self.history, self.seconds = oracle, seeds, history, seconds
        self._about, self._scaling, self._state = about, scaling, state

    @property
    def context_shape(self) -> tuple[int, ...]:
        """The shape of one context."""
        return tuple(self._about["context_shape"])

    @property
    def columns(self) -> Columns | None:
        """Names of the context's columns, if they have any."""
        return Columns(**self._about["columns"]) if self._about["columns"] else None

    @property
    def epochs(self) -> np.ndarray:
        """Epochs that each seed was trained for."""
        return np.asarray(self._state.epoch)

    @property
    def params(self) -> Any:
        """The trained weights, with a leading axis of seeds: the best ones on the validation set if there was one."""
        return self._state.best

    @property
    def predictor(self) -> Predictor:
        """The model with its scaling: a function of weights and a context."""
        return build_predictor(self.model, self.oracle.dim, self.context_shape, self._scaling)

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, place: int) -> Self:
        """Return the fit of one seed, by its place."""
        if not -len(self) <= place < len(self):
            raise IndexError(f"expected a place below {len(self)}, the number of seeds, got {place}")
        rows = slice(place, place + 1 or None)
        state, history = jax.tree.map(lambda leaf: leaf[rows], (self._state, self.history))
        setup = self.model, self.surrogate, self.training
        return type(self)(setup, self.oracle, self._about, self._scaling, self.seeds[rows], state, history)

    def __iter__(self) -> Iterator[Self]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        lowest, highest = self.epochs.min(), self.epochs.max()
        epochs = f"{lowest} to {highest} epochs" if lowest < highest else count_text(int(lowest), "epoch")
        parts = [f"{self.surrogate.registered_name} on {self.model.registered_name}"]
        parts += [f"{epochs} of {count_text(self._about['rows'], 'row')}", f"{count_text(len(self), 'seed')}"]
        best = np.asarray(self._state.best_regret)
        parts += [f"validation regret {best.mean():.4g}"] if np.isfinite(best).all() else []
        return f"Fit({', '.join(parts)})"

    def predict(self, contexts: Any, *, seed: int = 0) -> np.ndarray:
        """Return predicted costs; rewards if the data set had rewards.

        Parameters
        ----------
        contexts : array of shape ``[n, …]`` or of one context, DataFrame or dictionaries
            Contexts as in the data set.
        seed : int, default 0
            The place of a seed.

        Returns
        -------
        array of shape ``[n, d]``
        """
        sign = 1.0 if self._about["sense"] == "min" else -1.0
        return sign * self.predict_costs(encode_contexts(contexts, self.columns, self.context_shape), seed)

    def predict_costs(self, contexts: np.ndarray, seed: int = 0) -> np.ndarray:
        """Return predicted costs of encoded contexts, ``[n, d]``, also if the data set had rewards.

        Parameters
        ----------
        contexts : array of shape ``[n, …]``
            Contexts as numbers.
        seed : int, default 0
            The place of a seed.
        """
        params, predictor = self[seed].params, self.predictor
        with jax.enable_x64(True):
            one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], params)
            if getattr(predictor.model, "calls_python", False):
                return np.asarray(jax.vmap(lambda x: predictor(one, x))(jnp.asarray(contexts)))
            return np.asarray(_predict_all(predictor, one, jnp.asarray(contexts)))

    def decide(self, contexts: Any, *, instances: Any = None, seed: int = 0) -> np.ndarray:
        """Return the best decisions under the predicted costs, ``[n, d]``.

        Parameters
        ----------
        contexts : array of shape ``[n, …]`` or of one context, DataFrame or dictionaries
            Contexts as in the data set.
        instances : pytree, optional
            What changes in the feasible set, with a leading axis of rows.
        seed : int, default 0
            The place of a seed.
        """
        encoded = encode_contexts(contexts, self.columns, self.context_shape)
        return np.asarray(self.oracle.answer(self.predict_costs(encoded, seed), instances).w)

    def start(self, policy: PolicySpec | str, problem: Problem, *, seed: int = 0) -> Policy:
        """Return a policy that begins with what the fit predicts and learns what it misses.

        It decides by the sum of the fit's prediction and its own, which begins at zero. How much it explores follows
        from the errors of the fit instead of the size of the costs.

        Parameters
        ----------
        policy : PolicySpec or str
            What learns online.
        problem : Problem
            What is decided, such as ``benchmark.problem("bandit")``.
        seed : int, default 0
            The place of a seed.

        Returns
        -------
        Policy
            For ``rg.simulate`` and ``rg.Learner``.

        Raises
        ------
        SettingsError
            If the problem has another feasible set or other contexts, or the policy trains again from stored rounds.
        """
        there, here = problem.oracle.fingerprint(), self._about["oracle"]
        if canonical(there) != canonical(here) or problem.context_shape != self.context_shape:
            raise SettingsError(
                f"start: the fit is for contexts of shape {self.context_shape} and the feasible set "
                f"{shorten(str(here))}; the problem has {problem.context_shape} and {shorten(str(there))}"
            )
        problem = problem.with_missing(True) if problem.may_miss is None else problem  # as a Learner does
        with jax.enable_x64(True):
            params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], self[seed].params)
            inner = build_policy(policy, problem)
            if inner.refit_every is not None:
                raise SettingsError("start: expected a policy that learns in every round, got one that trains again")
            return Offset(problem, inner, FittedCosts(self.predictor, params))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a file, atomically.

        Parameters
        ----------
        path : path
            An ``.npz`` file of NumPy arrays and JSON data, without pickle. The feasible set is not in it.
        """
        arrays = flatten_tree("state", _host(self._state)) | flatten_tree("scaling", self._scaling)
        arrays |= {f"history/{name}": values for name, values in self.history.items()}
        record = {"kind": KIND, "request": self.request(), "about": self._about, "seconds": self.seconds}
        write_arrays(path, arrays, record)

    def request(self) -> dict[str, Any]:
        """Return what defines the fit, as JSON data; not how many epochs it was trained for."""
        training = {name: getattr(self.training, name) for name in ("batch", "lr", "optimiser", "standardise")}
        training |= {"shuffle": self.training.shuffle if isinstance(self.training.shuffle, bool) else "function"}
        return {
            "model": _as_record(self.model),
            "surrogate": _as_record(self.surrogate),
            "training": {**training, "patience": self.training.patience},
            "seeds": list(self.seeds),
            "data": self._about["data"],
            "validation": self._about["validation"],
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle, *, model: PointModelSpec | None = None) -> Self:
        """Read a fit that ``save`` wrote.

        Parameters
        ----------
        path : path
            The file.
        oracle : Oracle
            The feasible set.
        model : PointModelSpec, optional
            The model, if it is made by a function that cannot be imported by its name.

        Raises
        ------
        CheckpointError
            If the file cannot be read, or is not a fit for this feasible set.
        """
        try:
            arrays, record = read_arrays(path)
        except (OSError, DamagedError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from None
        if record.get("kind") != KIND:
            raise CheckpointError(f"{path}: expected a fit, got {record.get('kind', 'another file')!r}")
        about, request = record["about"], record["request"]
        if canonical(about["oracle"]) != canonical(oracle.fingerprint()):
            raise CheckpointError(f"{path}: the fit is for another feasible set: {shorten(str(about['oracle']), 200)}")
        training = Training(**{**request["training"], "shuffle": request["training"]["shuffle"] is not False})
        spec = model or _from_record(request["model"], MODELS)
        setup = spec, _from_record(request["surrogate"], SurrogateSpec.registry), training
        with jax.enable_x64(True):
            shape = tuple(about["context_shape"])
            form = Scaling(jnp.zeros(shape[-1:]), jnp.zeros(shape[-1:]), jnp.zeros(()))
            scaling = restore_tree("scaling", form, arrays)
            surrogate = setup[1].build(oracle)
            predictor = build_predictor(spec, oracle.dim, shape, scaling)
            template = _template(predictor.model, surrogate, training, len(request["seeds"]))
            state = restore_tree("state", template, arrays)
        history = {name: arrays[f"history/{name}"] for name in ("error", "regret")}
        seconds = float(record["seconds"])
        return cls(setup, oracle, about, scaling, tuple(request["seeds"]), state, history, seconds)


@eqx.filter_jit
def _predict_all(predictor: Predictor, params: Any, contexts: Array) -> Array:
    return jax.vmap(lambda x: predictor(params, x))(contexts)


def _host(state: FitState) -> FitState:
    """Return a state as NumPy arrays, its key as numbers."""
    key = state.key
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    return jax.tree.map(np.asarray, dataclasses.replace(state, key=key))


def _template(model: PointModel, surrogate: Surrogate, training: Training, seeds: int) -> Any:
    """Return the shapes of a state."""

    def begin(key: Key) -> FitState:
        params = model.init(key)
        zero, number = jnp.zeros((), jnp.int32), jnp.zeros(())
        moments = adam_init(params) if training.optimiser == "adam" else None
        bits = jax.random.key_data(key)
        return FitState(params, moments, surrogate.init(), params, number, zero, zero > 0, zero, bits)

    form = jax.eval_shape(begin, jax.random.key(0))
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((seeds, *leaf.shape), leaf.dtype), form)


def _as_record(spec: Any) -> dict[str, Any]:
    return {"name": spec.registered_name, "settings": spec.names()}


def _from_record(record: dict[str, Any], registry: Any) -> Any:
    name = record["name"]
    part: Any = load_attribute(name) if ":" in name else registry[name]
    return part.from_text(record["settings"])


def build_predictor(spec: PointModelSpec, dim: int, context_shape: tuple[int, ...], scaling: Scaling) -> Predictor:
    """Return the model for these contexts; a linear one has an intercept."""
    intercept = isinstance(spec, GaussianLinear)
    shape = (*context_shape[:-1], context_shape[-1] + intercept)
    if len(shape) > 2:
        raise SettingsError(
            f"fit: expected contexts of shape (p,) or (d, p), got {context_shape}; reshape them to one row of numbers, "
            "which the model can undo"
        )
    return Predictor(spec.build(dim, shape), scaling, intercept)


def fit(
    model: PointModelSpec | str,
    train: Dataset,
    *,
    surrogate: SurrogateSpec | str = "spo_plus",
    validation: Dataset | None = None,
    training: Training = Training(),  # noqa: B008 -- frozen
    seeds: Any = 1,
    initial: Any = None,
    callback: Callable[[EpochMetrics], Any] | None = None,
    progress: Progress = no_progress,
    save: str | os.PathLike[str] | None = None,
) -> Fit:
    """Train a model offline with a decision-focused loss.

    Parameters
    ----------
    model : PointModelSpec or str
        What predicts the costs: ``"gaussian_linear"``, which has an intercept here, ``"gaussian_nn"``, or a network of
        Equinox, Flax or PyTorch (``rg.models.Module``, ``rg.models.Torch``).
    train : Dataset
        The data to learn from.
    surrogate : SurrogateSpec or str, default "spo_plus"
        The loss; ``"mse"`` is the prediction-focused yardstick.
    validation : Dataset, optional
        Data to choose the best epoch by; without it the last one counts.
    training : Training
        Epochs, batches, optimiser, early stopping.
    seeds : int or iterable of int, default 1
        Number of seeds, or the seeds: initial weights, orders of rows and noise. They are trained together.
    initial : Fit or pytree, optional
        The weights to begin with, as in ``Fit.params``; with a leading axis of seeds or of one. By default they are
        drawn.
    callback : callable, optional
        Receives ``EpochMetrics`` every 10 epochs and at the end; training ends if it returns True.
    progress : callable, optional
        Receives what is being done, how much of it is finished and how much there is.
    save : path, optional
        A file that the fit is kept in: the same call continues from it after a kill, with the same result, and more
        epochs continue a finished fit.

    Returns
    -------
    Fit

    Raises
    ------
    SettingsError
        If the arguments do not fit together, or the file holds another fit.
    OracleError
        If a solver on the host fails.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 2))
    >>> data = rg.offline.Dataset(x, x @ [[1.0, -1.0, 0.5], [0.5, 1.0, -1.0]] + 2.0, rg.oracles.top_k(3, 1))
    >>> fit = rg.offline.fit("gaussian_linear", data, training=rg.offline.Training(epochs=30))
    >>> fit
    Fit(spo_plus on gaussian_linear, 30 epochs of 100 rows, 1 seed)
    >>> fit.decide([[1.0, 0.0]]).tolist()
    [[0.0, 1.0, 0.0]]
    """
    began = time.perf_counter()
    spec, loss = ModelSpec.coerce(model), SurrogateSpec.coerce(surrogate)
    if not isinstance(spec, PointModelSpec):
        raise SettingsError(f"fit: expected a model with a mean, such as 'gaussian_linear', got {spec.registered_name}")
    _check_pair(train, validation, training)
    chosen = seeds_of(seeds)
    with jax.enable_x64(True):
        scaling = _estimate_scaling(train) if training.standardise else _no_scaling(train)
        predictor = build_predictor(spec, train.oracle.dim, train.context_shape, scaling)
        gradient = loss.build(train.oracle)
        host = getattr(predictor.model, "calls_python", False)
        lr: Any = np.float64(training.lr)
        patience: Any = np.int32(training.patience or np.iinfo(np.int32).max)
        learning = Learning(
            dataclasses.replace(predictor, scaling=dataclasses.replace(scaling, unit=jnp.ones(()))), gradient,
            _rows(train, scaling), None if validation is None else _rows(validation, scaling),
            lr, patience,
            training.optimiser == "adam", bool(jax.tree.leaves(_noise_form(gradient))), _known_queries(gradient, train),
        )  # fmt: skip
        about = {
            "context_shape": list(train.context_shape), "oracle": train.oracle.fingerprint(), "sense": train.sense,
            "columns": None if train.columns is None else train.columns.declaration(), "rows": len(train),
            "data": train.digest(), "validation": None if validation is None else validation.digest(),
        }  # fmt: skip
        devices = math.gcd(len(jax.local_devices()), len(chosen))  # each has the same number of seeds
        replicas = Replicas(devices, train.oracle, on_host=bool(host))
        replicas.options = _quick_options(replicas.options)
        result = _resume(save, (spec, loss, training), train.oracle, about, chosen)
        if result is None:
            params = _initial_params(predictor.model, replicas, chosen, initial)
            state = _first_state(params, gradient.init(), training, chosen)
            empty = {name: np.zeros((len(chosen), 0)) for name in ("error", "regret")}
            result = Fit((spec, loss, training), train.oracle, about, scaling, chosen, state, empty)
        return _train_blocks(result, learning, replicas, train, began, (callback, progress, save))


def _keys_of(seeds: tuple[int, ...], purpose: int) -> Any:
    """Return a key for each seed; computing them would take longer to compile than a linear model."""
    return jax.random.wrap_key_data(jnp.asarray([[purpose, seed] for seed in seeds], jnp.uint32))


def _initial_params(model: PointModel, replicas: Replicas, seeds: tuple[int, ...], initial: Any) -> Any:
    """Return weights by seed: given ones, checked, or drawn ones."""
    keys = _keys_of(seeds, 0)
    if initial is None:
        return replicas.run(_init, model, replicas.place(keys))
    given = initial.params if isinstance(initial, Fit) else initial
    form = jax.eval_shape(model.init, keys[0])
    structures: list[Any] = [jax.tree.structure(tree) for tree in (given, form)]
    if structures[0] != structures[1]:
        raise SettingsError("fit: initial: expected the weights of this model, as in Fit.params; got another structure")

    def convert(leaf: Any, wanted: Any) -> Any:
        array, shape = np.asarray(leaf, wanted.dtype), (len(seeds), *wanted.shape)
        if array.shape[1:] != wanted.shape or array.shape[0] not in (1, len(seeds)):
            raise SettingsError(f"fit: initial: expected weights of shape {shape}, got {array.shape}")
        return np.broadcast_to(array, shape)

    return jax.tree.map(convert, given, form)


def _first_state(params: Any, memory: Any, training: Training, seeds: tuple[int, ...]) -> FitState:
    """Return the state of all seeds before the first epoch."""
    count = len(seeds)
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), params)
    whole: Any = np.zeros(count, np.int32)
    moments = AdamState(zeros, zeros, whole) if training.optimiser == "adam" else None
    memory = jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (count, *leaf.shape)), memory)
    best: Any = np.full(count, np.inf)
    return FitState(params, moments, memory, params, best, whole, whole > 0, whole, _keys_of(seeds, 1))


def _train_blocks(
    result: Fit, learning: Learning, replicas: Replicas, train: Dataset, began: float, watchers: tuple[Any, Any, Any]
) -> Fit:
    """Train until the last epoch, until every seed has stopped, or until the callback returns True."""
    callback, progress, save = watchers
    training, seeds, next_write, earlier = result.training, result.seeds, 0.0, result.seconds
    batches = -(-len(train) // training.batch)
    size = max(1, min(BLOCK, MAX_ORDER // (len(seeds) * batches * training.batch)))
    state = result._state
    while (done := result.history["error"].shape[1]) < training.epochs and not np.all(state.stopped):
        progress("training", done, training.epochs)
        count = min(size, training.epochs - done)
        orders: Any = np.full((len(seeds), size, batches * training.batch), -1, np.int32)
        for place, seed in enumerate(seeds):
            for epoch in range(count):
                orders[place, epoch, : len(train)] = _order(training.shuffle, seed, done + epoch, len(train))
        orders = orders.reshape(len(seeds), size, batches, training.batch)
        if not jnp.issubdtype(state.key.dtype, jax.dtypes.prng_key):
            state = dataclasses.replace(state, key=jax.vmap(jax.random.wrap_key_data)(jnp.asarray(state.key)))
        mapped = replicas.place((jax.tree.map(jnp.asarray, state), jnp.asarray(orders)))
        state, errors, regrets = replicas.run(_train, (learning, np.int32(done), np.int32(count)), mapped)
        unit = float(result._scaling.unit)
        new = {"error": np.asarray(errors)[:, :count] * unit**2, "regret": np.asarray(regrets)[:, :count]}
        result.history = {name: np.concatenate([result.history[name], new[name]], axis=1) for name in new}
        result._state, result.seconds = state, earlier + time.perf_counter() - began
        now = time.monotonic()
        if save is not None and now >= next_write:
            result.save(save)
            next_write = time.monotonic() + MIN_INTERVAL_RATIO * (time.monotonic() - now)
        last = (new["error"][:, -1], new["regret"][:, -1], np.asarray(state.stopped), result.seconds)
        if callback is not None and callback(EpochMetrics(done + count, training.epochs, *last)) is True:
            break
    progress("training", training.epochs, training.epochs)
    result._state = _host(state)
    if save is not None:
        result.save(save)
    return result


def _order(shuffle: bool | Order, seed: int, epoch: int, rows: int) -> np.ndarray:
    """Return the rows of one epoch in order."""
    if shuffle is False:
        return np.arange(rows)
    if shuffle is True:
        return np.random.default_rng((seed, epoch)).permutation(rows)
    order = np.asarray(shuffle(seed, epoch))
    if order.shape != (rows,) or not np.array_equal(np.sort(order), np.arange(rows)):
        raise SettingsError(
            f"training: shuffle: expected each of the {rows} rows once, in order, got {shorten(str(order))}"
        )
    return order


def _resume(
    save: Any, setup: tuple[PointModelSpec, SurrogateSpec, Training], oracle: Oracle, about: Any, seeds: tuple[int, ...]
) -> Fit | None:
    """Return the fit in a file, if there is one; refuse that of another request."""
    if save is None or not os.path.exists(save):
        return None
    saved = Fit.load(save, oracle, model=setup[0])
    wanted = Fit(setup, oracle, about, saved._scaling, seeds, saved._state, saved.history, saved.seconds)
    now, then = wanted.request(), saved.request()
    differ = [name for name in now if canonical(now[name]) != canonical(then[name])]
    if differ:
        texts = shorten(str(now[differ[0]])), shorten(str(then[differ[0]]))
        raise SettingsError(
            f"{save} holds another fit: {', '.join(differ)} differ ({differ[0]}: {texts[0]} now, {texts[1]} in the "
            "file); choose another file, or remove this one to begin again"
        )
    return wanted


def _quick_options(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the compiler's options for loops of small operations: half the time to compile, equally fast."""
    quick = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
    return {**options, **quick} if options and _are_known(tuple(quick.items())) else options


@functools.cache
def _are_known(options: tuple[tuple[str, Any], ...]) -> bool:
    """Return whether this version of the compiler has these options."""
    try:
        jax.jit(lambda x: x).lower(np.float32(0)).compile(compiler_options=dict(options))
    except Exception:  # an unknown option is an error of the compiler, whose class differs between versions
        return False
    return True


def _check_pair(train: Any, validation: Any, training: Training) -> None:
    if not isinstance(train, Dataset) or not isinstance(validation, Dataset | None):
        wrong = validation if isinstance(train, Dataset) else train
        raise SettingsError(f"fit: expected an rg.offline.Dataset, got a {type(wrong).__name__}")
    if training.patience is not None and validation is None:
        raise SettingsError("fit: patience needs a validation set; pass validation=, such as a part of train.split()")
    if validation is not None and (
        validation.context_shape != train.context_shape
        or canonical(validation.oracle.fingerprint()) != canonical(train.oracle.fingerprint())
        or (validation.instances is None) != (train.instances is None)
    ):
        raise SettingsError(f"fit: expected a validation set like the training set ({train}), got {validation}")


def _rows(data: Dataset, scaling: Scaling) -> DataRows:
    """Return the arrays of a data set, its costs in the unit of the scaling."""
    arrays = data.contexts, data.costs / np.asarray(scaling.unit), data.optima, data.instances
    return DataRows(*jax.tree.map(jnp.asarray, arrays))


def _estimate_scaling(data: Dataset) -> Scaling:
    rows = data.contexts.reshape(-1, data.context_shape[-1])
    spread = rows.std(axis=0)
    unit = float(np.sqrt(np.mean(np.square(data.costs))))
    varied = spread > 1e-12 * (1e-300 + np.abs(rows.mean(axis=0)))
    return Scaling(*map(jnp.asarray, (rows.mean(axis=0), np.where(varied, spread, 1.0), unit or 1.0)))


def _no_scaling(data: Dataset) -> Scaling:
    width = data.context_shape[-1]
    return Scaling(jnp.zeros(width), jnp.ones(width), jnp.ones(()))


def _noise_form(surrogate: Surrogate) -> Any:
    """Return shapes and types of the noise of one call."""
    bits = jax.ShapeDtypeStruct((2,), jnp.uint32)
    return jax.eval_shape(lambda bits: surrogate.draw(jax.random.wrap_key_data(bits)), bits)


def _known_queries(surrogate: Surrogate, data: Dataset) -> tuple[bool, ...]:
    """Return which queries are the target itself, whatever is predicted: their solutions are known."""
    rng = np.random.default_rng(0)
    same: Any = True
    queries_of = jax.jit(lambda c, target, noise: surrogate.queries(surrogate.init(), c, target, noise))
    for _ in range(2):
        target, prediction = rng.normal(size=(2, data.oracle.dim))
        noise = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(leaf.dtype), _noise_form(surrogate))
        same = same & np.all(np.asarray(queries_of(prediction, target, noise)) == target, axis=1)
    return tuple(bool(flag) for flag in same)
