"""Carries a plan out: every cell whose result is missing or damaged is computed once, whoever else works on the same store."""

import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from regretless.errors import WriteError
from regretless.simulation.programs import Progress
from regretless.studies.cell_files import CellResult
from regretless.studies.cells import AnyCell
from regretless.studies.plan import Plan, Planned
from regretless.studies.store import Failure, Store

PATIENCE = 0.5
"""Seconds between looks at cells that another process computes."""


class Listener(Protocol):
    """Hears how a campaign goes."""

    def begin(self, planned: Sequence[Planned], finished: int) -> None:
        """These cells are to be computed; so many others are finished already."""

    def started(self, item: Planned) -> None:
        """A cell is being computed."""

    def progress(self, item: Planned, what: str, done: int, total: int) -> None:
        """How far a cell is."""

    def finished(self, item: Planned) -> None:
        """A cell's result is stored."""

    def failed(self, item: Planned, error: str) -> None:
        """A cell could not be computed."""


class Silent:
    """A listener that tells nobody."""

    def begin(self, planned: Sequence[Planned], finished: int) -> None:
        """Nothing."""

    def started(self, item: Planned) -> None:
        """Nothing."""

    def progress(self, item: Planned, what: str, done: int, total: int) -> None:
        """Nothing."""

    def finished(self, item: Planned) -> None:
        """Nothing."""

    def failed(self, item: Planned, error: str) -> None:
        """Nothing."""


class _Counting:
    """Passes everything on, and remembers which cells this campaign has computed itself: started, then finished."""

    def __init__(self, listener: Listener):
        self.begin, self.progress = listener.begin, listener.progress
        self.listener = listener
        self.begun: set[str] = set()
        self.computed: set[str] = set()

    def started(self, item: Planned) -> None:
        self.begun.add(item.key)
        self.listener.started(item)

    def finished(self, item: Planned) -> None:
        if item.key in self.begun:
            self.computed.add(item.key)
        self.listener.finished(item)

    def failed(self, item: Planned, error: str) -> None:
        self.listener.failed(item, error)


class Engine(Protocol):
    """Computes cells and leaves their results, or why there are none, in the store."""

    def run(self, planned: Sequence[Planned], store: Store, listener: Listener) -> None:
        """Returns when every cell is stored or has failed."""


class Summary(NamedTuple):
    """How a campaign ended."""

    cells: int
    computed: int  # by this campaign: neither those that failed nor those that other processes computed
    failed: dict[str, str]  # error by the cell's name
    seconds: float


def carry_out(plan: Plan, store: Store, engine: Engine, listener: Listener) -> Summary:
    """Computes what is missing, then the second range of seeds where a published cell asks for it."""
    began = time.perf_counter()
    store.create()
    plan.write(store)
    items = plan.planned()
    counting = _Counting(listener)
    _pass(items, store, engine, counting)
    follow_ups = plan.follow_ups(store)
    if follow_ups:
        _pass(follow_ups, store, engine, counting)
    failed = {}
    for item in [*items, *follow_ups]:
        failure = store.failure(item.key)
        if failure is not None and not store.has(item.key):
            failed[item.cell.name] = failure.error
    return Summary(len(items) + len(follow_ups), len(counting.computed), failed, time.perf_counter() - began)


def _pass(items: Sequence[Planned], store: Store, engine: Engine, listener: Listener) -> None:
    missing = [item for item in items if not store.sound(item.key)]
    listener.begin(missing, len(items) - len(missing))
    if missing:
        engine.run(missing, store, listener)


Player = Callable[[AnyCell, Progress], CellResult]


def work(items: Sequence[Planned], store: Store, listener: Listener, player: Player) -> None:
    """Computes what nobody else does, waits for what others compute, and takes over what they leave undone.

    A cell that failed before is tried once more; one that fails in the meantime, here or in another process, is not.
    """
    earlier = {item.key: store.failure(item.key) for item in items}
    waiting = list(items)
    while waiting:
        left = [item for item in waiting if not _settle(item, store, listener, player, earlier[item.key])]
        if len(left) == len(waiting):
            time.sleep(PATIENCE)
        waiting = left


def _settle(item: Planned, store: Store, listener: Listener, player: Player, earlier: Failure | None) -> bool:
    """Computes a cell if it is free; True if it is stored or has failed now."""
    with store.claim(item.key) as claim:
        if not claim.acquire():
            return False
        if store.sound(item.key):  # by another process, in the meantime
            listener.finished(item)
            return True
        failure = store.failure(item.key)
        if failure is not None and failure != earlier:
            listener.failed(item, failure.error)
            return True
        listener.started(item)
        try:
            result = player(item.cell, lambda what, done, total: listener.progress(item, what, done, total))
            store.put(item.key, result)
        except WriteError:  # every other cell would fail as well
            raise
        except Exception as error:
            store.fail(item.key, item.cell.name, "".join(traceback.format_exception(error)))
            listener.failed(item, f"{type(error).__name__}: {error}")
        else:
            listener.finished(item)
    return True


class InProcess:
    """Computes cells one after the other in this process; replications are vectorised.

    Without a ``player`` the programs of the next cells are compiled meanwhile, where there are cores for that.
    """

    def __init__(self, player: Player | None = None):
        self.player = player

    def run(self, planned: Sequence[Planned], store: Store, listener: Listener) -> None:
        if self.player is not None:
            work(planned, store, listener, self.player)
            return
        from regretless.studies.engines.ahead import Ahead

        ahead = Ahead([item.cell for item in planned])
        try:
            work(planned, store, listener, ahead)
        finally:
            ahead.close()
