"""DFHPG: decision-focused hybrid policy gradient, Algorithm 1 of the paper (`docs/algorithm.md` maps its equations)."""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

import regretless.models.networks as networks
from regretless.models.base import Model, Noise, Params
from regretless.models.nuisance import Nuisance
from regretless.policies.base import Answer, AskingPolicy, Question
from regretless.policies.dfhpg.gradients import hybrid, moving_average, nuisance_induced, trust_in_score
from regretless.schedules import Mixing, MixingState, shifted_inverse
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

Scalar = Float[Array, ""]


class DFHPGState(eqx.Module):
    """The state of DFHPG between rounds."""

    theta: Any  # θ, the policy
    phi: Any  # φ, the nuisance with its optimiser
    mixing: MixingState  # α
    average: Float[Array, ""]  # moving average of y
    memory: Any  # the surrogate's pool or scale
    version: Int[Array, ""]  # learning steps so far
    optimiser: networks.AdamState | None = None  # θ's moments; none for SGD


class PendingUpdate(eqx.Module):
    """What ``answer`` needs from the first half of a learning step."""

    key: Key
    state: DFHPGState  # with φ_{t+1} in place of φ_t, which is no longer needed
    decision: Decision
    feedback: Feedback
    before: Cost  # f_φ(x) with the old φ
    phi_norm: Scalar
    after: Cost  # f_φ(x) of the (1 − α) branch: with the new φ, unless ``nuisance_at`` says otherwise
    branch: Any  # what the decision-focused term was evaluated at


