"""Why a decision is what it is, by what the learner knows now."""

from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.core import Core
from regretless.live.records import Choice, Explanation, known_number
from regretless.problem import form_of


def explained(core: Core, id: int, choice: Choice | None) -> Explanation:
    """The explanation of a Choice, or of the decision called ``id``."""
    kernel, state, pending = core.books.kernel, core.books.state, core.books.pending
    made: Any = pending.known(id) if choice is None else choice
    form = (np.shape(made.context), np.shape(made.w), form_of(made.instance))
    problem = kernel.problem
    if state is None or form != (problem.context_shape, (problem.dim,), problem.instance_form):
        raise SettingsError("learner: expected a Choice of this learner, got one of another")
    if not kernel.predicts:
        raise SettingsError("learner: this policy has no mean prediction, so that it cannot explain itself")
    drafts = kernel.draft(state, [id], made.context[None], [made.instance], explore=False)
    greedy: Any = kernel.solve(drafts)[0]
    learnt = pending.learnt.get(id)
    residual = None if learnt is None else known_number(learnt.residual)
    return Explanation(
        mean=core.sign * greedy.cost_sample,
        cost_sample=core.sign * made.cost_sample if choice is None else made.cost_sample,
        greedy=greedy.w,
        differs=int(np.sum(made.w != greedy.w)),
        gap=float(greedy.cost_sample @ (made.w - greedy.w)),
        details=kernel.describe(state),
        residual=None if residual is None else core.sign * residual,
        context=made.context if core.plan.columns is None else core.plan.columns.decode(made.context),
    )
