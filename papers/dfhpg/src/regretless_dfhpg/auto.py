"""DFHPG without presets: Algorithm 1 with a nuisance trained on replay and a policy in units of the predicted costs.

A decision depends on the direction of a cost vector only, ``w*(s c) = w*(c)`` for every ``s > 0``. So the policy's
network learns ``f_φ(x) / s(x)``, with ``s(x)`` the root mean square of ``f_φ(x)``, whatever the size of a round's
costs, and explores by a share of their spread. `docs/dfhpg-auto.md` lists what differs from the published algorithm.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import Problem, draws, replay
from regretless.models import GaussianModel, networks
from regretless.policies import MixingWeight, Policy, PolicySpec
from regretless.policies.dfhpg import hybrid, moving_average, nuisance_induced, score_gradient, trust_in_score
from regretless.schedules import Mixing, MixingState
from regretless.spec import number
from regretless.surrogates import SPOPlus, Surrogate, SurrogateSpec
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

Scalar = Float[Array, ""]
Weights = Float[Array, " n"]
NUISANCE, CONTEXTS, SURROGATE, ANCHOR = range(4)
"""Purposes of the keys of one learning step."""

MIN_SIZE = 1e-6
"""Size of predicted costs, in cost units, below which they count as zero."""

MIN_SPREAD = 0.01
"""The least spread of predicted costs, relative to their size, that exploration assumes."""


class DecayedNetwork(networks.BypassNetwork):
    """A network that predicts zero at first, with weight decay and a step size for its linear bypass."""

    def init(self, key: Key) -> Weights:
        """Draw hidden weights and biases uniformly on ``±1/√fan_in``; everything else is zero.

        A fresh network predicts zero, and linear relations are learned first.
        """
        fan_in = (self.context_shape[-1], self.context_shape[-1], self.width, self.width)
        bounds = self._constant([*(size**-0.5 for size in fan_in), 0.0, 0.0, 0.0])
        return (draws.uniform(key, bounds.shape, -1.0, 1.0) * bounds).astype(jnp.float32)

    def adam_step(
        self, weights: Weights, adam: networks.AdamState, gradient: Weights, rate: Array, decay: Array, speed: Array
    ) -> tuple[Weights, networks.AdamState]:
        """Take a step of Adam with decoupled decay of all but biases; the bypass takes ``speed`` times the step."""
        rate, decay, speed = (jnp.asarray(value, jnp.float32) for value in (rate, decay, speed))
        stepped, adam = networks.adam_step(weights, adam, gradient, rate)
        linear, decayed = self._constant([0, 0, 0, 0, 0, 1, 1]), self._constant([1, 0, 1, 0, 1, 1, 0])
        factor = 1.0 + (speed - 1.0) * linear
        return weights + factor * (stepped - weights) - rate * decay * decayed * weights, adam

    def _constant(self, values: list[float]) -> np.ndarray:
        """Return one value for all weights of each part."""
        return np.repeat(np.asarray(values, np.float32), [math.prod(shape) for shape in self.shapes])


class Actor(GaussianModel):
    """``N(s μ_θ(x), (s σ)² I)`` with a network ``μ_θ``; ``size`` is s and ``scale`` is s σ of the present context."""

    size: Scalar
    net: DecayedNetwork

    def init(self, key: Key) -> Weights:
        return self.net.init(key)

    def mean(self, params: Weights, context: Context) -> Cost:
        return self.size * self.net.apply(params, context[None])[0].astype(jnp.result_type(float))

    def around(self, expected: Cost, share: Scalar) -> "Actor":
        """Return the distribution where f_φ(x) is ``expected``; σ is this ``share`` of its relative spread."""
        size = size_of(expected)[0]
        spread = jnp.maximum(jnp.std(expected / size), MIN_SPREAD)
        return Actor(self.dim, self.context_shape, size * share * spread, size, self.net)


def size_of(expected: Float[Array, "*k d"]) -> Float[Array, "*k 1"]:
    """Return ``s(x)``, the root mean square of the predicted costs."""
    return jnp.sqrt(jnp.mean(jnp.square(expected), axis=-1, keepdims=True)) + MIN_SIZE


MIN_RATE = 0.3
"""Share of its first value below which the rate does not fall, so that changes can always be followed."""


class NetworkEnsembleState(eqx.Module):
    """Weights and Adam's moments; every leaf has a leading axis of members."""

    members: Float[Array, "count n"]
    adam: networks.AdamState


