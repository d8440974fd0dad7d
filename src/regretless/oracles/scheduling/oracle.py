"""Energy-aware scheduling: when to start each task, given the price of energy in every slot. Exact."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.base import Oracle, as_data, feasible_on_host, solve_on_host
from regretless.oracles.scheduling.packing import always_packs, packed
from regretless.oracles.scheduling.plant import Plant, check_plant
from regretless.oracles.status import check, why
from regretless.types import SOLVED, Instance, Solution

if TYPE_CHECKING:
    from regretless.oracles.scheduling.milp import ScheduleSolver


class Scheduling(Oracle):
    """``S``: the load profiles ``w[slot] = Σ over running tasks of power × hours`` of all schedules that fit the machines.

    A task costs the same on every machine, so without capacities each task takes its own cheapest start: differences of
    prefix sums of the prices. If those starts can be packed onto the machines, they are optimal for the whole problem. Where
    one assignment serves all start times (``always_packs``) that is known beforehand, and solving is pure JAX; elsewhere
    (``on_host``) first-fit tries some orders, and rows for which none packs are solved as mixed-integer programmes. ``aux``
    holds the start times.
    """

    plant: Plant = eqx.field(static=True)
    always_packs: bool = eqx.field(static=True)

    def __init__(self, plant: Plant):
        check_plant(plant)
        self.plant, self.dim = plant, plant.slots
        self.always_packs = always_packs(plant)
        if self.on_host:
            solver = self._solver().whole.solver
            status = solver.begin()
            if status != SOLVED:
                raise SettingsError(f"plant: {why(status, solver.time_limit)}")

    @property
    def on_host(self) -> bool:
        return not self.always_packs

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        self.instances(instances, len(costs))
        return solve_on_host(self, costs, None) if self.on_host else _solve(self, jnp.asarray(costs))

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        if not self.on_host:
            return super()._answer(costs, instances)
        with jax.enable_x64(True):
            starts: Any = np.array(_cheapest(self.plant, costs))
            todo = np.flatnonzero(~np.asarray(packed(self.plant, starts)))
        status: Any = np.full(len(costs), SOLVED, np.int32)
        if len(todo):
            starts[todo], status[todo] = self._solver().solve(costs[todo])
        load: Any = np.array([self.plant.load(row) for row in starts]).reshape(costs.shape)
        solution = Solution(load, status, starts)
        check(solution, "scheduling", self._solver().whole.solver.time_limit)
        return solution

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Whether some schedule has the load profile ``w``: found out by the solver, so never inside a compiled program."""
        return feasible_on_host(self, w, instance)

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        return self._solver().reaches(points)

    def instance(self, given: Any) -> Instance:
        if given is not None:
            raise SettingsError("scheduling: the plant is the same in every round, expected no instance")
        return None

    def instances(self, given: Any, rows: int) -> Instance:
        return self.instance(given)

    def aux_form(self) -> Any:
        return jax.ShapeDtypeStruct((len(self.plant.tasks),), jnp.int32)

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": "Scheduling", "dim": self.dim, "plant": as_data(self.plant)}

    def _solver(self) -> "ScheduleSolver":
        from regretless.oracles.scheduling.milp import schedule_solver  # loads the solver: not before it is needed

        return schedule_solver(self.plant)

    def task_loads(self, starts: Int[Array, " n"], dtype: Any = None) -> Float[Array, "n d"]:
        """The load of each task that starts in these slots; they sum to ``w``."""
        slot = jnp.arange(self.dim)
        first = starts[..., None]
        running = (slot >= first) & (slot < first + jnp.asarray(self.plant.column("duration"))[:, None])
        return jnp.where(running, jnp.asarray(self.plant.energy, dtype or jnp.result_type(float))[:, None], 0.0)


@jax.jit
def _solve(oracle: Scheduling, costs: Float[Array, "b d"]) -> Solution:
    starts = cheapest_starts(oracle.plant, costs)
    status = jnp.full(costs.shape[0], SOLVED, jnp.int32)
    return Solution(jnp.sum(oracle.task_loads(starts, costs.dtype), axis=1), status, starts)


def cheapest_starts(plant: Plant, costs: Float[Array, "b d"]) -> Int[Array, "b n"]:
    """The start of least cost for each task by itself: ``argmin over s of Σ of c from s to s + duration``.

    Prefix sums are added up in the order of time, so that ties fall as they fall in any plain implementation: to the earliest
    start, as far as rounding leaves them ties.
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
