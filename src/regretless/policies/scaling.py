"""Scaling as a wrapper around a policy: it meets contexts and costs of order one, whatever units they come in.

Centre and spread of the contexts and the unit of cost are estimated from the first ``WINDOW`` learnt rounds and stay as they
are then: a unit that moved for ever would unlearn what was learnt in it. The estimates are a median and a trimmed deviation,
and what lies absurdly far beside all earlier numbers is cut off, so that no single number can ruin them.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless.policies.base import Answer, AskingPolicy, Policy, Question, answer, ask
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

WINDOW = 64
FEW = 10
"""Observations below which none of them is left out."""

KEPT = 0.9
NORMAL = 1.27
"""Standard deviation of a normal variable over that of the nine tenths of it that lie nearest to its median."""

FARTHEST_CONTEXT = 10.0
"""Spreads beyond which a context is cut off."""

ABSURD, NEVER_ABSURD, ALWAYS_ABSURD = 3.0, 10.0, 1000.0
"""A cost is cut off at three times the largest one so far, but not below ten units, and in any case at a thousand."""


class Scale(eqx.Module):
    """Centre and spread of numbers by column, from the first ``WINDOW`` of them."""

    seen: Float[Array, "window p"]
    count: Int[Array, ""]
    centre: Float[Array, " p"]
    spread: Float[Array, " p"]

    def after(self, row: Float[Array, " p"], centred: bool, arrived: Bool[Array, ""]) -> "Scale":
        """The estimate with one more row, if it ``arrived``; with ``centred`` False the centre stays at zero."""
        more = arrived & (self.count < WINDOW)
        seen = jnp.where(more & (jnp.arange(WINDOW) == self.count)[:, None], row, self.seen)
        count = self.count + more
        centre = _median(seen, count) if centred else self.centre
        spread = _spread(seen, count, centre)
        return Scale(seen, count, jnp.where(more, centre, self.centre), jnp.where(more, spread, self.spread))


def no_scale(columns: int) -> Scale:
    """Nothing seen yet: numbers stay as they are."""
    return Scale(jnp.zeros((WINDOW, columns)), jnp.zeros((), jnp.int32), jnp.zeros(columns), jnp.ones(columns))


def _median(seen: Float[Array, "window p"], count: Int[Array, ""]) -> Float[Array, " p"]:
    ordered = jnp.sort(jnp.where(jnp.arange(WINDOW)[:, None] < count, seen, jnp.inf), axis=0)
    low, high = ordered[jnp.maximum(count - 1, 0) // 2], ordered[count // 2]
    return jnp.where(count > 0, 0.5 * low + 0.5 * high, 0.0)


def _spread(seen: Float[Array, "window p"], count: Int[Array, ""], centre: Float[Array, " p"]) -> Float[Array, " p"]:
    """Root mean square deviation of the nine tenths nearest to the centre; 1 where nothing has varied yet."""
    place = jnp.arange(WINDOW)[:, None]
    ordered = jnp.sort(jnp.where(place < count, jnp.abs(seen - centre), jnp.inf), axis=0)
    kept = jnp.where(count < FEW, count, jnp.ceil(KEPT * count).astype(count.dtype))
    near = jnp.where(place < kept, ordered, 0.0)
    top = jnp.max(near, axis=0)
    shares = near / jnp.where(top > 0, top, 1.0)  # squares of shares cannot overflow
    factor = jnp.where(count < FEW, 1.0 + 2.0 / jnp.maximum(count, 1), NORMAL)
    deviation = factor * top * jnp.sqrt(jnp.sum(jnp.square(shares), axis=0) / jnp.maximum(kept, 1))
    varied = (deviation > 1e-12 * (1e-300 + jnp.abs(centre))) & jnp.isfinite(deviation)
    return jnp.where(varied, deviation, 1.0)


class ScaledState(eqx.Module):
    """The policy's own state and the scales."""

    inner: Any
    contexts: Scale
    costs: Scale  # of one column: sizes of costs
    largest: Float[Array, ""]  # size of the largest cost so far, as it was learnt from

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""
        return self.inner.version