class NetworkEnsemble(eqx.Module):
    """``count`` networks of ``width`` units, trained by Adam on batches of ``batch`` rounds each.

    Loss of a measured row ``h``: ``((h·f − v) / (|v| + |h·f| + floor ‖h‖))²``, an error relative to the size of what
    was seen, so that a few large costs do not dominate. After ``n`` steps the rate is ``rate √(S/(S + n))`` with
    ``rate_steps`` S, and at least 0.3 of ``rate``. ``decay`` pulls weights (not biases) to zero at each step; the
    linear bypass moves ``linear_speed`` times as fast as the rest.
    """

    rate: Float[Array, ""]
    rate_steps: Float[Array, ""]
    decay: Float[Array, ""]
    linear_speed: Float[Array, ""]
    floor: Float[Array, ""]
    net: DecayedNetwork
    count: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def init(self, key: Key) -> NetworkEnsembleState:
        """Return members that differ in their hidden layers and predict zero."""
        members = jax.vmap(self.net.init)(jax.random.split(key, self.count))
        return NetworkEnsembleState(members, jax.vmap(networks.adam_init)(members))

    def predict(self, state: NetworkEnsembleState, contexts: Float[Array, "k ..."]) -> Float[Array, "k d"]:
        """Return ``f_φ`` of several contexts: the members' mean."""
        predictions = jax.vmap(self.net.apply, in_axes=(0, None))(state.members, contexts)
        return jnp.mean(predictions, axis=0).astype(jnp.result_type(float))

    def predict_one(self, state: NetworkEnsembleState, context: Context) -> Cost:
        """Return ``f_φ(x)``."""
        return self.predict(state, context[None])[0]

    def train(
        self, key: Key, state: NetworkEnsembleState, memory: replay.Replay, steps: Int[Array, ""]
    ) -> NetworkEnsembleState:
        """Take ``steps`` steps of each member on rounds drawn from the memory."""

        def one(i: Array, state: NetworkEnsembleState) -> NetworkEnsembleState:
            drawn = draw(jax.random.fold_in(key, i), memory, (self.count, self.batch))
            return jax.vmap(self._step)(state, drawn)

        return repeat(steps, one, state)

    def _step(self, state: NetworkEnsembleState, drawn: replay.MeasuredRound) -> NetworkEnsembleState:
        grads = jax.grad(self._loss)(state.members, drawn)
        return NetworkEnsembleState(*self.step(state.members, state.adam, grads))

    def step(self, weights: Weights, adam: networks.AdamState, gradient: Weights) -> tuple[Weights, networks.AdamState]:
        """Take one optimiser step of one network."""
        fall = jnp.sqrt(self.rate_steps / (self.rate_steps + adam.count))
        rate = self.rate * jnp.maximum(fall, MIN_RATE)
        return self.net.adam_step(weights, adam, gradient, rate, self.decay, self.linear_speed)

    def _loss(self, weights: Weights, drawn: replay.MeasuredRound) -> Float[Array, ""]:
        predictions = self.net.apply(weights, drawn.context)
        predicted = jax.vmap(lambda record, f: record.measure(f))(drawn, predictions)
        norms = jax.vmap(row_norms)(drawn)
        size = jnp.abs(drawn.values) + jnp.abs(predicted) + jnp.asarray(self.floor, jnp.float32) * norms
        error = jnp.where(drawn.used, (predicted - drawn.values) / jnp.where(drawn.used, size, 1.0), 0.0)
        return jnp.sum(jnp.square(error)) / jnp.maximum(jnp.sum(drawn.used), 1)


def draw(key: Key, memory: replay.Replay, shape: tuple[int, ...]) -> Any:
    """Draw records uniformly with replacement, of this leading shape; the first place while there are none."""
    places = jnp.floor(jax.random.uniform(key, shape, jnp.float32) * memory.size).astype(jnp.int32)
    return memory.at(jnp.clip(places, 0, jnp.maximum(memory.size - 1, 0)))


