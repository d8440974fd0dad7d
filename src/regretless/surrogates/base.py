"""What a surrogate is: a gradient of a loss in the prediction ``ĉ`` that, unlike ``c·w*(ĉ)`` itself, says where to go.

A surrogate says which cost vectors it needs solved (``queries``) and turns the solutions into a gradient; the solves of one
call are one batch, whoever solves it. All signs are for cost minimisation: ``ĉ ← ĉ − η · gradient`` descends. In docstrings
``ĉ`` is the prediction, ``c`` the target, ``w*`` the oracle.
"""

import abc
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.oracles.base import Oracle
from regretless.parts import Part, fields
from regretless.settings import Settings
from regretless.types import Cost, Instance, Key

Memory = Any
"""What a surrogate remembers between calls (a pool, a scale), as a pytree; None if nothing."""

TINY = 1e-7
"""Added to the step sizes that gradients are divided by."""


class Surrogate(Part):
    """``∇_ĉ ℓ(ĉ, c)`` for a prediction ``ĉ`` and a target ``c``."""

    oracle: Oracle

    @classmethod
    def build(cls, oracle: Oracle, settings: Settings | None = None) -> Self:
        """The surrogate on a feasible set."""
        return cls(oracle, **fields(settings or cls.Settings()))

    @abc.abstractmethod
    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Float[Array, "q d"]:
        """The cost vectors whose solutions ``gradient`` needs."""

    @abc.abstractmethod
    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: Any,
        solutions: Float[Array, "q d"],
        instance: Instance,
    ) -> Cost:
        """``∇_ĉ ℓ`` from the solutions of ``queries`` under the round's ``instance``."""

    def init(self) -> Memory:
        """The memory at the start."""
        return None

    def draw(self, key: Key) -> Any:
        """The noise of one call; None for a surrogate without any."""
        return None

    def remember(self, memory: Memory, solutions: Float[Array, "q d"]) -> Memory:
        """The memory with this call's solutions, before the gradient is taken."""
        return memory

    def adapt(self, memory: Memory, gradient: Cost) -> Memory:
        """The memory after the gradient is taken."""
        return memory

    def before_all(self, memory: Memory, solutions: Float[Array, "k q d"]) -> Memory:
        """The memory that the gradients of several predictions see."""
        return memory

    def after_all(self, memory: Memory, gradients: Float[Array, "k d"], solutions: Float[Array, "k q d"]) -> Memory:
        """The memory after the gradients of several predictions."""
        return memory

    def points(self, memory: Memory) -> Float[Array, "n d"]:
        """Remembered decisions that count only where the round's instance allows them."""
        return jnp.zeros((0, self.oracle.dim))

    def available(self, memory: Memory, feasible: Bool[Array, " n"]) -> Memory:
        """The memory without those ``points`` that are infeasible."""
        return memory

    def finish(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: Any,
        solutions: Float[Array, "q d"],
        instance: Instance = None,
        feasible: Bool[Array, " n"] | None = None,
    ) -> tuple[Cost, Memory]:
        """The gradient and the memory after this call; ``feasible`` marks the ``points`` that may be used (None: all)."""
        after = self.remember(memory, solutions)
        visible = after if feasible is None else self.remember(self.available(memory, feasible), solutions)
        gradient = self.gradient(visible, prediction, target, noise, solutions, instance)
        return gradient, self.adapt(after, gradient)

    def finish_all(
        self,
        memory: Memory,
        predictions: Float[Array, "k d"],
        target: Cost,
        noise: Any,
        solutions: Float[Array, "k q d"],
        instance: Instance = None,
        feasible: Bool[Array, " n"] | None = None,
    ) -> tuple[Float[Array, "k d"], Memory]:
        """``∇_ĉ ℓ(ĉ_k, c)`` of each prediction, and the memory after all of them.

        The gradients see what is remembered from before this call, and ``w*(c)``; the solutions that belong to predictions
        are remembered afterwards. ``noise`` has a leading axis of predictions.
        """
        after = self.before_all(memory, solutions)
        visible = after if feasible is None else self.before_all(self.available(memory, feasible), solutions)
        one = lambda c, eta, w: self.gradient(visible, c, target, eta, w, instance)  # noqa: E731
        gradients = jax.vmap(one)(predictions, noise, solutions)
        return gradients, self.after_all(after, gradients, solutions)

    def __call__(
        self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance = None
    ) -> tuple[Cost, Memory]:
        """The gradient and the memory after this call, with an oracle that is pure JAX."""
        costs = self.queries(memory, prediction, target, noise)
        solutions = self.oracle.solve_round(costs, instance).w if len(costs) else costs
        feasible = None
        if instance is not None:
            feasible = jax.vmap(lambda w: self.oracle.feasible(w, instance))(self.points(memory))
        return self.finish(memory, prediction, target, noise, solutions, instance, feasible)
