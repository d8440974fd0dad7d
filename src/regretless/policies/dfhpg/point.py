"""DFHPG with a point model: the surrogate is evaluated at the mean prediction, or at the sample that was played."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.models.base import Params, PointModel
from regretless.policies.dfhpg.algorithm import DFHPGPolicy, DFHPGState
from regretless.policies.dfhpg.gradients import score_gradient, surrogate_gradient
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Key


class Point(eqx.Module):
    """Where the surrogate is evaluated, against what target, with what noise."""

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
    ) -> tuple[Float[Array, "q d"], Point]:
        prediction = self.model.mean(theta, decision.context)
        if self.at == "sample":  # a decision that nobody sampled has none
            prediction = jnp.where(decision.sampled(), decision.cost_sample, prediction)
        point = Point(prediction, target, surrogate.draw(key))
        return surrogate.queries(memory, point.prediction, target, point.noise), point

    def close_branch(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, branch: Point,
        solutions: Float[Array, "q d"], feasible: Bool[Array, " n"] | None,
    ) -> tuple[Params, Any]:  # fmt: skip
        slope, memory = surrogate.finish(
            memory, branch.prediction, branch.target, branch.noise, solutions, decision.instance, feasible
        )
        return surrogate_gradient(self.model, theta, decision, slope), memory
