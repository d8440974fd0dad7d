"""What the commands share: results on standard output, progress and errors on standard error, output paths."""

import contextlib
import ctypes
import datetime
import errno
import functools
import inspect
import json
import math
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import typer
from rich import progress as bars
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from regretless import files, plugins
from regretless.errors import RegretlessError, SettingsError
from regretless.experiments.extension import Listener, Task
from regretless.startup import starting_processes

LOG_SECONDS = 10.0
"""Seconds between two lines of progress where no bar can be drawn."""

MAX_START_SECONDS = 5.0
"""Seconds that Ctrl-C waits for worker processes that are being started."""

TRACEBACK = "REGRETLESS_TRACEBACK"
"""The environment variable that shows the traceback of an unexpected error."""

BEST = "▶ "
"""Stands before the best row or number of a table."""

Format = Literal["table", "json"]
"""How results are printed."""

Names = list[str] | None
"""The values of an option that can be repeated."""


def option(help: str, shown: str | bool = True, flag: str | None = None, **more: Any) -> Any:
    """Describe an option: its help, what is shown instead of its default, and its name."""
    return typer.Option(*filter(None, [flag]), help=help, show_default=shown, **more)


Imports = Annotated[
    Names,
    option(
        "A module in this directory, or installed, that registers parts; repeatable.", flag="--import", metavar="MODULE"
    ),
]
Settings = Annotated[
    Names, option("A setting ('regretless list settings'); repeatable.", flag="--set", metavar="NAME=VALUE")
]
Degree = Annotated[int | None, option("Degree of the polynomial costs or demand.", "8")]
Model = Annotated[str | None, option("Model of the cost ('regretless list models').", "gaussian_linear")]
DataDir = Annotated[Path | None, option("Folder with the data of energy.", "$REGRETLESS_DATA, the cache")]
Jobs = Annotated[int, option("Number of processes.", min=1)]
EngineName = Annotated[Literal["local", "ray"], option("Where to compute.")]
Address = Annotated[str | None, option("Ray: the cluster; by default one is started here.")]


class _HelpPage:
    """Help with whole paragraphs and flags without a type; the examples of the docstring come last, as written."""

    help: str | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text, heading, examples = inspect.cleandoc(self.help or "").partition("Examples:\n")
        self.help = re.sub(r"(?<!\n)\n(?!\n)", " ", text.rstrip())
        self.examples = (heading + examples).rstrip()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page, then the examples."""
        super().format_help(ctx, formatter)  # type: ignore[misc]
        if self.examples:
            print(self.examples)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class PlainGroup(_HelpPage, TyperGroup):
    """A group of commands."""


class PlainCommand(_HelpPage, TyperCommand):
    """A command."""


out = Console()
err = Console(stderr=True)


@contextlib.contextmanager
def clear_errors(stopped: str = "every file that was written is complete") -> Iterator[None]:
    """End with exit code 2 for bad input, 1 for anything else that fails and 130 for Ctrl-C, each with one message.

    What other code prints meanwhile, such as a plug-in, goes to standard error: standard output is for results.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        before = signal.signal(signal.SIGINT, functools.partial(_stop, stopped))
    try:
        with _results_only():
            yield
    except BaseException as error:
        message = explain(error)
        if message is None:
            raise
        complain(message)
        raise typer.Exit(2 if isinstance(error, SettingsError) else 1) from None
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before if before is signal.default_int_handler else signal.SIG_IGN)


def explain(error: BaseException) -> str | None:
    """Return what to print for an error; None if it is to be raised again."""
    if isinstance(error, RegretlessError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory: choose fewer replications, rounds or coordinates"
    if isinstance(error, OSError):
        to_output = error.errno in (errno.EPIPE, errno.ENOSPC) and error.filename is None
        return None if to_output else f"{error.filename or 'a file'}: {error.strerror or error}"
    control = isinstance(error, KeyboardInterrupt | GeneratorExit)
    if control or os.environ.get(TRACEBACK) or type(error).__module__.startswith(("click", "typer")):
        return None
    return f"{type(error).__name__}: {error}; {TRACEBACK}=1 shows where this happened"


@contextlib.contextmanager
def _results_only() -> Iterator[None]:
    """Keep standard output for ``out``; what else is printed, also by C libraries and processes, goes to stderr."""
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, out, "file", None)  # what sys.stdout is then
        out.file = sys.stdout
        if sys.stdout is sys.__stdout__ and sys.stdout is not None:
            sys.stdout.flush()
            out.file = stack.enter_context(open(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors))
            stack.callback(os.dup2, out.file.fileno(), 1)
            stack.callback(ctypes.CDLL(None).fflush, None)
            os.dup2(2, 1)
        stack.callback(out.file.flush)
        with contextlib.redirect_stdout(sys.stderr):
            yield


def _stop(stopped: str, signum: int, frame: Any) -> None:
    """Leave at once: a compilation cannot be interrupted, and an exception may be lost in a callback."""
    starting_processes.acquire(timeout=MAX_START_SECONDS)
    files.remove_unfinished()
    show_cursor = b"\x1b[?25h" if err.is_terminal else b""
    os.write(2, show_cursor + f"\nstopped: {stopped}\n".encode())
    os._exit(130)


def complain(error: BaseException | str) -> None:
    """Print an error literally."""
    err.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)


