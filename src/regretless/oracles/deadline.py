"""Calls with a time limit: one that does not come back in time is left to its thread, and the next call gets another."""

import queue
import threading
from collections.abc import Callable
from typing import Any


class OutOfTimeError(Exception):
    """The call did not come back within its time limit; its thread is still at it."""


class _Worker:
    """A daemon thread that makes one call after the other until it is told to end."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, name="regretless-solver", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (call := self.calls.get()) is not None:
            fn, arguments, outcome = call
            try:
                outcome.put((fn(*arguments), None))
            except BaseException as error:  # raised again in the thread that asked
                outcome.put((None, error))
            del call, fn, arguments, outcome


_idle: list[_Worker] = []


def call(seconds: float, fn: Callable[..., Any], *arguments: Any) -> Any:
    """``fn(*arguments)`` in another thread, with its result or its exception; OutOfTimeError after ``seconds``.

    Python cannot stop a thread: one that is out of time goes on in the background until its call returns, and dies with the
    process at the latest. Threads that came back are used again, so that a call costs about a tenth of a millisecond.
    """
    worker = _take()
    outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker.calls.put((fn, arguments, outcome))
    try:
        result, error = outcome.get(timeout=seconds)
    except BaseException as stopped:
        worker.calls.put(None)
        if isinstance(stopped, queue.Empty):
            raise OutOfTimeError from None
        raise
    _idle.append(worker)
    if error is not None:
        raise error
    return result


def _take() -> _Worker:
    """A thread that waits for work; those of a parent process did not come along into a forked child."""
    while True:
        try:
            worker = _idle.pop()
        except IndexError:
            return _Worker()
        if worker.thread.is_alive():
            return worker
