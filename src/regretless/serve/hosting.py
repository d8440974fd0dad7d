"""Learners inside a service: each with a thread of its own and a time limit around its solver."""

import asyncio
import collections
import concurrent.futures
import contextlib
import functools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import numpy as np
from starlette.requests import Request

from regretless.errors import ConflictError, OracleError, RegretlessError, SettingsError, short_repr
from regretless.live.health import Health
from regretless.live.learner import Learner
from regretless.live.options import setting_names
from regretless.live.records import Explanation, plain_data
from regretless.oracles.base import Oracle
from regretless.oracles.host import HostOracle
from regretless.policies.guard import Budget
from regretless.problem import Problem
from regretless.serve.config import ROLES, LearnerTable, ServiceConfig
from regretless.serve.metrics import Traffic
from regretless.serve.monitor import StoreFollower
from regretless.serve.page import LearnerView
from regretless.types import Instance, Solution

RECENT = 500
"""Times and errors that are kept for the page."""

log = logging.getLogger("regretless.serve")


class OverloadedError(RegretlessError):
    """Too many requests wait for one learner, or learners are created too fast; try again later."""


class UnknownLearnerError(RegretlessError):
    """A name of an address that no learner has."""


class SolverWatch:
    """Limit the time of a solver's calls, cut them short when a learner is paused, and count them.

    A call that is out of time continues in its thread, because Python cannot stop it. Until it returns, further calls
    fail at once, so that at most one thread of a solver hangs.
    """

    def __init__(self, seconds: float):
        self.seconds, self.blocked = seconds, False
        self.solves = self.failures = 0
        self.spent: collections.deque[float] = collections.deque(maxlen=RECENT)
        self.last_failure: tuple[float, str] | None = None
        self._lock = threading.Lock()
        self._current: queue.SimpleQueue[Any] | None = None
        self._running: set[queue.SimpleQueue[Any]] = set()  # also those that no one waits for any more

    @property
    def hanging(self) -> bool:
        """Whether a call that was out of time is still running."""
        return bool(self._running)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the solver within the limit; raise OracleError if there is no answer."""
        if self.blocked:
            raise OracleError("the learner is being paused: the solver was not called")
        if self.hanging:
            raise self._failed("it is still busy with an earlier call that was out of time")
        begin, outcome = time.monotonic(), self._start(function, arguments)
        try:
            kind, value = outcome.get(timeout=self.seconds)
        except queue.Empty:
            kind, value = "late", None
        finally:
            self._current = None
        self.solves += 1
        self.spent.append(time.monotonic() - begin)
        if kind == "solved":
            return value
        if kind == "stopped":
            raise OracleError("the learner is being paused: the solver was stopped")
        if kind == "late":
            raise self._failed(f"no answer within {self.seconds:g} s; the call continues in the background")
        reason = str(value) if isinstance(value, RegretlessError) else f"{type(value).__name__}: {value}"
        raise self._failed(reason) from value

    def _start(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> "queue.SimpleQueue[Any]":
        """Begin a call in a new thread; return the queue that its result will come through."""
        outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def run() -> None:
            try:
                answer = ("solved", function(*arguments))
            except BaseException as error:  # raised again in the thread that waits
                answer = ("failed", error)
            with self._lock:
                self._running.discard(outcome)
            outcome.put(answer)

        with self._lock:
            self._current = outcome
            self._running.add(outcome)
        threading.Thread(target=run, name="regretless-solver", daemon=True).start()
        return outcome

    def _failed(self, reason: str) -> OracleError:
        self.failures += 1
        self.last_failure = (time.time(), reason)
        return OracleError(f"the solver failed: {reason}")

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the call that is running fail at once, and all others during the block."""
        self.blocked = True
        current = self._current
        if current is not None:
            current.put(("stopped", None))
        try:
            yield
        finally:
            self.blocked = False


