"""The whole scheduling problem as a mixed-integer programme, solved on the host for the rows that need it."""

import functools

import numpy as np

from regretless.oracles import highs, host
from regretless.oracles.plant import Plant
from regretless.oracles.schedule_bounds import worth_trying

TIME_LIMIT = 120.0


class ScheduleSolver:
    """``min Σ cost of task j from start s · x[j, s, m]``: one start and one machine per task, within every capacity.

    ``x[j, s, m]`` says that task ``j`` starts in the ``s``-th slot it may start in, on machine ``m``.
    """

    def __init__(self, plant: Plant):
        self.plant = plant
        self.failure = host.Failure()
        self.choices = [
            (task, start, machine)
            for task, what in enumerate(plant.tasks)
            for start in range(what.earliest, what.earliest + what.starts)
            for machine in range(len(plant.capacities))
        ]
        self.load = np.array([plant.energy[task] * plant.runs(task, start) for task, start, _ in self.choices])
        self.solver = highs.BatchSolver(self._programme(), TIME_LIMIT)

    def _programme(self) -> highs.Programme:
        plant, size = self.plant, len(self.choices)
        resources = len(plant.capacities[0])
        rows = np.zeros((len(plant.capacities), plant.slots, resources, size))
        once = np.zeros((len(plant.tasks), size))
        for column, (task, start, machine) in enumerate(self.choices):
            rows[machine, :, :, column] = np.outer(plant.runs(task, start), plant.tasks[task].usage)
            once[task, column] = 1.0
        room = np.broadcast_to(np.array(plant.capacities)[:, None, :], rows.shape[:3]).reshape(-1)
        flat = rows.reshape(-1, size)
        kept = np.sum(flat, axis=1) > 0
        return highs.Programme(
            flat[kept], room[kept], once, np.ones(len(plant.tasks)), np.zeros(size), np.ones(size), np.ones(size, bool)
        )

    def solve_batch(self, prices: np.ndarray, reduce: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """``starts[b, n]`` and ``status[b]`` for ``prices[b, d]``; ``reduce`` leaves out starts that cannot be optimal."""
        prices = np.asarray(prices, np.float64)
        tried = None
        if reduce:
            place = np.array([(task, start - self.plant.tasks[task].earliest) for task, start, _ in self.choices])
            tried = np.array([worth_trying(self.plant, price)[place[:, 0], place[:, 1]] for price in prices])
        x, status = self.solver.solve_batch(prices @ self.load.T, available=tried)
        starts = np.zeros((len(x), len(self.plant.tasks)), np.int32)
        for row, chosen in enumerate(x):
            for column in np.flatnonzero(chosen):
                task, start, _ = self.choices[column]
                starts[row, task] = start
        return starts, status

    @functools.cached_property
    def _profile_solver(self) -> highs.BatchSolver:
        """The same programme with the load of every slot held between two numbers."""
        programme = self.solver.programme
        rows = np.concatenate([programme.a_ub, self.load.T, -self.load.T])
        room = np.concatenate([programme.b_ub, np.full(2 * self.plant.slots, np.inf)])
        return highs.BatchSolver(programme._replace(a_ub=rows, b_ub=room), TIME_LIMIT)

    def reaches(self, w: np.ndarray) -> np.ndarray:
        """Whether some schedule has the load profile ``w``; any leading axes."""
        flat = np.asarray(w, np.float64).reshape(-1, self.plant.slots)
        around = 1e-5 * np.sum(np.abs(self.plant.energy))
        room = np.broadcast_to(self.solver.programme.b_ub, (len(flat), len(self.solver.programme.b_ub)))
        room = np.concatenate([room, flat + around, around - flat], axis=1)
        status = self._profile_solver.solve_batch(np.zeros((len(flat), len(self.choices))), b_ub=room)[1]
        return (status == highs.SOLVED).reshape(np.shape(w)[:-1])

    def mend(self, prices: np.ndarray, starts: np.ndarray, packed: np.ndarray) -> list[np.ndarray]:
        """``starts`` with the rows that are not ``packed`` solved anew, and the status of each row; any leading axes."""
        lead, prices = packed.shape, prices.reshape(-1, prices.shape[-1])
        starts = np.array(starts, np.int32).reshape(len(prices), -1)
        status, todo = np.zeros(len(prices), np.int32), np.flatnonzero(~packed.reshape(-1))
        if len(todo):
            try:
                starts[todo], status[todo] = self.solve_batch(prices[todo])
            except Exception as error:
                status[todo] = highs.BROKEN
                self.failure.put(error)
            if np.any((status != highs.SOLVED) & (status != highs.NOT_FINITE)):
                self.failure.put(RuntimeError(highs.explain(status, TIME_LIMIT)))
        return [starts.reshape(*lead, -1), status.reshape(lead)]


@functools.lru_cache(maxsize=16)
def schedule_solver(plant: Plant) -> ScheduleSolver:
    """The solver of a plant: one for all who ask, so that its models stay warm."""
    return ScheduleSolver(plant)
