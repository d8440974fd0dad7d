"""DFHPG: decision-focused hybrid policy gradient, Algorithm 1 of the paper (`docs/algorithm.md` maps its equations).

Its two kinds of models, point models and generative ones, differ in the gradients of both terms. A point model's
surrogate is evaluated at the mean prediction or at the sample that was played, a generative model's at fresh scenarios
(the paper's Appendix on generative parameterisations).
"""

import abc
import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

import regretless.models.networks as networks
from regretless import draws
from regretless.models.base import GenerativeModel, Model, Noise, Params, PointModel, single
from regretless.models.nuisance import Nuisance
from regretless.policies.base import Policy, choose
from regretless.policies.dfhpg import gradients
from regretless.schedules import Mixing, MixingState, shifted_inverse
from regretless.surrogates.base import Feasible, Rows, Surrogate
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

Scalar = Float[Array, ""]
SCORE, SCENARIOS, SURROGATE, REGULARISER, SAMPLE = range(5)
"""Purposes of the keys of one learning step."""


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
    """What a learning step needs after its solves."""

    key: Key
    state: DFHPGState  # with φ_{t+1} in place of φ_t, which is no longer needed
    decision: Decision
    feedback: Feedback
    before: Cost  # f_φ(x) with the old φ
    phi_norm: Scalar
    after: Cost  # f_φ(x) of the (1 − α) branch: with the new φ, unless ``nuisance_at`` says otherwise
    branch: Any  # what the decision-focused term was evaluated at