class WatchedOracle(HostOracle):
    """A solver on the host, called under a ``SolverWatch``; otherwise the oracle that it holds."""

    base: Oracle
    watch: SolverWatch = eqx.field(static=True)

    def __init__(self, base: Oracle, watch: SolverWatch):
        self.base, self.watch, self.dim = base, watch, base.dim

    @property
    def kind(self) -> str:
        return self.base.kind

    @property
    def support(self) -> int:
        return self.base.support

    @property
    def names(self) -> Any:
        return self.base.names

    def example_instance(self) -> Instance:
        return self.base.example_instance()

    def aux_form(self) -> Any:
        return self.base.aux_form()

    def fingerprint(self) -> dict[str, Any]:
        return self.base.fingerprint()

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        return self.base._check_instance(name, given, lead)

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        solution: Solution = self.watch.call(self.base._answer, costs, instances)
        return solution

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        return self.base._contained(points, instances)


def label_items(problem: Problem, items: tuple[str, ...]) -> tuple[str, ...]:
    """Return a text for each coordinate: those given, the oracle's names, or numbers."""
    if items:
        if len(items) != problem.dim or len(set(items)) != len(items):
            raise SettingsError(f"words.items: expected {problem.dim} different names, got {len(set(items))}")
        return items
    names = problem.oracle.names
    if names is None:
        return tuple(map(str, range(problem.dim)))
    texts = [" – ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    return tuple(texts) if len(set(texts)) == len(texts) else tuple(map(str, range(problem.dim)))


class HostedView(LearnerView):
    """The page of a learner of the service.

    Parameters
    ----------
    host : HostedLearner
        The learner.
    """

    can_pause = True

    def __init__(self, host: "HostedLearner"):
        super().__init__(
            host.name, StoreFollower(host.store), host.table.title, host.table.words, host.items, host.clock
        )
        self.host = host

    @property
    def viewed(self) -> Learner:
        return self.host.learner

    def health(self) -> Health:
        return self.host.health()

    def _state(self, health: Health | None) -> dict[str, str]:
        if self.host.warming:
            return {"level": "wait", "sentence": "starting: programs are being compiled, decisions wait"}
        return super()._state(health)

    def incumbent_decision(self, context: Any) -> np.ndarray | None:
        given = None if self.host.rollout is None else self.host.rollout.incumbent
        if not callable(given) or self.viewed.problem.has_instances:
            return super().incumbent_decision(context)
        try:
            return np.asarray(given(context), float)
        except Exception:  # the learner reports what is wrong with it
            return None

    def _explain(self, id: int) -> Explanation | None:
        return None if self.host.watch.hanging else super()._explain(id)

    def engineering(self) -> dict[str, Any]:
        host, watch = self.host, self.host.watch
        figures = {"requests, half within": _quantiles(host.latencies)}
        if watch.solves:
            figures["solver, half within"] = _quantiles(watch.spent)
            figures["solver calls"] = f"{watch.solves:,}, {watch.failures:,} failed"
        if watch.last_failure is not None:
            figures["last failure"] = watch.last_failure[1]
        return figures


def _quantiles(seconds: Sequence[float]) -> str:
    """Return the median and the 99th percentile of some times."""
    if not seconds:
        return "none yet"
    half, most = np.quantile(list(seconds), (0.5, 0.99)) * 1000.0
    return f"{half:.3g} ms, 99 % within {most:.3g} ms"


class HostedLearner:
    """A learner of the service.

    Parameters
    ----------
    name : str
        Its name in addresses.
    table : LearnerTable
        Its part of the configuration.
    folder : Path
        What paths are relative to.
    max_waiting : int
        Requests that wait for it at most.
    clock : callable, default time.time
        Returns seconds.
    problem : Problem, optional
        In place of the configuration's.
    """

    def __init__(
        self,
        name: str,
        table: LearnerTable,
        folder: Path,
        max_waiting: int = 100,
        clock: Callable[[], float] = time.time,
        problem: Problem | None = None,
    ):
        self.name, self.table, self.max_waiting, self.clock = name, table, max_waiting, clock
        problem = table.build_problem(folder) if problem is None else problem
        self.watch = SolverWatch(table.time_limit)
        if problem.oracle.on_host:
            problem = eqx.tree_at(lambda whole: whole.oracle, problem, WatchedOracle(problem.oracle, self.watch))
        self.items = label_items(problem, table.words.items)
        self.coordinates = {label: place for place, label in enumerate(self.items)}
        self.rollout = table.build_rollout(folder)
        self.learner = table.open(folder, name, problem, clock)
        self.store = table.store_path(folder, name)
        self.latencies: collections.deque[float] = collections.deque(maxlen=RECENT)
        self.errors: collections.deque[tuple[float, str]] = collections.deque(maxlen=50)
        self._thread = concurrent.futures.ThreadPoolExecutor(1, f"learner-{name}")
        self._waiting, self.warming = 0, False
        self._health: tuple[int, Health] | None = None
        self._health_lock = threading.Lock()
        self._view: HostedView | None = None

    def coordinate(self, label: str) -> Any:
        """Return what the learner calls an item: its number, or the oracle's name for it."""
        names = self.learner.problem.oracle.names
        place = self.coordinates.get(label)
        if place is not None:
            return place if names is None else names[place]
        return int(label) if names is None and label.isdecimal() and len(label) < 10 else label

    @property
    def paused(self) -> bool:
        """Whether the incumbent has every decision."""
        return self.learner.state.paused

    async def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a method in the learner's own thread, so that a slow solver delays no other learner."""
        if self._waiting >= self.max_waiting:
            raise OverloadedError(f"{self.name}: {self._waiting} requests are waiting; try again later")
        self._waiting += 1
        begin = time.perf_counter()
        try:
            call = functools.partial(function, *arguments, **options)
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except RegretlessError as error:
            self.errors.append((time.time(), str(error)))
            raise
        finally:
            self._waiting -= 1
            self.latencies.append(time.perf_counter() - begin)

    def decide(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Decide; if a pause has stopped the solver meanwhile, let the incumbent decide."""
        for _ in range(20):  # between the end of the solver's call and the pause another call may start
            try:
                return method(*arguments, **options)
            except OracleError:
                if not (self.watch.blocked or self.paused):
                    raise
            time.sleep(0.005)
        return method(*arguments, **options)

    def pause(self) -> None:
        """Give every decision to the incumbent at once; a solver that is running is not waited for."""
        with self.watch.stopped() if self.table.rollout is not None else contextlib.nullcontext():
            self.learner.pause()

    @property
    def view(self) -> LearnerView:
        """Its page, which reads the store from the first time that it is looked at."""
        if self._view is None:
            self._view = HostedView(self)
        return self._view

    def health(self) -> Health:
        """Return the learner's health, computed once for each of its states."""
        with self._health_lock:
            number = self.learner.state.number
            if self._health is None or self._health[0] != number:
                self._health = (number, self.learner.health())
            return self._health[1]

    def settings(self) -> dict[str, Any]:
        """Return the settings of the policy by name, and those of the rollout."""
        state = self.learner.state
        _, policy, budget, _ = state.engine.setup
        rollout = {} if budget is None else {"budget": Budget.coerce(budget).as_data(), "mode": state.mode}
        return {**plain_data(setting_names(policy)), **rollout}

    def update(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change settings; a budget in money is a mapping."""
        budget = changes.get("budget")
        if isinstance(budget, dict):
            if not set(budget) <= {"share", "amount", "per"}:
                raise SettingsError(f"budget: expected share, or amount with or without per, got {short_repr(budget)}")
            changes = {**changes, "budget": Budget(**budget)}
        changed = self.learner.update(**changes)
        return {name: value for name, value in self.settings().items() if name in changed}

    def warm_up(self) -> None:
        """Begin to compile the programs of single decisions; calls that come meanwhile wait."""

        def compile_programs() -> None:
            try:
                self.learner.warm_up(batches=())
            except RegretlessError as error:  # the first call that needs it fails with the same
                self.errors.append((time.time(), str(error)))
            finally:
                self.warming = False

        if self.table.warm_up:
            self.warming = True
            self._thread.submit(compile_programs)

    def close(self) -> None:
        """Finish the calls that wait, and close the store."""
        self._thread.shutdown(wait=True, cancel_futures=False)
        with self.watch.stopped():
            self.learner.close()


class ButtonPanel(Protocol):
    """A part of the page with buttons, for demonstrations."""

    def number(self) -> int:
        """Return a number that changes when the panel does."""

    def describe(self) -> dict[str, Any]:
        """Return title, text, buttons and code."""

    def press(self, id: str) -> None:
        """Press a button."""


class Service:
    """The learners of a configuration, what was measured, and who may do what.

    Parameters
    ----------
    config : ServiceConfig
        What ``read_config`` returns.
    host : str, optional
        Where it listens, in place of the configuration's.

    Raises
    ------
    SettingsError
        If others can reach that address and there are no tokens, or no encryption.
    """

    def __init__(self, config: ServiceConfig, *, host: str | None = None):
        self.config, self.host = config, host or config.service.host
        config.require_safe(self.host)
        self.learners: dict[str, HostedLearner] = {}
        self.watched: dict[str, LearnerView] = {}
        self.panel: ButtonPanel | None = None
        self.traffic = Traffic()
        self.stopping = threading.Event()
        self.listening = 0  # pages that are open
        self._creations: list[float] = []
        self._create_lock = threading.Lock()

    def open(self) -> None:
        """Continue or begin all learners; none stays open if one fails."""
        tables = dict(self.config.learners)
        for table in self.config.templates.values():
            tables = dict.fromkeys(table.stored_names(self.config.folder), table) | tables
        with contextlib.ExitStack() as unless_all:
            unless_all.callback(self.close)
            for name, table in tables.items():
                try:
                    self.learners[name] = self._host(name, table)
                except RegretlessError as error:
                    raise type(error)(f"learner {name!r}: {error}") from None
                log.info("learner %s: %s", name, self.learners[name].learner.health().verdict)
            unless_all.pop_all()

    def warm_up(self) -> None:
        """Compile what first calls need."""
        for learner in self.learners.values():
            learner.warm_up()

    def _host(self, name: str, table: Any) -> HostedLearner:
        return HostedLearner(name, table, self.config.folder, self.config.service.max_waiting)

    def create(self, name: str, template: str) -> bool:
        """Make a learner from a template; return False if it is there already.

        Parameters
        ----------
        name : str
            The learner's name.
        template : str
            A template of the configuration.
        """
        table = self.config.templates.get(template)
        if table is None:
            known = ", ".join(self.config.templates) or "none"
            raise SettingsError(f"unknown template {template!r:.80}; known are {known}")
        with self._create_lock:
            if name in self.learners:
                if self.learners[name].table is not table:
                    raise ConflictError(f"learner {name!r} exists already, and was made otherwise")
                return False
            now = time.monotonic()
            self._creations = [moment for moment in self._creations if now - moment < 60.0]
            if len(self._creations) >= self.config.service.creations_per_minute:
                raise OverloadedError(f"more than {len(self._creations)} learners in a minute; try again later")
            self._creations.append(now)
            made = self._host(name, table)
            made.warm_up()
            self.learners[name] = made
            return True

    def close(self) -> None:
        """Close all stores."""
        self.stopping.set()
        for learner in self.learners.values():
            learner.close()

    def rank(self, request: Request) -> int:
        """Return the rank of the role of a request's token; without tokens everyone may do everything.

        Parameters
        ----------
        request : Request
            With its headers.
        """
        if not self.config.tokens:
            return len(ROLES) - 1
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return self.config.role_of(token.strip()) if scheme.lower() == "bearer" else -1

    def view(self, name: str) -> LearnerView:
        """Return the page of a learner, also of one that is only watched.

        Parameters
        ----------
        name : str
            As in the address.
        """
        return self.watched[name] if name in self.watched else self.find(name).view

    def names(self) -> list[str]:
        """Return the names of all learners that have a page."""
        return sorted({*self.learners, *self.watched})

    def find(self, name: str) -> HostedLearner:
        """Return a learner by its name.

        Parameters
        ----------
        name : str
            As in the address.
        """
        learner = self.learners.get(name)
        if learner is None:
            raise UnknownLearnerError(f"unknown learner {name!r:.80}")
        return learner
