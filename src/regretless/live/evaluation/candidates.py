"""What candidates would have decided in the rounds of a history, each by what it could have known at that time."""

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless import policies
from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.live import inputs
from regretless.live.core import Core
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.oracles.base import Oracle
from regretless.oracles.topk import TopK
from regretless.policies.base import Policy

CHUNK = 64
"""Contexts that one program takes."""

MOSTLY_NEW = 0.1
"""Share of the judged rounds that a learner may have learnt from by accident."""

LOGGED = "logged"
"""What the decisions of the history itself are called."""

Candidate = str | Policy | Learner | Callable[..., Any]
"""A policy by name or as an object, which learns as the rounds go by; a learner as it is; a function from context to w."""


class Meant(NamedTuple):
    """What was meant by the policies of an evaluation: the feasible set, and what a policy is told of each round."""

    oracle: Oracle | None
    feedback: str | Measurement


def labelled(given: Any) -> dict[str, Candidate]:
    """Candidates by label: given as a mapping, several in a sequence, or one."""
    if isinstance(given, Mapping):
        found = dict(given)
    else:
        each = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        found = {_label(own): own for own in each}
        if len(found) < len(each):
            labels = [_label(own) for own in each]
            twice = next(label for label in labels if labels.count(label) > 1)
            raise SettingsError(
                f"evaluate: expected a label for each candidate, got two called {twice!r}: give them as {{label: candidate}}"
            )
    if not found:
        raise SettingsError("evaluate: expected at least one candidate, got none")
    for label, own in found.items():
        if not isinstance(label, str) or label == LOGGED:
            raise SettingsError(
                f"evaluate: expected candidates with labels other than {LOGGED!r}, got {inputs.said(label)}"
            )
        if not isinstance(own, str | Policy | Learner) and not callable(own):
            raise SettingsError(
                f"evaluate: candidate {label!r}: expected the name of a policy, a Policy, a Learner or a function of the "
                f"context, got {inputs.said(own)}"
            )
    return found


def _label(candidate: Any) -> str:
    if isinstance(candidate, str):
        return candidate
    own = getattr(candidate, "__name__", None)
    return own if isinstance(own, str) else type(candidate).__name__.lower()


def decisions(
    label: str, candidate: Candidate, history: History, blocks: Sequence[np.ndarray], meant: Meant
) -> np.ndarray:
    """``w[n, d]`` in every round but those of the first block."""
    later = np.concatenate(blocks[1:])
    try:
        if isinstance(candidate, Learner):
            _require_fits(candidate, history)
            _require_unseen(candidate, history[later])
            with candidate._core.turns.taken():
                found = by_mean(candidate._core, history[later])[1]
        elif isinstance(candidate, str | Policy):
            found = forward(_learner(candidate, history, meant), history, blocks)[1]
        else:
            found = _called(candidate, history[later], meant.oracle)
    except SettingsError as error:
        raise SettingsError(f"evaluate: candidate {label!r}: {error}") from None
    return np.concatenate([np.full((len(blocks[0]), found.shape[1]), np.nan), found])


