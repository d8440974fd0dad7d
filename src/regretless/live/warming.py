"""Everything that a learner's calls will run, compiled before the first of them; nothing is decided and nothing is learnt."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from regretless.errors import SettingsError
from regretless.live.arrivals import Arrival
from regretless.live.core import Core
from regretless.live.kernel import Kernel
from regretless.live.warm_start import CHUNK
from regretless.problem import empty_of

LARGEST = 2**16
"""Contexts at once that programs are compiled for beforehand, at most."""


def warm_up(core: Core, batches: Sequence[int]) -> None:
    """Compiles the programs of decisions (one, and batches up to the largest of these), learning, explaining and health."""
    sizes = _sizes(batches)
    kernel = core.books.kernel
    state = kernel.init() if core.books.state is None else core.books.state
    with jax.enable_x64(True):
        instance = jax.tree.map(np.asarray, empty_of(kernel.problem.instance_form))
    context = np.zeros(kernel.problem.context_shape)
    arrival = _arrival(kernel)
    decision: Any = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), kernel.decision_form)
    for _ in range(2):  # a first state may differ in form from later ones
        for explore in (True, False) if kernel.predicts else (True,):
            for count in (1, *sizes):
                kernel.run_draft(state, [1] * count, np.stack([context] * count), [instance] * count, explore)
        after = kernel.compiled_learn(state, decision, arrival)
        kernel.describe(state)
        state = after
    _many(kernel, state, decision, arrival)
    _measures(kernel, decision)
    core.books.background_solver.warm_up(instance)
    if kernel.problem.has_instances or core.plan.options.on_failure == "last":
        kernel.oracle.contained(decision.w[None], jax.tree.map(lambda leaf: leaf[None], instance))


def _sizes(batches: Sequence[int]) -> list[int]:
    """The sizes that batches of up to so many contexts are filled up to."""
    for count in batches:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= LARGEST:
            raise SettingsError(f"warm_up: expected numbers of contexts from 1 to {LARGEST}, got {count!r}")
    return sorted({1 << (int(count) - 1).bit_length() for count in batches} - {1})


def _arrival(kernel: Kernel) -> Arrival:
    """Feedback of zeros, complete; what is missing is data to the same program."""
    with jax.enable_x64(True):
        form: Any = jax.eval_shape(kernel.problem.example_feedback)
    values = np.zeros(form.values.shape)
    told = kernel.problem.feedback.rows_told
    matrix = None if told is None else np.zeros((*values.shape, kernel.problem.dim))
    linkage = None if told is None else np.zeros(values.shape)
    return Arrival(values, np.ones(values.shape, bool), matrix, linkage)


def _many(kernel: Kernel, state: Any, decision: Any, arrival: Arrival) -> None:
    """The program that takes a history in."""
    if kernel.oracle.on_host and kernel.asks:
        return
    decisions, arrivals = jax.tree.map(lambda leaf: np.stack([leaf] * CHUNK), (decision, arrival))
    kernel.learn_many(state, decisions, arrivals, 1)


def _measures(kernel: Kernel, decision: Any) -> None:
    """The programs that feedback is understood with."""
    rule = kernel.problem.feedback
    if rule.separable:
        kernel.weights(decision.w, decision.aux)
    elif rule.rows_told is None and not rule.total_only:
        kernel.measure(decision.w, decision.aux)
