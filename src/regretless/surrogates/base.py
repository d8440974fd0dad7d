"""Surrogates: gradients of a loss in the prediction ``ĉ`` that, unlike that of ``c·w*(ĉ)`` itself, are informative.

A surrogate says which cost vectors it needs solved (``queries``) and turns the solutions into a gradient; the solves
of one call are one batch. All signs are for cost minimisation: ``ĉ ← ĉ − η · gradient`` descends. In docstrings ``ĉ``
is the prediction, ``c`` the target, ``w*`` the oracle.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.oracles.base import Oracle
from regretless.registry import SpecRegistry
from regretless.spec import Spec
from regretless.types import Cost, Instance, Key

Memory = Any
"""What a surrogate remembers between calls (a pool, a scale), as a pytree; None if nothing."""

Rows = Float[Array, "q d"]
"""Cost vectors to be solved, or their solutions, row by row."""

Feasible = Bool[Array, " n"] | None
"""Which of the remembered ``points`` are feasible; None: all."""

TINY = 1e-7
"""Added to the step sizes that gradients are divided by."""


class SolvedCall(NamedTuple):
    """One call of a surrogate, or several for the same target.

    Parameters
    ----------
    prediction : array of shape (d,), or (k, d) for several calls
        ``ĉ``.
    target : array of shape (d,)
        ``c``.
    solutions : array of shape (q, d), or (k, q, d) for several calls
        ``w*`` of each query.
    """

    prediction: Float[Array, "*k d"]
    target: Cost
    solutions: Float[Array, "*k q d"]


class Surrogate(eqx.Module):
    """``∇_ĉ ℓ(ĉ, c)`` for a prediction ``ĉ`` and a target ``c``, on the feasible set of an oracle.

    Subclasses write ``queries`` and ``gradient``; those that draw noise write ``draw``, those that remember something
    ``init`` and ``remember`` or ``adapt``. Numbers that may be tuned are array fields, choices are static fields.

    Parameters
    ----------
    oracle : Oracle
        The feasible set.
    """

    oracle: Oracle

    @abc.abstractmethod
    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        """Return the cost vectors whose solutions ``gradient`` needs.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        prediction, target : arrays of shape (d,)
            ``ĉ`` and ``c``.
        noise : pytree or None
            What ``draw`` returned.

        Returns
        -------
        array of shape (q, d)
            Cost vectors; ``q`` is the same in every call.
        """

    @abc.abstractmethod
    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        """Return ``∇_ĉ ℓ`` from the solutions of ``queries``.

        Parameters
        ----------
        memory, prediction, target, noise
            As in ``queries``.
        solutions : array of shape (q, d)
            ``w*`` of each query.
        """

    def init(self) -> Memory:
        """Return the memory before the first call."""
        return None

    def draw(self, key: Key) -> Any:
        """Return the noise of one call; None for a surrogate without noise.

        Parameters
        ----------
        key : Key
            For the draw.
        """
        return None

    def prepare(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance) -> Any:
        """Return what ``queries`` and ``gradient`` get as noise; it may ask the oracle as often as it likes.

        Parameters
        ----------
        memory, prediction, target
            As in ``queries``.
        noise : pytree or None
            What ``draw`` returned.
        instance : pytree or None
            What changed in the feasible set.
        """
        return noise

    def remember(self, memory: Memory, call: SolvedCall) -> Memory:
        """Return the memory with this call, before the gradient is taken.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        call : SolvedCall
            Prediction, target and solutions.
        """
        return memory

    def adapt(self, memory: Memory, gradient: Cost, call: SolvedCall) -> Memory:
        """Return the memory after the gradient is taken; a loss with parameters of its own learns here.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        gradient : array of shape (d,)
            What ``gradient`` returned.
        call : SolvedCall
            Prediction, target and solutions.
        """
        return memory

    def before_all(self, memory: Memory, calls: SolvedCall) -> Memory:
        """Return the memory that the gradients of several predictions see.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        calls : SolvedCall
            Predictions, target, and the solutions that belong to each prediction.
        """
        return memory

    def after_all(self, memory: Memory, gradients: Rows, calls: SolvedCall) -> Memory:
        """Return the memory after the gradients of several predictions.

        Parameters
        ----------
        memory : pytree or None
            What ``before_all`` returned.
        gradients : array of shape (k, d)
            The gradient at each prediction.
        calls : SolvedCall
            As in ``before_all``.
        """
        return memory

    def points(self, memory: Memory) -> Float[Array, "n d"]:
        """Return the remembered decisions that count only where the round's instance allows them.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        """
        return jnp.zeros((0, self.oracle.dim))

    def available(self, memory: Memory, feasible: Bool[Array, " n"]) -> Memory:
        """Return the memory without those ``points`` that are infeasible.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        feasible : boolean array of shape (n,)
            Which of the ``points`` are feasible.
        """
        return memory

    def feasible(self, memory: Memory, instance: Instance) -> Bool[Array, " n"]:
        """Return which of the ``points`` are feasible.

        Parameters
        ----------
        memory : pytree or None
            What was remembered before.
        instance : pytree
            What changed in the feasible set.
        """
        points = self.points(memory)
        if not len(points):
            return jnp.ones(0, bool)
        return jax.vmap(lambda w: self.oracle.feasible(w, instance))(points)

    def finish(
        self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows, feasible: Feasible = None
    ) -> tuple[Cost, Memory]:
        """Return the gradient and the memory after this call.

        Parameters
        ----------
        memory, prediction, target, noise
            As in ``queries``.
        solutions : array of shape (q, d)
            ``w*`` of each query.
        feasible : boolean array of shape (n,), optional
            Which of the ``points`` are feasible; by default all.
        """
        call = SolvedCall(prediction, target, solutions)
        after = self.remember(memory, call)
        visible = after if feasible is None else self.remember(self.available(memory, feasible), call)
        gradient = self.gradient(visible, prediction, target, noise, solutions)
        return gradient, self.adapt(after, gradient, call)

    def finish_all(
        self, memory: Memory, predictions: Rows, target: Cost, noise: Any, solutions: Array, feasible: Feasible = None
    ) -> tuple[Rows, Memory]:
        """Return ``∇_ĉ ℓ(ĉ_k, c)`` of each prediction, and the memory after all of them.

        The gradients see what was remembered before this call, and ``w*(c)``; the solutions that belong to predictions
        are remembered afterwards. ``noise`` has a leading axis of predictions.

        Parameters
        ----------
        memory, target
            As in ``queries``.
        predictions : array of shape (k, d)
            ``ĉ_1, …, ĉ_k``.
        noise : pytree or None
            What ``draw`` returned for each prediction.
        solutions : array of shape (k, q, d)
            ``w*`` of each query, for each prediction.
        feasible : boolean array of shape (n,), optional
            Which of the ``points`` are feasible; by default all.
        """
        calls = SolvedCall(predictions, target, solutions)
        after = self.before_all(memory, calls)
        visible = after if feasible is None else self.before_all(self.available(memory, feasible), calls)
        one = lambda c, eta, w: self.gradient(visible, c, target, eta, w)  # noqa: E731
        gradients = jax.vmap(one)(predictions, noise, solutions)
        return gradients, self.after_all(after, gradients, calls)

    def __call__(
        self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance = None
    ) -> tuple[Cost, Memory]:
        """Return the gradient and the memory after this call."""
        noise = self.prepare(memory, prediction, target, noise, instance)
        costs = self.queries(memory, prediction, target, noise)
        solutions = self.oracle.solve_round(costs, instance).w if len(costs) else costs
        feasible = None if instance is None else self.feasible(memory, instance)
        return self.finish(memory, prediction, target, noise, solutions, feasible)