class DFHPGPolicy(Policy):
    """Play ``w*(ĉ)`` with ``ĉ ~ p_θ(·|x)``; learn ``θ`` from a score term and a decision-focused plug-in term.

    Without a ``surrogate`` it is the plug-in variant; without a ``nuisance`` the whole cost is seen, or
    ``score_only`` holds (α ≡ 1 with a moving average). Most fields are the settings of that name; what depends on the
    kind of model is left to ``PointDFHPG`` and ``GenerativeDFHPG``.
    """

    model: eqx.AbstractVar[Model]
    nuisance: Nuisance | None
    surrogate: Surrogate | None
    mixing: Mixing
    policy_lr: Float[Array, ""]
    rate_offset: Float[Array, ""]
    rate_start: Float[Array, ""]
    clip: Float[Array, ""]
    baseline_momentum: Float[Array, ""]
    late_clip: Float[Array, ""]
    late_limit: Float[Array, ""]
    baseline: Literal["moving_average", "nuisance_induced", "none"] = eqx.field(static=True)
    normalize_gradients: bool = eqx.field(static=True)
    score_only: bool = eqx.field(static=True)
    nuisance_at: Literal["after", "before"] = eqx.field(static=True)
    overwrite_seen: bool = eqx.field(static=True)
    plug_in_baseline: bool = eqx.field(static=True)
    policy_schedule: Literal["shifted_inverse", "constant"] = eqx.field(static=True)

    @abc.abstractmethod
    def score(self, key: Key, theta: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]) -> Params:
        """Return ``weight · ∇_θ log p_θ(ĉ|x)``."""

    @abc.abstractmethod
    def open_branch(self, key: Key, state: DFHPGState, decision: Decision, target: Cost) -> tuple[Rows, Any]:
        """Return the costs that the decision-focused term needs solved, and what ``close_branch`` needs then."""

    @abc.abstractmethod
    def close_branch(self, pending: PendingUpdate, solutions: Rows, feasible: Feasible) -> tuple[Params, Any]:
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

    def learn(self, key: Key, state: DFHPGState, decision: Decision, feedback: Feedback) -> tuple[DFHPGState, Info]:
        costs, pending = self._open(key, state, decision, feedback)
        w = self.oracle.solve_round(costs, decision.instance).w if len(costs) else costs
        return self._close(pending, w)

    def _open(self, key: Key, state: DFHPGState, decision: Decision, feedback: Feedback) -> tuple[Rows, PendingUpdate]:
        """Return the costs that the step needs solved, all at once, and what it needs then."""
        x, phi, phi_norm = decision.context, state.phi, jnp.zeros(())
        if self.nuisance is None:
            before = self._costs(phi, x, feedback)
        else:  # f_φ(x) with the old φ, and the nuisance update: φ_{t+1}
            before, phi, phi_norm = self.nuisance.predict_and_step(phi, x, feedback, self._needs_all())
        after = self._costs(phi, x, feedback) if self.nuisance_at == "after" else before  # f_φ(x) of the (1 − α) branch

        costs = jnp.zeros((0, self.problem.dim))
        branch = None
        if self.surrogate is not None:
            target = feedback.overwrite(after) if self.overwrite_seen else after  # c̃_t
            costs, branch = self.open_branch(key, state, decision, target)
        if self.baseline == "nuisance_induced":
            costs = jnp.concatenate([before[None], costs.astype(before.dtype)])
        stepped = dataclasses.replace(state, phi=phi)
        return costs, PendingUpdate(key, stepped, decision, feedback, before, phi_norm, after, branch)

    def _close(self, pending: PendingUpdate, solutions: Rows) -> tuple[DFHPGState, Info]:
        """Return the state after the step, from the solutions of its costs."""
        key, state, decision, feedback = pending.key, pending.state, pending.decision, pending.feedback
        w, theta = decision.w, state.theta
        y, known = feedback.total(), feedback.complete()  # y_t = e(w_t)·v_t
        alpha = state.mixing.alpha  # α_t, of the rounds before this one
        residual = y - pending.before @ w
        b = jnp.zeros(())
        if self.baseline == "nuisance_induced":
            b, solutions = gradients.nuisance_induced(pending.before, solutions[0]), solutions[1:]
        elif self.baseline == "moving_average":
            b = state.average

        age = state.version - decision.version
        score = self.score(key, theta, decision, y - b, age == 0)
        memory = state.memory
        if self.score_only:
            plug_in = jax.tree.map(jnp.zeros_like, score)
        elif self.surrogate is None:
            predicted = pending.after @ w - (b if self.plug_in_baseline else 0.0)
            plug_in = self.score(key, theta, decision, predicted, age == 0)
        else:
            feasible = self.surrogate.feasible(state.memory, decision.instance) if self.problem.has_instances else None
            plug_in, memory = self.close_branch(pending, solutions, feasible)

        trust = gradients.trust_in_score(self.model, theta, decision, age, known, self.late_clip, self.late_limit)
        g, norms = gradients.hybrid(alpha, score, plug_in, self.normalize_gradients, trust)
        version = state.version + 1
        rate = self.policy_lr
        if self.policy_schedule == "shifted_inverse":
            rate = shifted_inverse(rate, version, self.rate_offset, self.rate_start)
        theta, optimiser = networks.clipped_step(theta, state.optimiser, g, rate, self.clip)  # policy update: θ_{t+1}

        mixing = state.mixing
        if self.nuisance is not None:
            mixing = choose(known, self.mixing.update(mixing, residual, y), mixing)
        average = jnp.where(known, gradients.moving_average(state.average, y, self.baseline_momentum), state.average)
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


class PointDFHPG(DFHPGPolicy):
    """DFHPG for a model with a mean; ``at`` says where its surrogate is evaluated."""

    model: PointModel
    at: Literal["mean", "sample"] = eqx.field(static=True)

    def init(self, key: Key) -> DFHPGState:
        return self.start(key, optimiser=False)

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)

    def score(self, key: Key, theta: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]) -> Params:
        return gradients.score_gradient(self.model, theta, decision, weight, fresh)

    def open_branch(self, key: Key, state: DFHPGState, decision: Decision, target: Cost) -> tuple[Rows, Any]:
        prediction = self.model.mean(state.theta, decision.context)
        if self.at == "sample":  # a decision that was not sampled has none
            prediction = jnp.where(decision.sampled(), decision.cost_sample, prediction)
        assert self.surrogate is not None
        drawn = self.surrogate.draw(key)
        noise = self.surrogate.prepare(state.memory, prediction, target, drawn, decision.instance)
        arguments = prediction, target, noise
        return self.surrogate.queries(state.memory, *arguments), arguments

    def close_branch(self, pending: PendingUpdate, solutions: Rows, feasible: Feasible) -> tuple[Params, Any]:
        assert self.surrogate is not None
        state, (prediction, target, noise) = pending.state, pending.branch
        slope, memory = self.surrogate.finish(state.memory, prediction, target, noise, solutions, feasible)
        return self.model.pullback(state.theta, pending.decision.context, slope), memory  # (∇_θ μ_θ(x))ᵀ ∇_ĉ ℓ^sur