def note(message: str) -> None:
    """Print something that the user should know, literally."""
    err.print(Text.assemble(("note: ", "yellow"), message), soft_wrap=True)


def say(message: str, mark: str = "") -> None:
    """Print a line of the result literally, ``mark`` in red before it."""
    out.print(Text.assemble((mark, "red"), message), soft_wrap=True)


def say_table(rows: Sequence[Sequence[Any]], head: Sequence[str] = (), title: str = "", caption: str = "") -> None:
    """Print rows of a result as a table; texts are on the left, numbers on the right, empty columns are left out.

    Rows whose first cell begins with ``BEST`` are bold.
    """
    used = [i for i in range(len(rows[0]) if rows else 0) if any(row[i] not in ("", None) for row in rows)]
    head, rows = [head[i] for i in used if head] if rows else head, [[row[i] for i in used] for row in rows]
    first = rows[0] if rows else head
    table = Table(title=title or None, caption=caption or None, title_style="bold", caption_justify="left")
    table.show_header = bool(head)
    for name, value in zip(head or [""] * len(first), first, strict=True):
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        texts = ["" if value is None else str(value) for value in row]
        table.add_row(*map(Text, texts), style="bold" if texts[0].startswith(BEST) else None)
    out.print(table, highlight=False)


def say_json(value: Any) -> None:
    """Print a result as JSON."""
    print(json.dumps(value, indent=2, allow_nan=False), file=out.file)


def log(message: str, mark: str = "") -> None:
    """Print progress literally on standard error."""
    err.print(Text.assemble((mark, "red"), message), soft_wrap=True)


class LiveProgress:
    """A progress bar on a terminal, a line now and then elsewhere; the callback of ``simulate``."""

    def __init__(self, label: str):
        self.label, self.what, self.logged = label, "", -math.inf
        self.bar = bars.Progress(
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.TaskProgressColumn(),
            bars.TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
            speed_estimate_period=math.inf,
        )
        self.task = self.bar.add_task(label, total=None)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if new := what != self.what:
            self.bar.reset(self.task)
        self.what = what
        self.show(f"{self.label}: {what}", done, total, now=new)

    def show(self, text: str, done: float, total: float, now: bool = False) -> None:
        """Update the bar; without one, print a line if it is time to, or ``now``."""
        self.bar.update(self.task, description=text, completed=done, total=total)
        if self.bar.disable and (now or time.monotonic() - self.logged > LOG_SECONDS):
            self.logged = time.monotonic()
            left = self.bar.tasks[0].time_remaining
            log(f"{text}, {int(100 * done / (total or 1))} %" + (f", about {format_span(left)} left" if left else ""))


class CampaignProgress(LiveProgress, Listener):
    """The listener of a campaign: how many arms are done, what is computed, and how long the rest may take."""

    def __init__(self) -> None:
        super().__init__("")
        self.shares: dict[str, float] = {}  # of the work that is done, by address
        self.weights: dict[str, float] = {}
        self.settled = 0

    def begin(self, tasks: Sequence[Task], finished: int) -> None:
        """Take note of the tasks to compute."""
        from regretless.experiments.campaign import expected_work

        self.weights = {task.address: expected_work(task) for task in tasks}
        self.shares, self.settled = {}, 0
        self.bar.reset(self.task)
        log(f"{finished} arms finished before, {len(tasks)} to compute")

    def progress(self, task: Task, what: str, done: int, total: int) -> None:
        """Show how far a task is."""
        share = done / max(total, 1) if what == "running" else 0.0
        self._show(task, f"{task.name}: {what}", max(share, self.shares.get(task.address, 0.0)))

    def finished(self, task: Task, computed: bool) -> None:
        """Show that a result is stored."""
        self.settled += 1
        self._show(task, task.name, 1.0)

    def failed(self, task: Task, error: str) -> None:
        """Print why a task failed."""
        log(f"{task.name}: {(error.strip().splitlines() or ['unknown'])[-1]}", "failed: ")
        self.finished(task, computed=False)

    def _show(self, task: Task, doing: str, share: float) -> None:
        """Show the share of the work that is done."""
        self.shares[task.address] = share
        done = sum(self.weights.get(address, 0.0) * share for address, share in self.shares.items())
        total, arms = sum(self.weights.values()), len(self.weights)
        self.show(f"{self.settled}/{arms} arms, {doing}", done, total, now=self.settled == arms)


def format_span(seconds: float) -> str:
    """Return a length of time such as 20 s or 0:03:20."""
    return f"{seconds:.0f} s" if seconds < 59.5 else str(datetime.timedelta(seconds=round(seconds)))


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Return ``name=value`` words as a mapping."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise SettingsError(f"expected --set NAME=VALUE, got {pair!r}")
        values[name.strip()] = value.strip()
    return values


def command_line() -> str:
    """Return the command as it was typed."""
    return f"regretless {shlex.join(sys.argv[1:])}"


def load_imports(names: Sequence[str] | None) -> list[str]:
    """Import the modules of ``--import``."""
    for name in names or ():
        plugins.load(name)
    return list(names or ())


def require_writable(folder: Path) -> None:
    """Make an output folder; refuse one that cannot be written, before anything runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot write to {folder}: {getattr(error, 'strerror', None) or error}") from None


def require_writable_file(path: Path) -> None:
    """Refuse an output file that cannot be written, before anything runs."""
    require_writable(path.parent)
    try:
        files.permissions(path)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}; expected the name of a file") from None
