"""Energy-aware scheduling: when to start each task of a plant, given the price of energy in every slot. Exact.

A plant has tasks that need power and machine resources for some slots, and machines with a capacity of each resource.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.base import Oracle, as_data, check, reason_of
from regretless.oracles.host import feasible_on_host, solve_on_host
from regretless.types import SOLVED, Instance, Solution

if TYPE_CHECKING:
    from regretless.oracles.highs import BatchSolver

MINUTES_PER_DAY = 24 * 60
TIME_LIMIT = 120.0
"""Seconds for one schedule that needs a mixed-integer program."""

MAX_SEARCH_NODES = 20_000
"""Steps after which a search for an assignment of tasks to machines gives up."""

MAX_TASK_SETS = 1_000
"""Sets of tasks that are examined for being too large to run at the same time."""


class PlantTask(NamedTuple):
    """A task that runs for ``duration`` slots without a break, starting in ``[earliest, latest − duration]``.

    Parameters
    ----------
    duration : int
        Slots that it runs for.
    earliest : int
        The first slot in which it may start.
    latest : int
        The slot by which it must have ended.
    power : float
        Power that it takes while it runs.
    usage : tuple of float
        What it uses of each resource while it runs.
    """

    duration: int
    earliest: int
    latest: int
    power: float
    usage: tuple[float, ...]

    @property
    def starts(self) -> int:
        """Number of slots it may start in."""
        return self.latest - self.duration - self.earliest + 1


class Plant(NamedTuple):
    """A day of ``slots`` slots; a task runs on one machine; ``capacities[machine]`` has a number per resource.

    Parameters
    ----------
    slot_minutes : int
        Length of a slot; a divisor of a day of 1440 minutes.
    capacities : tuple of tuple of float
        For each machine its capacity of each resource.
    tasks : tuple of PlantTask
        What has to run once a day.
    """

    slot_minutes: int
    capacities: tuple[tuple[float, ...], ...]
    tasks: tuple[PlantTask, ...]

    @property
    def slots(self) -> int:
        """Number of slots of a day."""
        return MINUTES_PER_DAY // self.slot_minutes

    @property
    def energy(self) -> np.ndarray:
        """Energy that each task takes per running slot, ``power × hours``."""
        return np.array([task.power for task in self.tasks]) * (self.slot_minutes / 60)

    @property
    def usage(self) -> np.ndarray:
        """Each task's use of each resource, ``[n, resources]``."""
        return np.array([task.usage for task in self.tasks]).reshape(len(self.tasks), -1)

    def column(self, name: str) -> Any:
        """Return one property of all tasks.

        Parameters
        ----------
        name : str
            A field of ``PlantTask``.
        """
        return np.array([getattr(task, name) for task in self.tasks])

    def running(self, starts: Any) -> Any:
        """Mark the slots in which each task runs, ``[…, n, d]``.

        Parameters
        ----------
        starts : array of shape (…, n)
            The slot in which each task starts; NumPy or JAX.
        """
        slot, first = np.arange(self.slots), starts[..., None]
        return (slot >= first) & (slot < first + self.column("duration")[:, None])

    def load(self, starts: np.ndarray) -> np.ndarray:
        """Return the load of each slot, ``[b, d]``, for the start of each task, ``[b, n]``.

        Parameters
        ----------
        starts : array of shape (b, n)
            The slot in which each task starts.
        """
        return np.sum(self.running(starts) * self.energy[:, None], axis=1)


