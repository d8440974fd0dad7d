"""Contexts and costs of order one for policies; and the one place that builds and scales a policy."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.host import in_units
from regretless.policies.base import REGISTRY, Policy, PolicySpec, Wrapper, WrapperState
from regretless.problem import Problem
from regretless.spec import Spec
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

WINDOW = 64
"""First rounds from which centres, spreads and the unit are estimated."""

MIN_TRIMMED_COUNT = 3
"""Observations below which none of them is left out of a spread; from then on at least one is."""

KEPT_SHARE = 0.9
"""Share of the observations that a spread is computed from: those nearest to the centre."""

TRIMMED_NORMAL = 1.27
"""Standard deviation of a normal variable over that of the nine tenths of it that are nearest to its median."""

MAX_SPREADS = 10.0
"""Spreads beyond which a context is cut off."""

ORDER_ONE = 4.0
"""Spreads of feature rows between the inverse of this and this are of order one, and are not changed."""

ABSURD = 1000.0
"""Spreads and units beyond which a context and a cost are replaced, by the centre and by one unit."""


class ColumnScale(eqx.Module):
    """Centre and spread of numbers by column, from the first ``WINDOW``; a spread of zero where nothing has varied."""

    seen: Float[Array, "window p"]  # each column in rising order, zeros after the first ``count``
    count: Int[Array, ""]
    centre: Float[Array, " p"]
    spread: Float[Array, " p"]

    @property
    def unit(self) -> Float[Array, " p"]:
        """The spread, 1 where nothing has varied."""
        return _or_one(self.spread)

    def update(self, row: Float[Array, " p"], centred: bool, arrived: Bool[Array, ""]) -> "ColumnScale":
        """Return the estimate after one more row, if it ``arrived``; without ``centred`` the centre stays at zero."""
        learning = arrived & (self.count < WINDOW)
        seen = jnp.where(learning, _insert(self.seen, self.count, row), self.seen)
        count = self.count + learning
        centre = _median(seen, count) if centred else self.centre
        spread = _spread(seen, count, centre, centred)
        return ColumnScale(
            seen, count, jnp.where(learning, centre, self.centre), jnp.where(learning, spread, self.spread)
        )


def initial_scaling(columns: int) -> ColumnScale:
    """Return the estimate before any row: numbers stay as they are."""
    return ColumnScale(jnp.zeros((WINDOW, columns)), jnp.zeros((), jnp.int32), jnp.zeros(columns), jnp.zeros(columns))


def _or_one(spread: Float[Array, " p"]) -> Float[Array, " p"]:
    return jnp.where(spread > 0, spread, 1.0)


def _insert(seen: Float[Array, "window p"], count: Int[Array, ""], row: Float[Array, " p"]) -> Float[Array, "window p"]:
    """Return the sorted columns with one more number each; sorting them again in every round would be slow."""
    place = jnp.arange(WINDOW)[:, None]
    here = jnp.sum((place < count) & (seen <= row), axis=0)
    return jnp.where(place < here, seen, jnp.where(place == here, row, jnp.roll(seen, 1, axis=0)))


def _median(seen: Float[Array, "window p"], count: Int[Array, ""]) -> Float[Array, " p"]:
    low, high = seen[jnp.maximum(count - 1, 0) // 2], seen[count // 2]
    return jnp.where(count > 0, 0.5 * low + 0.5 * high, 0.0)


def _spread(
    seen: Float[Array, "window p"], count: Int[Array, ""], centre: Float[Array, " p"], estimated: bool
) -> Float[Array, " p"]:
    """Return the root mean square deviation of the values nearest to the centre; 0 where nothing has varied yet."""
    place = jnp.arange(WINDOW)[:, None]
    deviations = jnp.abs(seen - centre)
    most = jnp.minimum(jnp.ceil(KEPT_SHARE * count).astype(count.dtype), count - 1)
    kept = jnp.where(count < MIN_TRIMMED_COUNT, count, most)
    # The sorted numbers nearest to a centre are neighbours: shift the run of them while that brings it nearer.
    nearer = deviations > jnp.roll(deviations, -kept, axis=0)
    first = jnp.sum((place + kept < count) & nearer, axis=0)
    near = jnp.where((place >= first) & (place < first + kept), deviations, 0.0)
    top = jnp.max(near, axis=0)
    shares = near / jnp.where(top > 0, top, 1.0)  # squares of shares cannot overflow
    # An estimated centre is too near to the few numbers that it was estimated from.
    factor = jnp.maximum(1.0 + 2.0 / jnp.maximum(count, 1), TRIMMED_NORMAL) if estimated else TRIMMED_NORMAL
    deviation = factor * top * jnp.sqrt(jnp.sum(jnp.square(shares), axis=0) / jnp.maximum(kept, 1))
    varied = (deviation > 1e-12 * (1e-300 + jnp.abs(centre))) & jnp.isfinite(deviation)
    return jnp.where(varied, deviation, 0.0)


class ScaledState(WrapperState):
    """The policy's own state and the scales."""

    contexts: ColumnScale  # of feature rows: of one a round, or of their mean and the deviations from it
    costs: ColumnScale  # of one column: sizes of costs


