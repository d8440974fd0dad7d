"""Scheduling as mixed-integer programmes, solved on the host for the rows that need it.

Two programmes have the same optimum wherever the first one's answer can be put on the machines. The **relaxed** one knows no
machines: ``x[j, s]`` says that task ``j`` starts in slot ``s``; all capacity is one, and tasks that can never run at the same
time do not. The **whole** one has ``x[j, s, m]``, one machine per task, and every capacity.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np

from regretless.oracles import highs
from regretless.oracles.programme import Programme
from regretless.oracles.scheduling.assignment import assignable, overfull_sets
from regretless.oracles.scheduling.plant import Plant
from regretless.types import SOLVED

TIME_LIMIT = 120.0


class _Model(NamedTuple):
    """A programme with the meaning of its variables: task and start of each, and its load in each slot."""

    solver: highs.BatchSolver
    choices: np.ndarray  # [variables, 2]
    load: np.ndarray  # [variables, slots]

    def solve(self, plant: Plant, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``starts[b, n]`` and ``status[b]`` for ``prices[b, d]``."""
        x, status = self.solver.solve_batch(prices @ self.load.T)
        starts = np.zeros((len(x), len(plant.tasks)), np.int32)
        for row, chosen in enumerate(x):
            task, start = self.choices[chosen > 0].T
            starts[row, task] = start
        return starts, status


class ScheduleSolver:
    """Solves whole scheduling problems of one plant."""

    def __init__(self, plant: Plant):
        self.plant = plant
        self.whole = _whole(plant)

    @functools.cached_property
    def relaxed(self) -> _Model:
        """The programme without machines."""
        return _relaxed(self.plant)

    def solve(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``starts[b, n]`` and ``status[b]`` for ``prices[b, d]``: relaxed where the answer fits the machines, else whole."""
        starts, status = self.relaxed.solve(self.plant, prices)
        fit = [code == SOLVED and self._fits(row) for row, code in zip(starts, status, strict=True)]
        unfit = np.flatnonzero(~np.array(fit, bool))
        if len(unfit):
            starts[unfit], status[unfit] = self.whole.solve(self.plant, prices[unfit])
        return starts, status

    def _fits(self, starts: np.ndarray) -> bool:
        tasks = range(len(self.plant.tasks))
        runs = np.array([self.plant.runs(task, int(starts[task])) for task in tasks])
        return assignable(self.plant, tasks, runs) is True

    @functools.cached_property
    def _profile_solver(self) -> highs.BatchSolver:
        """The whole programme with the load of every slot held between two numbers."""
        programme, load = self.whole.solver.programme, self.whole.load
        rows = np.concatenate([programme.a_ub, load.T, -load.T])
        room = np.concatenate([programme.b_ub, np.full(2 * self.plant.slots, np.inf)])
        return highs.BatchSolver(programme._replace(a_ub=rows, b_ub=room), TIME_LIMIT)

    def reaches(self, w: np.ndarray) -> np.ndarray:
        """Whether some schedule has the load profile, for each row of ``w[n, d]``."""
        around = 1e-5 * np.sum(np.abs(self.plant.energy))
        own = self.whole.solver.programme.b_ub
        room = np.concatenate([np.broadcast_to(own, (len(w), len(own))), w + around, around - w], axis=1)
        status = self._profile_solver.solve_batch(np.zeros((len(w), len(self.whole.load))), b_ub=room)[1]
        return status == SOLVED


@functools.lru_cache(maxsize=16)
def schedule_solver(plant: Plant) -> ScheduleSolver:
    """The solver of a plant: one for all who ask, so that its models stay warm."""
    return ScheduleSolver(plant)


def _choices(plant: Plant) -> np.ndarray:
    """Every task with every start it may have, ``[choices, 2]``."""
    pairs = [(j, task.earliest + s) for j, task in enumerate(plant.tasks) for s in range(task.starts)]
    return np.array(pairs)


def _model(plant: Plant, rows: np.ndarray, room: np.ndarray, choices: np.ndarray) -> _Model:
    """One choice per task, and ``rows x ≤ room`` as far as it can bind."""
    load = np.array([plant.energy[task] * plant.runs(task, start) for task, start in choices])
    once = (choices[:, 0] == np.arange(len(plant.tasks))[:, None]).astype(float)
    binding = np.sum(rows, axis=1) > room
    size = len(choices)
    programme = Programme(
        rows[binding], room[binding], once, np.ones(len(once)), np.zeros(size), np.ones(size), np.ones(size, bool)
    )
    return _Model(highs.BatchSolver(programme, TIME_LIMIT), choices, load)


def _usage(plant: Plant, choices: np.ndarray) -> np.ndarray:
    """What each choice takes of each resource in each slot, ``[slots, resources, choices]``."""
    return np.stack([np.outer(plant.runs(j, s), plant.tasks[j].usage) for j, s in choices], axis=-1)


def _whole(plant: Plant) -> _Model:
    machines = len(plant.capacities)
    choices = np.repeat(_choices(plant), machines, axis=0)
    on = np.arange(len(choices)) % machines == np.arange(machines)[:, None]
    rows = _usage(plant, choices)[None] * on[:, None, None, :]
    room = np.broadcast_to(np.array(plant.capacities)[:, None, :], rows.shape[:3])
    return _model(plant, rows.reshape(-1, len(choices)), room.reshape(-1), choices)


def _relaxed(plant: Plant) -> _Model:
    choices = _choices(plant)
    usage = _usage(plant, choices)
    rows = [*usage.reshape(-1, len(choices))]
    room = [*np.broadcast_to(np.sum(plant.capacities, axis=0), usage.shape[:2]).reshape(-1)]
    running = np.stack([plant.runs(j, s) for j, s in choices], axis=-1)
    for tasks, slot in itertools.product(overfull_sets(plant), range(plant.slots)):
        rows.append(running[slot] & np.isin(choices[:, 0], tasks))
        room.append(len(tasks) - 1)
    return _model(plant, np.array(rows, float), np.array(room, float), choices)
