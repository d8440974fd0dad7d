"""DFHPG with a generative model: the same algorithm with other gradients of its two terms (METHOD §2; the paper's Appendix on
generative parameterisations).
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless import draws, nets
from regretless.models.base import GenerativeModel, Params, single
from regretless.policies.dfhpg import scenarios
from regretless.policies.dfhpg.algorithm import DFHPG, DFHPGState
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Key

SCORE, SCENARIOS, SURROGATE, REGULARISER, SAMPLE = range(5)


class GenerativeDFHPG(DFHPG):
    """DFHPG for a flow or a diffusion, trained by Adam.

    The score term is ``(y − b) ∇_θ log p_θ(ĉ|x)``, with minus the model's loss in place of ``log p_θ`` where there is no
    density. The (1 − α) term is ``κ · surrogate + λ · regulariser``, normalised as one gradient: the surrogate at ``count`` (K)
    fresh scenarios, the regulariser ``∇_θ loss`` at the target ``c̃`` or at a fresh sample. Numbers: ``kappa`` (κ),
    ``regularisation`` (λ).
    """

    model: GenerativeModel  # type: ignore[assignment]  # every method that uses the mean is replaced below
    kappa: Float[Array, ""] = eqx.field(kw_only=True)
    regularisation: Float[Array, ""] = eqx.field(kw_only=True)
    count: int = eqx.field(static=True, kw_only=True)
    scenario_gradient: scenarios.Variant = eqx.field(static=True, kw_only=True, default="own")
    regulariser_at: Literal["prediction", "sample"] = eqx.field(static=True, kw_only=True, default="prediction")
    orientation: scenarios.Orientation = eqx.field(static=True, kw_only=True, default="minimise")

    def init(self, key: Key) -> DFHPGState:
        state = super().init(key)
        memory = jax.tree.map(_single, state.memory)
        return DFHPGState(
            state.theta, state.phi, state.mixing, state.average, memory, state.version, nets.adam_init(state.theta)
        )

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

    def decision_focused(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, target: Cost
    ) -> tuple[Params, Any]:
        x = decision.context
        noise = draws.normal(jax.random.fold_in(key, SCENARIOS), (self.count, self.model.dim))
        costs, pullback = self.model.scenarios(theta, x, noise)  # ĉ_1 … ĉ_K
        slopes, memory = scenarios.slopes(
            surrogate, memory, costs, target, jax.random.fold_in(key, SURROGATE), decision.instance,
            self.scenario_gradient, self.orientation,
        )  # fmt: skip
        if self.regulariser_at == "sample":
            target = self.model.sample(theta, x, self.model.draw(jax.random.fold_in(key, SAMPLE)))
        drawn = self.model.draw_loss(jax.random.fold_in(key, REGULARISER))
        anchor = self.model.loss_gradient(theta, x, target, drawn)
        kappa, weight = (jnp.asarray(value, slopes.dtype) for value in (self.kappa, self.regularisation))
        return jax.tree.map(lambda s, r: s + weight * r, pullback(kappa * slopes), anchor), memory


def _single(leaf: Array) -> Array:
    return single(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
