"""DFHPG for its two kinds of models: point models and generative models, which differ in the gradients of both terms.

A point model's surrogate is evaluated at the mean prediction or at the sample that was played, a generative model's
at fresh scenarios (the paper's Appendix on generative parameterisations).
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless import draws
from regretless.models.base import GenerativeModel, Params, PointModel, Pullback, single
from regretless.policies.dfhpg.algorithm import DFHPGPolicy, DFHPGState
from regretless.policies.dfhpg.gradients import (
    ScenarioBatch,
    ScenarioGradient,
    scenario_cotangents,
    scenario_queries,
    score_gradient,
    surrogate_gradient,
)
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Key

SCORE, SCENARIOS, SURROGATE, REGULARISER, SAMPLE = range(5)
"""Purposes of the keys of one learning step."""


class PointBranch(eqx.Module):
    """The arguments of the surrogate: prediction, target and noise."""

    prediction: Cost
    target: Cost
    noise: Any


class PointDFHPG(DFHPGPolicy):
    """DFHPG for a model with a mean; ``at`` says where its surrogate is evaluated."""

    model: PointModel
    at: Literal["mean", "sample"] = eqx.field(static=True)

    def init(self, key: Key) -> DFHPGState:
        return self.start(key, optimiser=False)

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)

    def score(
        self, key: Key, theta: Params, decision: Decision, weight: Float[Array, ""], fresh: Bool[Array, ""]
    ) -> Params:
        return score_gradient(self.model, theta, decision, weight, fresh)

    def open_branch(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, target: Cost
    ) -> tuple[Float[Array, "q d"], PointBranch]:
        prediction = self.model.mean(theta, decision.context)
        if self.at == "sample":  # a decision that was not sampled has none
            prediction = jnp.where(decision.sampled(), decision.cost_sample, prediction)
        point = PointBranch(prediction, target, surrogate.draw(key))
        return surrogate.queries(memory, point.prediction, target, point.noise), point

    def close_branch(
        self,
        key: Key,
        surrogate: Surrogate,
        memory: Any,
        theta: Params,
        decision: Decision,
        branch: PointBranch,
        solutions: Float[Array, "q d"],
        feasible: Bool[Array, " n"] | None,
    ) -> tuple[Params, Any]:
        slope, memory = surrogate.finish(memory, branch.prediction, branch.target, branch.noise, solutions, feasible)
        return surrogate_gradient(self.model, theta, decision, slope), memory


class ScenarioBranch(eqx.Module):
    """The scenarios with their pullback to θ, the arguments of the surrogate, and the target of the regulariser."""

    pullback: Pullback
    batch: ScenarioBatch
    target: Cost


class GenerativeDFHPG(DFHPGPolicy):
    """DFHPG for a flow or a diffusion, trained by Adam.

    The score term is ``(y − b) ∇_θ log p_θ(ĉ|x)``, with minus the model's loss in place of ``log p_θ`` where there is
    no density. With a surrogate the (1 − α) term is ``κ · surrogate + λ · regulariser``, normalised as one gradient:
    the surrogate at ``count`` (K) fresh scenarios, the regulariser ``∇_θ loss`` at the target ``c̃`` or at a fresh
    sample. Numbers: ``kappa`` (κ), ``regularisation`` (λ), ``sign`` (−1: costs are handed to a surrogate for
    maximisation).
    """

    model: GenerativeModel
    kappa: Float[Array, ""]
    regularisation: Float[Array, ""]
    sign: Float[Array, ""]
    count: int = eqx.field(static=True)
    scenario_gradient: ScenarioGradient = eqx.field(static=True)
    regulariser_at: Literal["prediction", "sample"] = eqx.field(static=True)
    optimiser: Literal["adam", "sgd"] = eqx.field(static=True)

    def init(self, key: Key) -> DFHPGState:
        state = self.start(key, optimiser=self.optimiser == "adam")
        return eqx.tree_at(lambda s: s.memory, state, jax.tree.map(_single, state.memory), is_leaf=_is_none)

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        """Return the mean of ``count`` scenarios, with the same noise every time."""
        noise = draws.normal(jax.random.key(0), (self.count, self.model.dim))
        costs, _ = self.model.scenarios(state.theta, context, noise)
        return jnp.mean(costs, axis=0).astype(jnp.result_type(float))

    def score(
        self, key: Key, theta: Params, decision: Decision, weight: Float[Array, ""], fresh: Bool[Array, ""]
    ) -> Params:
        drawn = self.model.draw_loss(jax.random.fold_in(key, SCORE))
        gradient = self.model.loss_gradient(theta, decision.context, decision.cost_sample, drawn)
        return jax.tree.map(lambda g: -weight.astype(g.dtype) * g, gradient)

    def open_branch(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, target: Cost
    ) -> tuple[Float[Array, "q d"], ScenarioBranch]:
        noise = draws.normal(jax.random.fold_in(key, SCENARIOS), (self.count, self.model.dim))
        costs, pullback = self.model.scenarios(theta, decision.context, noise)  # ĉ_1 … ĉ_K
        noise_key = jax.random.fold_in(key, SURROGATE)
        queries, batch = scenario_queries(
            surrogate, memory, costs, target, noise_key, self.scenario_gradient, self.sign
        )
        return queries, ScenarioBranch(pullback, batch, target)

    def close_branch(
        self,
        key: Key,
        surrogate: Surrogate,
        memory: Any,
        theta: Params,
        decision: Decision,
        branch: ScenarioBranch,
        solutions: Float[Array, "q d"],
        feasible: Bool[Array, " n"] | None,
    ) -> tuple[Params, Any]:
        x, target = decision.context, branch.target
        slopes, memory = scenario_cotangents(
            surrogate, memory, branch.batch, solutions, feasible, self.count, self.scenario_gradient, self.sign
        )
        if self.regulariser_at == "sample":
            target = self.model.sample(theta, x, self.model.draw(jax.random.fold_in(key, SAMPLE)))
        anchor = self.model.regulariser_gradient(theta, x, target, jax.random.fold_in(key, REGULARISER))
        kappa, weight = (jnp.asarray(value, slopes.dtype) for value in (self.kappa, self.regularisation))
        return jax.tree.map(lambda s, r: s + weight * r, branch.pullback(kappa * slopes), anchor), memory


def _single(leaf: Array) -> Array:
    return single(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _is_none(leaf: Any) -> bool:
    return leaf is None
