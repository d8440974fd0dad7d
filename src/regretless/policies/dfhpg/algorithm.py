"""DFHPG: decision-focused hybrid policy gradient, Algorithm 1 of the paper (`docs/algorithm.md` maps its equations)."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless import nets
from regretless.models.base import Noise, Params, PointModel
from regretless.nuisance import Nuisance
from regretless.policies.base import Policy
from regretless.policies.dfhpg import control_variates
from regretless.policies.dfhpg.gradients import hybrid, score_gradient, surrogate_gradient, trust_in_score
from regretless.schedules import Mixing, MixingState, shifted_inverse
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key

CLIP = 10.0
Scalar = Float[Array, ""]


class DFHPGState(eqx.Module):
    """What the next round needs."""

    theta: Any  # θ, the policy
    phi: Any  # φ, the nuisance with its optimiser
    mixing: MixingState  # α
    average: Float[Array, ""]  # moving average of y
    memory: Any  # the surrogate's pool or scale
    version: Int[Array, ""]  # learning steps so far
    optimiser: nets.AdamState | None = None  # θ's moments; none for SGD


class DFHPG(Policy):
    """Plays ``w*(ĉ)`` with ``ĉ ~ p_θ(·|x)`` and learns ``θ`` from a score term and a decision-focused plug-in term.

    ``surrogate`` None makes it the plug-in variant; ``nuisance`` None says that none is needed, because the whole cost is
    seen or because ``score_only`` (α ≡ 1 with a moving average). Numbers: policy rate ``rate`` (η_0), mixing weight ``mixing``
    (α), and ``late_clip``, ``late_limit`` for feedback on decisions of earlier parameters.
    """

    model: PointModel
    nuisance: Nuisance | None
    surrogate: Surrogate | None
    mixing: Mixing
    rate: Float[Array, ""]
    late_clip: Float[Array, ""]
    late_limit: Float[Array, ""]
    baseline: Literal["moving_average", "nuisance_induced", "none"] = eqx.field(static=True)
    at: Literal["mean", "sample"] = eqx.field(static=True, default="mean")
    normalise: bool = eqx.field(static=True, default=True)
    score_only: bool = eqx.field(static=True, default=False)
    constant_rate: bool = eqx.field(static=True, default=False)

    def init(self, key: Key) -> DFHPGState:
        theta_key, phi_key = jax.random.split(key)
        return DFHPGState(
            theta=self.model.init(theta_key),
            phi=None if self.nuisance is None else self.nuisance.init(phi_key),
            mixing=self.mixing.init(),
            average=jnp.zeros(()),
            memory=None if self.surrogate is None else self.surrogate.init(),
            version=jnp.zeros((), jnp.int32),
        )

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)

    def decide(self, key: Key, state: DFHPGState, context: Context, instance: Instance) -> Decision:
        return self.act(self.model.draw(key), state, context, instance)

    def act(self, noise: Noise, state: DFHPGState, context: Context, instance: Instance) -> Decision:
        """The decision that this noise leads to."""
        self.model.require(context)
        sample = self.model.sample(state.theta, context, noise)  # ĉ_t ~ p_θ(·|x_t)
        solution = self.oracle.solve_one(sample, instance)  # w_t = w*(ĉ_t)
        log_density = self.model.log_density(state.theta, context, sample)
        return Decision(
            state.version, context, instance, sample, noise, solution.w, solution.aux, solution.status, log_density,
            state.version,
        )  # fmt: skip

    def learn(self, key: Key, state: DFHPGState, decision: Decision, feedback: Feedback) -> tuple[DFHPGState, Info]:
        x, w, theta = decision.context, decision.w, state.theta
        y, known = feedback.total(), feedback.complete()  # y_t = e(w_t)·v_t
        alpha = state.mixing.alpha  # α_t, of the rounds before this one

        before = self._costs(state.phi, x, feedback)  # f_φ(x) with the old φ
        residual = y - before @ w
        b = jnp.zeros(())
        if self.baseline == "nuisance_induced":
            b = control_variates.nuisance_induced(self.oracle, before, decision.instance)
        elif self.baseline == "moving_average":
            b = state.average

        phi, phi_norm = state.phi, jnp.zeros(())
        if self.nuisance is not None:
            phi, phi_norm = self.nuisance.step(phi, x, feedback)  # nuisance update: φ_{t+1}
        after = self._costs(phi, x, feedback)  # f_φ(x) with the new φ

        age = state.version - decision.version
        score = self.score(key, theta, decision, y - b, age == 0)
        memory = state.memory
        if self.score_only:
            plug_in = jax.tree.map(jnp.zeros_like, score)
        elif self.surrogate is None:
            plug_in = self.score(key, theta, decision, after @ w - b, age == 0)
        else:
            target = feedback.overwrite(after)  # c̃_t
            plug_in, memory = self.decision_focused(key, self.surrogate, memory, theta, decision, target)

        trust = trust_in_score(self.model, theta, decision, age, known, self.late_clip, self.late_limit)
        g, norms = hybrid(alpha, score, plug_in, self.normalise, trust)
        version = state.version + 1
        rate = self.rate if self.constant_rate else shifted_inverse(self.rate, version)
        theta, optimiser = nets.clipped_step(theta, state.optimiser, g, rate, CLIP)  # hybrid policy update: θ_{t+1}

        mixing, average = state.mixing, state.average
        if self.nuisance is not None:
            mixing = _where(known, self.mixing.update(mixing, residual, y), mixing)
        average = jnp.where(known, control_variates.moving_average(average, y), average)
        finite = jnp.isfinite(norms["mixed_norm"] + phi_norm + residual)
        info = {
            "alpha": alpha, "baseline": b, "residual": residual, "total": y, "nuisance_norm": phi_norm, "trust": trust,
            "complete": known, "finite": finite, **norms,
        }  # fmt: skip
        return DFHPGState(theta, phi, mixing, average, memory, version, optimiser), info

    def score(self, key: Key, theta: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]) -> Params:
        """``weight · ∇_θ log p_θ(ĉ|x)``."""
        return score_gradient(self.model, theta, decision, weight, fresh)

    def decision_focused(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, target: Cost
    ) -> tuple[Params, Any]:
        """``(∇_θ μ)ᵀ ∇_ĉ ℓ^sur`` and the surrogate's memory afterwards."""
        point = self.model.mean(theta, decision.context) if self.at == "mean" else decision.cost_sample
        slope, memory = surrogate(memory, point, target, surrogate.draw(key), decision.instance)
        return surrogate_gradient(self.model, theta, decision, slope), memory

    def _costs(self, phi: Any, context: Context, feedback: Feedback) -> Cost:
        """``f_φ(x)``; without a nuisance, what was seen of the cost (all of it under full feedback)."""
        if self.nuisance is None:
            return feedback.overwrite(jnp.zeros(self.oracle.dim))
        return self.nuisance.predict(phi, context)


def _where(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
