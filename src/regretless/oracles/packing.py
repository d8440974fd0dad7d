"""Knapsack with one or several capacities: exact in JAX where that is small, by HiGHS otherwise."""

import functools
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import MaskedOracle, check, check_finite
from regretless.oracles.host import solve_on_host
from regretless.types import SOLVED, Cost, Instance, Solution

Rows = tuple[tuple[float, ...], ...]

MAX_LISTED_SETS = 2**16
"""With at most this many feasible sets of items all of them are compared, one addition each."""

MAX_CELLS = 2**18
"""With one capacity, the largest table of the dynamic program: items times capacity in whole units."""

MAX_DECIMALS = 6
"""Weights with at most this many decimals are counted in whole units."""


class KnapsackOracle(MaskedOracle):
    """``S = {w in {0,1}^d : weights·w ≤ capacity}``; for values to maximise, costs are the negative values.

    With few feasible sets of items, all are compared; with one capacity and weights that are multiples of a unit, a
    dynamic program runs over the capacity; both are pure JAX. Otherwise HiGHS solves on the host. An instance is a
    mask of the items that are available in this round, booleans or exactly 0 and 1 (None: all of them).

    Parameters
    ----------
    weights : array of shape (d,) or (capacities, d)
        What each item takes of each capacity, at least 0.
    capacity : float or array of shape (capacities,)
        The capacities, at least 0.

    Examples
    --------
    >>> import jax.numpy as jnp, regretless as rg
    >>> bag = rg.oracles.knapsack([[3, 4, 2], [1, 5, 2]], [6, 6])
    >>> bag.solve_one(jnp.array([-4.0, -5.0, -3.0])).w.tolist()
    [1.0, 0.0, 1.0]
    """

    weights: Rows = eqx.field(static=True)
    capacity: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, weights: Any, capacity: Any):
        rows = np.atleast_2d(check_finite("knapsack: weights", weights).astype(np.float64))
        limits = np.atleast_1d(check_finite("knapsack: capacity", capacity).astype(np.float64))
        if rows.ndim != 2 or not rows.size or limits.shape != (len(rows),):
            raise SettingsError(
                "knapsack: expected weights of shape (d,) or (capacities, d) and as many capacities, got shapes "
                f"{np.shape(weights)} and {np.shape(capacity)}"
            )
        if np.any(rows < 0) or np.any(limits < 0):
            raise SettingsError("knapsack: expected weights and capacities of at least 0, got a negative one")
        self.weights, self.capacity = tuple(tuple(row.tolist()) for row in rows), tuple(limits.tolist())
        self.dim = rows.shape[1]

    @property
    def method(self) -> Literal["sets", "capacity", "highs"]:
        """How it is solved: by comparing sets of items, by dynamic programming over the capacity, or by HiGHS."""
        return _method(self.weights, self.capacity)

    @property
    def on_host(self) -> bool:
        return self.method == "highs"

    @property
    def support(self) -> int:
        weights, capacity = _units(self.weights, self.capacity)
        return int(np.min(np.sum(np.cumsum(np.sort(weights, axis=1), axis=1) <= capacity[:, None], axis=1)))

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        return solve_on_host(self, costs, instances) if self.on_host else super().solve(costs, instances)

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        if not self.on_host:
            return super()._answer(costs, instances)
        answer: Any = _solver(self.weights, self.capacity).solve_batch(costs, available=instances)
        solution = Solution(*answer)
        check(solution, "knapsack")
        return solution

    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        cost = cost if instance is None else jnp.where(jnp.asarray(instance, bool), cost, jnp.inf)
        by_sets = self.method == "sets"
        return Solution(self._by_sets(cost) if by_sets else self._by_capacity(cost), jnp.asarray(SOLVED))

    def _by_sets(self, cost: Cost) -> Cost:
        """Add up the costs of all sets, each from the set without its last item, and mark the items of the best."""
        sets: Any = _feasible_sets(self.weights, self.capacity)
        totals = [jnp.zeros(1, cost.dtype)]
        for level in sets.levels:
            totals.append(totals[-1][level.without_last] + cost[level.last])
        best = jnp.argmin(jnp.concatenate(totals))
        return jnp.any(jnp.asarray(sets.items)[best][:, None] == jnp.arange(self.dim), axis=0).astype(cost.dtype)

    def _by_capacity(self, cost: Cost) -> Cost:
        """Compute the lowest cost within each capacity item by item, then walk back over the decisions."""
        weights, capacity = _units(self.weights, self.capacity)
        size = int(capacity[0]) + 1
        item_weights = np.minimum(weights[0], size).astype(np.int32)

        def forward(lowest: Array, item: Any) -> tuple[Array, Array]:
            weight, price = item
            padded = jnp.concatenate([jnp.full(size, jnp.inf, cost.dtype), lowest])
            taken = jax.lax.dynamic_slice(padded, (size - weight,), (size,)) + price
            return jnp.minimum(lowest, taken), taken < lowest

        def backward(left: Array, item: Any) -> tuple[Array, Array]:
            weight, is_better = item
            take = is_better[left]
            return left - jnp.where(take, weight, 0), take

        _, is_better = jax.lax.scan(forward, jnp.zeros(size, cost.dtype), (item_weights, cost))
        _, taken = jax.lax.scan(backward, jnp.asarray(size - 1), (item_weights, is_better), reverse=True)
        return taken.astype(cost.dtype)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        weights, capacity = _units(self.weights, self.capacity)
        checked = self._converted(instance)
        available = True if checked is None else jnp.asarray(checked, bool)
        used = jnp.sum(jnp.asarray(weights, w.dtype) * w, axis=1)
        return jnp.all((w == 0) | ((w == 1) & available)) & jnp.all(used <= jnp.asarray(capacity, w.dtype))