def row_norms(record: replay.MeasuredRound) -> Float[Array, " m"]:
    """Return ``‖h‖`` of each measured row."""
    if record.weights.ndim == 2:
        return jnp.sqrt(jnp.sum(jnp.square(record.weights), axis=1))
    sizes = jnp.abs(record.weights)
    return sizes if len(record.values) == len(sizes) else jnp.sqrt(jnp.sum(jnp.square(sizes)))[None]


def repeat(steps: Int[Array, ""], one: Callable[[Array, Any], Any], start: Any) -> Any:
    """Apply ``one`` ``steps`` times; vectorised replications stop when none of them needs more."""
    more = lambda carry: carry[0] < steps  # noqa: E731
    return jax.lax.while_loop(more, lambda carry: (carry[0] + 1, one(*carry)), (jnp.zeros_like(steps), start))[1]


class AutoState(eqx.Module):
    """The state of ``AutoDFHPG`` between rounds."""

    theta: Weights  # θ, the policy
    optimiser: networks.AdamState  # moments of the hybrid gradient
    anchoring: networks.AdamState  # moments of the regression on f_φ
    phi: NetworkEnsembleState  # φ, the nuisance
    rounds: replay.Replay  # what past rounds showed
    contexts: replay.Replay  # past contexts
    mixing: MixingState  # α
    average: Scalar  # moving average of y
    memory: Any  # the surrogate's pool or scale
    version: Int[Array, ""]  # learning steps so far


class PendingAutoUpdate(eqx.Module):
    """What a learning step needs after its solves."""

    key: Key
    state: AutoState  # with φ_{t+1}, and this round remembered
    decision: Decision
    feedback: Feedback
    before: Cost  # f_φ(x) with the old φ
    contexts: Float[Array, "k ..."]  # the present one and past ones
    predictions: Float[Array, "k d"]  # μ_θ of them
    targets: Float[Array, "k d"]  # c̃ / s of them
    noise: Any