class Scaled(AskingPolicy):
    """``inner`` in scaled units; to the outside everything is in the user's units."""

    inner: Policy

    def init(self, key: Key) -> ScaledState:
        contexts = no_scale(self.problem.context_shape[-1])
        return ScaledState(self.inner.init(key), contexts, no_scale(1), jnp.zeros(()))

    def sample(self, key: Key, state: ScaledState, context: Context, instance: Instance) -> Sample:
        inner = self.inner.sample(key, state.inner, self._shown(state, context), instance)
        return Sample(
            inner.cost * self._unit(state), inner.version, inner.noise, inner.log_density, inner.member
        )  # fmt: skip

    def mean(self, state: ScaledState, context: Context) -> Cost:
        return self.inner.mean(state.inner, self._shown(state, context)) * self._unit(state)

    def describe(self, state: ScaledState) -> dict[str, Array]:
        return {**self.inner.describe(state.inner), "cost_unit": state.costs.spread[0]}

    def ask(self, key: Key, state: ScaledState, decision: Decision, feedback: Feedback) -> Question:
        values, cut = _cut(state, feedback)
        sizes, used = _sizes(values, feedback)
        size = jnp.sum(sizes / jnp.maximum(jnp.sum(used), 1))
        x = decision.context
        row = x if x.ndim == 1 else x[state.contexts.count % x.shape[0]]  # feature rows share their columns
        later = ScaledState(
            state.inner,
            state.contexts.after(row, centred=True, arrived=jnp.asarray(True)),
            state.costs.after(size[None], centred=False, arrived=jnp.any(used)),
            jnp.maximum(state.largest, jnp.max(sizes)),
        )
        unit = self._unit(later)
        shown = eqx.tree_at(
            lambda d: (d.context, d.cost_sample), decision, (self._shown(state, x), decision.cost_sample / unit)
        )
        told = Feedback(feedback.operator, feedback.linkage, values / unit, feedback.seen)
        question = ask(self.inner, key, state.inner, shown, told)
        return Question(question.costs * unit, question.points, question.instance, (question, later, unit, cut))

    def answer(self, question: Question, given: Answer) -> tuple[ScaledState, Info]:
        inner_question, later, unit, cut = question.rest
        state, info = answer(self.inner, inner_question, given)
        more = {**info.more, "cut": cut}
        told = Info(info.residual * unit, info.total * unit, info.complete, info.finite, more)
        return ScaledState(state, later.contexts, later.costs, later.largest), told

    def _unit(self, state: ScaledState) -> Float[Array, ""]:
        """What the policy's costs are multiplied by to be the user's."""
        return jnp.ones(()) if self.inner.unit_free else state.costs.spread[0]

    def _shown(self, state: ScaledState, context: Context) -> Context:
        """The context in spreads from its centre; the first one of all is its own centre."""
        own = context if context.ndim == 1 else jnp.mean(context, axis=0)
        centre = jnp.where(state.contexts.count > 0, state.contexts.centre, own)
        return jnp.clip((context - centre) / state.contexts.spread, -FARTHEST_CONTEXT, FARTHEST_CONTEXT)


def _cut(state: ScaledState, feedback: Feedback) -> tuple[Float[Array, " m"], Bool[Array, ""]]:
    """The values with what is absurd beside all earlier ones cut off, and whether anything was."""
    unit = state.costs.spread[0]
    most = unit * jnp.clip(ABSURD * state.largest / unit, NEVER_ABSURD, ALWAYS_ABSURD)
    most = jnp.where(state.costs.count > 0, most, jnp.inf) * jnp.sqrt(feedback.operator.row_squares())
    values = jnp.where(jnp.isnan(most), feedback.values, jnp.clip(feedback.values, -most, most))
    return values, jnp.any(values != feedback.values)


def _sizes(values: Float[Array, " m"], feedback: Feedback) -> tuple[Float[Array, " m"], Bool[Array, " m"]]:
    """``|v| / ‖h‖`` of each row, 0 for rows that tell nothing, and which rows tell something."""
    squares = feedback.operator.row_squares()
    used = feedback.used() & (squares > 0)
    return jnp.where(used, jnp.abs(values) / jnp.sqrt(jnp.where(used, squares, 1.0)), 0.0), used
