"""From drafts to decisions: one call of the solver for all of them, and what happens if it fails."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import OracleError
from regretless.live.kernel import Kernel, with_solution
from regretless.types import NOT_SAMPLED, Decision

Last = tuple[Any, Any]
"""The last feasible decision: ``w`` and what the oracle told beside it."""


def solved(kernel: Kernel, drafts: Sequence[Decision], lenient: bool, last: Last | None) -> list[tuple[Decision, bool]]:
    """Decisions, each with whether it is a fallback.

    If the solver fails, OracleError; if ``lenient``, it is asked again one by one, and where it fails the last decision that
    was feasible takes its place.
    """
    if not lenient or len(drafts) > 1:
        try:
            return [(decision, False) for decision in kernel.solve(drafts)]
        except OracleError:
            if not lenient:
                raise
    decisions: list[tuple[Decision, bool]] = []
    for draft in drafts:
        try:
            (decision,) = kernel.solve([draft])
            last = (decision.w, decision.aux)
            decisions.append((decision, False))
        except OracleError as error:
            decisions.append((_fallback(kernel, draft, last, error), True))
    return decisions


def _fallback(kernel: Kernel, draft: Decision, last: Last | None, error: OracleError) -> Decision:
    """The last feasible decision in place of one that the solver failed to make."""
    if last is None:
        raise error
    instances = jax.tree.map(lambda leaf: leaf[None], draft.instance)
    if not kernel.oracle.contained(last[0][None], instances)[0]:
        raise OracleError(f"{error}; the last feasible decision is not feasible now") from error
    return with_solution(draft, *last, version=np.int32(NOT_SAMPLED))