class Scaled(Wrapper):
    """Scale contexts and costs to order one for a policy; its decisions and predictions stay in the user's units.

    Centre and spread of the contexts and the unit of cost are estimated from the first ``WINDOW`` learned rounds and
    fixed from then on: a unit that kept changing would invalidate what was learned in it. The estimates are a median
    and a trimmed deviation, and a number that is absurd compared with all earlier ones is not used, so that no single
    number can ruin them. Feature rows share the scale of each column, estimated from one row of each round. Around a
    policy that is ``level_free`` it is estimated from all rows: the spread of a column is that between rounds and
    within them, and a spread of order one is not changed, so that standardised rows stay standardised.

    Parameters
    ----------
    problem : Problem
        The problem, in the user's units.
    inner : Policy
        The policy, built for the same problem.
    """

    def refit(self, key: Key, state: ScaledState) -> ScaledState:
        solving = in_units(self.inner, self._unit(state))
        return ScaledState(solving.refit(key, state.inner), state.contexts, state.costs)

    def init(self, key: Key) -> ScaledState:
        columns = self.problem.context_shape[-1] * (2 if self._by_means else 1)
        return ScaledState(self.inner.init(key), initial_scaling(columns), initial_scaling(1))

    def sample(self, key: Key, state: ScaledState, context: Context, instance: Instance) -> Sample:
        solving = in_units(self.inner, self._unit(state))
        inner = solving.sample(key, state.inner, self.scale_context(state, context), instance)
        return dataclasses.replace(inner, cost=inner.cost * self._unit(state))

    def mean(self, state: ScaledState, context: Context) -> Cost:
        return self.inner.mean(state.inner, self.scale_context(state, context)) * self._unit(state)

    def describe(self, state: ScaledState) -> dict[str, Array]:
        return {**self.inner.describe(state.inner), "cost_unit": self._unit(state)}

    def learn(self, key: Key, state: ScaledState, decision: Decision, feedback: Feedback) -> tuple[ScaledState, Info]:
        size, used = _cost_size(feedback)
        costs = state.costs.update(size[None], centred=False, arrived=used)
        x = decision.context
        contexts = state.contexts.update(self._describe_context(state, x), centred=True, arrived=jnp.asarray(True))
        later = ScaledState(state.inner, contexts, costs)
        unit = self._unit(later)
        context, sample = self.scale_context(state, x), decision.cost_sample / unit
        shown = dataclasses.replace(decision, context=context, cost_sample=sample)
        values, absurd = _replace_absurd(feedback, unit)
        scaled = Feedback(feedback.operator, feedback.linkage, values / unit, feedback.seen)
        inner, info = in_units(self.inner, unit).learn(key, state.inner, shown, scaled)
        more = {**info.more, "absurd": absurd}
        unscaled = dataclasses.replace(info, residual=info.residual * unit, total=feedback.total(), more=more)
        return ScaledState(inner, contexts, costs), unscaled

    @property
    def _by_means(self) -> bool:
        """Whether contexts are feature rows that are described by their mean and their deviations from it."""
        return self.by_row and self.inner.level_free

    def _describe_context(self, state: ScaledState, x: Context) -> Float[Array, " columns"]:
        """Return a context as one row: itself, one of its feature rows, or their mean and root mean square spread."""
        if x.ndim == 1:
            return x
        if not self._by_means:
            rows = x.reshape(-1, x.shape[-1])  # those of an image are its pixels
            return rows[state.contexts.count % rows.shape[0]]
        mean = jnp.mean(x, axis=0)
        return jnp.concatenate([mean, jnp.sqrt(jnp.mean(jnp.square(x - mean), axis=0))])

    def _unit(self, state: ScaledState) -> Float[Array, ""]:
        """Return the factor from the policy's costs to the user's."""
        return state.costs.unit[0]

    def scale_context(self, state: ScaledState, context: Context) -> Context:
        """Return the context in spreads from its centre; zeros while there is no spread.

        Parameters
        ----------
        state : ScaledState
            The present state.
        context : array of shape ``problem.context_shape``
            The context in the user's units.
        """
        scale = state.contexts
        centre, unit = _of_rows(scale) if self._by_means else (scale.centre, scale.unit)
        z = (context - centre) / unit
        unknown = scale.count < (1 if self._by_means else 2)
        return jnp.where(unknown | (jnp.abs(z) > ABSURD), 0.0, jnp.clip(z, -MAX_SPREADS, MAX_SPREADS))