def task_problem(task: PlantTask, slots: int, capacities: tuple[tuple[float, ...], ...]) -> str | None:
    """Return why a task can never run, or None if it can."""
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
    """Refuse a plant with a task that can never be scheduled, even alone, or with parts that do not fit together."""
    if plant.slot_minutes < 1 or MINUTES_PER_DAY % plant.slot_minutes:
        raise SettingsError(f"plant: expected slots that divide a day of 1440 minutes, got {plant.slot_minutes}")
    if not plant.tasks or not plant.capacities:
        raise SettingsError("plant: expected at least one task and one machine")
    if len({len(part) for part in (*plant.capacities, *(task.usage for task in plant.tasks))}) != 1:
        raise SettingsError("plant: expected as many usages of each task as capacities of each machine")
    if not all(number >= 0 for capacity in plant.capacities for number in capacity):
        raise SettingsError(f"plant: expected capacities of at least 0, got {[list(c) for c in plant.capacities]}")
    for index, task in enumerate(plant.tasks):
        reason = task_problem(task, plant.slots, plant.capacities)
        if reason:
            raise SettingsError(f"plant: task {index}: {reason}")


class SchedulingOracle(Oracle):
    """``S``: the load profiles ``w[slot] = Σ over running tasks of power × hours`` of all feasible schedules.

    A task costs the same on every machine, so without capacities each task takes its cheapest start: differences of
    prefix sums of the prices. If those starts can be packed onto the machines, they are optimal for the whole
    problem. If one assignment serves all start times, that is known in advance, and solving is pure JAX; otherwise
    (``on_host``) first-fit tries some orders, and rows for which none packs are solved as mixed-integer programs.
    ``aux`` holds the start times.

    Parameters
    ----------
    plant : Plant
        Tasks and machines.
    """

    plant: Plant = eqx.field(static=True)
    always_packs: bool = eqx.field(static=True)

    def __init__(self, plant: Plant):
        check_plant(plant)
        self.plant, self.dim = plant, plant.slots
        self.always_packs = always_packs(plant)
        if self.on_host:
            status = schedule_solver(plant).full.solver.begin()
            if status != SOLVED:
                raise SettingsError(f"plant: {reason_of(status, TIME_LIMIT)}")

    @property
    def on_host(self) -> bool:
        return not self.always_packs

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        self.instances(instances, len(costs))
        return solve_on_host(self, costs, None) if self.on_host else _solve_in_jax(self, jnp.asarray(costs))

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        if not self.on_host:
            return super()._answer(costs, instances)
        with jax.enable_x64(True):
            starts: Any = np.array(_cheapest(self.plant, costs))
            todo = np.flatnonzero(~np.asarray(_packs_somehow(self.plant, starts)))
        status: Any = np.full(len(costs), SOLVED, np.int32)
        if len(todo):
            starts[todo], status[todo] = schedule_solver(self.plant).solve(costs[todo])
        load: Any = self.plant.load(starts)
        solution = Solution(load, status, starts)
        check(solution, "scheduling", TIME_LIMIT)
        return solution

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Return whether some schedule has the load profile ``w``; never inside a compiled program."""
        return feasible_on_host(self, w, instance)

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        return schedule_solver(self.plant).reaches(points)

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        if given is not None:
            raise SettingsError("scheduling: the plant is the same in every round, expected no instance")
        return None

    def aux_form(self) -> Any:
        return jax.ShapeDtypeStruct((len(self.plant.tasks),), jnp.int32)

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": "Scheduling", "dim": self.dim, "plant": as_data(self.plant)}

    def task_loads(self, starts: Int[Array, " n"], dtype: Any = None) -> Float[Array, "n d"]:
        """Return the load of each task that starts in these slots; they sum to ``w``.

        Parameters
        ----------
        starts : array of shape (n,)
            The slot in which each task starts.
        dtype : dtype, optional
            Of the loads; by default the program's floating-point type.
        """
        energy = jnp.asarray(self.plant.energy, dtype or jnp.result_type(float))
        return jnp.where(self.plant.running(starts), energy[:, None], 0.0)


@jax.jit
def _solve_in_jax(oracle: SchedulingOracle, costs: Float[Array, "b d"]) -> Solution:
    starts = cheapest_starts(oracle.plant, costs)
    status = jnp.full(costs.shape[0], SOLVED, jnp.int32)
    return Solution(jnp.sum(oracle.task_loads(starts, costs.dtype), axis=1), status, starts)


def cheapest_starts(plant: Plant, costs: Float[Array, "b d"]) -> Int[Array, "b n"]:
    """Return the start of lowest cost for each task alone: ``argmin over s of Σ of c from s to s + duration``.

    Prefix sums are added in the order of time, so that ties after rounding are those of a plain implementation; the
    earliest start wins.
    """
    add = lambda total, price: (total + price, total + price)  # noqa: E731
    _, sums = jax.lax.scan(add, jnp.zeros_like(costs[:, 0]), costs.T)
    prefix = jnp.pad(sums.T, ((0, 0), (1, 0)))
    choice = np.arange(max(task.starts for task in plant.tasks))
    begin = plant.column("earliest")[:, None] + choice
    possible = choice < plant.column("starts")[:, None]
    begin = np.where(possible, begin, 0)
    end = begin + plant.column("duration")[:, None]
    price = jnp.where(possible, prefix[:, end] - prefix[:, begin], jnp.inf)
    return jnp.asarray(plant.column("earliest"), jnp.int32) + jnp.argmin(price, axis=2).astype(jnp.int32)


_cheapest = jax.jit(cheapest_starts, static_argnums=0)


def _packing_orders(plant: Plant) -> np.ndarray:
    """Return orders in which tasks are placed: by usage, usage × duration and duration, largest first."""
    whole = np.maximum(np.sum(plant.capacities, axis=0), 1e-300)
    share = np.max(plant.usage / whole, axis=1, initial=0.0)
    duration = plant.column("duration")
    return np.argsort(-np.stack([share, share * duration, duration]), axis=1, kind="stable")


def _first_fit_packs(plant: Plant, order: Int[Array, " n"], starts: Int[Array, " n"]) -> Bool[Array, ""]:
    """Return whether first-fit in this order finds a machine with room for every task."""
    room = jnp.asarray(plant.capacities)[:, None, :] * (1.0 + 4.0 * jnp.finfo(jnp.result_type(float)).eps)
    slot = jnp.arange(plant.slots)

    def place(used: Array, task: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        start, duration, need = task
        running = (slot >= start) & (slot < start + duration)
        wanted = jnp.where(running[:, None], need, 0.0)
        fits = jnp.all(used + wanted <= room, axis=(1, 2))
        here = jnp.arange(len(fits)) == jnp.argmax(fits)
        return used + jnp.where(here[:, None, None] & fits[:, None, None], wanted, 0.0), jnp.any(fits)

    usage = jnp.asarray(plant.usage, room.dtype)
    empty = jnp.zeros((len(plant.capacities), plant.slots, usage.shape[1]))
    tasks = (starts[order], jnp.asarray(plant.column("duration"))[order], usage[order])
    return jnp.all(jax.lax.scan(place, empty, tasks)[1])


@functools.partial(jax.jit, static_argnums=0)
def _packs_somehow(plant: Plant, starts: Int[Array, "b n"]) -> Bool[Array, " b"]:
    """Return for each row whether some order packs."""
    packs = jax.vmap(lambda order: jax.vmap(lambda row: _first_fit_packs(plant, order, row))(starts))
    return jnp.any(packs(_packing_orders(plant)), axis=0)


@functools.lru_cache(maxsize=64)
def always_packs(plant: Plant) -> bool:
    """Return whether one assignment of tasks to machines is feasible for all start times.

    It is if in every slot the tasks that may run then (``earliest ≤ slot < latest``) fit their machine together. Then
    every choice of start times can be packed, and solving needs no packing. False if the search gives up.
    """
    slot = np.arange(plant.slots)
    may_run = (slot >= plant.column("earliest")[:, None]) & (slot < plant.column("latest")[:, None])
    return assignable(plant, range(len(plant.tasks)), may_run) is True


def assignable(plant: Plant, tasks: Sequence[int], runs: np.ndarray) -> bool | None:
    """Return whether these tasks fit the machines, None if the search gives up; ``runs[task]`` marks a task's slots.

    Depth-first, the largest task first; of machines in the same state only one is tried.
    """
    capacities = np.array(plant.capacities)
    needs = {task: np.outer(runs[task], plant.tasks[task].usage) for task in tasks}
    order = sorted(tasks, key=lambda task: -float(np.sum(needs[task])))
    used = np.zeros((len(capacities), runs.shape[1], capacities.shape[1]))
    nodes = itertools.count()

    def place(depth: int) -> bool | None:
        if depth == len(order):
            return True
        if next(nodes) >= MAX_SEARCH_NODES:
            return None
        need, tried = needs[order[depth]], set()
        for machine, capacity in enumerate(capacities):
            state = (capacity.tobytes(), used[machine].tobytes())
            if state in tried or np.any(used[machine] + need > capacity * (1.0 + 1e-12)):
                continue
            tried.add(state)
            before = used[machine].copy()
            used[machine] += need
            answer = place(depth + 1)
            used[machine] = before
            if answer is not False:
                return answer
        return False

    return place(0)


def overfull_sets(plant: Plant) -> list[tuple[int, ...]]:
    """Return minimal sets of tasks that can never run at the same time; at most ``MAX_TASK_SETS`` sets are examined."""
    tasks = range(len(plant.tasks))
    earliest, latest = plant.column("earliest"), plant.column("latest")
    at_once = np.ones((len(plant.tasks), 1), bool)
    minimal: list[tuple[int, ...]] = []
    examined = 0
    for size in range(2, len(plant.tasks) + 1):
        candidates = list(itertools.combinations(tasks, size))
        examined += len(candidates)
        if examined > MAX_TASK_SETS:
            break
        for chosen in candidates:
            meet = max(earliest[list(chosen)]) < min(latest[list(chosen)])
            known = any(set(smaller) <= set(chosen) for smaller in minimal)
            if meet and not known and assignable(plant, chosen, at_once) is False:
                minimal.append(chosen)
    return minimal


class ScheduleModel(NamedTuple):
    """A program with task, start and load of each variable."""

    solver: "BatchSolver"
    choices: np.ndarray  # [variables, 2]
    load: np.ndarray  # [variables, slots]

    def solve(self, plant: Plant, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``starts[b, n]`` and ``status[b]`` for ``prices[b, d]``."""
        x, status = self.solver.solve_batch(prices @ self.load.T)
        starts = np.zeros((len(x), len(plant.tasks)), np.int32)
        rows, chosen = np.nonzero(x)
        starts[rows, self.choices[chosen, 0]] = self.choices[chosen, 1]
        return starts, status


