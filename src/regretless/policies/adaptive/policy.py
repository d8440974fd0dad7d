"""Learners side by side, and one prediction made of theirs: what a learner is worth is what it predicted before it saw it.

All learn from every round. The error of a learner is a running mean of ``|prediction − value| / (|value| + |prediction| +
floor · usual size)`` of what was measured; the costs that are solved are the mean of the learners' predictions, weighted by
``error^(−1/temperature)``, and what the first learner draws around its own. A learner whose error is far above the smallest has
no say, and some have to be better than the others by a ``lead`` before they have one, and never in the first rounds.

Where noise makes most of every error, errors are nearly equal and tell little. So the say of a learner that is ``doubted`` has
a limit: the share of it that would have mended the first one's predictions best (``share.py``). However small its error, it
drives nobody else out.

When recent errors are far above what was usual, the world has changed, and what was learnt misleads: all learners start anew.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless import draws
from regretless.policies.adaptive.base import Learning
from regretless.policies.adaptive.measured import Measured, measured, one_by_one
from regretless.policies.adaptive.share import Moments, nothing
from regretless.policies.base import Policy
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

FLOOR = 0.3
WINDOW = 200
"""Rounds over which the usual size of what is measured is averaged."""

LEVEL_WINDOW = 10
"""Rounds over which a predicted cost's bias is averaged where a level in all costs changes no decision."""

TINY = 1e-3
"""Errors below this are as good as none."""

RANDOM_ROUNDS = 2
EARLY = 20
"""Rounds in which no learner that needs a lead is heard: errors of so few tell little."""

TIED = 1e-9
"""Share of the largest cost by which rows that are believed to cost the same are told apart: the key does it, not rounding."""

SHARE_WINDOW = 300
"""Rounds that the limit of a doubted learner's say comes from."""

RECENT, USUAL = 10, 100
"""Rounds over which the joint prediction's recent and usual errors are averaged."""

CHANGED, CUT = 2.0, 4.0
"""Recent over usual error that tells of a change; one error counts as no more than so many usual ones."""


class AdaptiveState(eqx.Module):
    """The learners' states and what they were wrong by."""

    learners: tuple[Any, ...]
    errors: Float[Array, " learners"]
    biases: Float[Array, " learners"]  # of a predicted cost, on average
    moments: Moments  # of how each differs from the first
    recent: Float[Array, ""]  # error of the joint prediction
    usual: Float[Array, ""]
    size: Float[Array, ""]
    rounds: Int[Array, ""]  # learnt from since the start, or since all started anew
    restarts: Int[Array, ""]
    version: Int[Array, ""]


