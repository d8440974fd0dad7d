"""A policy that keeps the last 256 rounds and learns from some of them again in every round."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

import regretless as rg
from regretless import nets
from regretless.spec import number
from regretless.types import Context, Feedback, Info, Sample

KEPT, CLIP = 256, 10.0


class ReplayState(eqx.Module):
    """The model's parameters and the last rounds, oldest overwritten first."""

    theta: Any
    contexts: Context  # KEPT of them
    feedback: Feedback
    version: Int[Array, ""]


class ReplayPolicy(rg.Policy):
    """Fit a point model of the cost by stochastic gradient steps on remembered rounds; play ``w*(ĉ)`` of a sample."""

    model: rg.models.PointModel
    rate: Float[Array, ""]
    batch: int = eqx.field(static=True)

    def init(self, key):
        many = lambda leaf: jnp.zeros((KEPT, *leaf.shape), leaf.dtype)  # noqa: E731
        rounds = jax.tree.map(many, (self.problem.example_context(), self.problem.example_feedback()))
        return ReplayState(self.model.init(key), *rounds, jnp.zeros((), jnp.int32))

    def sample(self, key, state, context, instance):
        noise = self.model.draw(key)
        cost = self.model.sample(state.theta, context, noise)
        return Sample(cost, state.version, noise, self.model.log_density(state.theta, context, cost))

    def learn(self, key, state, decision, feedback):
        arrived = jnp.where(feedback.used(), feedback.values, 0.0)  # keep nothing that was not seen
        new = (decision.context, eqx.tree_at(lambda told: told.values, feedback, arrived))
        place = state.version % KEPT
        rounds = jax.tree.map(lambda old, leaf: old.at[place].set(leaf), (state.contexts, state.feedback), new)
        drawn = jax.random.randint(key, (self.batch,), 0, jnp.minimum(state.version + 1, KEPT)).at[0].set(place)
        gradients = jax.vmap(self._gradient, in_axes=(None, 0))(state.theta, jax.tree.map(lambda x: x[drawn], rounds))
        gradient = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), gradients)
        theta = nets.sgd_step(state.theta, gradient, self.rate, CLIP)
        total = feedback.total()
        residual = total - self.mean(state, decision.context) @ decision.w
        info = Info(residual, total, feedback.complete(), jnp.isfinite(nets.tree_norm(theta)))
        return ReplayState(theta, *rounds, state.version + 1), info

    def _gradient(self, theta, remembered):
        """Of half the mean squared error of what was seen in one round."""
        context, feedback = remembered
        error = feedback.loss_gradient(self.model.mean(theta, context))
        return self.model.pullback(theta, context, error)

    def mean(self, state, context):
        return self.model.mean(state.theta, context)


class Replay(rg.policies.PolicySpec):
    """A point model of the cost, trained by stochastic gradient steps on remembered rounds."""

    rate: float = Field(default=0.1, gt=0, description="size of a gradient step")
    noise: float = Field(default=0.1, gt=0, description="standard deviation of the samples around the mean")
    batch: int = Field(default=16, ge=1, le=KEPT, description="remembered rounds in a gradient step")
    model: rg.models.PointModelSpec = Field(default=rg.models.GaussianLinear(), description="model of the cost")

    def build(self, problem):
        """Return the policy for a problem."""
        model = self.model.build(problem.dim, problem.context_shape, self.noise)
        return ReplayPolicy(problem, model, number(self.rate), self.batch)
