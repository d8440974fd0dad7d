"""A learner, its health and its choices as cards of HTML for notebooks."""

from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.formatting import format_number, format_vector, html_card, html_facts, html_sentence, html_table

if TYPE_CHECKING:
    from regretless.live.core import Core
    from regretless.live.health import Health
    from regretless.live.records import Choice


def learner_card(core: "Core") -> str:
    """What a learner is made of and how many decisions it has made; reading it solves nothing."""
    plan, problem = core.plan, core.books.kernel.problem
    with core.books.lock:
        pending, learnt = core.books.pending, core.books.recorder.learnt
        counts = (pending.made, learnt, len(pending.waiting), pending.expired)
        paused = core.books.paused
    policy = plan.policy if isinstance(plan.policy, str) else type(plan.policy).__name__
    contexts = f"{' × '.join(map(str, problem.context_shape)) or 1} numbers"
    known = [
        ("decides", f"{type(plan.oracle).__name__}, {problem.dim} numbers"),
        ("contexts", contexts if plan.columns is None else f"named columns, as {contexts}"),
        ("feedback", problem.feedback.name),
        ("policy", policy),
        ("decisions", "{:,} made, {:,} learnt, {:,} waiting, {:,} expired".format(*counts)),
    ]
    if plan.options.mode != "act" or paused:
        known.append(("mode", "paused: the incumbent decides" if paused else plan.options.mode))
    return html_card("Learner", html_facts(known), note=".health() says how it is doing")


def health_card(health: "Health") -> str:
    """The verdict first, then what decisions cost beside others, then the counts."""
    head = ("beside", "cost a round", "difference", "95 % interval", "rounds")
    rows = (
        []
        if health.paid is None
        else [("paid", format_number(health.paid.mean), "", _range(health.paid), health.paid.rounds)]
    )
    others = {"the incumbent": health.incumbent, "the best fixed decision": health.best_fixed, "random": health.random}
    for name, other in others.items():
        if other is not None:
            told = f"{name} (estimated)" if other.estimated else name
            rows.append((told, format_number(other.cost), format_number(other.difference), _range(other), other.rounds))
    counts = [
        ("decisions", "{:,} made, {:,} learnt, {:,} waiting, {:,} expired".format(*health[:4])),
        (
            "feedback",
            None if health.feedback_share is None else f"{health.feedback_share:.0%} of the settled decisions",
        ),
        ("error", None if health.relative_residual is None else f"{health.relative_residual:.0%} of the totals"),
        ("drift", None if health.drift is None else f"since about decision {health.drift.since}"),
    ]
    shown = html_facts((name, value) for name, value in counts if value is not None)
    parts = [html_sentence(health.verdict), *([html_table(head, rows)] if rows else []), shown]
    return html_card("Health", *parts)


def choice_card(choice: "Choice") -> str:
    """What to do, who decided, and why."""
    chosen = np.flatnonzero(np.asarray(choice.w))
    known: list[tuple[str, Any]] = [
        ("decision", format_vector(choice.w)),
        ("not zero", f"{len(chosen)} of {np.size(choice.w)}: {format_vector(chosen)}"),
        ("context", choice.context if isinstance(choice.context, dict) else format_vector(choice.context)),
        (
            "decided by",
            choice.by + (", exploring" if choice.explored else "") + (", the solver failed" if choice.fallback else ""),
        ),
        ("drawn costs", format_vector(choice.cost_sample)),
    ]
    return html_card(f"Choice {choice.id}", html_facts(known), note=f"report its cost with learn({choice.id}, …)")


def _range(told: Any) -> str:
    return f"{format_number(told.low)} to {format_number(told.high)}"
