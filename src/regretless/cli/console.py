"""How the program speaks: results on standard output, progress and errors on standard error."""

import contextlib
import errno
import functools
import os
import signal
import threading
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from regretless import files
from regretless.errors import RegretlessError, SettingsError

LOG_SECONDS = 10.0

Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help="A module in this directory, or installed, that registers parts; repeatable."
    ),
]
"""The option --import."""

out = Console()
err = Console(stderr=True)


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"


@contextlib.contextmanager
def clear_errors(stopped: str = "every file that was written is complete") -> Iterator[None]:
    """Bad input ends with exit code 2, anything else that fails with 1, Ctrl-C with 130; each with one plain message.

    A command that has come to its end is not stopped any more: what comes after it takes a moment.
    """
    alone = threading.current_thread() is threading.main_thread()
    if alone:
        before = signal.signal(signal.SIGINT, functools.partial(_stop, stopped))
    try:
        yield
    except SettingsError as error:
        complain(error)
        raise typer.Exit(2) from None
    except RegretlessError as error:
        complain(error)
        raise typer.Exit(1) from None
    except MemoryError:
        complain("out of memory: choose fewer replications, rounds or coordinates")
        raise typer.Exit(1) from None
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC) and error.filename is None:
            raise  # standard output: nothing can be said there any more
        complain(f"{error.filename or 'a file'}: {error.strerror or error}")
        raise typer.Exit(1) from None
    finally:
        if alone:
            signal.signal(signal.SIGINT, before if before is signal.default_int_handler else signal.SIG_IGN)


def _stop(stopped: str, signum: int, frame: Any) -> None:
    """Ctrl-C: leaves at once, because a compilation cannot be interrupted and an exception may be lost in a callback."""
    files.remove_unfinished()
    show_cursor = b"\x1b[?25h" if err.is_terminal else b""
    os.write(2, show_cursor + f"\nstopped: {stopped}\n".encode())
    os._exit(130)


def complain(error: Exception | str) -> None:
    """An error, printed literally."""
    err.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)


def note(words: str) -> None:
    """Something that the user should know, printed literally."""
    err.print(Text.assemble(("note: ", "yellow"), words), soft_wrap=True)


def say(words: str, mark: str = "") -> None:
    """A line of the result, printed literally, ``mark`` in red before it: brackets and colons in it mean nothing."""
    out.print(Text.assemble((mark, "red"), words), soft_wrap=True)


def log(words: str, mark: str = "") -> None:
    """How the work goes, printed literally on standard error."""
    err.print(Text.assemble((mark, "red"), words), soft_wrap=True)


class LiveProgress:
    """A progress bar that hears from ``simulate``: what is being done, how much is finished, how much there is."""

    def __init__(self, label: str):
        self.label = label
        self.task: TaskID | None = None
        self.what = ""
        self.logged = 0.0
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
        )

    def __enter__(self) -> "LiveProgress":
        if err.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if not err.is_terminal:
            self._log(what, done, total)
        elif what != self.what or self.task is None:
            if self.task is not None:
                self.bar.remove_task(self.task)
            self.what, self.task = what, self.bar.add_task(f"{self.label}: {what}", total=total, completed=done)
        else:
            self.bar.update(self.task, completed=done, total=total)

    def _log(self, what: str, done: int, total: int) -> None:
        """A line now and then where no bar can be drawn."""
        now = time.monotonic()
        if what != self.what or now - self.logged > LOG_SECONDS:
            self.what, self.logged = what, now
            log(f"{self.label}: {what}, {100 * done // max(total, 1)} %")


def parse_pairs(pairs: list[str]) -> dict[str, str]:
    """``key=value`` words as a mapping."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise SettingsError(f"expected --set NAME=VALUE, got {pair!r}")
        values[key.strip()] = value.strip()
    return values