class DFHPGPolicy(AskingPolicy):
    """Play ``w*(ĉ)`` with ``ĉ ~ p_θ(·|x)``; learn ``θ`` from a score term and a decision-focused plug-in term.

    Without a ``surrogate`` it is the plug-in variant; without a ``nuisance`` the whole cost is seen, or
    ``score_only`` holds (α ≡ 1 with a moving average). Numbers: policy rate ``rate`` (η_0), mixing weight ``mixing``
    (α), and ``late_clip``, ``late_limit`` for feedback on decisions of earlier parameters. What depends on the kind
    of model is left to ``PointDFHPG`` and ``GenerativeDFHPG``.
    """

    model: eqx.AbstractVar[Model]
    nuisance: Nuisance | None
    surrogate: Surrogate | None
    mixing: Mixing
    rate: Float[Array, ""]
    rate_offset: Float[Array, ""]
    rate_start: Float[Array, ""]
    clip: Float[Array, ""]
    momentum: Float[Array, ""]
    late_clip: Float[Array, ""]
    late_limit: Float[Array, ""]
    baseline: Literal["moving_average", "nuisance_induced", "none"] = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)
    score_only: bool = eqx.field(static=True)
    nuisance_at: Literal["after", "before"] = eqx.field(static=True)
    overwrite_seen: bool = eqx.field(static=True)
    plug_in_baseline: bool = eqx.field(static=True)
    constant_rate: bool = eqx.field(static=True)

    @abc.abstractmethod
    def score(self, key: Key, theta: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]) -> Params:
        """Return ``weight · ∇_θ log p_θ(ĉ|x)``."""

    @abc.abstractmethod
    def open_branch(
        self, key: Key, surrogate: Surrogate, memory: Any, theta: Params, decision: Decision, target: Cost
    ) -> tuple[Float[Array, "q d"], Any]:
        """Return the costs that the decision-focused term needs solved, and the arguments of ``close_branch``."""

    @abc.abstractmethod
    def close_branch(
        self,
        key: Key,
        surrogate: Surrogate,
        memory: Any,
        theta: Params,
        decision: Decision,
        branch: Any,
        solutions: Float[Array, "q d"],
        feasible: Bool[Array, " n"] | None,
    ) -> tuple[Params, Any]:
        """Return ``(∇_θ ĉ)ᵀ ∇_ĉ ℓ^sur`` and the surrogate's memory afterwards."""

    def start(self, key: Key, optimiser: bool) -> DFHPGState:
        """Return the state before the first round; with ``optimiser``, θ is trained by Adam."""
        theta_key, phi_key = jax.random.split(key)
        theta = self.model.init(theta_key)
        return DFHPGState(
            theta=theta,
            phi=None if self.nuisance is None else self.nuisance.init(phi_key),
            mixing=self.mixing.init(),
            average=jnp.zeros(()),
            memory=None if self.surrogate is None else self.surrogate.init(),
            version=jnp.zeros((), jnp.int32),
            optimiser=networks.adam_init(theta) if optimiser else None,
        )

    def describe(self, state: DFHPGState) -> dict[str, Array]:
        return {"alpha": state.mixing.alpha}

    def sample(self, key: Key, state: DFHPGState, context: Context, instance: Instance) -> Sample:
        return self.sample_with(self.model.draw(key), state, context)

    def sample_with(self, noise: Noise, state: DFHPGState, context: Context) -> Sample:
        """Return the sample of this noise."""
        cost = self.model.sample(state.theta, context, noise)  # ĉ_t ~ p_θ(·|x_t), to be played as w_t = w*(ĉ_t)
        return Sample(cost, state.version, noise, self.model.log_density(state.theta, context, cost))

    def ask(self, key: Key, state: DFHPGState, decision: Decision, feedback: Feedback) -> Question:
        x, theta = decision.context, state.theta
        phi, phi_norm = state.phi, jnp.zeros(())
        if self.nuisance is None:
            before = self._costs(phi, x, feedback)
        else:  # f_φ(x) with the old φ, and the nuisance update: φ_{t+1}
            before, phi, phi_norm = self.nuisance.predict_and_step(phi, x, feedback, self._needs_all())
        after = self._costs(phi, x, feedback) if self.nuisance_at == "after" else before  # f_φ(x) of the (1 − α) branch

        costs, points = jnp.zeros((0, self.problem.dim)), jnp.zeros((0, self.problem.dim))
        branch = None
        if self.surrogate is not None:
            target = feedback.overwrite(after) if self.overwrite_seen else after  # c̃_t
            costs, branch = self.open_branch(key, self.surrogate, state.memory, theta, decision, target)
            if self.problem.has_instances:
                points = self.surrogate.points(state.memory)
        if self.baseline == "nuisance_induced":
            costs = jnp.concatenate([before[None], costs.astype(before.dtype)])
        stepped = DFHPGState(theta, phi, state.mixing, state.average, state.memory, state.version, state.optimiser)
        pending = PendingUpdate(key, stepped, decision, feedback, before, phi_norm, after, branch)
        return Question(costs, points, decision.instance, pending)

    def answer(self, question: Question, answer: Answer) -> tuple[DFHPGState, Info]:
        pending: PendingUpdate = question.rest
        key, state, decision, feedback = pending.key, pending.state, pending.decision, pending.feedback
        w, theta, solutions = decision.w, state.theta, answer.w
        y, known = feedback.total(), feedback.complete()  # y_t = e(w_t)·v_t
        alpha = state.mixing.alpha  # α_t, of the rounds before this one
        residual = y - pending.before @ w
        b = jnp.zeros(())
        if self.baseline == "nuisance_induced":
            b, solutions = nuisance_induced(pending.before, solutions[0]), solutions[1:]
        elif self.baseline == "moving_average":
            b = state.average

        age = state.version - decision.version
        score = self.score(key, theta, decision, y - b, age == 0)
        memory = state.memory
        if self.score_only:
            plug_in = jax.tree.map(jnp.zeros_like, score)
        elif self.surrogate is None:
            plug_in = self.score(
                key, theta, decision, pending.after @ w - (b if self.plug_in_baseline else 0.0), age == 0
            )
        else:
            feasible = answer.feasible if self.problem.has_instances else None
            plug_in, memory = self.close_branch(
                key, self.surrogate, memory, theta, decision, pending.branch, solutions, feasible
            )

        trust = trust_in_score(self.model, theta, decision, age, known, self.late_clip, self.late_limit)
        g, norms = hybrid(alpha, score, plug_in, self.normalise, trust)
        version = state.version + 1
        rate = self.rate
        if not self.constant_rate:
            rate = shifted_inverse(rate, version, self.rate_offset, self.rate_start)
        theta, optimiser = networks.clipped_step(theta, state.optimiser, g, rate, self.clip)  # policy update: θ_{t+1}

        mixing = state.mixing
        if self.nuisance is not None:
            mixing = _where(known, self.mixing.update(mixing, residual, y), mixing)
        average = jnp.where(known, moving_average(state.average, y, self.momentum), state.average)
        finite = jnp.isfinite(norms["mixed_norm"] + pending.phi_norm + residual)
        more = {"alpha": alpha, "baseline": b, "nuisance_norm": pending.phi_norm, "trust": trust, **norms}
        after = DFHPGState(theta, state.phi, mixing, average, memory, version, optimiser)
        return after, Info(residual, y, known, finite, more)

    def _needs_all(self) -> Bool[Array, ""]:
        """Return whether ``f_φ(x)`` of the old φ is needed beyond what was chosen: for its baseline."""
        if self.nuisance_at == "before":
            return jnp.asarray(True)
        return (self.mixing.max > 0) & (self.baseline == "nuisance_induced")

    def _costs(self, phi: Any, context: Context, feedback: Feedback) -> Cost:
        """Return ``f_φ(x)``; without a nuisance, what was seen of the cost (all of it under full feedback)."""
        if self.nuisance is None:
            return feedback.overwrite(jnp.zeros(self.problem.dim))
        return self.nuisance.predict(phi, context)


def _where(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
