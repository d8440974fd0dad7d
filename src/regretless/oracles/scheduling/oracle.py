"""Energy-aware scheduling: when to start each task, given the price of energy in every slot. Exact."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import OracleError
from regretless.oracles import highs, host
from regretless.oracles.base import Oracle
from regretless.oracles.scheduling import packing as packings
from regretless.oracles.scheduling.milp import TIME_LIMIT, schedule_solver
from regretless.oracles.scheduling.plant import Plant, check
from regretless.types import SOLVED, Instance, Solution

UNROLL = 16


class Scheduling(Oracle):
    """``S``: the load profiles ``w[slot] = Σ over running tasks of power × hours`` of all schedules that fit the machines.

    A task costs the same on every machine, so without capacities each task takes its own cheapest start: differences of
    prefix sums of the prices. If those starts can be packed onto the machines, they are optimal
    for the whole problem. Where one assignment serves all start times (``always_packs``) that is known beforehand; elsewhere
    first-fit tries some orders, and rows for which none packs are solved as mixed-integer programmes on the host, once per
    batch and only if there are any. ``aux`` holds the start times.
    """

    plant: Plant = eqx.field(static=True)
    always_packs: bool = eqx.field(static=True)

    def __init__(self, plant: Plant):
        check(plant)
        self.plant, self.dim = plant, plant.slots
        self.always_packs = packings.always_packs(plant)
        if not self.always_packs:
            status = schedule_solver(plant).whole.solver.begin()
            if status != highs.SOLVED:
                raise ValueError(f"plant: {highs.WHY[status].format(time_limit=TIME_LIMIT)}")

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        if instances is not None:
            raise ValueError("scheduling: the plant is the same in every round, expected no instance")
        return _solve(self, jnp.asarray(costs))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        solver = schedule_solver(self.plant)
        return host.call(lambda w: [solver.reaches(w)], [jax.ShapeDtypeStruct((), np.bool_)], w)[0]

    def task_loads(self, starts: Int[Array, " n"], dtype: Any = None) -> Float[Array, "n d"]:
        """The load of each task that starts in these slots; they sum to ``w``."""
        slot = jnp.arange(self.dim)
        first = starts[..., None]
        running = (slot >= first) & (slot < first + jnp.asarray(self.plant.column("duration"))[:, None])
        return jnp.where(running, jnp.asarray(self.plant.energy, dtype or jnp.result_type(float))[:, None], 0.0)

    def take_failure(self) -> OracleError | None:
        if self.always_packs:
            return None
        error = schedule_solver(self.plant).failure.take()
        return None if error is None else OracleError(f"scheduling: {error}")


@jax.jit
def _solve(oracle: Scheduling, costs: Float[Array, "b d"]) -> Solution:
    starts = cheapest_starts(oracle.plant, costs)
    status = jnp.full(costs.shape[0], SOLVED, jnp.int32)
    if not oracle.always_packs:
        starts, status = _mended(oracle.plant)(costs, starts)
    return Solution(jnp.sum(oracle.task_loads(starts, costs.dtype), axis=1), status, starts)


def cheapest_starts(plant: Plant, costs: Float[Array, "b d"]) -> Int[Array, "b n"]:
    """The start of least cost for each task by itself: ``argmin over s of Σ of c from s to s + duration``.

    Prefix sums are added up in the order of time, so that ties fall as they fall in any plain implementation: to the earliest
    start, as far as rounding leaves them ties.
    """
    add = lambda total, price: (total + price, total + price)  # noqa: E731
    _, sums = jax.lax.scan(add, jnp.zeros_like(costs[:, 0]), costs.T, unroll=UNROLL)
    prefix = jnp.pad(sums.T, ((0, 0), (1, 0)))
    choice = np.arange(max(task.starts for task in plant.tasks))
    begin = plant.column("earliest")[:, None] + choice
    possible = choice < plant.column("starts")[:, None]
    begin = np.where(possible, begin, 0)
    end = begin + plant.column("duration")[:, None]
    price = jnp.where(possible, prefix[:, end] - prefix[:, begin], jnp.inf)
    return jnp.asarray(plant.column("earliest"), jnp.int32) + jnp.argmin(price, axis=2).astype(jnp.int32)


@functools.lru_cache(maxsize=16)
def _mended(plant: Plant) -> Any:
    """``(costs[b, d], starts[b, n]) -> (starts, status)``: the starts if they pack, else those of the whole problem.

    A condition around a call to the host would become a call for every row under ``vmap``; so ``vmap`` makes the batch longer.
    """

    @custom_vmap
    def mended(costs: Float[Array, "b d"], starts: Int[Array, "b n"]) -> tuple[Int[Array, "b n"], Int[Array, " b"]]:
        first, *others = packings.orders(plant)
        packed = jax.vmap(lambda row: packings.packs(plant, first, row))(starts)

        def try_others() -> Bool[Array, " b"]:
            again = [jax.vmap(lambda row, o=order: packings.packs(plant, o, row))(starts) for order in others]
            return jnp.any(jnp.stack([packed, *again]), axis=0)

        def on_host(known: Bool[Array, " b"]) -> list[Array]:
            results = [jax.ShapeDtypeStruct(part.shape, np.int32) for part in (starts, known)]
            return host.call(schedule_solver(plant).mend, results, costs, starts, known)

        known = jax.lax.cond(jnp.all(packed), lambda: packed, try_others)
        fine = [starts, jnp.full(packed.shape, SOLVED, jnp.int32)]
        answer, status = jax.lax.cond(jnp.all(known), lambda known: fine, on_host, known)
        return answer, status

    @mended.def_vmap
    def longer(size: int, batched: Any, costs: Array, starts: Array) -> Any:
        costs, starts = (
            part if is_batched else jnp.broadcast_to(part, (size, *part.shape))
            for part, is_batched in zip((costs, starts), batched, strict=True)
        )
        rows = costs.shape[1]
        flat = mended(costs.reshape(size * rows, -1), starts.reshape(size * rows, -1))
        return tuple(part.reshape(size, rows, *part.shape[1:]) for part in flat), (True, True)

    return mended
