"""What a surrogate is: a gradient of a loss in the prediction ``ĉ`` that, unlike ``c·w*(ĉ)`` itself, says where to go.

A surrogate says which cost vectors it needs solved (``queries``) and turns the solutions into a gradient; the solves of one
call go to the oracle as one batch. All signs are for cost minimisation: ``ĉ ← ĉ − η · gradient`` descends. In docstrings
``ĉ`` is the prediction, ``c`` the target, ``w*`` the oracle.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from regretless.oracles.base import Oracle
from regretless.types import Cost, Instance, Key

Memory = Any
"""What a surrogate remembers between calls (a pool, a scale), as a pytree; None if nothing."""

TINY = 1e-7
"""Added to the step sizes that gradients are divided by."""


class Surrogate(eqx.Module):
    """``∇_ĉ ℓ(ĉ, c)`` for a prediction ``ĉ`` and a target ``c``."""

    oracle: Oracle

    @abc.abstractmethod
    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Float[Array, "q d"]:
        """The cost vectors whose solutions ``gradient`` needs."""

    @abc.abstractmethod
    def gradient(
        self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Float[Array, "q d"]
    ) -> Cost:
        """``∇_ĉ ℓ`` from the solutions of ``queries``."""

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

    def available(self, memory: Memory, instance: Instance) -> Memory:
        """The memory without what is infeasible under ``instance``."""
        return memory

    def __call__(
        self, memory: Memory, prediction: Cost, target: Cost, noise: Any, instance: Instance = None
    ) -> tuple[Cost, Memory]:
        """The gradient and the memory after this call."""
        costs = self.queries(memory, prediction, target, noise)
        solutions = self.oracle.solve_round(costs, instance).w if len(costs) else costs
        memory = self.remember(memory, solutions)
        visible = memory if instance is None else self.available(memory, instance)
        gradient = self.gradient(visible, prediction, target, noise, solutions)
        return gradient, self.adapt(memory, gradient)

    def scenarios(
        self, memory: Memory, predictions: Float[Array, "k d"], target: Cost, noise: Any, instance: Instance = None
    ) -> tuple[Float[Array, "k d"], Memory]:
        """``∇_ĉ ℓ(ĉ_k, c)`` of each prediction, all solves in one batch, and the memory after all of them.

        The gradients see what is remembered from before this call, and ``w*(c)``; the solutions that belong to predictions
        are remembered afterwards. ``noise`` has a leading axis of scenarios.
        """
        costs = jax.vmap(lambda c, eta: self.queries(memory, c, target, eta))(predictions, noise)
        solutions = costs
        if costs.shape[1]:
            rows = costs.reshape(-1, costs.shape[-1])
            solutions = self.oracle.solve_round(rows, instance).w.reshape(costs.shape)
        memory = self.prepare(memory, solutions)
        visible = memory if instance is None else self.available(memory, instance)
        one = lambda c, eta, w: self.gradient(visible, c, target, eta, w)  # noqa: E731
        gradients = jax.vmap(one)(predictions, noise, solutions)
        return gradients, self.absorb(memory, gradients, solutions)

    def prepare(self, memory: Memory, solutions: Float[Array, "k q d"]) -> Memory:
        """The memory that the gradients of several predictions see."""
        return memory

    def absorb(self, memory: Memory, gradients: Float[Array, "k d"], solutions: Float[Array, "k q d"]) -> Memory:
        """The memory after the gradients of several predictions."""
        return memory


def number(default: float) -> Any:
    """A field that holds a number as an array leaf: its value may change without a new compilation."""
    return eqx.field(converter=np.asarray, default=default)
