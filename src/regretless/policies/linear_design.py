"""Costs that are linear in the context: the regression rows of a feedback, and predictions from coefficients.

For a context vector ``c = B z`` with a row of coefficients for each cost coordinate and ``z = (1, x)``; for feature
rows ``c = Z β`` with shared coefficients. A measurement row ``h`` of ``H(w)`` is the regression row ``h ⊗ z``, or ``h
Z``. Coefficients are in blocks that are learned together: one, or a block for each coordinate where every row measures
one coordinate.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.policies.base import measured_rows, measures_coordinates, with_constant
from regretless.problem import Problem
from regretless.types import Context, Cost, Decision, Feedback

MAX_COEFFICIENTS = 5000
"""Largest number of coefficients in one covariance factor (200 MB in double precision)."""


class RegressionRows(NamedTuple):
    """Regression rows ``φ`` with their values, block by block; unused rows are zero."""

    features: Float[Array, "b m n"]
    values: Float[Array, "b m"]
    used: Bool[Array, "b m"]


def block_sizes(problem: Problem) -> tuple[int, int]:
    """Return the number of blocks, and of coefficients in each."""
    features = 1 + problem.context_shape[-1]
    if len(problem.context_shape) == 2:
        return 1, features
    return (problem.dim, features) if measures_coordinates(problem) else (1, problem.dim * features)


def require_few_coefficients(problem: Problem, name: str) -> None:
    """Raise SettingsError if more coefficients are learned together than a covariance factor may have."""
    size = block_sizes(problem)[1]
    if size > MAX_COEFFICIENTS:
        raise SettingsError(
            f"{name}: {size} coefficients are learned together, expected at most {MAX_COEFFICIENTS} (a "
            f"factor of {size}² numbers); describe each coordinate by a row of features, see costs one by one "
            "(semi_bandit), or use dfhpg"
        )


def regression_rows(problem: Problem, decision: Decision, feedback: Feedback) -> RegressionRows:
    """Return what a feedback shows of the coefficients."""
    weights, values, used = measured_rows(problem, decision, feedback, jnp.result_type(float))
    features = with_constant(decision.context)
    if measures_coordinates(problem):
        return RegressionRows(weights[:, None, None] * features, values[:, None], used[:, None])
    if len(problem.context_shape) == 2:
        return RegressionRows((weights @ features)[None], values[None], used[None])
    joint = (weights[:, :, None] * features).reshape(1, len(values), -1)
    return RegressionRows(joint, values[None], used[None])


def predict_costs(problem: Problem, coefficients: Float[Array, "b n"], context: Context) -> Cost:
    """Return the costs that coefficients predict in a context."""
    features = with_constant(context)
    if len(problem.context_shape) == 2:
        return features @ coefficients.reshape(-1)
    return coefficients.reshape(problem.dim, -1) @ features
