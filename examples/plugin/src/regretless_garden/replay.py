"""A policy that learns from the last 256 rounds again and again."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

import regretless as rg
from regretless.models import networks
from regretless.spec import number
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

CAPACITY, MAX_NORM = 256, 10.0


class ReplayState(eqx.Module):
    """Parameters and the last rounds, the oldest overwritten first."""

    theta: Any
    contexts: Context  # CAPACITY of them
    feedback: Feedback
    version: Int[Array, ""]


class ReplayPolicy(rg.Policy):
    """Fit a model by gradient steps on remembered rounds."""

    model: rg.models.PointModel
    rate: Float[Array, ""]
    batch: int = eqx.field(static=True)

    def init(self, key: Key) -> ReplayState:
        def buffer(leaf: Array) -> Array:
            return jnp.zeros((CAPACITY, *leaf.shape), leaf.dtype)

        context = self.problem.example_context()
        feedback = self.problem.example_feedback()
        rounds = jax.tree.map(buffer, (context, feedback))
        theta = self.model.init(key)
        return ReplayState(
            theta, rounds[0], rounds[1], jnp.zeros((), jnp.int32)
        )

    def sample(
        self,
        key: Key,
        state: ReplayState,
        context: Context,
        instance: Instance,
    ) -> Sample:
        noise = self.model.draw(key)
        cost = self.model.sample(state.theta, context, noise)
        density = self.model.log_density(state.theta, context, cost)
        return Sample(cost, state.version, noise, density)

    def learn(
        self,
        key: Key,
        state: ReplayState,
        decision: Decision,
        feedback: Feedback,
    ) -> tuple[ReplayState, Info]:
        # Values that did not arrive must not be remembered.
        arrived = jnp.where(feedback.used(), feedback.values, 0.0)
        feedback = eqx.tree_at(lambda f: f.values, feedback, arrived)
        place = state.version % CAPACITY
        rounds = jax.tree.map(
            lambda old, new: old.at[place].set(new),
            (state.contexts, state.feedback),
            (decision.context, feedback),
        )
        count = jnp.minimum(state.version + 1, CAPACITY)
        drawn = jax.random.randint(key, (self.batch,), 0, count)
        drawn = drawn.at[0].set(place)
        batch = jax.tree.map(lambda leaf: leaf[drawn], rounds)
        gradients = jax.vmap(self._gradient, (None, 0))(state.theta, batch)
        gradient = jax.tree.map(lambda g: jnp.mean(g, axis=0), gradients)
        theta = networks.sgd_step(
            state.theta, gradient, self.rate, MAX_NORM
        )
        total = feedback.total()
        info = Info(
            residual=total
            - self.mean(state, decision.context) @ decision.w,
            total=total,
            complete=feedback.complete(),
            finite=jnp.isfinite(networks.tree_norm(theta)),
        )
        state = ReplayState(theta, rounds[0], rounds[1], state.version + 1)
        return state, info

    def _gradient(self, theta: Any, remembered: Any) -> Any:
        """Return that of half the mean squared error in one round."""
        context, feedback = remembered
        error = feedback.loss_gradient(self.model.mean(theta, context))
        return self.model.pullback(theta, context, error)

    def mean(self, state: ReplayState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)


class Replay(rg.policies.PolicySpec):
    """A model of the cost, trained on remembered rounds.

    Parameters
    ----------
    rate : float, default 0.1
        Size of a gradient step.
    noise : float, default 0.1
        Standard deviation of the samples around the mean.
    batch : int, default 16
        Remembered rounds in a gradient step.
    model : PointModelSpec, default GaussianLinear()
        Model of the cost.
    """

    rate: float = Field(default=0.1, gt=0, description="size of a step")
    noise: float = Field(default=0.1, gt=0, description="of the samples")
    batch: int = Field(
        default=16, ge=1, le=CAPACITY, description="rounds in a step"
    )
    model: rg.models.PointModelSpec = Field(
        default=rg.models.GaussianLinear(), description="of the cost"
    )

    def build(self, problem: rg.Problem) -> ReplayPolicy:
        """Return the policy for a problem."""
        model = self.model.build(
            problem.dim, problem.context_shape, self.noise
        )
        return ReplayPolicy(problem, model, number(self.rate), self.batch)
