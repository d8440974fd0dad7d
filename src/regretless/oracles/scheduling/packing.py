"""Packing tasks with given start times onto machines: quick rules in JAX, and a proof that none is needed."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from regretless.oracles.scheduling.assignment import assignable
from regretless.oracles.scheduling.plant import Plant


def orders(plant: Plant) -> list[np.ndarray]:
    """Orders in which tasks are placed: by usage, by usage × duration, by duration, each from the largest down."""
    usage = np.array([task.usage for task in plant.tasks]).reshape(len(plant.tasks), -1)
    whole = np.maximum(np.sum(plant.capacities, axis=0), 1e-300)
    share = np.max(usage / whole, axis=1, initial=0.0)
    duration = plant.column("duration")
    return [np.argsort(-size, kind="stable") for size in (share, share * duration, duration)]


def packs(plant: Plant, order: np.ndarray, starts: Int[Array, " n"]) -> Bool[Array, ""]:
    """Whether first-fit in this order finds a machine for every task: the first with room in all slots that the task runs."""
    usage = np.array([task.usage for task in plant.tasks]).reshape(len(plant.tasks), -1)
    room = jnp.asarray(plant.capacities)[:, None, :] * (1.0 + 4.0 * jnp.finfo(jnp.result_type(float)).eps)
    slot = jnp.arange(plant.slots)

    def place(used: Array, task: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        start, duration, need = task
        running = (slot >= start) & (slot < start + duration)
        wanted = jnp.where(running[:, None], need, 0.0)
        fits = jnp.all(used + wanted <= room, axis=(1, 2))
        here = jnp.arange(len(fits)) == jnp.argmax(fits)
        return used + jnp.where(here[:, None, None] & fits[:, None, None], wanted, 0.0), jnp.any(fits)

    empty = jnp.zeros((len(plant.capacities), plant.slots, usage.shape[1]))
    tasks = (starts[order], jnp.asarray(plant.column("duration")[order]), jnp.asarray(usage[order], empty.dtype))
    return jnp.all(jax.lax.scan(place, empty, tasks)[1])


@functools.partial(jax.jit, static_argnums=0)
def packed(plant: Plant, starts: Int[Array, "b n"]) -> Bool[Array, " b"]:
    """Whether some order packs, for each row; the other orders are tried if the first one fails somewhere."""
    first, *others = orders(plant)
    at_once = jax.vmap(lambda row: packs(plant, first, row))(starts)

    def try_others() -> Bool[Array, " b"]:
        again = [jax.vmap(lambda row, o=order: packs(plant, o, row))(starts) for order in others]
        return jnp.any(jnp.stack([at_once, *again]), axis=0)

    return jax.lax.cond(jnp.all(at_once), lambda: at_once, try_others)


@functools.lru_cache(maxsize=64)
def always_packs(plant: Plant) -> bool:
    """Whether one assignment of tasks to machines is feasible whatever the start times are.

    It is if in every slot the tasks that may run then (``earliest ≤ slot < latest``) fit their machine all at once. Then
    every choice of start times can be packed, and nothing has to be packed when solving. A search that gives up says no.
    """
    slot = np.arange(plant.slots)
    may_run = (slot >= plant.column("earliest")[:, None]) & (slot < plant.column("latest")[:, None])
    return assignable(plant, range(len(plant.tasks)), may_run) is True