class GenerativeDFHPG(DFHPGPolicy):
    """DFHPG for a flow or a diffusion, trained by Adam.

    The score term is ``(y − b) ∇_θ log p_θ(ĉ|x)``, with minus the model's loss in place of ``log p_θ`` where there is
    no density. With a surrogate the (1 − α) term is ``κ · surrogate + λ · regulariser``, normalised as one gradient:
    the surrogate at K fresh scenarios, the regulariser ``∇_θ loss`` at the target ``c̃`` or at a fresh sample. The
    fields are the settings of ``GenerativeTerm``, with ``sign`` for the orientation.
    """

    model: GenerativeModel
    kappa_dfl: Float[Array, ""]
    lambda_reg: Float[Array, ""]
    sign: Float[Array, ""]
    scenarios: int = eqx.field(static=True)
    scenario_gradient: gradients.ScenarioGradient = eqx.field(static=True)
    regulariser_at: Literal["prediction", "sample"] = eqx.field(static=True)
    optimiser: Literal["adam", "sgd"] = eqx.field(static=True)

    def init(self, key: Key) -> DFHPGState:
        state = self.start(key, optimiser=self.optimiser == "adam")
        floats, rest = eqx.partition(state.memory, eqx.is_inexact_array)
        return dataclasses.replace(state, memory=eqx.combine(single(floats), rest))

    def mean(self, state: DFHPGState, context: Context) -> Cost:
        """Return the mean of K scenarios, with the same noise every time."""
        noise = draws.normal(jax.random.key(0), (self.scenarios, self.model.dim))
        costs, _ = self.model.scenarios(state.theta, context, noise)
        return jnp.mean(costs, axis=0).astype(jnp.result_type(float))

    def score(self, key: Key, theta: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]) -> Params:
        drawn = self.model.draw_loss(jax.random.fold_in(key, SCORE))
        gradient = self.model.loss_gradient(theta, decision.context, decision.cost_sample, drawn)
        return jax.tree.map(lambda g: -weight.astype(g.dtype) * g, gradient)

    def open_branch(self, key: Key, state: DFHPGState, decision: Decision, target: Cost) -> tuple[Rows, Any]:
        noise = draws.normal(jax.random.fold_in(key, SCENARIOS), (self.scenarios, self.model.dim))
        costs, pullback = self.model.scenarios(state.theta, decision.context, noise)  # ĉ_1 … ĉ_K
        surrogate_key = jax.random.fold_in(key, SURROGATE)
        queries, arguments = self._term().queries(state.memory, costs, target, surrogate_key, decision.instance)
        return queries, (pullback, arguments, target)

    def close_branch(self, pending: PendingUpdate, solutions: Rows, feasible: Feasible) -> tuple[Params, Any]:
        key, theta, x = pending.key, pending.state.theta, pending.decision.context
        pullback, arguments, target = pending.branch
        slopes, memory = self._term().cotangents(pending.state.memory, arguments, solutions, feasible)
        if self.regulariser_at == "sample":
            target = self.model.sample(theta, x, self.model.draw(jax.random.fold_in(key, SAMPLE)))
        anchor = self.model.regulariser_gradient(theta, x, target, jax.random.fold_in(key, REGULARISER))
        kappa, weight = (jnp.asarray(value, slopes.dtype) for value in (self.kappa_dfl, self.lambda_reg))
        return jax.tree.map(lambda s, r: s + weight * r, pullback(kappa * slopes), anchor), memory

    def _term(self) -> gradients.ScenarioTerm:
        assert self.surrogate is not None
        return gradients.ScenarioTerm(self.surrogate, self.scenarios, self.scenario_gradient, self.sign)
