"""Learning from decisions that somebody made before: what ``record`` and ``learn`` would do for each, in one program."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from regretless.columns import Columns
from regretless.errors import FeedbackError, RegretlessError, SettingsError
from regretless.live import inputs
from regretless.live.arrivals import Arrival, RawFeedback
from regretless.live.core import Core
from regretless.live.deciding import foreign
from regretless.live.framing import Position, Record
from regretless.live.history import History, HistoryRound
from regretless.live.kernel import Kernel
from regretless.live.learning import checked
from regretless.live.pending import Learnt
from regretless.live.records import known_number
from regretless.live.snapshot import describe
from regretless.trees import named, restored
from regretless.types import Decision

CHUNK = 64
"""Rounds that one program takes in."""

Progress = Callable[[int, int], Any]
"""Is told after each chunk how many rounds are done, and of how many."""


class Rounds(NamedTuple):
    """Decisions with what came back, each with a leading axis, and which rows of a history they are."""

    decisions: Decision
    arrivals: Arrival
    rows: list[int]


def learn_from(core: Core, history: History, progress: Progress | None) -> int:
    """Learns from every round of a history that something was seen of, all or none; returns how many."""
    problem = core.books.kernel.problem
    _require_fits(history, problem.context_shape, problem.dim, core.plan.columns)
    costs = history.as_costs()
    rows = np.flatnonzero(costs.seen()).tolist()
    if not rows:
        return 0
    instances = [_at(row, inputs.instance, core.plan.oracle, costs.instance(row)) for row in rows]
    kernel, state = core.ready_for(instances)
    first = core.books.pending.made + 1
    decisions, arrivals = [], []
    for place, (row, instance) in enumerate(zip(rows, instances, strict=True)):
        own = costs[row]
        decisions.append(_at(row, foreign, kernel, first + place, own.context, own.decision, instance))
        arrivals.append(_at(row, _arrival, core, own, decisions[-1]))
    rounds = Rounds(_stacked(decisions), _stacked(arrivals), rows)
    state, infos = _learnt(kernel, state, rounds, progress)
    expired = core.books.pending.overdue(len(rows), core.now(), learnt=True)
    position = _written(core, rounds, infos, expired)
    _take_in(core, kernel, state, rounds, infos, expired, position)
    return len(rows)


def again(core: Core, kernel: Kernel, state: Any, record: Record, position: Position) -> None:
    """Learns what a log says was learnt from a history."""
    count = (len(record.data["rows"]),)
    form = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(count + leaf.shape, leaf.dtype), kernel.decision_form)
    parts = {name: record.arrays.get(f"arrival['{name}']") for name in Arrival._fields}
    decisions = restored("decision", form, record.arrays)
    rounds = Rounds(decisions, Arrival(**parts), record.data["rows"])  # type: ignore[arg-type]
    state, infos = _learnt(kernel, state, rounds, None)
    _take_in(core, kernel, state, rounds, infos, record.data["expired"], position)


def _learnt(
    kernel: Kernel, state: Any, rounds: Rounds, progress: Progress | None
) -> tuple[Any, list[dict[str, float]]]:
    """The state after all rounds, chunk by chunk; the last chunk is filled up with rounds that do not count."""
    count = len(rounds.rows)
    infos: list[dict[str, float]] = []
    for start in range(0, count, CHUNK):
        places = np.minimum(np.arange(start, start + CHUNK), count - 1)
        decisions, arrivals = jax.tree.map(lambda leaf, places=places: leaf[places], rounds[:2])
        state, found = kernel.learn_many(state, decisions, arrivals, min(CHUNK, count - start))
        infos += [checked(f"row {rounds.rows[start + i]} of the history", info) for i, info in enumerate(found)]
        if progress is not None:
            progress(len(infos), count)
    return state, infos


def _written(core: Core, rounds: Rounds, infos: Sequence[dict[str, float]], expired: list[int]) -> Position | None:
    """Writes the whole history as one record: it is in the log or it is not."""
    if core.log is None:
        return None
    totals = [known_number(info["total"]) for info in infos]
    data: dict[str, Any] = {"rows": rounds.rows, "totals": totals, "expired": expired, "time": core.now()}
    if not core.books.form_fixed:
        data["instances"] = describe(jax.tree.map(lambda leaf: leaf[0], rounds.decisions.instance))
    arrays = {**named("decision", rounds.decisions), **named("arrival", rounds.arrivals._asdict())}
    return core.write("history", data, arrays)


def _take_in(
    core: Core, kernel: Kernel, state: Any, rounds: Rounds, infos: Any, expired: list[int], position: Position | None
) -> None:
    count = len(infos)
    learnt = []
    for i in range(max(count - core.plan.options.max_pending, 0), count):
        decision, arrival = jax.tree.map(lambda leaf, i=i: leaf[i], rounds[:2])
        learnt.append(Learnt(decision, arrival.signature(), np.asarray(infos[i]["residual"])))
    core.books.take_in(kernel, state, learnt, infos, expired, position)


def _require_fits(history: Any, shape: tuple[int, ...], dim: int, columns: Columns | None) -> None:
    if not isinstance(history, History):
        raise SettingsError(f"learn_from: expected a History, got {inputs.said(history)}")
    if columns is not None and history.columns != columns:
        raise SettingsError(
            f"learn_from: expected a history with the learner's columns (History(..., columns=learner.columns)): "
            f"{columns.difference(history.columns)}"
        )
    got = history.contexts.shape[1:], history.decisions.shape[1:]
    if got != (shape, (dim,)):
        raise SettingsError(
            f"learn_from: expected contexts of shape {shape} and decisions of {dim} numbers, got {got[0]} and {got[1][0]}"
        )


def _arrival(core: Core, own: HistoryRound, decision: Decision) -> Arrival:
    """What was seen in a round, in whichever of its forms."""
    signed: Any = lambda part: None if part is None else core.sign * part  # noqa: E731  # as the learner's user speaks
    told = RawFeedback(total=signed(own.total), costs=signed(own.costs), values=signed(own.values))
    return core.arrival(told, decision)


def _at(row: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns; its error says which row of the history it is about."""
    try:
        return function(*arguments)
    except RegretlessError as error:
        kind = FeedbackError if isinstance(error, FeedbackError) else SettingsError
        raise kind(f"row {row} of the history: {error}; nothing was learnt") from None


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
