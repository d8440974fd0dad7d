"""The nuisance of the theorems: linear in the context, by projected SGD on ``‖v − H(w) f_φ(x)‖²`` (Algorithm 1)."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import Problem
from regretless.models import Nuisance, NuisanceSpec, networks
from regretless.types import Context, Cost, Feedback, Key


class PhiState(eqx.Module):
    """``φ`` and the number of steps taken."""

    phi: Float[Array, "..."]
    count: Int[Array, ""]


class LinearNuisanceModel(Nuisance):
    """``f_φ(x) = φ x`` (``X φ`` for feature rows) with ``‖φ‖ ≤ radius``.

    Step sizes of the paper's Proposition on nuisance regret: ``rule="adaptive"`` is ``η_t = lr / t`` with ``lr = 1/λ``,
    ``rule="constant"`` is ``η_t = lr``.
    """

    radius: Float[Array, ""]
    rule: Literal["adaptive", "constant"] = eqx.field(static=True)

    def init(self, key: Key) -> PhiState:
        features = self.context_shape[-1]
        shape = (self.dim, features) if len(self.context_shape) == 1 else (features,)
        return PhiState(jnp.zeros(shape), jnp.zeros((), jnp.int32))

    def predict(self, state: PhiState, context: Context) -> Cost:
        return state.phi @ context if len(self.context_shape) == 1 else context @ state.phi

    def step(self, state: PhiState, context: Context, feedback: Feedback) -> tuple[PhiState, Float[Array, ""]]:
        cotangent = feedback.sum_gradient(self.predict(state, context))
        grad = jnp.outer(cotangent, context) if len(self.context_shape) == 1 else cotangent @ context
        count = state.count + 1
        step = self.lr / count if self.rule == "adaptive" else self.lr
        phi = state.phi - step * grad
        norm = networks.tree_norm(phi)
        phi = phi * jnp.minimum(1.0, self.radius / jnp.maximum(norm, 1e-30))
        return PhiState(phi, count), networks.tree_norm(grad)


class LinearNuisance(NuisanceSpec):
    """The nuisance of the theorems: linear in the context, by projected SGD.

    Parameters
    ----------
    rule : {"adaptive", "constant"}, default "adaptive"
        Step sizes ``lr / t``, or ``lr`` throughout.
    radius : float, default 10000.0
        Radius of the ball that the coefficients are projected on.
    """

    rule: Literal["adaptive", "constant"] = "adaptive"
    radius: float = Field(default=1e4, gt=0)

    def build(self, problem: Problem) -> LinearNuisanceModel:
        """Return the regression for a problem."""
        return LinearNuisanceModel(
            dim=problem.dim, context_shape=problem.context_shape, support=None, **self.hyperparameters()
        )
