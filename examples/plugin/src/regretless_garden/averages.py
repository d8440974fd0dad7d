"""A simple policy: it remembers average costs and ignores contexts."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.types import (
    Context,
    Cost,
    Decision,
    Feedback,
    Info,
    Instance,
    Key,
    Sample,
)


class AveragesState(eqx.Module):
    """Average costs and the number of learning steps."""

    cost: Float[Array, " d"]
    version: Int[Array, ""]  # every state has it


class AveragesPolicy(rg.Policy):
    """Play ``w*`` of the average costs plus noise that fades."""

    curiosity: Float[Array, ""]

    def init(self, key: Key) -> AveragesState:
        zeros = jnp.zeros(self.problem.dim)
        return AveragesState(zeros, jnp.zeros((), jnp.int32))

    def sample(
        self,
        key: Key,
        state: AveragesState,
        context: Context,
        instance: Instance,
    ) -> Sample:
        noise = draws.normal(key, (self.problem.dim,))
        fading = self.curiosity / jnp.sqrt(1.0 + state.version)
        return Sample(state.cost + fading * noise, state.version)

    def learn(
        self,
        key: Key,
        state: AveragesState,
        decision: Decision,
        feedback: Feedback,
    ) -> tuple[AveragesState, Info]:
        rows = feedback.operator  # H(w), whatever the regime
        error = feedback.values - rows.matvec(state.cost)
        error = jnp.where(feedback.used(), error, 0.0)
        step = rows.rmatvec(error / jnp.maximum(rows.row_squares(), 1.0))
        cost = state.cost + step / jnp.sqrt(1.0 + state.version)
        total = feedback.total()
        info = Info(
            residual=total - state.cost @ decision.w,
            total=total,
            complete=feedback.complete(),
            finite=jnp.all(jnp.isfinite(cost)),
        )
        return AveragesState(cost, state.version + 1), info

    def mean(self, state: AveragesState, context: Context) -> Cost:
        return state.cost


class Averages(rg.policies.PolicySpec):
    """Average costs plus noise that fades; contexts do not matter.

    Parameters
    ----------
    curiosity : float, default 1.0
        Size of the noise in the first round.
    """

    search_space: ClassVar = {"curiosity": ("log", 0.01, 10.0)}

    curiosity: float = Field(
        default=1.0, ge=0, description="size of the noise at first"
    )

    def build(self, problem: rg.Problem) -> AveragesPolicy:
        """Return the policy for a problem."""
        return AveragesPolicy(problem, **self.hyperparameters())
