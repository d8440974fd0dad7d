"""Scheduling as mixed-integer programs, solved on the host for the rows that need it.

Two programs have the same optimum whenever the solution of the first one fits the machines. The **relaxed** one has no
machines: ``x[j, s] = 1`` if task ``j`` starts in slot ``s``; capacities are added up, and tasks that can never run at
the same time do not. The **full** one has ``x[j, s, m]``, one machine per task, and every capacity.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np

from regretless.oracles import highs
from regretless.oracles.plant import Plant, assignable, overfull_sets
from regretless.types import SOLVED

TIME_LIMIT = 120.0
"""Seconds for one row."""


class _ScheduleModel(NamedTuple):
    """A program with task, start and load of each variable."""

    solver: highs.BatchSolver
    choices: np.ndarray  # [variables, 2]
    load: np.ndarray  # [variables, slots]

    def solve(self, plant: Plant, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``starts[b, n]`` and ``status[b]`` for ``prices[b, d]``."""
        x, status = self.solver.solve_batch(prices @ self.load.T)
        starts = np.zeros((len(x), len(plant.tasks)), np.int32)
        for row, chosen in enumerate(x):
            task, start = self.choices[chosen > 0].T
            starts[row, task] = start
        return starts, status


class ScheduleSolver:
    """Solve the scheduling problem of one plant."""

    def __init__(self, plant: Plant):
        self.plant = plant
        self.full = _full_model(plant)

    @functools.cached_property
    def relaxed(self) -> _ScheduleModel:
        """The program without machines."""
        return _relaxed_model(self.plant)

    def solve(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``starts[b, n]`` and ``status[b]``: of the relaxed problem if that fits, else of the full one."""
        starts, status = self.relaxed.solve(self.plant, prices)
        fit = [code == SOLVED and self._fits(row) for row, code in zip(starts, status, strict=True)]
        unfit = np.flatnonzero(~np.array(fit, bool))
        if len(unfit):
            starts[unfit], status[unfit] = self.full.solve(self.plant, prices[unfit])
        return starts, status

    def _fits(self, starts: np.ndarray) -> bool:
        tasks = range(len(self.plant.tasks))
        runs = np.array([self.plant.runs(task, int(starts[task])) for task in tasks])
        return assignable(self.plant, tasks, runs) is True

    @functools.cached_property
    def _profile_solver(self) -> highs.BatchSolver:
        """The full program with the load of every slot between two numbers."""
        program, load = self.full.solver.program, self.full.load
        rows = np.concatenate([program.a_ub, load.T, -load.T])
        room = np.concatenate([program.b_ub, np.full(2 * self.plant.slots, np.inf)])
        return highs.BatchSolver(program._replace(a_ub=rows, b_ub=room), TIME_LIMIT)

    def reaches(self, w: np.ndarray) -> np.ndarray:
        """Return for each row of ``w[n, d]`` whether some schedule has this load profile."""
        tolerance = 1e-5 * np.sum(np.abs(self.plant.energy))
        room_now = self.full.solver.program.b_ub
        room = np.concatenate(
            [np.broadcast_to(room_now, (len(w), len(room_now))), w + tolerance, tolerance - w], axis=1
        )
        status = self._profile_solver.solve_batch(np.zeros((len(w), len(self.full.load))), b_ub=room)[1]
        return status == SOLVED


@functools.lru_cache(maxsize=16)
def schedule_solver(plant: Plant) -> ScheduleSolver:
    """Return the solver of a plant, shared so that its models are built once."""
    return ScheduleSolver(plant)


def _choices(plant: Plant) -> np.ndarray:
    """Return every task with every possible start, ``[choices, 2]``."""
    pairs = [(j, task.earliest + s) for j, task in enumerate(plant.tasks) for s in range(task.starts)]
    return np.array(pairs)


def _make_model(plant: Plant, rows: np.ndarray, room: np.ndarray, choices: np.ndarray) -> _ScheduleModel:
    """Return the program with one choice per task, and ``rows x ≤ room`` as far as it can bind."""
    load = np.array([plant.energy[task] * plant.runs(task, start) for task, start in choices])
    once = (choices[:, 0] == np.arange(len(plant.tasks))[:, None]).astype(float)
    binding = np.sum(rows, axis=1) > room
    size = len(choices)
    program = highs.MixedIntegerProgram(
        rows[binding], room[binding], once, np.ones(len(once)), np.zeros(size), np.ones(size), np.ones(size, bool)
    )
    return _ScheduleModel(highs.BatchSolver(program, TIME_LIMIT), choices, load)


def _usage(plant: Plant, choices: np.ndarray) -> np.ndarray:
    """Return each choice's use of each resource in each slot, ``[slots, resources, choices]``."""
    return np.stack([np.outer(plant.runs(j, s), plant.tasks[j].usage) for j, s in choices], axis=-1)


def _full_model(plant: Plant) -> _ScheduleModel:
    machines = len(plant.capacities)
    choices = np.repeat(_choices(plant), machines, axis=0)
    on = np.arange(len(choices)) % machines == np.arange(machines)[:, None]
    rows = _usage(plant, choices)[None] * on[:, None, None, :]
    room = np.broadcast_to(np.array(plant.capacities)[:, None, :], rows.shape[:3])
    return _make_model(plant, rows.reshape(-1, len(choices)), room.reshape(-1), choices)


def _relaxed_model(plant: Plant) -> _ScheduleModel:
    choices = _choices(plant)
    usage = _usage(plant, choices)
    rows = [*usage.reshape(-1, len(choices))]
    room = [*np.broadcast_to(np.sum(plant.capacities, axis=0), usage.shape[:2]).reshape(-1)]
    running = np.stack([plant.runs(j, s) for j, s in choices], axis=-1)
    for tasks, slot in itertools.product(overfull_sets(plant), range(plant.slots)):
        rows.append(running[slot] & np.isin(choices[:, 0], tasks))
        room.append(len(tasks) - 1)
    return _make_model(plant, np.array(rows, float), np.array(room, float), choices)