class AutoDFHPG(Policy):
    """Play ``w*(ĉ)`` with ``ĉ ~ N(s μ_θ(x), (s σ)² I)``; train φ on replay, θ on the hybrid gradient and on ``f_φ``."""

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
        example = self._measured(problem.example_decision(), problem.example_feedback())
        return AutoState(
            theta=theta,
            optimiser=networks.adam_init(theta),
            anchoring=networks.adam_init(theta),
            phi=self.nuisance.init(phi_key),
            rounds=replay.empty(example, self.kept_rounds),
            contexts=replay.empty(problem.example_context().astype(jnp.float32), self.kept_contexts),
            mixing=self.mixing.init(),
            average=jnp.zeros(()),
            memory=self.surrogate.init(),
            version=jnp.zeros((), jnp.int32),
        )

    def describe(self, state: AutoState) -> dict[str, Array]:
        return {"alpha": state.mixing.alpha, "exploration": self._exploration(state)}

    def mean(self, state: AutoState, context: Context) -> Cost:
        return self._policy(state, self.nuisance.predict_one(state.phi, context)).mean(state.theta, context)

    def sample(self, key: Key, state: AutoState, context: Context, instance: Instance) -> Sample:
        policy = self._policy(state, self.nuisance.predict_one(state.phi, context))
        noise = policy.draw(key)
        cost = policy.sample(state.theta, context, noise)  # ĉ_t ~ p_θ(·|x_t), to be played as w_t = w*(ĉ_t)
        return Sample(cost, state.version, noise, policy.log_density(state.theta, context, cost))

    def learn(self, key: Key, state: AutoState, decision: Decision, feedback: Feedback) -> tuple[AutoState, Info]:
        costs, pending = self._open(key, state, decision, feedback)
        return self._close(pending, self.oracle.solve_round(costs, decision.instance).w if len(costs) else costs)

    def _open(
        self, key: Key, state: AutoState, decision: Decision, feedback: Feedback
    ) -> tuple[Float[Array, "n d"], PendingAutoUpdate]:
        """Return the costs that the step needs solved, and what it needs then."""
        x, problem = decision.context, self.problem
        before = self.nuisance.predict_one(state.phi, x)  # f_φ(x) with the old φ
        rounds = state.rounds.add(self._measured(decision, feedback), jnp.any(feedback.used()))
        contexts = state.contexts.add(x)
        phi = self.nuisance.train(self._key(key, NUISANCE), state.phi, rounds, self._steps(state))  # φ_{t+1}, on replay

        drawn = draw(self._key(key, CONTEXTS), contexts, (self.replayed,))
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
        stepped = eqx.tree_at(lambda s: (s.phi, s.rounds, s.contexts), state, (phi, rounds, contexts))
        return costs, PendingAutoUpdate(key, stepped, decision, feedback, before, shown, predictions, targets, noise)

    def _close(self, pending: PendingAutoUpdate, solutions: Float[Array, "n d"]) -> tuple[AutoState, Info]:
        """Return the state after the step, from the solutions of its costs."""
        state, decision, feedback, theta = pending.state, pending.decision, pending.feedback, pending.state.theta
        y, known = feedback.total(), feedback.complete()
        alpha = state.mixing.alpha  # α_t, of the rounds before this one
        residual = y - pending.before @ decision.w
        b = jnp.zeros(())
        if self.baseline == "nuisance_induced":
            b, solutions = nuisance_induced(pending.before, solutions[0]), solutions[1:]
        elif self.baseline == "moving_average":
            b = state.average

        age = state.version - decision.version
        policy = self._policy(state, pending.before)  # the distribution that the latest decision was drawn from
        score = score_gradient(policy, theta, decision, y - b, age == 0)
        plug_in, memory = self._plug_in(pending, solutions)
        trust = trust_in_score(policy, theta, decision, age, known, self.late_clip, self.late_limit)
        g, norms = hybrid(alpha, score, plug_in, True, trust)
        rate = jnp.float32(self.rate)
        theta, optimiser = networks.adam_step(theta, state.optimiser, g.astype(jnp.float32), rate)  # θ_{t+1}
        theta, anchoring = self._anchored(pending, theta)

        mixing = _where(known, self.mixing.update(state.mixing, residual, y), state.mixing)
        average = jnp.where(known, moving_average(state.average, y, self.momentum), state.average)
        finite = jnp.isfinite(norms["mixed_norm"] + residual + networks.tree_norm((theta, state.phi.members)))
        more = {"alpha": alpha, "baseline": b, "trust": trust, "exploration": self._exploration(state), **norms}
        after = AutoState(
            theta,
            optimiser,
            anchoring,
            state.phi,
            state.rounds,
            state.contexts,
            mixing,
            average,
            memory,
            state.version + 1,
        )
        return after, Info(residual, y, known, finite, more)

    def _plug_in(self, pending: PendingAutoUpdate, solutions: Float[Array, "n d"]) -> tuple[Any, Any]:
        """Return ``(∇_θ μ)ᵀ ∇_ĉ ℓ^sur`` on average over the contexts, and the surrogate's memory after all of them."""
        memory, instance = pending.state.memory, pending.decision.instance
        feasible = self.surrogate.feasible(memory, instance) if self.problem.has_instances else None
        solved = solutions.reshape(len(pending.contexts), -1, self.problem.dim)

        def finish(memory: Any, context: Any) -> tuple[Any, Cost]:
            prediction, target, noise, w = context
            slope, memory = self.surrogate.finish(memory, prediction, target, noise, w, feasible)
            return memory, slope

        memory, slopes = jax.lax.scan(
            finish, pending.state.memory, (pending.predictions, pending.targets, pending.noise, solved)
        )
        pullback = jax.vjp(lambda theta: self._network(theta, pending.contexts), pending.state.theta)[1]
        return pullback(slopes / len(slopes))[0], memory

    def _anchored(self, pending: PendingAutoUpdate, theta: Weights) -> tuple[Weights, networks.AdamState]:
        """Return θ after some steps of regression of ``μ_θ(x)`` on ``f_φ(x) / s(x)`` at past contexts."""
        state, key = pending.state, self._key(pending.key, ANCHOR)

        def loss(theta: Weights, contexts: Array, targets: Array) -> Array:
            return jnp.mean(jnp.square(self._network(theta, contexts) - targets)).astype(jnp.float32)

        def one(i: Array, now: tuple[Weights, networks.AdamState]) -> tuple[Weights, networks.AdamState]:
            theta, adam = now
            contexts = draw(jax.random.fold_in(key, i), state.contexts, (self.context_batch,))
            expected = self.nuisance.predict(state.phi, contexts)
            gradient = jax.grad(loss)(theta, contexts, expected / size_of(expected))
            return self.nuisance.step(theta, adam, gradient)

        return repeat(self._steps(state), one, (theta, state.anchoring))

    def _policy(self, state: AutoState, expected: Cost) -> Actor:
        """Return the distribution in a context where these costs are expected."""
        return self.model.around(expected, self._exploration(state))

    def _exploration(self, state: AutoState) -> Scalar:
        """Return σ now, as a share of the spread of predicted costs."""
        fall = self.exploration_rounds / (self.exploration_rounds + state.version)
        return self.exploration * jnp.sqrt(fall)

    def _steps(self, state: AutoState) -> Int[Array, ""]:
        """Return the training steps of this round."""
        return jnp.where(state.version < self.early_rounds, self.early_steps, self.steps).astype(jnp.int32)

    def _network(self, theta: Weights, contexts: Float[Array, "k ..."]) -> Float[Array, "k d"]:
        """Return ``μ_θ`` of several contexts."""
        return self.model.net.apply(theta, contexts).astype(jnp.result_type(float))

    def _measured(self, decision: Decision, feedback: Feedback) -> replay.MeasuredRound:
        return replay.measured_round(self.problem, decision, feedback)

    def _key(self, key: Key, purpose: int) -> Key:
        return jax.random.fold_in(key, purpose)


