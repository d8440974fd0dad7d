"""Pages without a service: of a store that another process writes, of a learner of this process, of a simulation."""

import collections
import contextlib
import functools
import logging
import sys
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import uvicorn
from scipy.optimize import linear_sum_assignment

import regretless as rg
from regretless.errors import RegretlessError, SettingsError, StoreError
from regretless.live.learner import Learner
from regretless.problem import Problem
from regretless.serve.app import listen, make_app, run_app
from regretless.serve.config import ServiceConfig, ServiceTable, WordsTable, parse_config
from regretless.serve.hosting import HostedLearner, Service
from regretless.serve.monitor import StoreFollower
from regretless.serve.page import LearnerView, LiveView, ReplayedView

NAME = "learner"
"""The name of a learner that is watched alone, in addresses."""


def watch(
    store: str | Path,
    problem: Problem | None = None,
    *,
    port: int = 8000,
    words: WordsTable | None = None,
    open_page: bool = False,
) -> None:
    """Show the page of a store, read-only, while another process writes it; until the process is asked to stop.

    Parameters
    ----------
    store : path
        The store of a learner.
    problem : Problem, optional
        The learner's problem: with it the page has predictions, reasons, alarms and the figures of the policy.
    port : int, default 8000
        Where to listen on this machine; 0 takes a free port.
    words : WordsTable, optional
        What the page calls things.
    open_page : bool, default False
        Whether to open the page in a browser.

    Raises
    ------
    StoreError
        If the file is no store.
    """
    path = Path(store)
    if not path.is_file():
        raise StoreError(f"cannot open {path}: expected a learner's store")
    replay = None if problem is None else functools.partial(Learner.open, path, problem, read_only=True)
    if replay is not None:
        replay()  # says at once what does not fit
    view = ReplayedView(NAME, StoreFollower(path), path.stem, words, open_learner=replay)
    show({NAME: view}, port, open_page)


def show(views: dict[str, LearnerView], port: int, open_page: bool) -> None:
    """Serve pages until the process is asked to stop."""
    service = Service(ServiceConfig(service=ServiceTable(title="regretless watch")))
    service.watched.update(views)
    listener = listen(service.host, port)
    announce(listener.getsockname()[1], open_page)
    run_app(make_app(service, manage_learners=False), listener, service, service.config)


def announce(port: int, open_page: bool) -> None:
    """Say where the page is, and open it if that is wanted."""
    address = f"http://127.0.0.1:{port}"
    print(f"ready: {address}", file=sys.stderr, flush=True)
    if open_page:
        threading.Timer(0.5, webbrowser.open, [address]).start()


class PageServer:
    """A page that is served by a thread of this process; ``close`` ends it.

    Parameters
    ----------
    service : Service
        With what is watched.
    port : int
        Where to listen; 0 takes a free port.
    manage_learners : bool, default False
        Whether there are routes to use the learners, too.
    """

    def __init__(self, service: Service, port: int, *, manage_learners: bool = False):
        listener = listen(service.host, port)
        self.url = f"http://{service.host}:{listener.getsockname()[1]}"
        self._service = service
        app = make_app(service, manage_learners=manage_learners)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="regretless-page", daemon=True
        )
        self._thread.start()

    def __repr__(self) -> str:
        return f"PageServer({self.url})"

    def close(self) -> None:
        """Stop serving."""
        self._service.stopping.set()
        self._server.should_exit = True
        self._thread.join(10.0)

    def __enter__(self) -> "PageServer":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def serve_learner(learner: Learner, port: int = 8000) -> PageServer:
    """Show the page of a learner of this process, read-only, in a thread.

    Parameters
    ----------
    learner : Learner
        With a store.
    port : int, default 8000
        Where to listen on this machine; 0 takes a free port.
    """
    path = learner.store_path
    if path is None:
        raise SettingsError("serve: expected a learner with a store, which the page reads; give store='plant.db'")
    service = Service(ServiceConfig())
    service.watched[NAME] = LiveView(NAME, StoreFollower(path), path.stem, learner=learner)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    return PageServer(service, port)


CREWS, DAY = 4, 86_400.0
LOST = 0.03
"""Share of the costs that are forgotten even on good days."""

CODE = """import regretless as rg

history = rg.History.from_csv(
    "old.csv",
    contexts=["temperature", "orders"],   # what was known
    decisions=["crew0_job0", "crew0_job1", ...],  # what was done
    total="cost",                         # what it cost
)
learner = rg.Learner(
    rg.oracles.assignment(4),             # what can be done
    context=2,
    rollout=rg.Rollout(foreman, budget=0.05),
    store="live.db",
)
learner.learn_from(history)
page = learner.serve(8000)                # this page, for your plant
choice = learner.decide(today, key="2026-05-04")
learner.learn("2026-05-04", total=181.0)"""

BUTTONS = {
    "prices": ("Prices jump", "Prices back to normal"),
    "feedback": ("Lose the feedback", "Feedback arrives again"),
    "solver": ("Break the solver", "Repair the solver"),
}


