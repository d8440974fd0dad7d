"""Who decides while a learner is rolled out: the learner, or the incumbent that it has to prove itself against."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.live import inputs
from regretless.live.core import Core
from regretless.live.framing import Position
from regretless.live.kernel import Kernel, with_solution
from regretless.oracles.base import Oracle
from regretless.policies.guard import INCUMBENT
from regretless.types import Decision, Instance


def hold(core: Core, paused: bool, position: Position | None = None) -> None:
    """Hands every decision to the incumbent, or back; ``position``: of a record that is in the log already."""
    if core.plan.incumbent is None:
        raise SettingsError("pause: expected a learner with an incumbent that takes over; give it as incumbent=")
    if position is None and paused == core.books.paused:
        return
    if position is None:
        position = core.write("pause", {"paused": paused, "time": core.now()}, {})
    core.books.pause(paused, position)


def incumbents(core: Core, kernel: Kernel, drafts: Sequence[Decision]) -> list[Decision]:
    """The incumbent's decisions in place of drafts, with the probability that it was to decide with."""
    given: Any = core.plan.incumbent
    held = core.books.paused or core.plan.options.mode == "shadow"
    columns = core.plan.columns
    shown = [draft.context if columns is None else columns.decode(np.asarray(draft.context)) for draft in drafts]
    return [_replaced(kernel, given, draft, x, held) for draft, x in zip(drafts, shown, strict=True)]


def _replaced(kernel: Kernel, given: Any, draft: Any, shown: Any, held: bool) -> Decision:
    w = decided(kernel, given, shown, draft.instance)
    nothing = np.zeros_like(draft.cost_sample)
    aux = jax.tree.map(np.zeros_like, draft.aux)
    certain = np.zeros_like(draft.log_density)
    return with_solution(
        draft, w, aux, cost_sample=nothing, noise=nothing, member=np.asarray(INCUMBENT, draft.member.dtype),
        log_density=certain if held else draft.log_density,
    )  # fmt: skip


def decided(kernel: Kernel, given: Any, context: Any, instance: Instance) -> np.ndarray:
    """What the incumbent does in a context: the fixed decision, or what its function says."""
    problem = kernel.problem
    if not callable(given):
        own = jax.tree.map(lambda leaf: leaf[None], instance)
        if problem.has_instances and not kernel.oracle.contained(given[None], own)[0]:
            raise OracleError(
                "incumbent: the fixed decision is not feasible now; give a function of context and instance instead"
            )
        return np.asarray(given)
    try:
        found = given(context, instance) if problem.has_instances else given(context)
    except Exception as error:
        raise OracleError(f"incumbent: its function failed: {type(error).__name__}: {error}") from error
    w = inputs.vector("the incumbent's decision", found, problem.dim)
    require_support(kernel.oracle, w)
    return w


def require_support(oracle: Oracle, w: np.ndarray) -> None:
    """Refuses a decision with more coordinates other than zero than any of the feasible set has."""
    most = oracle.support
    if np.count_nonzero(w) > most:
        raise SettingsError(
            f"decision: expected at most {most} coordinates other than zero, as in every decision of this feasible set, "
            f"got {np.count_nonzero(w)}"
        )


def checked(given: Any, mode: str, oracle: Oracle) -> np.ndarray | Callable[..., Any] | None:
    """An incumbent as a learner takes it: a function, fixed decisions, or none."""
    if given is None and mode == "shadow":
        raise SettingsError("learner: expected an incumbent that decides while the learner is in the shadow, got none")
    if given is None or callable(given):
        return given
    w = inputs.vector("incumbent", given, oracle.dim)
    require_support(oracle, w)
    return w
