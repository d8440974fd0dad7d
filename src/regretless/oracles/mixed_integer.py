"""Any mixed-integer linear programme as a feasible set, solved exactly on the host by HiGHS."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError
from regretless.oracles import highs, host
from regretless.oracles.base import Oracle
from regretless.types import Instance, Solution

INSTANCE_KEYS = ("b_ub", "b_eq", "available")
TOLERANCE = 1e-5


class Milp(Oracle):
    """``S = {w : A_ub w ≤ b_ub, A_eq w = b_eq, low ≤ w ≤ high, w_i whole where integrality_i = 1}``.

    ``A_ub`` is ``[m, d]`` and ``A_eq`` ``[e, d]`` (NumPy or SciPy), ``bounds`` the pair ``(low, high)``, each a number
    or ``[d]``, ``integrality`` 0, 1 or an array ``[d]`` of them. A row that takes longer than ``time_limit`` seconds fails;
    ``gap`` is the relative distance from the optimum that is good enough; ``workers`` threads share a batch (default: as many
    as there are cores).

    An instance is a dictionary with any of ``b_ub`` ``[m]``, ``b_eq`` ``[e]`` and ``available`` ``[d]`` (booleans; what is not
    available stays 0).

    Refused at construction: an empty set, and one without end in some direction, because then some cost has no optimum.
    A row that fails later gets a status; ``raise_failure`` tells which row it was and why.

    >>> import jax.numpy as jnp, regretless as rg
    >>> bag = rg.oracles.milp(A_ub=[[3, 4, 2]], b_ub=[6], integrality=1)
    >>> bag.solve_one(jnp.array([-4.0, -5.0, -3.0])).w.tolist()
    [0.0, 1.0, 1.0]
    >>> bag.solve_one(jnp.array([-4.0, -5.0, -3.0]), {"b_ub": jnp.array([5.0])}).w.tolist()
    [1.0, 0.0, 1.0]
    """

    solver: highs.BatchSolver = eqx.field(static=True)
    failure: host.Failure = eqx.field(static=True)

    def __init__(
        self,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        bounds: tuple[Any, Any] = (0, 1),
        integrality: Any = 0,
        time_limit: float = 60.0,
        gap: float = 0.0,
        workers: int | None = None,
    ):
        programme = _programme(A_ub, b_ub, A_eq, b_eq, bounds, integrality)
        if not time_limit > 0 or not gap >= 0 or (workers is not None and workers < 1):
            raise ValueError(
                f"milp: expected time_limit > 0, gap ≥ 0 and at least one worker, got {time_limit}, {gap} and {workers}"
            )
        self.dim = programme.dim
        self.solver = highs.BatchSolver(programme, time_limit, gap, workers)
        self.failure = host.Failure()
        status = self.solver.begin()
        if status != highs.SOLVED:
            raise ValueError(f"milp: {highs.WHY[status].format(time_limit=time_limit)}")
        endless = highs.ray(programme)
        if endless is not None:
            worst = int(np.argmax(np.abs(endless)))
            raise ValueError(
                f"milp: the feasible set is unbounded: component {worst} can go on for ever towards "
                f"{'plus' if endless[worst] > 0 else 'minus'} infinity, so that some costs have no optimum; "
                "give it finite bounds"
            )

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        costs = jnp.asarray(costs)
        parts = self._parts(instances, costs.shape[0])
        results = [
            jax.ShapeDtypeStruct(costs.shape, costs.dtype),
            jax.ShapeDtypeStruct(costs.shape[:1], np.int32),
        ]
        names = tuple(parts)
        w, status = host.call(lambda *given: self._call(names, *given), results, costs, *parts.values())
        return Solution(w, status)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        own = {name: part[0] for name, part in self._parts(jax.tree.map(lambda leaf: leaf[None], instance), 1).items()}
        programme = self.solver.programme
        a_ub, a_eq, lower, upper = (
            jnp.asarray(part, w.dtype) for part in (programme.a_ub, programme.a_eq, programme.lower, programme.upper)
        )
        available = own.get("available", jnp.ones(self.dim, bool))
        lower, upper = jnp.where(available, lower, 0.0), jnp.where(available, upper, 0.0)
        size = jnp.abs(w) * TOLERANCE + TOLERANCE
        inside = jnp.all((w >= lower - size) & (w <= upper + size))
        whole = jnp.all(jnp.where(jnp.asarray(programme.integer), jnp.abs(w - jnp.round(w)) <= size, True))
        above = a_ub @ w - own.get("b_ub", jnp.asarray(programme.b_ub, w.dtype))
        apart = jnp.abs(a_eq @ w - own.get("b_eq", jnp.asarray(programme.b_eq, w.dtype)))
        kept = jnp.all(above <= jnp.abs(a_ub) @ size) & jnp.all(apart <= jnp.abs(a_eq) @ size)
        return inside & whole & kept

    def take_failure(self) -> OracleError | None:
        error = self.failure.take()
        return error if isinstance(error, OracleError) else None

    def raise_failure(self) -> None:
        raise self.take_failure() or OracleError(f"milp: {highs.WHY[highs.NOT_FINITE]}")

    def _parts(self, instances: Instance, rows: int) -> dict[str, Array]:
        """The batch of instances by name, checked."""
        if instances is None:
            return {}
        if not isinstance(instances, dict) or not set(instances) <= set(INSTANCE_KEYS):
            got = sorted(instances) if isinstance(instances, dict) else type(instances).__name__
            raise ValueError(f"milp: expected an instance to be a dictionary with keys of {INSTANCE_KEYS}, got {got}")
        programme = self.solver.programme
        sizes = {"b_ub": len(programme.b_ub), "b_eq": len(programme.b_eq), "available": self.dim}
        parts = {name: jnp.asarray(part) for name, part in instances.items()}
        for name, part in parts.items():
            if part.shape != (rows, sizes[name]):
                raise ValueError(f"milp: expected {name} of shape ({sizes[name]},) per row, got {part.shape[1:]}")
        return parts

    def _call(self, names: tuple[str, ...], costs: np.ndarray, *parts: np.ndarray) -> list[np.ndarray]:
        """Host side, NumPy only: any number of leading axes comes in, one flat batch goes to the solver."""
        flat = {name: part.reshape(-1, part.shape[-1]) for name, part in zip(names, parts, strict=True)}
        if "available" in flat:
            flat["available"] = flat["available"].astype(bool)
        try:
            w, status = self.solver.solve_batch(costs.reshape(-1, self.dim), **flat)
        except Exception as error:
            self.failure.put(OracleError(f"milp: {error!r}"))
            w, status = np.zeros((costs.size // self.dim, self.dim)), np.full(costs.size // self.dim, highs.BROKEN)
        if np.any((status != highs.SOLVED) & (status != highs.NOT_FINITE)):
            self.failure.put(OracleError(f"milp: {highs.explain(status, self.solver.time_limit)}"))
        return [w.reshape(costs.shape).astype(costs.dtype), status.reshape(costs.shape[:-1]).astype(np.int32)]


def _programme(A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any, integrality: Any) -> highs.Programme:
    """The programme in full arrays; refuses shapes that do not fit together and numbers that are none."""
    given = {"A_ub": A_ub, "b_ub": b_ub, "A_eq": A_eq, "b_eq": b_eq, "integrality": integrality}
    arrays = {name: None if part is None else _numbers(name, part) for name, part in given.items()}
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise ValueError(f"milp: expected bounds to be a pair (low, high) of numbers or arrays, got {bounds!r}")
    arrays["low"], arrays["high"] = _numbers("low", bounds[0]), _numbers("high", bounds[1])
    sizes = {part.shape[-1] for name, part in arrays.items() if part is not None and part.ndim and name[0] != "b"}
    if len(sizes) != 1:
        shapes = {name: part.shape for name, part in arrays.items() if part is not None}
        raise ValueError(f"milp: expected one number of columns throughout, got shapes {shapes}")
    dim = sizes.pop()
    a_ub, right_ub = _rows("ub", arrays["A_ub"], arrays["b_ub"], dim)
    a_eq, right_eq = _rows("eq", arrays["A_eq"], arrays["b_eq"], dim)
    lower, upper, integer = (_vector(name, arrays[name], dim) for name in ("low", "high", "integrality"))
    if not set(np.unique(integer)) <= {0.0, 1.0}:
        raise ValueError(f"milp: expected integrality 0 or 1, got {np.unique(integer).tolist()}")
    if np.any(lower > upper):
        i = int(np.argmax(lower > upper))
        raise ValueError(f"milp: expected low ≤ high, but component {i} has {lower[i]} and {upper[i]}")
    if np.any(np.isinf(a_ub)) or np.any(np.isinf(a_eq)) or np.any(np.isinf(right_eq)):
        raise ValueError("milp: expected finite numbers in A_ub, A_eq and b_eq, got infinite ones")
    return highs.Programme(a_ub, right_ub, a_eq, right_eq, lower, upper, integer.astype(bool))


def _numbers(name: str, part: Any) -> np.ndarray:
    array = np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float64)
    if np.any(np.isnan(array)):
        raise ValueError(f"milp: expected numbers in {name}, got NaN")
    return array


def _rows(kind: str, matrix: np.ndarray | None, right: np.ndarray | None, dim: int) -> tuple[np.ndarray, np.ndarray]:
    if matrix is None and right is None:
        return np.zeros((0, dim)), np.zeros(0)
    if matrix is None or right is None or matrix.ndim != 2 or right.shape != (len(matrix),):
        got = [None if part is None else part.shape for part in (matrix, right)]
        raise ValueError(f"milp: expected A_{kind} of shape (rows, {dim}) and b_{kind} of shape (rows,), got {got}")
    return matrix, right


def _vector(name: str, part: np.ndarray | None, dim: int) -> np.ndarray:
    assert part is not None
    if part.shape not in ((), (dim,)):
        raise ValueError(f"milp: expected {name} to be a number or of shape ({dim},), got {part.shape}")
    return np.broadcast_to(part, (dim,)).copy()
