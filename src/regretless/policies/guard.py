"""A guard around a policy: it may cost at most so much more than an incumbent, who decides wherever that is not certain.

The policy decides only while the total cost so far is, with the stated confidence, at most ``1 + budget`` times what the
incumbent would have paid; what was overspent is paid back by rounds of the incumbent, from whose outcomes the policy learns.
The less of the budget is left, the nearer the policy keeps to what it expects to be best: it exploits before it explores.
What the incumbent would have paid stands in ``ledger.py``. Costs that are rewards count by their size: at most so much less.
Rounds whose total never becomes known are taken to be like the others.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless import draws
from regretless.errors import SettingsError
from regretless.oracles.base import Oracle
from regretless.policies.base import Answer, AskingPolicy, Policy, Question, answer, ask
from regretless.policies.ledger import Ledger, chosen, no_ledger
from regretless.types import NOT_SAMPLED, Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

INCUMBENT = -1
"""The ``member`` of a decision of the incumbent's. Those of the policy inside are one more than its own; 0 is somebody else's,
which the budget does not count."""

CALMED = -2
"""The ``member`` of a decision for which the policy inside explored less than it wanted to."""


class GuardedState(eqx.Module):
    """The policy's own state and the ledger."""

    inner: Any
    ledger: Ledger

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""
        return self.inner.version


class Guarded(AskingPolicy):
    """Plays ``inner`` within the ``budget``, and otherwise the incumbent: the solution of the costs ``incumbent``.

    With ``incumbent`` None whoever plays puts the incumbent's decision in place, where a sample's ``member`` is INCUMBENT.

    >>> import jax.numpy as jnp, regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), (3,), "bandit")
    >>> inner = rg.policies.parse("linear_thompson").build(problem)
    >>> policy = guarded(inner, incumbent_costs(problem.oracle, [1.0, 0.0, 0.0, 1.0]), budget=0.05)
    >>> state = policy.init(jax.random.key(0))
    >>> policy.decide(jax.random.key(1), state, jnp.ones(3)).w.tolist()
    [1.0, 0.0, 0.0, 1.0]
    """

    inner: Policy
    budget: Float[Array, ""]
    confidence: Float[Array, ""]
    incumbent: Cost | None

    def init(self, key: Key) -> GuardedState:
        return GuardedState(self.inner.init(key), no_ledger(self.problem.context_shape))

    def sample(self, key: Key, state: GuardedState, context: Context, instance: Instance) -> Sample:
        wanted = self.inner.sample(key, state.inner, context, instance)
        return self.judged(key, state, self._calmed(state, wanted, context))

    def _calmed(self, state: GuardedState, wanted: Sample, context: Context) -> Sample:
        """What the policy inside wants, as near to what it expects to be best as the budget demands."""
        try:
            mean = self.inner.mean(state.inner, context)
        except NotImplementedError:
            return wanted
        drawn: Any = wanted.filled()
        daring = state.ledger.daring(self.budget, self.confidence)
        calmed = daring < 1.0
        return Sample(
            cost=jnp.where(calmed, mean + daring * (drawn.cost - mean), drawn.cost),
            version=drawn.version,
            noise=jnp.where(calmed, 0.0, drawn.noise),
            log_density=jnp.where(calmed, jnp.nan, drawn.log_density),
            member=jnp.where(calmed, CALMED - 1, drawn.member),
        )

    def judged(self, key: Key, state: GuardedState, wanted: Sample) -> Sample:
        """What is to be played where the policy inside wants this: its sample, or the incumbent's decision.

        The log-density of the incumbent's decision is the logarithm of the probability with which it decides now.
        """
        drawn: Any = wanted.filled()
        chance = state.ledger.chance(self.budget, self.confidence)
        keeps = draws.uniform(jax.random.fold_in(key, 1)) >= chance
        cost = drawn.cost if self.incumbent is None else jnp.where(keeps, self.incumbent, drawn.cost)
        return Sample(
            cost=cost,
            version=jnp.where(keeps, state.version, drawn.version),
            noise=jnp.where(keeps, 0.0, drawn.noise),
            log_density=jnp.where(keeps, jnp.log1p(-chance), drawn.log_density),
            member=jnp.where(keeps, INCUMBENT, drawn.member + 1).astype(jnp.int32),
        )

    def mean(self, state: GuardedState, context: Context) -> Cost:
        return self.inner.mean(state.inner, context)

    def describe(self, state: GuardedState) -> dict[str, Array]:
        return {**self.inner.describe(state.inner), **self._told(state.ledger)}

    def ask(self, key: Key, state: GuardedState, decision: Decision, feedback: Feedback) -> Question:
        incumbent = decision.member == INCUMBENT
        other = decision.member < 0
        shown = eqx.tree_at(
            lambda d: (d.version, d.log_density, d.cost_sample, d.member),
            decision,
            (
                jnp.where(other, NOT_SAMPLED, decision.version).astype(decision.version.dtype),
                jnp.where(other, jnp.nan, decision.log_density),
                jnp.where(incumbent, 0.0, decision.cost_sample),
                jnp.maximum(decision.member - 1, 0),
            ),
        )
        question = ask(self.inner, key, state.inner, shown, feedback)
        rest = question, self._noted(state, decision, feedback, incumbent), incumbent
        return Question(question.costs, question.points, question.instance, rest)

    def answer(self, question: Question, given: Answer) -> tuple[GuardedState, Info]:
        inner_question, ledger, incumbent = question.rest
        state, info = answer(self.inner, inner_question, given)
        more = {**info.more, **self._told(ledger), "guard_incumbent": incumbent}
        return GuardedState(state, ledger), Info(info.residual, info.total, info.complete, info.finite, more)

    def _noted(self, state: GuardedState, decision: Decision, feedback: Feedback, incumbent: Bool[Array, ""]) -> Ledger:
        """The ledger after an outcome; only known totals of decisions by the policy and the incumbent count."""
        before, context, total = state.ledger, decision.context, feedback.total()
        probability = jnp.where(incumbent, jnp.exp(decision.log_density), 1.0)
        kept = 1.0 - before.chance(self.budget, self.confidence)
        after = chosen(
            incumbent, before.incumbent_paid(context, total, probability), before.policy_paid(context, total, kept)
        )
        steps = jnp.where(decision.sampled(), state.version - decision.version, 0).astype(before.lag.dtype)
        known = chosen(decision.member != 0, after.waited(steps), before.somebody_paid(context, total))
        return chosen(feedback.complete(), known, before)

    def _told(self, ledger: Ledger) -> dict[str, Array]:
        """What was spent beyond the incumbent's cost, at most what with confidence, what is allowed, and who may decide."""
        return {
            "guard_excess": ledger.excess,
            "guard_bound": ledger.bound(self.confidence),
            "guard_allowed": ledger.allowed(self.budget),
            "guard_chance": ledger.chance(self.budget, self.confidence),
            "guard_daring": ledger.daring(self.budget, self.confidence),
        }


