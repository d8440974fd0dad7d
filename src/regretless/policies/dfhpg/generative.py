"""DFHPG with a generative model: the same algorithm with other gradients of its two terms (the paper's Appendix on generative
parameterisations).
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless import draws
from regretless.models.base import GenerativeModel, Params, Pullback, single
from regretless.policies.dfhpg import scenarios
from regretless.policies.dfhpg.algorithm import DFHPGPolicy, DFHPGState
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Key

SCORE, SCENARIOS, SURROGATE, REGULARISER, SAMPLE = range(5)


class Branch(eqx.Module):
    """The scenarios with their way back to θ, what the surrogate sees of them, and the target of the regulariser."""

    pullback: Pullback
    seen: scenarios.Seen
    target: Cost


class GenerativeDFHPG(DFHPGPolicy):
    """DFHPG for a flow or a diffusion, trained by Adam.

    The score term is ``(y − b) ∇_θ log p_θ(ĉ|x)``, with minus the model's loss in place of ``log p_θ`` where there is no
    density. With a surrogate the (1 − α) term is ``κ · surrogate + λ · regulariser``, normalised as one gradient: the surrogate
    at ``count`` (K) fresh scenarios, the regulariser ``∇_θ loss`` at the target ``c̃`` or at a fresh sample. Numbers: ``kappa``
    (κ), ``regularisation`` (λ), ``sign`` (−1: costs are handed to a surrogate for maximisation).
    """

    model: GenerativeModel
    kappa: Float[Array, ""]
    regularisation: Float[Array, ""]
    sign: Float[Array, ""]
    count: int = eqx.field(static=True)
    scenario_gradient: scenarios.Variant = eqx.field(static=True)
    regulariser_at: Literal["prediction", "sample"] = eqx.field(static=True)
    optimiser: Literal["adam", "sgd"] = eqx.field(static=True)

    def init(self, key: Key) -> DFHPGState:
        state = self.start(key, optimiser=self.optimiser == "adam")
        return eqx.tree_at(lambda s: s.memory, state, jax.tree.map(_single, state.memory), is_leaf=_nothing)

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        """The mean of ``count`` scenarios, of the same noise every time."""
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
    ) -> tuple[Float[Array, "q d"], Branch]:
        noise = draws.normal(jax.random.fold_in(key, SCENARIOS), (self.count, self.model.dim))
        costs, pullback = self.model.scenarios(theta, decision.context, noise)  # ĉ_1 … ĉ_K
        noise_key = jax.random.fold_in(key, SURROGATE)
        queries, seen = scenarios.questions(
            surrogate, memory, costs, target, noise_key, self.scenario_gradient, self.sign
        )
        return queries, Branch(pullback, seen, target)

    def close_branch(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, branch: Branch,
        solutions: Float[Array, "q d"], feasible: Bool[Array, " n"] | None,
    ) -> tuple[Params, Any]:  # fmt: skip
        x, target = decision.context, branch.target
        slopes, memory = scenarios.slopes(
            surrogate, memory, branch.seen, solutions, decision.instance, feasible,
            self.count, self.scenario_gradient, self.sign,
        )  # fmt: skip
        if self.regulariser_at == "sample":
            target = self.model.sample(theta, x, self.model.draw(jax.random.fold_in(key, SAMPLE)))
        anchor = self.model.regulariser_gradient(theta, x, target, jax.random.fold_in(key, REGULARISER))
        kappa, weight = (jnp.asarray(value, slopes.dtype) for value in (self.kappa, self.regularisation))
        return jax.tree.map(lambda s, r: s + weight * r, branch.pullback(kappa * slopes), anchor), memory


def _single(leaf: Array) -> Array:
    return single(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _nothing(leaf: Any) -> bool:
    return leaf is None
