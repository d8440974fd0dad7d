"""DFHPG without presets: Algorithm 1 with a nuisance trained on replay and a policy in units of its own.

A decision depends on the direction of a cost vector only, ``w*(s c) = w*(c)`` for every ``s > 0``. So the policy's network
learns ``f_φ(x) / s(x)``, with ``s(x)`` the root mean square of ``f_φ(x)``, whatever the size of a round's costs, and explores
by a share of their spread. `docs/dfhpg-auto.md` says line by line what differs from the published algorithm.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from regretless import nets, replay
from regretless.bypass import Weights
from regretless.models.base import single
from regretless.policies.base import Answer, AskingPolicy, Question
from regretless.policies.dfhpg import control_variates
from regretless.policies.dfhpg.actor import Actor, size_of
from regretless.policies.dfhpg.ensemble import NetworkEnsemble, NetworkEnsembleState, repeat
from regretless.policies.dfhpg.gradients import hybrid, score_gradient, trust_in_score
from regretless.schedules import Mixing, MixingState
from regretless.surrogates.base import Surrogate
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

Scalar = Float[Array, ""]
NUISANCE, CONTEXTS, SURROGATE, ANCHOR = range(4)


class AutoState(eqx.Module):
    """What the next round needs."""

    theta: Weights  # θ, the policy
    optimiser: nets.AdamState  # moments of the hybrid gradient
    anchoring: nets.AdamState  # moments of the regression on f_φ
    phi: NetworkEnsembleState  # φ, the nuisance
    rounds: replay.Replay  # what past rounds showed
    contexts: replay.Replay  # past contexts
    mixing: MixingState  # α
    average: Scalar  # moving average of y
    memory: Any  # the surrogate's pool or scale
    version: Int[Array, ""]  # learning steps so far


class Halfway(eqx.Module):
    """What ``answer`` needs to know of the first half of a learning step."""

    key: Key
    state: AutoState  # with φ_{t+1}, and this round remembered
    decision: Decision
    feedback: Feedback
    before: Cost  # f_φ(x) with the old φ
    contexts: Float[Array, "k ..."]  # the present one and past ones
    predictions: Float[Array, "k d"]  # μ_θ of them
    targets: Float[Array, "k d"]  # c̃ / s of them
    noise: Any


class AutoDFHPG(AskingPolicy):
    """Plays ``w*(ĉ)`` with ``ĉ ~ N(s μ_θ(x), (s σ)² I)``; φ learns from replay, θ from the hybrid gradient and from ``f_φ``."""

    model: Actor
    nuisance: NetworkEnsemble
    surrogate: Surrogate
    mixing: Mixing
    momentum: Scalar
    late_clip: Scalar
    late_limit: Scalar
    exploration: Scalar
    exploration_rounds: Scalar
    rate: Scalar
    steps: Int[Array, ""]
    early_steps: Int[Array, ""]
    early_rounds: Int[Array, ""]
    baseline: Literal["moving_average", "nuisance_induced", "none"] = eqx.field(static=True)
    kept_rounds: int = eqx.field(static=True)
    kept_contexts: int = eqx.field(static=True)
    replayed: int = eqx.field(static=True)
    context_batch: int = eqx.field(static=True)

    @property
    def level_free(self) -> bool:
        return True  # the networks' last biases do not decay

    def init(self, key: Key) -> AutoState:
        theta_key, phi_key = jax.random.split(key)
        theta = self.model.init(theta_key)
        problem = self.problem
        example = self._seen(problem.example_decision(), problem.example_feedback())
        return AutoState(
            theta=theta,
            optimiser=nets.adam_init(theta),
            anchoring=nets.adam_init(theta),
            phi=self.nuisance.init(phi_key),
            rounds=replay.empty(example, self.kept_rounds),
            contexts=replay.empty(problem.example_context().astype(jnp.float32), self.kept_contexts),
            mixing=self.mixing.init(),
            average=jnp.zeros(()),
            memory=self.surrogate.init(),
            version=jnp.zeros((), jnp.int32),
        )

    def describe(self, state: AutoState) -> dict[str, Array]:
        return {"alpha": state.mixing.alpha, "exploration": self._share(state)}

    def mean(self, state: AutoState, context: Context) -> Cost:
        return self._policy(state, self.nuisance.predict_one(state.phi, context)).mean(state.theta, context)

    def sample(self, key: Key, state: AutoState, context: Context, instance: Instance) -> Sample:
        policy = self._policy(state, self.nuisance.predict_one(state.phi, context))
        noise = policy.draw(key)
        cost = policy.sample(state.theta, context, noise)  # ĉ_t ~ p_θ(·|x_t), to be played as w_t = w*(ĉ_t)
        return Sample(cost, state.version, noise, policy.log_density(state.theta, context, cost))

    def ask(self, key: Key, state: AutoState, decision: Decision, feedback: Feedback) -> Question:
        x, problem = decision.context, self.problem
        before = self.nuisance.predict_one(state.phi, x)  # f_φ(x) with the old φ
        rounds = state.rounds.add(self._seen(decision, feedback), jnp.any(feedback.used()))
        contexts = state.contexts.add(x)
        phi = self.nuisance.train(self._key(key, NUISANCE), state.phi, rounds, self._steps(state))  # φ_{t+1}, on replay

        drawn = contexts.draw(self._key(key, CONTEXTS), (self.replayed,))
        shown = jnp.concatenate([x.astype(jnp.float32)[None], drawn])
        expected = self.nuisance.predict(phi, shown)
        expected = expected.at[0].set(feedback.overwrite(expected[0]))  # c̃ of the present context
        targets = expected / size_of(expected)
        predictions = self._network(state.theta, shown)
        noise = jax.vmap(self.surrogate.draw)(jax.random.split(self._key(key, SURROGATE), len(shown)))
        ask = lambda prediction, target, eta: self.surrogate.queries(state.memory, prediction, target, eta)  # noqa: E731
        costs = jax.vmap(ask)(predictions, targets, noise).reshape(-1, problem.dim)
        if self.baseline == "nuisance_induced":
            costs = jnp.concatenate([before[None], costs])
        points = self.surrogate.points(state.memory) if problem.has_instances else jnp.zeros((0, problem.dim))
        stepped = eqx.tree_at(lambda s: (s.phi, s.rounds, s.contexts), state, (phi, rounds, contexts))
        halfway = Halfway(key, stepped, decision, feedback, before, shown, predictions, targets, noise)
        return Question(costs, points, decision.instance, halfway)

    def answer(self, question: Question, answer: Answer) -> tuple[AutoState, Info]:
        half: Halfway = question.rest
        state, decision, feedback, theta = half.state, half.decision, half.feedback, half.state.theta
        y, known, solutions = feedback.total(), feedback.complete(), answer.w
        alpha = state.mixing.alpha  # α_t, of the rounds before this one
        residual = y - half.before @ decision.w
        b = jnp.zeros(())
        if self.baseline == "nuisance_induced":
            b, solutions = control_variates.nuisance_induced(half.before, solutions[0]), solutions[1:]
        elif self.baseline == "moving_average":
            b = state.average

        age = state.version - decision.version
        policy = self._policy(state, half.before)  # the very distribution of a decision that was made just now
        score = score_gradient(policy, theta, decision, y - b, age == 0)
        plug_in, memory = self._plug_in(half, solutions, answer)
        trust = trust_in_score(policy, theta, decision, age, known, self.late_clip, self.late_limit)
        g, norms = hybrid(alpha, score, plug_in, True, trust)
        theta, optimiser = nets.adam_step(theta, state.optimiser, single(g), jnp.float32(self.rate))  # θ_{t+1}
        theta, anchoring = self._anchored(half, theta)

        mixing = _where(known, self.mixing.update(state.mixing, residual, y), state.mixing)
        average = jnp.where(known, control_variates.moving_average(state.average, y, self.momentum), state.average)
        finite = jnp.isfinite(norms["mixed_norm"] + residual + nets.tree_norm((theta, state.phi.members)))
        more = {"alpha": alpha, "baseline": b, "trust": trust, "exploration": self._share(state), **norms}
        after = AutoState(
            theta, optimiser, anchoring, state.phi, state.rounds, state.contexts, mixing, average, memory,
            state.version + 1,
        )  # fmt: skip
        return after, Info(residual, y, known, finite, more)

    def _plug_in(self, half: Halfway, solutions: Float[Array, "n d"], answer: Answer) -> tuple[Any, Any]:
        """``(∇_θ μ)ᵀ ∇_ĉ ℓ^sur`` on average over the contexts, and the surrogate's memory after all of them."""
        instance = half.decision.instance
        feasible = answer.feasible if self.problem.has_instances else None
        solved = solutions.reshape(len(half.contexts), -1, self.problem.dim)

        def one(memory: Any, each: Any) -> tuple[Any, Cost]:
            prediction, target, noise, w = each
            slope, memory = self.surrogate.finish(memory, prediction, target, noise, w, instance, feasible)
            return memory, slope

        memory, slopes = jax.lax.scan(one, half.state.memory, (half.predictions, half.targets, half.noise, solved))
        pullback = jax.vjp(lambda theta: self._network(theta, half.contexts), half.state.theta)[1]
        return pullback(slopes / len(slopes))[0], memory

    def _anchored(self, half: Halfway, theta: Weights) -> tuple[Weights, nets.AdamState]:
        """θ after some steps of regression of ``μ_θ(x)`` on ``f_φ(x) / s(x)`` at past contexts."""
        state, key = half.state, self._key(half.key, ANCHOR)

        def loss(theta: Weights, contexts: Array, targets: Array) -> Array:
            return jnp.mean(jnp.square(self._network(theta, contexts) - targets)).astype(jnp.float32)

        def one(i: Array, now: tuple[Weights, nets.AdamState]) -> tuple[Weights, nets.AdamState]:
            theta, adam = now
            contexts = state.contexts.draw(jax.random.fold_in(key, i), (self.context_batch,))
            expected = self.nuisance.predict(state.phi, contexts)
            gradient = jax.grad(loss)(theta, contexts, expected / size_of(expected))
            return self.nuisance.step(theta, adam, gradient)

        return repeat(self._steps(state), one, (theta, state.anchoring))

    def _policy(self, state: AutoState, expected: Cost) -> Actor:
        """The distribution in a context where these costs are expected."""
        return self.model.around(expected, self._share(state))

    def _share(self, state: AutoState) -> Scalar:
        """How far it explores now."""
        fall = self.exploration_rounds / (self.exploration_rounds + state.version)
        return self.exploration * jnp.sqrt(fall)

    def _steps(self, state: AutoState) -> Int[Array, ""]:
        """Training steps of this round."""
        return jnp.where(state.version < self.early_rounds, self.early_steps, self.steps).astype(jnp.int32)

    def _network(self, theta: Weights, contexts: Float[Array, "k ..."]) -> Float[Array, "k d"]:
        """``μ_θ`` of several contexts."""
        return self.model.net.apply(theta, contexts).astype(jnp.result_type(float))

    def _seen(self, decision: Decision, feedback: Feedback) -> replay.Seen:
        return replay.seen_of(self.problem.feedback, self.oracle.support, decision, feedback)

    def _key(self, key: Key, purpose: int) -> Key:
        return jax.random.fold_in(key, purpose)


def _where(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
