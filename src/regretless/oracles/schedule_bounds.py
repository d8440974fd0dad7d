"""A feasible schedule that is close to the cheapest, and the starts that it leaves worth looking at. NumPy only."""

import numpy as np

from regretless.oracles.packing import orders
from regretless.oracles.plant import Plant

PASSES = 3


class _Floor:
    """What is used of each machine in each slot while a schedule is being made."""

    def __init__(self, plant: Plant):
        self.plant = plant
        self.room = np.array(plant.capacities)[:, None, :] * (1.0 + 1e-12)
        self.used = np.zeros((len(plant.capacities), plant.slots, self.room.shape[2]))

    def put(self, task: int, start: int, machine: int, sign: float = 1.0) -> None:
        end = start + self.plant.tasks[task].duration
        self.used[machine, start:end] += sign * np.array(self.plant.tasks[task].usage)

    def cheapest(self, task: int, price: np.ndarray) -> tuple[float, int, int] | None:
        """Cost, start and machine of the cheapest place that is free; ``price`` is by start."""
        what = self.plant.tasks[task]
        full = np.any(self.used + np.array(what.usage) > self.room, axis=2)
        before = np.concatenate([np.zeros((len(full), 1), int), np.cumsum(full, axis=1)], axis=1)
        begin = what.earliest + np.arange(what.starts)
        free = before[:, begin + what.duration] == before[:, begin]
        cost = np.where(free, price[: what.starts], np.inf)
        machine, choice = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[machine, choice]):
            return None
        return float(cost[machine, choice]), int(begin[choice]), int(machine)


def start_costs(plant: Plant, price: np.ndarray) -> np.ndarray:
    """What each task costs from each start it may have, ``[n, starts]``, infinite beyond."""
    prefix = np.concatenate([[0.0], np.cumsum(price)])
    costs = np.full((len(plant.tasks), max(task.starts for task in plant.tasks)), np.inf)
    for index, (task, energy) in enumerate(zip(plant.tasks, plant.energy, strict=True)):
        begin = task.earliest + np.arange(task.starts)
        costs[index, : task.starts] = energy * (prefix[begin + task.duration] - prefix[begin])
    return costs


def excess(plant: Plant, costs: np.ndarray) -> float:
    """By how much a feasible schedule exceeds the tasks' own cheapest starts together; infinite if none is found.

    Places tasks one by one where they are cheapest, in several orders, then moves each again some times.
    """
    least = np.sum(np.min(costs, axis=1))
    best = np.inf
    for order in orders(plant):
        floor = _Floor(plant)
        places: dict[int, tuple[float, int, int]] = {}
        for task in order:
            place = floor.cheapest(task, costs[task])
            if place is None:
                break
            floor.put(task, *place[1:])
            places[task] = place
        if len(places) < len(order):
            continue
        for _ in range(PASSES):
            for task in order:
                floor.put(task, *places[task][1:], sign=-1.0)
                places[task] = floor.cheapest(task, costs[task]) or places[task]
                floor.put(task, *places[task][1:])
        best = min(best, sum(place[0] for place in places.values()))
    return float(best - least)


def worth_trying(plant: Plant, price: np.ndarray) -> np.ndarray:
    """Marks the starts that an optimal schedule can have, ``[n, starts]``.

    A schedule that uses a start costs at least the sum of the tasks' cheapest starts plus what this start costs more than its
    task's cheapest; one for which that exceeds the cost of a known feasible schedule cannot be optimal.
    """
    costs = start_costs(plant, price)
    rounding = 1e-9 * np.sum(np.abs(costs[np.isfinite(costs)]))
    return costs - np.min(costs, axis=1, keepdims=True) <= excess(plant, costs) + rounding