def guarded(inner: Policy, incumbent: Cost | None, *, budget: float = 0.05, confidence: float = 0.95) -> Guarded:
    """``inner`` with a guard that lets it cost at most ``budget`` (a share) more than the incumbent, with this confidence."""
    require_numbers(budget, confidence)
    dim = inner.problem.dim
    if incumbent is not None and (np.shape(incumbent) != (dim,) or not np.all(np.isfinite(incumbent))):
        raise SettingsError(
            f"guard: expected the incumbent as {dim} finite costs, which its decision solves, got shape {np.shape(incumbent)}; "
            "incumbent_costs(oracle, w) finds them for a decision w"
        )
    costs = None if incumbent is None else jnp.asarray(incumbent, float)
    return Guarded(inner.problem, inner, jnp.asarray(budget, float), jnp.asarray(confidence, float), costs)


def require_numbers(budget: float, confidence: float) -> None:
    """Refuses what is no budget or no confidence."""
    if not (np.isfinite(budget) and budget >= 0):
        raise SettingsError(f"guard: expected a budget of at least 0, such as 0.05 for 5 % more cost, got {budget}")
    if not 0.5 <= confidence < 1:
        raise SettingsError(f"guard: expected a confidence from 0.5 to below 1, such as 0.95, got {confidence}")


def incumbent_costs(oracle: Oracle, w: Any) -> np.ndarray:
    """Costs whose solution is the decision ``w``: what a guard needs to know of fixed decisions."""
    found = np.asarray(w, float)
    if found.shape == (oracle.dim,):
        for costs in (1.0 - 2.0 * found, -found):
            if np.allclose(oracle.answer(costs[None], _no_change(oracle)).w[0], found):
                return costs
    raise SettingsError(
        f"guard: expected {oracle.dim} numbers that are the solution of some costs, got {found.tolist()}; "
        "give the guard such costs themselves"
    )


def _no_change(oracle: Oracle) -> Any:
    """A batch of one instance that changes nothing, where the oracle has such."""
    example = oracle.example_instance()
    return None if example is None else jax.tree.map(lambda leaf: np.asarray(leaf)[None], example)