class Workshop:
    """What a day is like and what plans cost; four crews get one of four jobs each."""

    def __init__(self, seed: int = 2026):
        rng = np.random.default_rng(seed)
        self.base = rng.uniform(20.0, 60.0, CREWS**2)
        self.slope = rng.normal(size=(CREWS**2, 2)) * 8.0
        self.jump = rng.permutation(CREWS**2)
        self.rng = np.random.default_rng(seed + 1)
        self.pressed: dict[str, bool] = dict.fromkeys(BUTTONS, False)

    def morning(self) -> dict[str, float]:
        """Return what is known of a day."""
        temperature, orders = self.rng.normal(size=2)
        return {"temperature": round(12.0 + 8.0 * temperature, 1), "orders": round(40.0 + 10.0 * orders)}

    def evening(self, context: dict[str, float], w: np.ndarray) -> float:
        """Return what a plan cost."""
        x = np.array([(context["temperature"] - 12.0) / 8.0, (context["orders"] - 40.0) / 10.0])
        mean = np.maximum(self.base + self.slope @ x, 5.0)
        if self.pressed["prices"]:
            mean = 1.6 * mean[self.jump]
        return float(mean * self.rng.uniform(0.8, 1.2, CREWS**2) @ w)

    def solve(self, cost: np.ndarray) -> np.ndarray:
        """Return the cheapest plan, as a solver of the user would."""
        if self.pressed["solver"]:
            raise RuntimeError("the licence of the solver has expired")
        w = np.zeros((CREWS, CREWS))
        w[linear_sum_assignment(cost.reshape(CREWS, CREWS))] = 1.0
        return w.reshape(-1)


class Demo:
    """The simulation behind the page, and its buttons.

    Parameters
    ----------
    folder : Path
        Where the store goes.
    days : int
        Days after which it ends.
    rate : float
        Days a second.
    """

    def __init__(self, folder: Path, days: int, rate: float):
        self.workshop, self.days, self.rate, self.day = Workshop(), days, rate, 0
        self.begin, self.presses, self.ended = time.time(), 0, False
        items = [f"crew {i}: job {j}" for i in range(1, CREWS + 1) for j in range(1, CREWS + 1)]
        table = {
            "title": "Demonstration: a workshop",
            "problem": "demonstration:problem",
            "policy": "linear_thompson",
            "store": "workshop.db",
            "time_limit": 1.0,
            "warm_up": False,
            "pending": {"max_age": 20},
            "rollout": {"incumbent": np.eye(CREWS).reshape(-1).tolist(), "budget": 0.05},
            "words": {"unit": "€", "round": "day", "incumbent": "the foreman", "items": items},
        }
        self.service = Service(parse_config({"learners": {"workshop": table}}, folder))
        oracle = rg.oracles.external(self.workshop.solve, CREWS**2)
        given = rg.Problem(oracle, rg.Columns(numbers=["temperature", "orders"]))
        parsed = self.service.config.learners["workshop"]
        self.host = HostedLearner("workshop", parsed, folder, clock=self.now, problem=given)
        self.service.learners["workshop"] = self.host
        self.service.panel = self
        self._thread = threading.Thread(target=self._run, name="regretless-demo", daemon=True)

    def now(self) -> float:
        """Return the time of the simulation."""
        return self.begin + self.day * DAY

    def start(self) -> None:
        """Begin the first day."""
        self._thread.start()

    def _run(self) -> None:
        """Play the days; the cost of a day is reported two days later."""
        learner, reports = self.host.learner, collections.deque[tuple[int, float, bool]]()
        due = time.monotonic()
        while self.day < self.days and not self.service.stopping.is_set():
            self.day += 1
            context = self.workshop.morning()
            with contextlib.suppress(RegretlessError):
                choice = self.host.decide(learner.decide, context)
                lost = self.workshop.pressed["feedback"] or self.workshop.rng.random() < LOST
                reports.append((choice.id, self.workshop.evening(context, choice.w), lost))
            if len(reports) > 2:
                id, total, lost = reports.popleft()
                if not lost:
                    with contextlib.suppress(RegretlessError):
                        learner.learn(id, total=total)
            due = max(due + 1.0 / self.rate, time.monotonic() - 0.2)
            time.sleep(max(due - time.monotonic(), 0.0))
        self.ended = True

    def number(self) -> int:
        """Return a number that changes with the buttons."""
        return self.presses + self.ended

    def describe(self) -> dict[str, Any]:
        """Return what the page shows below the figures."""
        pressed = self.workshop.pressed
        text = f"Simulated: {self.rate:g} days a second. Let it learn for a few seconds; and then, what if …"
        if self.ended:
            text = f"The demonstration ended after {self.day:,} days. Now with your own CSV:"
        buttons = (
            []
            if self.ended
            else [{"id": id, "label": labels[pressed[id]], "pressed": pressed[id]} for id, labels in BUTTONS.items()]
        )
        return {
            "title": "Try it",
            "text": text,
            "buttons": buttons,
            "code": CODE,
            "code_title": "Now with your own CSV",
        }

    def press(self, id: str) -> None:
        """Press a button."""
        if id in BUTTONS:
            self.workshop.pressed[id] = not self.workshop.pressed[id]
            self.presses += 1


def demo(port: int = 8000, *, days: int = 6000, rate: float = 100.0, open_page: bool = True) -> None:
    """Open the page on a simulated workshop, until the process is asked to stop.

    Parameters
    ----------
    port : int, default 8000
        Where to listen on this machine; 0 takes a free port.
    days : int, default 6000
        Days after which the simulation ends.
    rate : float, default 100
        Days a second.
    open_page : bool, default True
        Whether to open the page in a browser.
    """
    with tempfile.TemporaryDirectory(prefix="regretless-demo-") as folder:
        listener = listen("127.0.0.1", port)
        playing = Demo(Path(folder), days, rate)
        playing.start()
        announce(listener.getsockname()[1], open_page)
        try:
            run_app(make_app(playing.service), listener, playing.service, playing.service.config)
        finally:
            playing.service.stopping.set()
            playing.service.close()