def forward(learner: Learner, history: History, blocks: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Predicted costs and mean decisions of every block but the first, by a learner that has learnt from those before it."""
    costs, w = [], []
    for before, block in itertools.pairwise(blocks):
        learner.learn_from(history[before])
        found = by_mean(learner._core, history[block])
        costs.append(found[0])
        w.append(found[1])
    return np.concatenate(costs), np.concatenate(w)


def by_mean(core: Core, history: History) -> tuple[np.ndarray, np.ndarray]:
    """The costs that a learner expects in each round, and what it would do by them; changes nothing in it."""
    count = len(history)
    instances = [inputs.instance(core.plan.oracle, history.instance(row)) for row in range(count)]
    kernel, state = core.ready_for(instances)
    if not kernel.predicts:
        raise SettingsError("this policy has no mean prediction, so that it cannot decide greedily")
    costs, w = [], []
    for start in range(0, count, CHUNK):  # the last chunk is filled up, so that one program serves all
        rows = np.minimum(np.arange(start, start + CHUNK), count - 1)
        own = [instances[row] for row in rows]
        drafts = kernel.draft(state, (rows + 1).tolist(), history.contexts[rows], own, explore=False)[: count - start]
        solved: Any = kernel.solve(drafts)
        costs.append(np.stack([decision.cost_sample for decision in solved]))
        w.append(np.stack([decision.w for decision in solved]))
    return np.concatenate(costs), np.concatenate(w)


def expected(history: History, blocks: Sequence[np.ndarray], model: str) -> np.ndarray:
    """The direct method's costs ``[n, d]``: what a regression on the rounds before a block expects in it; NaN in the first.

    The regression is the mean of a policy around one cost for all, from totals, or from single costs where they were seen.
    """
    dim = history.decisions.shape[1]
    feedback = "bandit" if history.costs is None else "full"
    totals = history.totals if history.costs is None else None
    plain = dataclasses.replace(history, instances=None, values=None, totals=totals)
    level = [_level(plain[blocks[0]])] * dim
    shape = history.contexts.shape[1:]
    try:
        learner = Learner(TopK(dim, dim), context_shape=shape, feedback=feedback, policy=model, offset=level)
        costs = forward(learner, plain, blocks)[0]
    except SettingsError as error:
        raise SettingsError(f"evaluate: model {model!r}: {error}") from None
    return np.concatenate([np.full((len(blocks[0]), dim), np.nan), costs])


def _level(history: History) -> float:
    """The cost per unit of a decision that fits best, if it is the same for all coordinates."""
    if history.costs is not None:
        return float(np.nanmean(history.costs)) if np.any(~np.isnan(history.costs)) else 0.0
    if history.totals is None:
        return 0.0
    size, seen = history.decisions.sum(axis=1), ~np.isnan(history.totals)
    square = float(np.sum(size[seen] ** 2))
    return float(size[seen] @ history.totals[seen]) / square if square > 0 else 0.0


def _learner(policy: str | Policy, history: History, meant: Meant) -> Learner:
    """A new learner with this policy, for the rounds of this history."""
    shape = history.contexts.shape[1:]
    if isinstance(policy, Policy):
        learner = Learner(policy.oracle, context_shape=shape, feedback=policy.problem.feedback, policy=policy)
    else:
        policies.REGISTRY[policy]  # an unknown name is told before a missing oracle
        if meant.oracle is None:
            raise SettingsError("expected oracle=, the feasible set in which a policy by name decides")
        learner = Learner(meant.oracle, context_shape=shape, feedback=meant.feedback, policy=policy)
    _require_fits(learner, history)
    return learner


def _require_fits(learner: Learner, history: History) -> None:
    problem, columns = learner.problem, learner.columns
    if columns is not None and history.columns != columns:
        raise SettingsError(f"expected a history with the learner's columns: {columns.difference(history.columns)}")
    got = history.contexts.shape[1:], history.decisions.shape[1]
    if got != (problem.context_shape, problem.dim):
        raise SettingsError(
            f"expected a history with contexts of shape {problem.context_shape} and decisions of {problem.dim} numbers, got "
            f"{got[0]} and {got[1]}"
        )


def _called(function: Callable[..., Any], history: History, oracle: Oracle | None) -> np.ndarray:
    """What a function of the context, and of the instance where there are instances, returns in each round."""
    dim, with_instance = history.decisions.shape[1], history.instances is not None
    if inspect.isclass(function):
        raise SettingsError(f"expected a function of the context, got the class {function.__name__}")
    found = []
    for row in range(len(history)):
        x = history.contexts[row]
        shown = x if history.columns is None else history.columns.decode(x)
        arguments = (shown, *([history.instance(row)] if with_instance else []))
        try:
            found.append(inputs.vector("w", function(*arguments), dim))
        except SettingsError as error:
            raise SettingsError(f"row {row} of those to be judged: {error}") from None
    w = np.stack(found)
    if oracle is not None and not with_instance:
        wrong = np.flatnonzero(~oracle.contained(w))
        if len(wrong):
            raise SettingsError(
                f"expected decisions in the feasible set, got {inputs.said(w[wrong[0]].tolist())} in row {wrong[0]}"
            )
    return w


def _require_unseen(learner: Learner, history: History) -> None:
    """Refuses a learner that is to be judged by rounds from which it has learnt; told by contexts that hardly ever recur."""
    key = lambda context, w: (np.asarray(context, float).tobytes(), np.asarray(w, float).tobytes())  # noqa: E731
    contexts = {own.tobytes() for own in history.contexts}
    if 2 * len(contexts) < len(history):
        return
    learnt = {key(own.decision.context, own.decision.w) for own in learner._books.pending.learnt.values()}
    known = sum(key(*pair) in learnt for pair in zip(history.contexts, history.decisions, strict=True))
    if known > MOSTLY_NEW * len(history):
        raise SettingsError(
            f"it has learnt from {known} of the {len(history)} rounds that it would be judged by, and would look too good; "
            "give its policy, by name or as an object, which learns from earlier rounds only, or a history of later rounds"
        )
