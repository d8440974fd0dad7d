"""Epoch-greedy with SPO+: a linear model, trained again every so many rounds for the decisions that it leads to."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.models import networks
from regretless.policies.linear_confidence import RidgePolicy, RidgeSpec, RidgeState
from regretless.policies.linear_design import predict_costs
from regretless.problem import Problem
from regretless.replay import Replay, empty
from regretless.surrogates.direct import SPOPlus
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

LAST_RATE = 0.01
"""Rate of the last step of a training, in rates of the first."""


class EpochSPOState(eqx.Module):
    """What the next round needs."""

    ridge: RidgeState  # the regression that completes costs that were not seen
    coefficients: Float[Array, "b n"]  # of the model that decides
    rounds: Replay  # contexts, the costs that were seen, and instances
    version: Int[Array, ""]


class EpochSPOPolicy(RidgePolicy):
    """Play ``w*(f(x))``; at the beginning of each epoch a random decision."""

    exploration: Float[Array, ""]
    lr: Float[Array, ""]
    every: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    memory: int = eqx.field(static=True)

    @property
    def refit_every(self) -> int:
        return self.every

    def init(self, key: Key) -> Any:
        ridge, decision = super().init(key), self.problem.example_decision()
        rounds = empty(self._record(decision, self.problem.example_feedback()), self.memory)
        return EpochSPOState(ridge, ridge.posterior.mean, rounds, ridge.version)

    def mean(self, state: Any, context: Context) -> Cost:
        return predict_costs(self.problem, state.coefficients, context)

    def sample(self, key: Key, state: Any, context: Context, instance: Instance) -> Sample:
        begun = lambda t: jnp.floor(self.exploration * t ** (2.0 / 3.0))  # noqa: E731
        explore = begun(state.version + 1.0) > begun(state.version * 1.0)
        cost = jnp.where(explore, draws.normal(key, (self.problem.dim,)), self.mean(state, context))
        return Sample(cost, state.version, log_probability=jnp.where(explore, jnp.nan, 0.0))

    def learn(self, key: Key, state: Any, decision: Decision, feedback: Feedback) -> tuple[Any, Info]:
        total = feedback.total()
        residual = total - self.mean(state, decision.context) @ decision.w
        ridge = self.regress(state.ridge, decision, feedback)
        fitted = jnp.where(state.version < self.every, ridge.posterior.mean, state.coefficients)
        rounds = state.rounds.add(self._record(decision, feedback), jnp.any(feedback.used()))
        after = EpochSPOState(ridge, fitted, rounds, ridge.version)
        finite = ridge.finite & jnp.isfinite(jnp.sum(state.coefficients))
        return after, Info(residual, total, feedback.complete(), finite)

    def refit(self, key: Key, state: Any) -> Any:
        """Return the state with a model that was trained on SPO+ from the regression on, as ``Policy.refit`` says."""
        surrogate, start = SPOPlus().build(self.oracle), state.ridge.posterior.mean

        def step(k: Any, carried: Any) -> Any:
            coefficients, moments = carried
            places = jax.random.randint(jax.random.fold_in(key, k), (self.batch,), 0, jnp.maximum(state.rounds.size, 1))

            def slope(record: Any) -> Array:
                predict = lambda theta: predict_costs(self.problem, theta, record["context"])  # noqa: E731
                target = jnp.where(record["seen"], record["cost"], predict(start))
                prediction, pullback = jax.vjp(predict, coefficients)
                gradient, _ = surrogate(None, prediction, target, None, record["instance"])
                (pulled,) = pullback(gradient)
                return pulled

            gradient = jnp.mean(jax.vmap(slope)(state.rounds.at(places)), axis=0)
            rate = self.lr * LAST_RATE ** (k / self.steps)
            return networks.adam_step(coefficients, moments, gradient, rate)

        trained, _ = jax.lax.fori_loop(0, self.steps, step, (start, networks.adam_init(start)))
        kept = jnp.where(state.rounds.size > 0, trained, state.coefficients)
        return EpochSPOState(state.ridge, kept, state.rounds, state.version)

    def _record(self, decision: Decision, feedback: Feedback) -> dict[str, Any]:
        """Return what training needs of a round."""
        none = jnp.zeros(self.problem.dim)
        cost = feedback.overwrite(none)
        seen = cost == feedback.overwrite(none + 1.0)
        return {"context": decision.context, "cost": cost, "seen": seen, "instance": decision.instance}


class EpochSPO(RidgeSpec):
    """Epoch-greedy (Langford & Zhang, 2007) with SPO+ (Elmachtoub & Grigas, 2022), trained every so many rounds.

    After ``t`` rounds ``exploration · t^⅔`` of them had a random decision; all others play ``w*(f(x))``. Ridge
    regression completes the costs that were not seen. Before the first training it is the model.

    Parameters
    ----------
    exploration : float, default 1.0
        Factor of the number of random decisions.
    every : int, default 50
        Rounds between two trainings.
    steps : int, default 100
        Steps of Adam in each.
    batch : int, default 8
        Remembered rounds in a step.
    memory : int, default 512
        Rounds that are remembered.
    lr : float, default 0.01
        Learning rate of the first step; it falls to a hundredth.
    """

    exploration: float = Field(default=1.0, ge=0, le=1)
    every: int = Field(default=50, ge=1, le=10**6)
    steps: int = Field(default=100, ge=1, le=10**6)
    batch: int = Field(default=8, ge=1, le=10**5)
    memory: int = Field(default=512, ge=1, le=10**6)
    lr: float = Field(default=0.01, gt=0)

    def build(self, problem: Problem) -> EpochSPOPolicy:
        """Return the policy for a problem."""
        self.require(problem)
        return EpochSPOPolicy(problem, **self.hyperparameters())