class _SetsOfOneSize(NamedTuple):
    """The feasible sets of one size: each is a set of the size below and an item behind all of that set's items."""

    without_last: np.ndarray
    last: np.ndarray


class _FeasibleSets(NamedTuple):
    """All feasible sets, the empty set first, then size by size."""

    levels: tuple[_SetsOfOneSize, ...]
    items: np.ndarray  # [sets, largest size] filled up with d


@functools.lru_cache(maxsize=64)
def _units(weights: Rows, capacity: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and capacities in the largest unit that all weights of a row are multiples of, plus half a unit.

    The capacity of a row without such a unit has a relative tolerance of 1e-6 instead.
    """
    rows, limits = np.array(weights), np.array(capacity)
    scale = 10.0**MAX_DECIMALS
    for row, weight in enumerate(rows):
        millionths = np.round(weight * scale)
        if np.max(np.abs(millionths - weight * scale)) > 1e-9 * np.max(millionths, initial=1.0):
            limits[row] *= 1.0 + 1e-6
            continue
        unit = max(int(np.gcd.reduce(millionths.astype(np.int64))), 1)
        rows[row] = millionths / unit
        limits[row] = np.floor(limits[row] * scale / unit * (1.0 + 1e-12)) + 0.5
    return rows, limits


@functools.lru_cache(maxsize=64)
def _method(weights: Rows, capacity: tuple[float, ...]) -> Literal["sets", "capacity", "highs"]:
    rows, limits = _units(weights, capacity)
    whole = len(rows) == 1 and np.array_equal(rows, np.round(rows)) and rows.shape[1] * limits[0] <= MAX_CELLS
    sets = _feasible_sets(weights, capacity)
    if sets is not None and (not whole or len(sets.items) <= rows.shape[1] * limits[0]):
        return "sets"
    return "capacity" if whole else "highs"


@functools.lru_cache(maxsize=16)
def _feasible_sets(weights: Rows, capacity: tuple[float, ...]) -> _FeasibleSets | None:
    """Return all sets of items that fit, or None if there are more than MAX_LISTED_SETS."""
    rows, limits = _units(weights, capacity)
    dim = rows.shape[1]
    levels: list[_SetsOfOneSize] = []
    members, used = np.zeros((1, 0), np.int32), np.zeros((len(rows), 1))
    sizes = [members]
    while len(members) * dim <= 64 * MAX_LISTED_SETS:
        fits = np.all(used[:, :, None] + rows[:, None, :] <= limits[:, None, None], axis=0)
        if members.shape[1]:
            fits &= np.arange(dim) > members[:, -1:]
        before, last = (part.astype(np.int32) for part in np.nonzero(fits))
        if not len(last):
            items = [np.pad(part, ((0, 0), (0, len(levels) - part.shape[1])), constant_values=dim) for part in sizes]
            return _FeasibleSets(tuple(levels), np.concatenate(items))
        if sum(map(len, sizes)) + len(last) > MAX_LISTED_SETS:
            return None
        levels.append(_SetsOfOneSize(before, last))
        members, used = np.column_stack([members[before], last]), used[:, before] + rows[:, last]
        sizes.append(members)
    return None


@functools.lru_cache(maxsize=64)
def _solver(weights: Rows, capacity: tuple[float, ...]) -> Any:
    from regretless.oracles import highs  # loads the solver: not before it is needed

    rows, limits = _units(weights, capacity)
    return highs.BatchSolver(highs.make_program(rows, limits, None, None, (0, 1), 1))
