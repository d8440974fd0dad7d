"""What was measured, row by row, in single precision: the form in which learners take feedback in, whatever the regime."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.problem import Problem
from regretless.types import Decision, Feedback


class Measured(NamedTuple):
    """Rows ``h`` of ``H(w)`` with their values: ``[m, d]``, or ``[d]`` where row ``i`` measures coordinate ``i`` alone."""

    weights: Float[Array, "..."]
    values: Float[Array, " m"]
    used: Bool[Array, " m"]


def one_by_one(problem: Problem) -> bool:
    """Whether every row measures one coordinate of a problem with context vectors."""
    return problem.feedback.separable and len(problem.context_shape) == 1


def measured(problem: Problem, decision: Decision, feedback: Feedback) -> Measured:
    """The feedback's rows; where parts are seen one by one and few are chosen, rows of zeros are left out."""
    used = feedback.used()
    values = jnp.where(used, feedback.values, 0.0).astype(jnp.float32)
    if one_by_one(problem):
        weights = jnp.where(used, feedback.operator.rmatvec(jnp.ones_like(feedback.values)), 0.0)
        return Measured(weights.astype(jnp.float32), values, used)
    matrix = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values), dtype=feedback.values.dtype))
    matrix = jnp.where(used[:, None], matrix, 0.0).astype(jnp.float32)
    support = problem.oracle.support
    if problem.feedback.separable and problem.feedback.sparse and support < len(values):
        kept = jnp.nonzero(used, size=support, fill_value=len(values))[0]
        fill = lambda leaf: leaf.at[kept].get(mode="fill", fill_value=0)  # noqa: E731
        return Measured(fill(matrix), fill(values), fill(used))
    return Measured(matrix, values, used)
