"""Who may call a learner when: one call at a time, none from inside another, none in a forked child."""

import contextlib
import os
import threading
from collections.abc import Iterator

from regretless.errors import RegretlessError

_home: int | None = None


def require_own() -> None:
    """Refuses to work in a forked child of a process that has had a learner: JAX's threads are not there, it would hang."""
    global _home
    if _home is None:
        _home = os.getpid()
    elif _home != os.getpid():
        raise RegretlessError(
            f"learner: expected to be called in process {_home}, where it was made, got process {os.getpid()}, a forked child, "
            "in which JAX would hang; start the child with multiprocessing's 'spawn' method and load a checkpoint there"
        )


class Turns:
    """Lets one thread at a time through; the solver that a call waits for must not call the same learner again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """A block that no other thread is in at the same time, and no forked child at all."""
        require_own()
        if self._holder == threading.get_ident():
            raise RegretlessError("learner: a solver cannot call the learner that is waiting for its answer")
        with self._lock, self._held():
            yield

    @contextlib.contextmanager
    def if_free(self) -> Iterator[bool]:
        """The same block, or another one, told by False, if a thread is in it now."""
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            with self._held():
                yield True
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
