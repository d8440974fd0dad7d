"""A bounded memory of past rounds to draw minibatches from: pure functions on a pytree of arrays.

Replay is for regressions whose target does not depend on the policy that decided, such as a cost given what was seen
of it: there it adds no bias. The latest records are kept.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless.problem import Problem
from regretless.types import Decision, Feedback


class Replay(eqx.Module):
    """At most ``capacity`` records, pytrees of one form; ``added`` counts all that were ever added.

    >>> import jax, jax.numpy as jnp
    >>> memory = empty({"x": jnp.zeros(2)}, capacity=3)
    >>> for i in range(5):
    ...     memory = memory.add({"x": jnp.full(2, float(i))})
    >>> memory.records["x"][:, 0].tolist(), int(memory.size)
    ([3.0, 4.0, 2.0], 3)
    """

    records: Any  # leaves [capacity, …]
    added: Int[Array, ""]

    @property
    def capacity(self) -> int:
        """How many records are kept at most."""
        return int(jax.tree.leaves(self.records)[0].shape[0])

    @property
    def size(self) -> Int[Array, ""]:
        """How many records there are."""
        return jnp.minimum(self.added, self.capacity)

    def add(self, record: Any, arrived: Bool[Array, ""] | bool = True) -> "Replay":
        """Return the memory with one more record in place of the oldest, if it ``arrived``."""
        place = jnp.where(arrived, self.added % self.capacity, self.capacity)  # out of range: nothing is written
        put = lambda leaf, new: leaf.at[place].set(jnp.asarray(new, leaf.dtype), mode="drop")  # noqa: E731
        return Replay(jax.tree.map(put, self.records, record), self.added + jnp.asarray(arrived, self.added.dtype))

    def at(self, places: Int[Array, "..."]) -> Any:
        """Return the records in these places."""
        return jax.tree.map(lambda leaf: leaf[places], self.records)


def empty(example: Any, capacity: int) -> Replay:
    """Return a memory without records; ``example`` has the form of one."""
    blank = lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)  # noqa: E731
    return Replay(jax.tree.map(blank, example), jnp.zeros((), jnp.int32))


class MeasuredRound(eqx.Module):
    """What a round showed of the cost, without the parts of the context that the values do not depend on.

    ``weights`` is ``w`` for a total, the diagonal of ``H`` where coordinates are seen one by one, and otherwise ``H``
    itself.
    """

    context: Float[Array, "..."]  # [p], or the feature rows [s, p] of the coordinates that were measured
    weights: Float[Array, "..."]  # [s] or [m, s]
    values: Float[Array, " m"]
    used: Bool[Array, " m"]

    def measure(self, prediction: Float[Array, " s"]) -> Float[Array, " m"]:
        """Return ``H f``: what this round would have shown if the cost were the prediction."""
        if self.weights.ndim == 2:
            return self.weights @ prediction
        products = self.weights * prediction
        return products if len(self.values) == len(products) else jnp.sum(products)[None]


def measured_round(problem: Problem, decision: Decision, feedback: Feedback) -> MeasuredRound:
    """Return the record of a round in single precision.

    With feature rows and a rule that measures chosen coordinates only, the rows of all others are left out.
    """
    rule, context, used = problem.feedback, decision.context, feedback.used()
    values = jnp.where(used, feedback.values, 0.0)
    if rule.total_only or rule.separable:
        weights = feedback.operator.rmatvec(jnp.ones_like(feedback.values))
        support, dim = problem.oracle.support, len(weights)
        if context.ndim == 2 and rule.sparse and support < dim:
            places = jnp.nonzero(decision.w, size=support, fill_value=dim)[0]
            take = lambda array: array.at[places].get(mode="fill", fill_value=0)  # noqa: E731
            context, weights = take(context), take(weights)
            values, used = (take(values), take(used)) if rule.separable else (values, used)
    else:
        weights = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values)))
    weights, values = (jnp.asarray(array, jnp.float32) for array in (weights, values))
    return MeasuredRound(jnp.asarray(context, jnp.float32), weights, values, used)