class ScheduleSolver:
    """Solve the scheduling problem of one plant as mixed-integer programs, on the host.

    Two programs have the same optimum whenever the solution of the first one fits the machines. The **relaxed** one has
    no machines: ``x[j, s] = 1`` if task ``j`` starts in slot ``s``; capacities are added up, and tasks that can never
    run at the same time do not. The **full** one has ``x[j, s, m]``, one machine per task, and every capacity.
    """

    def __init__(self, plant: Plant):
        self.plant = plant

    @functools.cached_property
    def full(self) -> ScheduleModel:
        """The program with machines."""
        plant = self.plant
        machines = len(plant.capacities)
        choices, running = (np.repeat(part, machines, axis=axis) for axis, part in enumerate(_choices(plant)))
        on = np.arange(len(choices)) % machines == np.arange(machines)[:, None]
        use = running[:, None] * plant.usage[choices[:, 0]].T  # [slots, resources, choices]
        rows = use[None] * on[:, None, None, :]
        room = np.broadcast_to(np.array(plant.capacities)[:, None, :], rows.shape[:3])
        return _make_model(plant, choices, running, rows.reshape(-1, len(choices)), room.reshape(-1))

    @functools.cached_property
    def relaxed(self) -> ScheduleModel:
        """The program without machines."""
        plant = self.plant
        choices, running = _choices(plant)
        use = running[:, None] * plant.usage[choices[:, 0]].T
        sets = overfull_sets(plant)
        cuts = [running & np.isin(choices[:, 0], tasks) for tasks in sets]
        rows = np.concatenate([use.reshape(-1, len(choices)), *cuts])
        room = np.tile(np.sum(plant.capacities, axis=0), plant.slots)
        room = np.append(room, np.repeat([len(tasks) - 1.0 for tasks in sets], plant.slots))
        return _make_model(plant, choices, running, rows, room)

    def solve(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``starts[b, n]`` and ``status[b]``: of the relaxed problem if that fits, else of the full one."""
        starts, status = self.relaxed.solve(self.plant, prices)
        fit = [code == SOLVED and self._fits(row) for row, code in zip(starts, status, strict=True)]
        unfit = np.flatnonzero(~np.array(fit, bool))
        if len(unfit):
            starts[unfit], status[unfit] = self.full.solve(self.plant, prices[unfit])
        return starts, status

    def _fits(self, starts: np.ndarray) -> bool:
        return assignable(self.plant, range(len(self.plant.tasks)), self.plant.running(starts)) is True

    @functools.cached_property
    def _profile_solver(self) -> "BatchSolver":
        """The full program with the load of every slot between two numbers."""
        program, load = self.full.solver.program, self.full.load
        rows = np.concatenate([program.a_ub, load.T, -load.T])
        room = np.concatenate([program.b_ub, np.full(2 * self.plant.slots, np.inf)])
        return type(self.full.solver)(program._replace(a_ub=rows, b_ub=room), TIME_LIMIT)

    def reaches(self, w: np.ndarray) -> np.ndarray:
        """Return for each row of ``w[n, d]`` whether some schedule has this load profile."""
        tolerance = 1e-5 * np.sum(np.abs(self.plant.energy))
        room = self.full.solver.program.b_ub
        room = np.concatenate([np.tile(room, (len(w), 1)), w + tolerance, tolerance - w], axis=1)
        status = self._profile_solver.solve_batch(np.zeros((len(w), len(self.full.load))), b_ub=room)[1]
        return status == SOLVED


schedule_solver = functools.lru_cache(maxsize=16)(ScheduleSolver)
"""The solver of a plant, shared so that its models are built once."""


def _choices(plant: Plant) -> tuple[np.ndarray, np.ndarray]:
    """Return every task with every possible start, ``[choices, 2]``, and when it runs, ``[slots, choices]``."""
    pairs = np.array([(j, task.earliest + s) for j, task in enumerate(plant.tasks) for s in range(task.starts)])
    slot, (task, start) = np.arange(plant.slots)[:, None], pairs.T
    return pairs, (slot >= start) & (slot < start + plant.column("duration")[task])


def _make_model(
    plant: Plant, choices: np.ndarray, running: np.ndarray, rows: np.ndarray, room: np.ndarray
) -> ScheduleModel:
    """Return the program with one choice per task, and those of the rows ``rows x ≤ room`` that can bind."""
    from regretless.oracles import highs  # loads the solver: not before it is needed

    task, size = choices[:, 0], len(choices)
    once = (task == np.arange(len(plant.tasks))[:, None]).astype(float)
    binding = np.sum(rows, axis=1) > room
    program = highs.MixedIntegerProgram(
        rows[binding], room[binding], once, np.ones(len(once)), np.zeros(size), np.ones(size), np.ones(size, bool)
    )
    return ScheduleModel(highs.BatchSolver(program, TIME_LIMIT), choices, (plant.energy[task] * running).T.copy())
