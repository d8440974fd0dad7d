"""A simple policy: it remembers what things have cost, and nothing else."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.types import Info, Sample


class AveragesState(eqx.Module):
    """The state of ``AveragesPolicy``."""

    cost: Float[Array, " d"]
    version: Int[Array, ""]  # learning steps so far: every state has it


class AveragesPolicy(rg.Policy):
    """Play the cheapest by a running average of the costs, plus noise that fades; contexts do not matter."""

    curiosity: Float[Array, ""]

    def init(self, key):
        return AveragesState(jnp.zeros(self.problem.dim), jnp.zeros((), jnp.int32))

    def sample(self, key, state, context, instance):
        noise = draws.normal(key, (self.problem.dim,))
        return Sample(state.cost + self.curiosity * noise / jnp.sqrt(1.0 + state.version), state.version)

    def learn(self, key, state, decision, feedback):
        seen = feedback.operator  # H(w), whatever the regime: its rows are what was measured
        error = jnp.where(feedback.used(), feedback.values - seen.matvec(state.cost), 0.0)
        step = seen.rmatvec(error / jnp.maximum(seen.row_squares(), 1.0))
        cost = state.cost + step / jnp.sqrt(1.0 + state.version)
        total = feedback.total()
        info = Info(total - state.cost @ decision.w, total, feedback.complete(), jnp.all(jnp.isfinite(cost)))
        return AveragesState(cost, state.version + 1), info

    def mean(self, state, context):
        return state.cost


class Averages(rg.policies.PolicySpec):
    """A running average of the costs, plus noise that fades; contexts do not matter."""

    search_space: ClassVar = {"curiosity": ("log", 0.01, 10.0)}

    curiosity: float = Field(default=1.0, ge=0, description="size of the noise in the first round")

    def build(self, problem):
        """Return the policy for a problem."""
        return AveragesPolicy(problem, **self.hyperparameters())
