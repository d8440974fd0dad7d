"""The contract of a feedback regime: a linear measurement whose linkage recovers the total, and is what it declares."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import oracles
from regretless.errors import SettingsError
from regretless.feedback import Measurement, check_linkage
from regretless.oracles.base import Oracle
from regretless.testing.words import form_difference, require
from regretless.types import Operator, Solution

DIM, DECISIONS = 6, 8


def check_feedback(rule: Any, oracle: Oracle | None = None) -> None:
    """Checks a Measurement (or a class that makes one without arguments) on decisions of ``oracle`` (default: 2 of 6 items)."""
    rule = rule() if isinstance(rule, type) else rule
    who = f"feedback {getattr(rule, 'name', rule)!r}"
    require(isinstance(rule, Measurement), f"{who}: expected a Measurement, got {type(rule).__name__}; subclass it")
    require(isinstance(rule.name, str) and rule.name, f"{who}: expected a name in letters, got {rule.name!r}")
    with jax.enable_x64(True):
        feasible = oracle or oracles.top_k(DIM, 2)
        costs = np.random.default_rng(0).normal(size=(DECISIONS, feasible.dim))
        solutions = jax.tree.map(jnp.asarray, feasible.answer(costs))
        try:
            check_linkage(rule, solutions)
        except (ValueError, SettingsError) as error:
            raise AssertionError(str(error)) from None
        measured = [_measured(rule, solutions, row) for row in range(DECISIONS)]
        for row, (operator, linkage) in enumerate(measured):
            _check_form(who, rule, solutions, row, measured[0])
            _check_operator(who, operator, linkage, jnp.asarray(costs[row]))
            _check_declared(who, rule, operator, solutions.w[row], jnp.asarray(costs[row]))


def _measured(rule: Measurement, solutions: Solution, row: int) -> tuple[Operator, Any]:
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    return rule.measure(w, aux)


def _check_form(who: str, rule: Measurement, solutions: Solution, row: int, first: Any) -> None:
    """Shapes must not depend on the decision, also inside a program."""
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    try:
        compiled = jax.jit(lambda w, aux: rule.measure(w, aux))(w, aux)
    except jax.errors.JAXTypeError as error:
        raise AssertionError(
            f"{who}: measure cannot be compiled, because it looks at the numbers in w; use jnp.where in place of if ({error})"
        ) from None
    said = form_difference(compiled, first)
    require(
        not said, f"{who}: H(w) and e(w) must have the same form for every decision, but {said}; pad with rows of zeros"
    )


def dense(operator: Operator, rows: int) -> np.ndarray:
    """``H`` as a matrix, row by row."""
    return np.stack([np.asarray(operator.rmatvec(row)) for row in jnp.eye(rows)])


def _check_operator(who: str, operator: Operator, linkage: Any, cost: Any) -> None:
    matrix = dense(operator, len(linkage))
    require(
        np.allclose(operator.matvec(cost), matrix @ np.asarray(cost), atol=1e-9),
        f"{who}: matvec and rmatvec are not each other's transpose; matvec must be H c, rmatvec Hᵀ u",
    )
    require(
        np.array_equal(np.asarray(operator.informative()), np.any(matrix != 0, axis=1)),
        f"{who}: informative must mark the rows of H that are not zero",
    )
    require(
        np.allclose(operator.row_squares(), np.sum(matrix**2, axis=1), atol=1e-9),
        f"{who}: row_squares must be ‖h‖² of each row of H",
    )
    guess = jnp.full(cost.shape, 7.5)
    placed = np.asarray(operator.overwrite(guess, operator.matvec(cost), operator.informative()))
    require(
        np.all(np.isclose(placed, cost) | (placed == 7.5)),
        f"{who}: overwrite must put the cost itself in the coordinates that were seen, and leave the others alone",
    )
    hidden = operator.overwrite(guess, operator.matvec(cost), jnp.zeros(len(linkage), bool))
    require(
        np.array_equal(hidden, guess),
        f"{who}: overwrite changes a prediction although no row was seen; use its argument seen",
    )


def _check_declared(who: str, rule: Measurement, operator: Operator, w: Any, cost: Any) -> None:
    rows = len(operator.row_squares())
    matrix = dense(operator, rows)
    if rule.sparse:
        require(
            not np.any(matrix[:, np.asarray(w) == 0]),
            f"{who}: says that it is sparse, but measures a coordinate that was not chosen; leave sparse False",
        )
    if rule.separable:
        square = matrix.shape[0] == matrix.shape[1]
        require(
            square and not np.any(matrix - np.diag(np.diag(matrix))),
            f"{who}: says that it is separable, but row i of H does not measure coordinate i alone; leave separable False",
        )
    if rule.total_only:
        require(
            rows == 1 and np.allclose(matrix[0], w),
            f"{who}: says that only the total is seen, but H is not the one row w; leave total_only False",
        )
    if rule.reveals_all:
        seen = operator.overwrite(jnp.full(len(w), 7.5), operator.matvec(cost), operator.informative())
        require(
            np.allclose(seen, cost),
            f"{who}: says that the whole cost is seen, but overwrite does not give it; leave reveals_all False",
        )
    if rule.max_rows is not None:
        require(
            rows == rule.max_rows + 1,
            f"{who}: declares at most {rule.max_rows} rows, but has {rows} instead of one more, for the total",
        )
