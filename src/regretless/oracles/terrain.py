"""Shortest path over the nodes of a grid map, with steps to eight or four neighbours, as on the Warcraft maps."""

import itertools
from collections.abc import Hashable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from regretless.errors import SettingsError
from regretless.oracles.base import INFEASIBLE, MaskedOracle, check_integer
from regretless.types import SOLVED, Cost, Instance, Solution

STEPS = ((-1, 0), (0, -1), (0, 1), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1))
"""Rows and columns to the four neighbours at the sides, then to the four at the corners."""


class NodeGridOracle(MaskedOracle):
    """``S``: sets of nodes that connect the first node of a grid with the last, as 0/1 vectors, row by row.

    The lowest cost is that of a path, both ends included. All distances are improved at once until none changes
    (Bellman and Ford), and the path is walked back; ties go to the path with fewer steps. Pure JAX. With negative costs
    detours would pay and the problem would be hard: costs below 0 count as 0. An instance is a mask of the nodes that
    are open in this round, booleans or exactly 0 and 1 (None: all of them).

    Parameters
    ----------
    rows, columns : int
        Number of nodes from top to bottom and from left to right.
    neighbours : {8, 4}, default 8
        Steps to the sides and corners of a node, or to its sides only.

    Examples
    --------
    >>> import jax.numpy as jnp, regretless as rg
    >>> rg.oracles.node_grid(2, 3).solve_one(jnp.array([1.0, 9.0, 9.0, 9.0, 1.0, 1.0])).w.tolist()
    [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """

    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    neighbours: int = eqx.field(static=True)
    nonnegative = True

    def __init__(self, rows: int, columns: int, neighbours: int = 8):
        self.rows, self.columns = check_integer("node grid: rows", rows), check_integer("node grid: columns", columns)
        if rows < 1 or columns < 1 or rows * columns < 2:
            raise SettingsError(f"node grid: expected at least two nodes, got {rows} × {columns}")
        if neighbours not in (4, 8):
            raise SettingsError(f"node grid: expected 4 or 8 neighbours, got {neighbours!r}")
        self.neighbours, self.dim = int(neighbours), int(rows) * int(columns)

    @property
    def names(self) -> tuple[Hashable, ...]:
        return tuple(itertools.product(range(self.rows), range(self.columns)))

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        price = jnp.maximum(cost, 0.0)
        price = price if instance is None else jnp.where(jnp.asarray(instance, bool), price, jnp.inf)
        table = price.reshape(self.rows, self.columns)
        size, steps = self.dim, STEPS[: self.neighbours]

        def improve(now: _Distances) -> _Distances:
            length, step = now.length, now.step
            for number, before in enumerate(self._neighbours(now.length, jnp.inf)):
                through = before + table
                shorter = through < length
                length, step = jnp.where(shorter, through, length), jnp.where(shorter, number, step)
            return _Distances(length, step, jnp.any(length < now.length))

        far = jnp.full(table.shape, jnp.inf, cost.dtype).at[0, 0].set(table[0, 0])
        begin = _Distances(far, jnp.full(table.shape, -1, jnp.int32), jnp.asarray(True))
        found = jax.lax.while_loop(lambda now: now.changed, improve, begin)
        back = np.array([down * self.columns + right for down, right in steps], np.int32)
        step = found.step.reshape(-1)

        def walk(now: tuple[Array, Array]) -> tuple[Array, Array]:
            node = now[0] - jnp.asarray(back)[step[now[0]]]
            return node, now[1] | (jnp.arange(size) == node)

        last = (jnp.asarray(size - 1, jnp.int32), jnp.arange(size) == size - 1)
        _, used = jax.lax.while_loop(lambda now: step[now[0]] >= 0, walk, last)
        reached = jnp.isfinite(found.length[-1, -1])
        return Solution(used.astype(cost.dtype), jnp.where(reached, SOLVED, INFEASIBLE))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        checked = self._converted(instance)
        is_open = True if checked is None else jnp.asarray(checked, bool)
        marked = (w == 1).reshape(self.rows, self.columns)

        def spread(now: tuple[Array, Array]) -> tuple[Array, Array]:
            reached = now[0]
            for before in self._neighbours(reached, False):
                reached = reached | (before & marked)
            return reached, jnp.any(reached != now[0])

        start = jnp.zeros_like(marked).at[0, 0].set(marked[0, 0])
        reached, _ = jax.lax.while_loop(lambda now: now[1], spread, (start, jnp.asarray(True)))
        return jnp.all((w == 0) | ((w == 1) & is_open)) & jnp.all(reached == marked) & reached[0, 0] & reached[-1, -1]

    def _neighbours(self, table: Array, outside: float | bool) -> list[Array]:
        """Return, for each step, the table of what is where the step comes from."""
        padded = jnp.pad(table, 1, constant_values=outside)
        rows, columns = table.shape
        steps = STEPS[: self.neighbours]
        return [padded[1 - down :, 1 - right :][:rows, :columns] for down, right in steps]


class _Distances(NamedTuple):
    """Lengths of the shortest paths found so far, and the last step of each, −1 for none."""

    length: Float[Array, "rows columns"]
    step: Int[Array, "rows columns"]
    changed: Bool[Array, ""]