def _replace_absurd(feedback: Feedback, unit: Float[Array, ""]) -> tuple[Float[Array, " m"], Bool[Array, ""]]:
    """Return the values with one unit in place of each that is absurd, and whether one was."""
    one = unit * jnp.sqrt(feedback.operator.row_squares())
    absurd = jnp.abs(feedback.values) > ABSURD * one
    return jnp.where(absurd, jnp.sign(feedback.values) * one, feedback.values), jnp.any(absurd)


def _of_rows(scale: ColumnScale) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """Return centre and unit of feature rows."""
    centre, within = jnp.split(scale.centre, 2)
    between, _ = jnp.split(scale.spread, 2)
    spread = _or_one(jnp.hypot(between, within))
    return centre, spread / jnp.clip(spread, 1.0 / ORDER_ONE, ORDER_ONE)


def _cost_size(feedback: Feedback) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """Return the size of one cost in a feedback, ``|v| / ‖h‖`` on average, and whether any row shows it."""
    squares = feedback.operator.row_squares()
    used = feedback.used() & (squares > 0)
    sizes = jnp.where(used, jnp.abs(feedback.values) / jnp.sqrt(jnp.where(used, squares, 1.0)), 0.0)
    return jnp.sum(sizes / jnp.maximum(jnp.sum(used), 1)), jnp.any(used)


class Offset(Wrapper):
    """Learn the unknown part of the cost; decisions solve the sum of the known and the predicted part.

    Parameters
    ----------
    problem : Problem
        The problem, with the whole cost.
    inner : Policy
        The policy that learns the unknown part.
    known : array of shape ``[d]``, or a module that is a function of the context
        The known part of the cost. Policies with periodic work need an array.
    """

    known: Any

    def known_costs(self, context: Context) -> Cost:
        """Return the known part of the cost in a context.

        Parameters
        ----------
        context : array of shape ``problem.context_shape``
            The context.
        """
        return self.known(context) if callable(self.known) else self.known

    @property
    def level_free(self) -> bool:
        return self.inner.level_free

    def refit(self, key: Key, state: Any) -> Any:
        return in_units(self.inner, known=self.known).refit(key, state)

    def init(self, key: Key) -> Any:
        return self.inner.init(key)

    def sample(self, key: Key, state: Any, context: Context, instance: Instance) -> Sample:
        known = self.known_costs(context)
        sample = in_units(self.inner, known=known).sample(key, state, context, instance)
        return dataclasses.replace(sample, cost=sample.cost + known)

    def mean(self, state: Any, context: Context) -> Cost:
        return self.inner.mean(state, context) + self.known_costs(context)

    def describe(self, state: Any) -> dict[str, Array]:
        return self.inner.describe(state)

    def learn(self, key: Key, state: Any, decision: Decision, feedback: Feedback) -> tuple[Any, Info]:
        known = self.known_costs(decision.context)
        rest = eqx.tree_at(lambda d: d.cost_sample, decision, decision.cost_sample - known)
        values = feedback.values - feedback.operator.matvec(known)
        remaining = Feedback(feedback.operator, feedback.linkage, values, feedback.seen)
        state, info = in_units(self.inner, known=known).learn(key, state, rest, remaining)
        return state, eqx.tree_at(lambda i: i.total, info, info.total + known @ decision.w)


