"""Feedback as regression rows: the form in which linear learners take it in, whatever the regime."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.problem import Problem
from regretless.types import Context, Decision, Feedback


class MeasuredRows(NamedTuple):
    """Rows ``h`` of ``H(w)`` with their values: ``[m, d]``, or ``[d]`` if row ``i`` measures coordinate ``i`` alone."""

    weights: Float[Array, "..."]
    values: Float[Array, " m"]
    used: Bool[Array, " m"]

    def predict(self, cost: Float[Array, " d"]) -> Float[Array, " m"]:
        """Return what the rows would show of a cost vector."""
        return self.weights * cost if self.weights.ndim == 1 else self.weights @ cost

    def sums(self) -> Float[Array, " m"]:
        """Return the sum of each row: how much a level in all costs changes its value."""
        return self.weights if self.weights.ndim == 1 else jnp.sum(self.weights, axis=1)


def measures_coordinates(problem: Problem) -> bool:
    """Return whether every row measures one coordinate of a problem with context vectors."""
    return problem.feedback.separable and len(problem.context_shape) == 1


def measured_rows(problem: Problem, decision: Decision, feedback: Feedback, dtype: jnp.dtype | type) -> MeasuredRows:
    """Return the rows of a feedback; where parts are seen one by one and few are chosen, rows of zeros are left out."""
    used = feedback.used()
    values = jnp.where(used, feedback.values, 0.0).astype(dtype)
    if measures_coordinates(problem):
        weights = jnp.where(used, feedback.operator.rmatvec(jnp.ones_like(feedback.values)), 0.0)
        return MeasuredRows(weights.astype(dtype), values, used)
    matrix = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values), dtype=feedback.values.dtype))
    matrix = jnp.where(used[:, None], matrix, 0.0).astype(dtype)
    support = problem.oracle.support
    if problem.feedback.separable and problem.feedback.sparse and support < len(values):
        kept = jnp.nonzero(used, size=support, fill_value=len(values))[0]
        matrix, values, used = (leaf.at[kept].get(mode="fill", fill_value=0) for leaf in (matrix, values, used))
    return MeasuredRows(matrix, values, used)


def with_constant(context: Context) -> Context:
    """Return ``(1, x)``, or ``(1, X)`` row by row."""
    return jnp.concatenate([jnp.ones((*context.shape[:-1], 1), context.dtype), context], axis=-1)