class AdaptivePolicy(Policy):
    """Plays the decision that is best for the joint prediction of ``learners``, called ``names``."""

    learners: tuple[Learning, ...]
    memory: Float[Array, ""]  # rounds over which errors are averaged
    temperature: Float[Array, ""]
    margin: Float[Array, ""]  # in logarithms of the error: how far behind the best one still has a say
    lead: Float[Array, " learners"]  # the same: how much better than those without a lead each has to be
    doubted: Bool[Array, " learners"]  # whose say has a limit; never the first
    names: tuple[str, ...] = eqx.field(static=True)

    def init(self, key: Key) -> AdaptiveState:
        states = tuple(each.init(jax.random.fold_in(key, i)) for i, each in enumerate(self.learners))
        zero = jnp.zeros((), jnp.int32)
        count, none = len(self.learners), jnp.zeros(())
        each = jnp.zeros(count)
        return AdaptiveState(states, each, each, nothing(count), none, none, none, zero, zero, zero)

    @property
    def level_free(self) -> bool:
        return True

    @property
    def by_row(self) -> bool:
        """Whether coordinates are described by feature rows: a learner may then have the level wrong and decide well."""
        return len(self.problem.context_shape) == 2

    def weights(self, state: AdaptiveState) -> Float[Array, " learners"]:
        """How much say each learner has."""
        scores = -jnp.log(state.errors + TINY)
        usable = jnp.stack([getattr(own, "usable", jnp.asarray(True)) for own in state.learners])
        plain = jnp.max(jnp.where(usable & (self.lead <= 0), scores, -jnp.inf))
        leads = (scores >= plain + self.lead) & ((state.rounds >= EARLY) | jnp.isneginf(plain))
        usable = usable & ((self.lead <= 0) | leads)
        scores = jnp.where(usable, scores, -jnp.inf)
        best = jnp.where(self.doubted, jnp.max(scores), jnp.max(jnp.where(self.doubted, -jnp.inf, scores)))
        behind = best - scores > self.margin
        weights = jax.nn.softmax(jnp.where(behind, -jnp.inf, scores / self.temperature))
        trusted = jnp.where(self.doubted, 0.0, weights)
        least = jnp.where(self.doubted, jnp.minimum(weights, self._limits(state)), 0.0)
        shared = least + trusted * (1.0 - jnp.sum(least)) / jnp.maximum(jnp.sum(trusted), 1e-30)
        return jnp.where(jnp.sum(trusted) > 0, shared, weights)

    def _limits(self, state: AdaptiveState) -> Float[Array, " learners"]:
        """The most say that a doubted learner may have. Before there is much to tell, a learner of feature rows has none."""
        return jnp.where(state.rounds >= EARLY, state.moments.share(), 0.0 if self.by_row else 1.0)

    def mean(self, state: AdaptiveState, context: Context) -> Cost:
        return self._joined(self.weights(state), self._each(state, context))

    def sample(self, key: Key, state: AdaptiveState, context: Context, instance: Instance) -> Sample:
        weights, each = self.weights(state), self._each(state, context)
        drawn = self.learners[0].sample(key, state.learners[0], context, instance).cost
        cost = jnp.where(state.version < RANDOM_ROUNDS, drawn, self._joined(weights, each) + drawn - each[0])
        if self.by_row:
            cost = cost + TIED * jnp.max(jnp.abs(cost)) * draws.normal(jax.random.fold_in(key, 1), cost.shape)
        return Sample(cost, state.version, member=jnp.argmax(weights).astype(jnp.int32))

    def learn(
        self, key: Key, state: AdaptiveState, decision: Decision, feedback: Feedback
    ) -> tuple[AdaptiveState, Info]:
        seen = measured(self.problem, decision, feedback)
        used = jnp.maximum(jnp.sum(seen.used), 1)
        rounds = state.rounds + jnp.any(seen.used)
        value = jnp.sum(jnp.where(seen.used, jnp.abs(seen.values), 0.0)) / used
        size = state.size + jnp.where(
            jnp.any(seen.used), (value - state.size) / jnp.clip(rounds, 1, WINDOW), 0.0
        ).astype(state.size.dtype)
        rate = jnp.where(jnp.any(seen.used), jnp.maximum(1.0 / self.memory, 1.0 / jnp.maximum(rounds, 1)), 0.0)
        weights = self.weights(state)
        parts = seen.weights if one_by_one(self.problem) else jnp.sum(seen.weights, axis=1)
        states, errors, biases, predictions, told, finite = [], [], [], [], [], jnp.asarray(True)
        for i, (learner, own) in enumerate(zip(self.learners, state.learners, strict=True)):
            cost = learner.mean(own, decision.context)
            predictions.append(cost)
            shown = seen.weights * cost if one_by_one(self.problem) else seen.weights @ cost
            told.append(shown)
            off = jnp.where(seen.used, seen.values - shown, 0.0)
            biases.append(jnp.sum(off) / jnp.where(jnp.sum(parts) == 0, 1.0, jnp.sum(parts)))
            wrong = jnp.abs(off - parts * state.biases[i]) / (
                jnp.abs(seen.values) + jnp.abs(shown) + FLOOR * size + 1e-30
            )
            errors.append(jnp.sum(jnp.where(seen.used, wrong, 0.0)) / used)
            after, info = learner.learn(jax.random.fold_in(key, i), own, decision, feedback)
            states.append(after)
            finite = finite & info.finite
        running = state.errors + rate * (jnp.stack(errors) - state.errors)
        soon = jnp.where(jnp.any(seen.used), 1.0 / jnp.clip(rounds, 1, LEVEL_WINDOW), 0.0)
        biased = state.biases + soon * (jnp.stack(biases) - state.biases) * self.by_row
        moments = self._moments_after(state, seen, told, predictions, size, rounds)
        total = feedback.total()
        residual = total - self._joined(weights, predictions) @ decision.w
        more = {f"weight_{name}": weights[i] for i, name in enumerate(self.names)}
        more |= {f"error_{name}": running[i] for i, name in enumerate(self.names)}
        more |= {"restarts": state.restarts}
        kind = state.errors.dtype
        recent, usual = self._joint_errors(state, seen, self._joined(weights, told), size, rounds)
        changed = (rounds >= USUAL) & (recent > CHANGED * (usual + TINY)) & (not self.by_row)
        anew = tuple(
            learner.restarted(jax.random.fold_in(key, i), own, changed)
            for i, (learner, own) in enumerate(zip(self.learners, states, strict=True))
        )
        kept = lambda number: jnp.where(changed, 0.0, number).astype(kind)  # noqa: E731
        after_all = AdaptiveState(
            anew, kept(running), kept(biased), jax.tree.map(kept, moments), kept(recent), kept(usual), size,
            jnp.where(changed, 0, rounds), state.restarts + changed, state.version + 1,
        )  # fmt: skip
        return after_all, Info(residual, total, feedback.complete(), finite, more)

    def _moments_after(
        self, state: AdaptiveState, seen: Measured, told: list[Array], costs: list[Cost], size: Array, rounds: Array
    ) -> Moments:
        """How the learners differ from the first after this round, in units of what is measured."""
        unit = jnp.abs(seen.values) + jnp.abs(told[0]) + FLOOR * size + 1e-30
        parts = seen.weights if one_by_one(self.problem) else jnp.sum(seen.weights, axis=1)
        means = jnp.stack([jnp.mean(cost) for cost in costs])
        wrong = jnp.where(seen.used, (seen.values - told[0]) / unit, 0.0)
        whole = jnp.where(seen.used, (jnp.stack(told) - told[0]) / unit, 0.0)
        level = jnp.where(seen.used, (means - means[0])[:, None] * parts / unit, 0.0)
        rate = jnp.where(jnp.any(seen.used), 1.0 / jnp.clip(rounds, 1, SHARE_WINDOW), 0.0)
        return state.moments.after(wrong, whole - level, level, jnp.maximum(jnp.sum(seen.used), 1), rate)

    def _joint_errors(
        self, state: AdaptiveState, seen: Measured, told: Array, size: Array, rounds: Array
    ) -> tuple[Array, Array]:
        """The joint prediction's recent and usual error after this round."""
        wrong = jnp.abs(seen.values - told) / (jnp.abs(seen.values) + jnp.abs(told) + FLOOR * size + 1e-30)
        wrong = jnp.sum(jnp.where(seen.used, wrong, 0.0)) / jnp.maximum(jnp.sum(seen.used), 1)
        wrong = jnp.where(rounds > RECENT, jnp.minimum(wrong, CUT * (state.usual + TINY)), wrong)
        after = lambda mean, window: (  # noqa: E731
            mean + jnp.where(jnp.any(seen.used), 1.0 / jnp.clip(rounds, 1, window), 0.0) * (wrong - mean)
        )
        return after(state.recent, RECENT), after(state.usual, USUAL)

    def describe(self, state: AdaptiveState) -> dict[str, Array]:
        weights = self.weights(state)
        told = {f"weight_{name}": weights[i] for i, name in enumerate(self.names)}
        told |= {f"error_{name}": state.errors[i] for i, name in enumerate(self.names)}
        return told | {"restarts": state.restarts}

    def _each(self, state: AdaptiveState, context: Context) -> list[Cost]:
        """What each learner expects the costs to be."""
        return [learner.mean(own, context) for learner, own in zip(self.learners, state.learners, strict=True)]

    def _joined(self, weights: Float[Array, " learners"], each: list[Array]) -> Array:
        """The weighted mean; what a learner without a say predicts does not matter, even if it is no number."""
        costs = jnp.where(weights[:, None] > 0, weights[:, None] * jnp.stack(each), 0.0)
        return jnp.sum(costs, axis=0)
