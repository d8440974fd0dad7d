"""Which tasks go together onto machines, decided exactly by search; NumPy only."""

import itertools
from collections.abc import Sequence

import numpy as np

from regretless.oracles.scheduling.plant import Plant

MOST_NODES = 20_000
MOST_SETS = 1_000


def assignable(plant: Plant, tasks: Sequence[int], runs: np.ndarray) -> bool | None:
    """Whether these tasks can be put on the machines; ``runs[task]`` marks the slots it runs in. None: not found out.

    Depth-first, the largest task first; of machines that look the same only one is tried.
    """
    capacities = np.array(plant.capacities)
    needs = {task: np.outer(runs[task], plant.tasks[task].usage) for task in tasks}
    order = sorted(tasks, key=lambda task: -float(np.sum(needs[task])))
    used = np.zeros((len(capacities), runs.shape[1], capacities.shape[1]))
    nodes = 0

    def place(depth: int) -> bool | None:
        nonlocal nodes
        if depth == len(order):
            return True
        nodes += 1
        if nodes > MOST_NODES:
            return None
        need, tried = needs[order[depth]], set()
        for machine, capacity in enumerate(capacities):
            looks = (capacity.tobytes(), used[machine].tobytes())
            if looks in tried or np.any(used[machine] + need > capacity * (1.0 + 1e-12)):
                continue
            tried.add(looks)
            before = used[machine].copy()
            used[machine] += need
            answer = place(depth + 1)
            used[machine] = before
            if answer is not False:
                return answer
        return False

    return place(0)


def overfull_sets(plant: Plant) -> list[tuple[int, ...]]:
    """Sets of tasks that can never run at the same time, minimal ones, as far as few enough sets need looking at."""
    tasks = range(len(plant.tasks))
    earliest, latest = plant.column("earliest"), plant.column("latest")
    at_once = np.ones((len(plant.tasks), 1), bool)
    found: list[tuple[int, ...]] = []
    looked_at = 0
    for size in range(2, len(plant.tasks) + 1):
        candidates = list(itertools.combinations(tasks, size))
        looked_at += len(candidates)
        if looked_at > MOST_SETS:
            break
        for chosen in candidates:
            meet = max(earliest[list(chosen)]) < min(latest[list(chosen)])
            known = any(set(smaller) <= set(chosen) for smaller in found)
            if meet and not known and assignable(plant, chosen, at_once) is False:
                found.append(chosen)
    return found
