"""A bounded memory of past rounds to draw minibatches from: pure functions on a pytree of arrays.

Replay is for regressions whose target does not depend on who decided, such as a cost given what was seen of it: there it adds
no bias. A ``ring`` keeps the latest records, a ``reservoir`` a uniform sample of all there ever were (Vitter, 1985).
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless.feedback import Measurement
from regretless.types import Context, Cost, Decision, Feedback, Key

Kind = Literal["ring", "reservoir"]


class Replay(eqx.Module):
    """At most ``capacity`` records, each a pytree like the one it was made with; ``added`` counts all that ever came.

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
        """At most how many records are kept."""
        return int(jax.tree.leaves(self.records)[0].shape[0])

    @property
    def size(self) -> Int[Array, ""]:
        """How many records there are."""
        return jnp.minimum(self.added, self.capacity)

    def add(self, record: Any, arrived: Bool[Array, ""] | bool = True, key: Key | None = None) -> "Replay":
        """With one record more, if it ``arrived``: a ring's oldest gives way, with a ``key`` a reservoir's random one."""
        place = self.added % self.capacity
        if key is not None:
            drawn = jax.random.randint(key, (), 0, jnp.maximum(self.added + 1, 1))
            place = jnp.where(self.added < self.capacity, self.added, drawn)
        place = jnp.where(arrived, place, self.capacity)  # a place that there is not: nothing is written
        put = lambda leaf, new: leaf.at[place].set(jnp.asarray(new, leaf.dtype), mode="drop")  # noqa: E731
        return Replay(jax.tree.map(put, self.records, record), self.added + jnp.asarray(arrived, self.added.dtype))

    def draw(self, key: Key, shape: tuple[int, ...]) -> Any:
        """Records drawn uniformly with replacement, of this leading shape; the first place while there are none."""
        places = jnp.floor(jax.random.uniform(key, shape, jnp.float32) * self.size).astype(jnp.int32)
        return self.at(jnp.clip(places, 0, jnp.maximum(self.size - 1, 0)))

    def at(self, places: Int[Array, "..."]) -> Any:
        """The records in these places."""
        return jax.tree.map(lambda leaf: leaf[places], self.records)


def empty(example: Any, capacity: int) -> Replay:
    """No records yet; ``example`` shows the form of one."""
    blank = lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)  # noqa: E731
    return Replay(jax.tree.map(blank, example), jnp.zeros((), jnp.int32))


class Seen(eqx.Module):
    """What a round showed of the cost, without the parts of the context that had no say in it.

    ``weights`` is ``w`` for a total, the diagonal of ``H`` where coordinates are seen one by one, and else ``H`` itself.
    """

    context: Float[Array, "..."]  # [p], or the feature rows [s, p] of the coordinates that were measured
    weights: Float[Array, "..."]  # [s] or [m, s]
    values: Float[Array, " m"]
    used: Bool[Array, " m"]

    def measured(self, prediction: Float[Array, " s"]) -> Float[Array, " m"]:
        """``H f``: what this round would have shown had the cost been the prediction."""
        if self.weights.ndim == 2:
            return self.weights @ prediction
        products = self.weights * prediction
        return products if len(self.values) == len(products) else jnp.sum(products)[None]

    def row_norms(self) -> Float[Array, " m"]:
        """``‖h‖`` of each row."""
        if self.weights.ndim == 2:
            return jnp.sqrt(jnp.sum(jnp.square(self.weights), axis=1))
        sizes = jnp.abs(self.weights)
        return sizes if len(self.values) == len(sizes) else jnp.sqrt(jnp.sum(jnp.square(sizes)))[None]


def seen_of(rule: Measurement, support: int, decision: Decision, feedback: Feedback) -> Seen:
    """The record of a round in single precision; ``support`` is a promise: no more coordinates are chosen.

    With feature rows and a ``rule`` that measures chosen coordinates only, the rows of all others are left out.
    """
    used = feedback.used()
    values = jnp.where(used, feedback.values, 0.0)
    if rule.total_only or rule.separable:
        weights = feedback.operator.rmatvec(jnp.ones_like(feedback.values))
        context, weights, values, used = _chosen(rule, support, decision, weights, values, used)
    else:
        context, weights = decision.context, jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values)))
    weights, values = (jnp.asarray(each, jnp.float32) for each in (weights, values))
    return Seen(jnp.asarray(context, jnp.float32), weights, values, used)


def _chosen(
    rule: Measurement, support: int, decision: Decision, weights: Cost, values: Array, used: Array
) -> tuple[Context, Cost, Array, Array]:
    """The feature rows of the chosen coordinates and what belongs to them; a context vector stays as it is."""
    context, dim = decision.context, len(weights)
    if context.ndim == 1 or not rule.sparse or support >= dim:
        return context, weights, values, used
    places = jnp.nonzero(decision.w, size=support, fill_value=dim)[0]
    take = lambda array: array.at[places].get(mode="fill", fill_value=0)  # noqa: E731
    if rule.separable:
        values, used = take(values), take(used)
    return take(context), take(weights), values, used
