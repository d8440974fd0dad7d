"""A plant: tasks that need power and machine resources for a while, and machines that have so much of each resource."""

from typing import Any, NamedTuple

import numpy as np

from regretless.errors import SettingsError

MINUTES_PER_DAY = 24 * 60


class Task(NamedTuple):
    """Runs for ``duration`` slots without a break, starting in ``[earliest, latest − duration]``."""

    duration: int
    earliest: int
    latest: int  # the slot by which it has ended
    power: float
    usage: tuple[float, ...]  # of each resource, while it runs

    @property
    def starts(self) -> int:
        """How many slots it may start in."""
        return self.latest - self.duration - self.earliest + 1


class Plant(NamedTuple):
    """A day of ``slots`` slots; a task runs on one machine, and ``capacities[machine]`` is what that has of each resource."""

    slot_minutes: int
    capacities: tuple[tuple[float, ...], ...]
    tasks: tuple[Task, ...]

    @property
    def slots(self) -> int:
        """How many slots a day has."""
        return MINUTES_PER_DAY // self.slot_minutes

    @property
    def energy(self) -> np.ndarray:
        """Energy that each task takes per running slot, ``power × hours``."""
        return np.array([task.power for task in self.tasks]) * (self.slot_minutes / 60)

    def column(self, name: str) -> Any:
        """One property of all tasks."""
        return np.array([getattr(task, name) for task in self.tasks])

    def runs(self, task: int, start: int) -> np.ndarray:
        """Marks the slots in which a task runs that starts in ``start``."""
        slot = np.arange(self.slots)
        return (slot >= start) & (slot < start + self.tasks[task].duration)

    def load(self, starts: np.ndarray) -> np.ndarray:
        """The load of each slot if each task starts where ``starts`` says."""
        profile = np.zeros(self.slots)
        for task, energy in enumerate(self.energy):
            profile += energy * self.runs(task, int(starts[task]))
        return profile


def why_not(task: Task, slots: int, capacities: tuple[tuple[float, ...], ...]) -> str | None:
    """Why a task can never run, or None if it can."""
    if task.duration < 1:
        return f"expected a duration of at least 1 slot, got {task.duration}"
    if not 0 <= task.earliest < task.latest <= slots:
        return f"expected 0 ≤ earliest < latest ≤ {slots} slots, got {task.earliest} and {task.latest}"
    if task.starts < 1:
        return f"{task.duration} slots do not fit between slot {task.earliest} and slot {task.latest}"
    if not all(np.isfinite([task.power, *task.usage])) or min(task.usage, default=0) < 0:
        return f"expected a finite power and usages of at least 0, got {task.power} and {list(task.usage)}"
    if not any(all(u <= c for u, c in zip(task.usage, capacity, strict=True)) for capacity in capacities):
        return f"its usage {list(task.usage)} fits no machine; the capacities are {[list(c) for c in capacities]}"
    return None


def check_plant(plant: Plant) -> None:
    """Refuses a plant that no schedule can be made for, as far as one task alone can show it."""
    if plant.slot_minutes < 1 or MINUTES_PER_DAY % plant.slot_minutes:
        raise SettingsError(
            f"plant: expected slots that divide a day of 1440 minutes, got {plant.slot_minutes} minutes"
        )
    if not plant.tasks or not plant.capacities:
        raise SettingsError("plant: expected at least one task and one machine")
    if len({len(part) for part in (*plant.capacities, *plant.column("usage"))}) != 1:
        raise SettingsError("plant: expected as many usages of each task as capacities of each machine")
    for index, task in enumerate(plant.tasks):
        reason = why_not(task, plant.slots, plant.capacities)
        if reason:
            raise SettingsError(f"plant: task {index}: {reason}")
