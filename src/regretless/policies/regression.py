"""The paper's contextual-bandit baselines: a point regression of the cost, and three ways to explore with it.

They share one program, because they differ in two numbers only: plays ``w*(f_θ(x) + σ ε)``, and with probability ``epsilon``
``w*(ε)`` instead (METHOD §5; the paper's Algorithms GreedyCB, ε-GreedyCB and TSCB).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless import draws, nets
from regretless.feedback import Total
from regretless.models.base import PointModel
from regretless.policies.base import Policy
from regretless.problem import Problem, number
from regretless.schedules import shifted_inverse
from regretless.settings import Settings
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key

CLIP = 10.0


class RegressionState(eqx.Module):
    """The regression's parameters and the number of learning steps."""

    theta: Any
    version: Int[Array, ""]


class RegressionBandit(Policy):
    """Fits ``f_θ`` by SGD on the squared error of what was seen; explores by σ (``scale``) and ``epsilon``."""

    model: PointModel
    rate: Float[Array, ""]
    scale: Float[Array, ""]
    epsilon: Float[Array, ""]

    def init(self, key: Key) -> RegressionState:
        return RegressionState(self.model.init(jax.random.split(key)[0]), jnp.zeros((), jnp.int32))

    def mean(self, state: RegressionState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)

    def decide(self, key: Key, state: RegressionState, context: Context, instance: Instance) -> Decision:
        noise_key, coin_key = jax.random.split(key)
        explore = draws.uniform(coin_key) < self.epsilon
        return self.act(draws.normal(noise_key, (self.oracle.dim,)), explore, state, context, instance)

    def act(
        self, noise: Cost, explore: Bool[Array, ""], state: RegressionState, context: Context, instance: Instance
    ) -> Decision:
        """The decision that this noise and this coin lead to."""
        self.model.require(context)
        sample = jnp.where(explore, noise, self.model.mean(state.theta, context) + self.scale * noise)
        solution = self.oracle.solve_one(sample, instance)
        return Decision(
            state.version,
            context,
            instance,
            sample,
            noise,
            solution.w,
            solution.aux,
            solution.status,
            None,
            state.version,
        )

    def learn(
        self, key: Key, state: RegressionState, decision: Decision, feedback: Feedback
    ) -> tuple[RegressionState, Info]:
        prediction = self.model.mean(state.theta, decision.context)
        cotangent = feedback.loss_gradient(prediction)
        if isinstance(feedback.operator, Total):
            cotangent = 2.0 * cotangent  # (f·w − v)² for the total, halves for everything else
        grad = self.model.pullback(state.theta, decision.context, cotangent)
        norm = nets.tree_norm(grad)
        version = state.version + 1
        theta = nets.sgd_step(state.theta, grad, shifted_inverse(self.rate, version), CLIP)
        info = {
            "residual": feedback.total() - prediction @ decision.w,
            "total": feedback.total(),
            "gradient_norm": norm,
            "complete": feedback.complete(),
            "finite": jnp.isfinite(norm),
        }
        return RegressionState(theta, version), info


def greedy(settings: Settings, problem: Problem) -> RegressionBandit:
    """Always plays ``w*(f_θ(x))``."""
    return _build(settings, problem, scale=0.0, epsilon=0.0)


def epsilon_greedy(settings: Settings, problem: Problem) -> RegressionBandit:
    """Plays ``w*(N(0, I))`` with probability ``epsilon``."""
    return _build(settings, problem, scale=0.0, epsilon=settings.epsilon)


def thompson(settings: Settings, problem: Problem) -> RegressionBandit:
    """Plays ``w*(f_θ(x) + σ ε)``."""
    scale = settings.exploration_scale if settings.thompson_scale is None else settings.thompson_scale
    return _build(settings, problem, scale=scale, epsilon=0.0)


def _build(settings: Settings, problem: Problem, scale: float, epsilon: float) -> RegressionBandit:
    return RegressionBandit(
        problem.oracle, problem.model(1.0), number(settings.policy_lr), number(scale), number(epsilon)
    )
