"""A campaign on the screen: how many cells are done, what is being computed, and how long it will still take."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from regretless.cli.console import LOG_SECONDS, err, log

if TYPE_CHECKING:
    from regretless.studies.plan import Planned


class CampaignProgress:
    """A bar on a terminal, a line now and then elsewhere; both say the time left."""

    def __init__(self) -> None:
        from regretless.studies.estimate import TimeLeft, cost

        self.time_left, self.cost, self.estimate = TimeLeft, cost, TimeLeft(0.0)
        self.cells = self.done_cells = self.failures = 0
        self.parts: dict[str, float] = {}  # seconds' worth of work done, by key
        self.now_at = ""
        self.logged = 0.0
        self.bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
            console=err, transient=True,
        )  # fmt: skip
        self.task = self.bar.add_task("", total=1.0, left="")

    def __enter__(self) -> "CampaignProgress":
        if err.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.bar.stop()

    def begin(self, planned: Sequence["Planned"], finished: int) -> None:
        self.estimate = self.time_left(sum(sum(self.cost(item.cell)) for item in planned))
        self.cells, self.done_cells, self.parts = len(planned), 0, {}
        log(f"{finished} cells finished before, {len(planned)} to compute, about {span(self.estimate.left())}")

    def started(self, item: "Planned") -> None:
        self.now_at = item.cell.name
        self._show(force=True)

    def progress(self, item: "Planned", what: str, done: int, total: int) -> None:
        compiling, running = self.cost(item.cell)
        share = done / max(total, 1)
        part = compiling * share if what == "compiling" else compiling + running * share
        self.parts[item.key] = max(part, self.parts.get(item.key, 0.0))
        self.now_at = f"{item.cell.name}: {what}"
        self._show()

    def finished(self, item: "Planned") -> None:
        self._settled(item)

    def failed(self, item: "Planned", error: str) -> None:
        self.failures += 1
        last = error.strip().splitlines()[-1] if error.strip() else "unknown"
        log(f"{item.cell.name}: {last}", "failed: ")
        self._settled(item)

    def _settled(self, item: "Planned") -> None:
        self.done_cells += 1
        self.parts[item.key] = sum(self.cost(item.cell))
        self._show(force=self.done_cells == self.cells)

    def _show(self, force: bool = False) -> None:
        self.estimate.done = sum(self.parts.values())
        left = f"about {span(self.estimate.left())} left"
        if err.is_terminal:
            text = f"{self.done_cells}/{self.cells} cells, {self.now_at}"
            self.bar.update(
                self.task, description=text, total=self.estimate.total, completed=self.estimate.done, left=left
            )
        elif force or time.monotonic() - self.logged > LOG_SECONDS:
            self.logged = time.monotonic()
            share = 100 * self.estimate.done / max(self.estimate.total, 1e-9)
            text = f"{self.done_cells}/{self.cells} cells, {share:.0f} %, {left}; {self.now_at}"
            log(text)


def span(seconds: float) -> str:
    """A length of time for people, such as 3 min 20 s."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
