"""From contexts to decisions: one call of the solver for all of them, and what happens if it fails; or a person's own."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.live import rollout
from regretless.live.core import Core
from regretless.live.kernel import Kernel, with_solution
from regretless.live.records import Choice
from regretless.live.snapshot import describe, stacked
from regretless.policies.guard import INCUMBENT
from regretless.types import NOT_SAMPLED, Decision, Instance

Last = tuple[Any, Any]
"""The last feasible decision: ``w`` and what the oracle told beside it."""


def decide(core: Core, contexts: np.ndarray, instances: Sequence[Instance], explore: bool) -> list[Choice]:
    """Decides in each context, all or none."""
    kernel, state = core.ready_for(instances)
    if not explore and not kernel.predicts:
        raise SettingsError("learner: this policy has no mean prediction, so that it cannot decide greedily")
    first = core.books.pending.made + 1
    ids = range(first, first + len(contexts))
    if core.books.paused:
        return _paused(core, kernel, state, ids, contexts, instances)
    drafts = kernel.draft(state, ids, contexts, instances, explore)
    if core.plan.incumbent is not None:
        return _with_incumbent(core, kernel, state, drafts, explore)
    decisions = solved(kernel, drafts, core.plan.options.on_failure == "last", core.books.last)
    _keep(core, "decide", kernel, state, decisions)
    return [Choice.of(decision, explore, fallback, core.sign) for decision, fallback in decisions]


def _paused(
    core: Core, kernel: Kernel, state: Any, ids: range, contexts: np.ndarray, instances: Sequence[Instance]
) -> list[Choice]:
    """The incumbent's decisions, without a program or a solver that could fail."""
    empty = np.zeros(kernel.problem.dim)
    drafts = [foreign(kernel, id, x, empty, own) for id, x, own in zip(ids, contexts, instances, strict=True)]
    decisions = rollout.incumbents(core, kernel, drafts)
    _keep(core, "decide", kernel, state, [(decision, True) for decision in decisions])
    return [Choice.of(decision, False, False, core.sign, "incumbent") for decision in decisions]


def _with_incumbent(core: Core, kernel: Kernel, state: Any, drafts: Sequence[Decision], explore: bool) -> list[Choice]:
    """Decisions of the learner where its guard lets it, of the incumbent elsewhere; in the shadow, of the incumbent."""
    shadow = core.plan.options.mode == "shadow"
    theirs = {place: draft for place, draft in enumerate(drafts) if shadow or int(draft.member) == INCUMBENT}
    mine = [place for place in range(len(drafts)) if place not in theirs]
    wanted = range(len(drafts)) if shadow or not kernel.oracle.on_host else mine
    found: dict[int, tuple[Any, bool]] = {}
    try:
        asked = [drafts[place] for place in wanted]
        lenient = core.plan.options.on_failure == "last"
        found = dict(zip(wanted, solved(kernel, asked, lenient, core.books.last), strict=True)) if asked else {}
    except OracleError:
        if mine:
            raise
    kept = rollout.incumbents(core, kernel, list(theirs.values()))
    decisions = {place: found[place] for place in mine} | {
        place: (decision, True) for place, decision in zip(theirs, kept, strict=True)
    }
    made = [decisions[place] for place in range(len(drafts))]
    _keep(core, "decide", kernel, state, made)
    return [
        Choice.of(decision, False, False, core.sign, "incumbent", found[place][0].w if place in found else None)
        if place in theirs
        else Choice.of(decision, explore, fallback, core.sign)
        for place, (decision, fallback) in enumerate(made)
    ]


def record(core: Core, context: np.ndarray, w: np.ndarray, instance: Instance) -> Choice:
    """Keeps a decision that somebody else made."""
    kernel, state = core.ready_for([instance])
    decision = foreign(kernel, core.books.pending.made + 1, context, w, instance)
    _keep(core, "override", kernel, state, [(decision, True)])
    return Choice.of(decision, False, False, core.sign, "person")


def foreign(kernel: Kernel, id: int, context: Any, w: Any, instance: Instance) -> Decision:
    """``Problem.decision``, a decision that no policy drew, without a program."""
    rollout.require_support(kernel.oracle, w)
    form: Any = kernel.decision_form
    empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)
    own = {
        "id": np.asarray(id, form.id.dtype), "context": np.array(context, form.context.dtype), "instance": instance,
        "w": np.array(w, form.w.dtype), "log_density": np.asarray(np.nan, form.log_density.dtype),
        "version": np.asarray(NOT_SAMPLED, form.version.dtype),
    }  # fmt: skip
    return Decision(**{**vars(empty), **own})


def _keep(core: Core, kind: str, kernel: Kernel, state: Any, decisions: Sequence[tuple[Decision, bool]]) -> None:
    """Writes decisions into the log, then into the books."""
    now = core.now()
    expired = core.books.pending.overdue(len(decisions), now)
    position = None
    if core.log is not None:
        data = {"time": now, "expired": expired, "foreign": [own for _, own in decisions]}
        if not core.books.form_fixed:
            data["instances"] = describe(decisions[0][0].instance)
        position = core.write(kind, data, stacked("decision", [decision for decision, _ in decisions]))
    core.books.keep(kernel, state, decisions, now, expired, position)


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