class Unscaled(PolicySpec):
    """A policy that is never scaled: it receives contexts and costs in the user's units.

    Parameters
    ----------
    policy : PolicySpec
        The policy, or its name.
    """

    policy: PolicySpec

    def __init__(self, policy: PolicySpec | str) -> None:
        super().__init__(policy=policy)  # type: ignore[call-arg]

    def unused(self, problem: Problem) -> dict[str, str]:
        return {f"policy.{name}": reason for name, reason in self.policy.unused(problem).items()}

    def build(self, problem: Problem) -> Policy:
        """Return the policy for a problem."""
        return self.policy.build(problem)


def build_policy(
    policy: str | PolicySpec | Policy, problem: Problem, scaling: bool = True, *, check_effect: bool = True
) -> Policy:
    """Return a policy for a problem.

    Parameters
    ----------
    policy : str, PolicySpec or Policy
        A name, a specification, or a policy that was built for the same problem.
    problem : Problem
        What the policy is played on.
    scaling : bool, default True
        Whether the policy meets contexts and costs of order one (see ``Scaled``); ``Unscaled(spec)`` switches it off.
    check_effect : bool, default True
        Whether settings without effect on the problem are refused; tuned presets may contain some.

    Raises
    ------
    SettingsError
        If the policy cannot be used on the problem, or a setting that differs from its default has no effect on it.

    Examples
    --------
    >>> import regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), context=3, feedback="bandit")
    >>> type(rg.policies.build_policy("greedy", problem)).__name__
    'Scaled'
    """
    if isinstance(policy, Policy):
        policy.problem.require_played_on(problem, "policy")
        scaled = not scaling or isinstance(policy, Scaled) or (isinstance(policy, Offset) and callable(policy.known))
        return policy if scaled else Scaled(problem, policy)
    spec: PolicySpec = PolicySpec.coerce(policy)
    if len(problem.context_shape) > 2 and not (spec.policy if isinstance(spec, Unscaled) else spec).any_context:
        raise SettingsError(
            f"{spec.describe_class()} expects contexts of shape (p,) or ({problem.dim}, p), got "
            f"{problem.context_shape}: describe them by features, or write a policy with rg.policies.Python"
        )
    if check_effect:
        require_effect(spec, spec.changed_names(), problem)
    built = spec.build(problem)
    return Scaled(problem, built) if scaling and not isinstance(spec, Unscaled) else built


def require_effect(spec: Spec, names: Iterable[str], problem: Any) -> None:
    """Raise SettingsError if one of the settings ``names`` has no effect on a problem."""
    idle = spec.unused(problem)
    for name in names:
        for pattern, reason in idle.items():
            if name == pattern or (pattern.endswith(".") and name.startswith(pattern)):
                owner = spec.describe_class()
                raise SettingsError(f"setting {name!r} has no effect on {owner} here: {reason}")


def owners(name: str) -> list[str]:
    """Return the policies that have a setting of this dotted name, whichever of their parts it belongs to."""
    head, _, rest = name.partition(".")
    policies = []
    for policy, spec in REGISTRY.usable().items():
        field = spec.model_fields.get(head)
        if field is not None and (not rest or isinstance(field.default, Spec)):
            policies.append(policy)
    return policies