REGISTRY: SpecRegistry["SurrogateSpec"] = SpecRegistry(
    "surrogate",
    "surrogates",
    {
        "mse": "regretless.surrogates.direct:MSE",
        "spo_plus": "regretless.surrogates.direct:SPOPlus",
        "mse_spo_plus": "regretless.surrogates.direct:MSESPOPlus",
        "dbb": "regretless.surrogates.direct:DBB",
        "imle": "regretless.surrogates.perturbation:IMLE",
        "aimle": "regretless.surrogates.perturbation:AIMLE",
        "nid": "regretless.surrogates.direct:NID",
        "pfyl": "regretless.surrogates.perturbation:PFYL",
        "dpo": "regretless.surrogates.perturbation:DPO",
        "pg": "regretless.surrogates.direct:PG",
        "nce": "regretless.surrogates.pool:NCE",
        "nce_c": "regretless.surrogates.pool:NCEC",
        "contrastive_map": "regretless.surrogates.pool:ContrastiveMAP",
        "map_c": "regretless.surrogates.pool:MAPC",
        "pointwise_ltr": "regretless.surrogates.pool:PointwiseLTR",
        "pairwise_diff": "regretless.surrogates.pool:PairwiseDiff",
        "pairwise_ltr": "regretless.surrogates.pool:PairwiseLTR",
        "listwise_ltr": "regretless.surrogates.pool:ListwiseLTR",
        "spo_caching": "regretless.surrogates.pool:SPOCaching",
        "regularized_frank_wolfe": "regretless.surrogates.projection:RegularizedFrankWolfe",
        "cave": "regretless.surrogates.projection:CaVE",
        "lancer": "regretless.surrogates.learned:LANCER",
    },
    ("registry", "build"),
    "a subclass of regretless.surrogates.SurrogateSpec",
)


class SurrogateSpec(Spec):
    """Base class of surrogates as settings: subclass it, list the settings as fields and write ``build``."""

    registry: ClassVar[SpecRegistry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.surrogates."

    @abc.abstractmethod
    def build(self, oracle: Oracle) -> Surrogate:
        """Return the surrogate on the feasible set of an oracle.

        Parameters
        ----------
        oracle : Oracle
            The feasible set.
        """


class FieldSpec(SurrogateSpec):
    """Base class of specifications whose settings are the fields of the class that they build, given as ``of``."""

    _surrogate: ClassVar[type[Surrogate]]

    def __init_subclass__(cls, of: type[Surrogate] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            cls._surrogate = of

    def build(self, oracle: Oracle) -> Surrogate:
        """Return the gradient on a feasible set."""
        return self._surrogate(oracle, **self.hyperparameters())
