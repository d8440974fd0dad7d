"""Learning from what came back: all of it at once, or in pieces until it is complete or declared final."""

import numpy as np

from regretless.errors import FeedbackError
from regretless.live.arrivals import TOLERANCE, Arrival, RawFeedback
from regretless.live.core import Core
from regretless.live.framing import Position
from regretless.live.records import Receipt, known_number


def learn(core: Core, id: int, told: RawFeedback, final: bool) -> Receipt:
    """Learns from the feedback on decision ``id``; with ``final`` False keeps it until the rest has come."""
    pending, now = core.books.pending, core.now()
    expired = pending.overdue(0, now)
    decision = pending.known(id, expired)
    in_pieces = not final or id in pending.pieces
    arrival = core.arrival(told, decision, in_pieces)
    if id in pending.learnt:
        pending.require_same(id, arrival.signature(), piece=not final and arrival.matrix is None)
        before = _shown(core, pending.learnt[id].residual)
        return Receipt(id, False, before is not None, before, "the same feedback was learnt before: nothing changed")
    if in_pieces:
        values = _together(id, pending.pieces.get(id), arrival)
        known = RawFeedback(values=(core.sign * values).tolist(), total=told.total)
        arrival = core.arrival(known, decision, not final)
        if not final and not arrival.seen.all():
            if id in pending.pieces and np.array_equal(values, pending.pieces[id], equal_nan=True):
                return Receipt(id, False, False, None, "the same piece was told before: nothing changed")
            position = core.write("piece", {"id": id, "expired": expired}, {"values": values})
            core.books.hold(id, values, expired, position)
            missing = int(np.sum(~arrival.seen))
            return Receipt(
                id, True, False, None, f"kept; {missing} more of its rows may come (final=True ends the wait)"
            )
    state, info = core.books.kernel.learn(core.books.state, decision, arrival)
    info = checked(f"decision {id}", info)
    total = known_number(info["total"])
    arrays = {name: array for name, array in arrival._asdict().items() if array is not None}
    position = core.write("feedback", {"id": id, "expired": expired, "total": total, "time": now}, arrays)
    core.books.settle(id, arrival, state, info, expired, position)
    message = "learnt; a cost far beyond all earlier ones was not believed" if info.get("absurd") else "learnt"
    return Receipt(id, True, bool(info["complete"]), _shown(core, info["residual"]), message)


def again(core: Core, id: int, arrival: Arrival, expired: list[int], position: Position | None) -> None:
    """Learns what a log says was learnt."""
    state, info = core.books.kernel.learn(core.books.state, core.books.pending.waiting[id], arrival)
    core.books.settle(id, arrival, state, checked(f"decision {id}", info), expired, position)


def checked(what: str, info: dict[str, float]) -> dict[str, float]:
    """Diagnostics of a step whose state is finite; a total that is not known is NaN in them."""
    if not info["finite"]:
        raise FeedbackError(
            f"{what}: learning from this feedback would make the state infinite, so it was left out; "
            "a learning rate is too large or the numbers are (scaling=True helps)"
        )
    return info if info["complete"] else {**info, "residual": np.nan, "total": np.nan}


def _together(id: int, before: np.ndarray | None, arrival: Arrival) -> np.ndarray:
    """The rows that have come so far, NaN for the others; refuses a row that was told differently before."""
    if arrival.matrix is not None:
        raise FeedbackError(
            f"decision {id}: rows that are told with the feedback cannot come in pieces; tell linear=(H, v) once, with all rows"
        )
    values = np.where(arrival.seen, arrival.values, np.nan)
    if before is None:
        return values
    both = ~np.isnan(values) & ~np.isnan(before)
    wrong = np.flatnonzero(both & ~(np.abs(values - before) <= TOLERANCE * np.maximum(1.0, np.abs(before))))
    if len(wrong):
        raise FeedbackError(
            f"decision {id}: row {wrong[0]} was told before with another value, which cannot be undone; this piece was left out"
        )
    return np.where(np.isnan(before), values, before)


def _shown(core: Core, residual: object) -> float | None:
    """A residual in the user's units."""
    known = known_number(residual)
    return None if known is None else core.sign * known