def _where(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


ROW_EXPLORATION = 1 / 3
"""Share of ``exploration`` with feature rows: the few coefficients that all of them share are soon known."""

SEARCH_SPACE = {
    "exploration": ("log", 0.01, 1.0),
    "rate": ("log", 3e-4, 3e-3),
    "hybrid_rate": ("log", 1e-4, 1e-2),
    "decay": ("uniform", 0.0, 0.3),
}
"""What tuning searches."""


class DFHPGAuto(PolicySpec):
    """DFHPG without presets: a nuisance trained on replay, a policy in units of the predicted costs.

    One configuration for every problem, in units of scaled contexts and costs.

    Parameters
    ----------
    surrogate : SurrogateSpec, default SPOPlus()
        Surrogate loss of the decision-focused branch.
    alpha : MixingWeight
        Weight α of the score term and its schedule.
    baseline : {"moving_average", "nuisance_induced", "none"}, default "nuisance_induced"
        Baseline b of the score term.
    baseline_momentum : float, default 0.95
        Momentum ψ of the moving-average baseline.
    late_clip : float, default 10.0
        Largest density ratio of a late score term.
    late_limit : float, default 100.0
        Age in learning steps beyond which a score term is left out.
    exploration : float, default 0.3
        Scale σ at the start, as a share of the predicted costs' spread; a third of it with feature rows.
    exploration_rounds : float, default 100.0
        Rounds τ of the decay of σ by √(τ / (τ + t)).
    width : int, default 64
        Units of both hidden layers of every network.
    members : int, default 5
        Networks of the nuisance.
    memory : int, default 2048
        Past rounds that are kept to train the nuisance on.
    contexts : int, default 256
        Past contexts that are kept to train the policy on.
    steps : int, default 2
        Training steps of the nuisance and of the policy's anchor per round.
    early_steps : int, default 8
        The same in the first rounds.
    early_rounds : int, default 100
        How many rounds are the first.
    batch : int, default 64
        Rounds per training step of each network.
    context_batch : int, default 32
        Contexts per training step of the policy's anchor.
    rows_batch : int, default 512
        Feature rows per training step, where every coordinate has its own: fewer rounds then.
    replayed : int, default 1
        Past contexts in addition to the present one in the decision-focused term.
    rate : float, default 1e-3
        Adam's rate for the nuisance and for the policy's anchor.
    rate_steps : float, default 500.0
        Steps S of the decay of ``rate`` by √(S / (S + steps)), to 0.3 of its value.
    hybrid_rate : float, default 1e-3
        Adam's rate for the hybrid gradient.
    decay : float, default 0.1
        Weight decay of all networks.
    linear_speed : float, default 3.0
        How much faster the linear part of every network moves.
    error_floor : float, default 0.3
        Cost units added to the size that errors are relative to.
    """

    by_default: ClassVar[bool] = False
    presets: ClassVar[bool] = False
    search_space: ClassVar[Mapping[str, Any] | None] = SEARCH_SPACE

    surrogate: SurrogateSpec = SPOPlus()
    alpha: MixingWeight = MixingWeight()
    baseline: Literal["moving_average", "nuisance_induced", "none"] = "nuisance_induced"
    baseline_momentum: float = Field(default=0.95, ge=0, lt=1)
    late_clip: float = Field(default=10.0, gt=0)
    late_limit: float = Field(default=100.0, ge=0)
    exploration: float = Field(default=0.3, gt=0)
    exploration_rounds: float = Field(default=100.0, gt=0)
    width: int = Field(default=64, ge=1)
    members: int = Field(default=5, ge=1)
    memory: int = Field(default=2048, ge=1)
    contexts: int = Field(default=256, ge=1)
    steps: int = Field(default=2, ge=1)
    early_steps: int = Field(default=8, ge=1)
    early_rounds: int = Field(default=100, ge=0)
    batch: int = Field(default=64, ge=1)
    context_batch: int = Field(default=32, ge=1)
    rows_batch: int = Field(default=512, ge=1)
    replayed: int = Field(default=1, ge=0)
    rate: float = Field(default=1e-3, gt=0)
    rate_steps: float = Field(default=500.0, gt=0)
    hybrid_rate: float = Field(default=1e-3, gt=0)
    decay: float = Field(default=0.1, ge=0)
    linear_speed: float = Field(default=3.0, gt=0)
    error_floor: float = Field(default=0.3, gt=0)

    def unused(self, problem: Problem) -> dict[str, str]:
        moving = self.baseline == "moving_average"
        return {} if moving else {"baseline_momentum": f"baseline is {self.baseline!r}"}

    def build(self, problem: Problem) -> AutoDFHPG:
        """Return the policy for a problem."""
        rows = len(problem.context_shape) == 2
        measured = 1 if not rows else problem.oracle.support if problem.feedback.sparse else problem.dim
        net = DecayedNetwork(problem.dim, problem.context_shape, self.width)
        return AutoDFHPG(
            problem,
            model=Actor(problem.dim, problem.context_shape, scale=number(1.0), size=number(1.0), net=net),
            nuisance=NetworkEnsemble(
                rate=number(self.rate),
                rate_steps=number(self.rate_steps),
                decay=number(self.decay),
                linear_speed=number(self.linear_speed),
                floor=number(self.error_floor),
                net=net,
                count=self.members,
                batch=_limit_batch(self.batch, self.rows_batch, measured),
            ),
            surrogate=self.surrogate.build(problem.oracle),
            mixing=self.alpha.build(),
            momentum=number(self.baseline_momentum),
            late_clip=number(self.late_clip),
            late_limit=number(self.late_limit),
            exploration=number(self.exploration * (ROW_EXPLORATION if rows else 1.0)),
            exploration_rounds=number(self.exploration_rounds),
            rate=number(self.hybrid_rate),
            baseline=self.baseline,
            kept_rounds=self.memory,
            kept_contexts=self.contexts,
            replayed=self.replayed,
            context_batch=_limit_batch(self.context_batch, self.rows_batch, problem.dim if rows else 1),
            steps=number(self.steps),
            early_steps=number(self.early_steps),
            early_rounds=number(self.early_rounds),
        )


def _limit_batch(batch: int, rows: int, rows_each: int) -> int:
    """Return the batch size whose feature rows are at most ``rows``, at least 4."""
    return min(batch, max(4, rows // rows_each))
