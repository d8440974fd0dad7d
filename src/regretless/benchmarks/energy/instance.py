"""Scheduling instances in their text format, as plants.

Numbers line by line: minutes per slot; resources; machines; for each machine ``id idle up down`` and a line with its capacity
of each resource; tasks; for each task ``id duration earliest latest power`` and a line with its usage of each resource.
"""

from importlib.resources.abc import Traversable
from pathlib import Path

from regretless.errors import SettingsError
from regretless.oracles.plant import MINUTES_PER_DAY, Plant, PlantTask, task_problem


class _Lines:
    """A file read number by number, that knows in which line it is."""

    def __init__(self, path: Path | Traversable):
        self.path, self.number = path, 0
        try:
            self.lines = path.read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"cannot read {path}: {error}") from None

    def wrong(self, reason: str) -> SettingsError:
        return SettingsError(f"{self.path}, line {self.number}: {reason}")

    def numbers(self, what: str, count: int) -> list[float]:
        """The next line, which must hold ``count`` numbers."""
        self.number += 1
        if self.number > len(self.lines):
            raise self.wrong(f"expected {what}, but the file ends: truncated")
        fields = self.lines[self.number - 1].split()
        try:
            values = [float(field) for field in fields]
        except ValueError:
            raise self.wrong(f"expected {what}, got {' '.join(fields)!r}") from None
        if len(values) != count:
            raise self.wrong(f"expected {what} ({count} numbers), got {len(values)}: {' '.join(fields)!r}")
        return values

    def whole(self, what: str, least: int) -> int:
        """The next line, which must hold one whole number."""
        (value,) = self.numbers(what, 1)
        if value != int(value) or value < least:
            raise self.wrong(f"expected {what}, a whole number of at least {least}, got {value:g}")
        return int(value)


def read_plant(path: Path | Traversable) -> Plant:
    """The plant in an instance file; an error names the file, the line and what is wrong there."""
    lines = _Lines(path)
    minutes = lines.whole("the minutes per slot", 1)
    if MINUTES_PER_DAY % minutes:
        raise lines.wrong(f"expected slots that divide a day of {MINUTES_PER_DAY} minutes, got {minutes} minutes")
    resources = lines.whole("the number of resources", 1)
    capacities = []
    for machine in range(lines.whole("the number of machines", 1)):
        lines.numbers(f"machine {machine}: id idle up down", 4)
        capacities.append(tuple(lines.numbers(f"the capacities of machine {machine}", resources)))
    tasks = []
    for index in range(lines.whole("the number of tasks", 1)):
        _, duration, earliest, latest, power = lines.numbers(f"task {index}: id duration earliest latest power", 5)
        if any(value != int(value) for value in (duration, earliest, latest)):
            raise lines.wrong(f"task {index}: expected duration, earliest and latest in whole slots")
        described = lines.number
        usage = tuple(lines.numbers(f"the usages of task {index}", resources))
        task = PlantTask(int(duration), int(earliest), int(latest), power, usage)
        reason = task_problem(task, MINUTES_PER_DAY // minutes, tuple(capacities))
        if reason:
            lines.number = lines.number if "fits no machine" in reason else described
            raise lines.wrong(f"task {index}: {reason}")
        tasks.append(task)
    for rest in range(lines.number, len(lines.lines)):
        if lines.lines[rest].strip():
            lines.number = rest + 1
            raise lines.wrong(f"expected the end of the file after {len(tasks)} tasks, got {lines.lines[rest]!r}")
    return Plant(minutes, tuple(capacities), tuple(tasks))
