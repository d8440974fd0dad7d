"""Mixed-integer programs on the host: many objectives over one feasible set, solved exactly by HiGHS on several cores.

This module loads the solver's shared library, so it is imported where a program is made and not before. Each worker
thread holds one model that is built once; between solves only the objective, right-hand sides and upper bounds
change. Every solve starts from the same state, so that the answer to a row depends neither on the rows before it nor
on the thread that solved it.
"""

import hashlib
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.oracles.base import BROKEN, INFEASIBLE, NOT_FINITE, OUT_OF_TIME, check_numbers
from regretless.startup import usable_cores
from regretless.types import SOLVED

ADVICE = "install one that works here: pip install 'highspy>=1.13,<1.14'"

try:
    import highspy
except ImportError as error:
    raise OracleError(
        f"expected to load the solver HiGHS, got: {error}; from 1.15 on it cannot be loaded next to OR-Tools: {ADVICE}"
    ) from error


def refuse_faulty(version: str) -> None:
    """Refuse HiGHS 1.14, which reports suboptimal decisions as optimal: its presolve is wrong for some integers."""
    if version.startswith("1.14."):
        raise OracleError(f"expected a HiGHS whose optima are optimal, got version {version}; {ADVICE}")


refuse_faulty(highspy.Highs().version())

_STATUS = {
    highspy.HighsModelStatus.kOptimal: SOLVED,
    highspy.HighsModelStatus.kInfeasible: INFEASIBLE,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: INFEASIBLE,  # never unbounded: refused at construction
    highspy.HighsModelStatus.kTimeLimit: OUT_OF_TIME,
}


class MixedIntegerProgram(NamedTuple):
    """``A_ub w ≤ b_ub``, ``A_eq w = b_eq``, ``lower ≤ w ≤ upper``, and ``w_i`` an integer where ``integer_i``."""

    a_ub: np.ndarray  # [m, d]
    b_ub: np.ndarray
    a_eq: np.ndarray  # [e, d]
    b_eq: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray  # bool

    @property
    def dim(self) -> int:
        """Number of variables."""
        return len(self.lower)

    def digest(self) -> str:
        """Return the SHA-256 of the numbers, whatever types they were given in."""
        digest = hashlib.sha256()
        for name, part in zip(self._fields, self, strict=True):
            numbers = np.ascontiguousarray(part, "<f8") + 0.0  # −0 and 0 are the same number
            digest.update(f"{name}{numbers.shape}".encode() + numbers.tobytes())
        return digest.hexdigest()


def make_program(A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any, integrality: Any) -> MixedIntegerProgram:
    """Return the program in full arrays; refuse shapes that do not fit together and entries that are not numbers."""
    given = {"A_ub": A_ub, "b_ub": b_ub, "A_eq": A_eq, "b_eq": b_eq, "integrality": integrality}
    arrays = {name: None if part is None else _dense_numbers(name, part) for name, part in given.items()}
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise SettingsError(f"milp: expected bounds to be a pair (low, high) of numbers or arrays, got {bounds!r}")
    arrays["low"], arrays["high"] = _dense_numbers("low", bounds[0]), _dense_numbers("high", bounds[1])
    sizes = {part.shape[-1] for name, part in arrays.items() if part is not None and part.ndim and name[0] != "b"}
    if len(sizes) != 1:
        shapes = {name: part.shape for name, part in arrays.items() if part is not None}
        raise SettingsError(f"milp: expected one number of columns throughout, got shapes {shapes}")
    dim = sizes.pop()
    a_ub, right_ub = _rows("ub", arrays["A_ub"], arrays["b_ub"], dim)
    a_eq, right_eq = _rows("eq", arrays["A_eq"], arrays["b_eq"], dim)
    lower, upper, integer = (_vector(name, arrays[name], dim) for name in ("low", "high", "integrality"))
    if not set(np.unique(integer)) <= {0.0, 1.0}:
        raise SettingsError(f"milp: expected integrality 0 or 1, got {np.unique(integer).tolist()}")
    if np.any(lower > upper):
        i = int(np.argmax(lower > upper))
        raise SettingsError(f"milp: expected low ≤ high, but component {i} has {lower[i]} and {upper[i]}")
    if np.any(np.isinf(a_ub)) or np.any(np.isinf(a_eq)) or np.any(np.isinf(right_eq)):
        raise SettingsError("milp: expected finite numbers in A_ub, A_eq and b_eq, got infinite ones")
    return MixedIntegerProgram(a_ub, right_ub, a_eq, right_eq, lower, upper, integer.astype(bool))


def _dense_numbers(name: str, part: Any) -> np.ndarray:
    dense = part.toarray() if hasattr(part, "toarray") else part
    array = check_numbers(f"milp: {name}", dense).astype(np.float64)
    if np.any(np.isnan(array)):
        raise SettingsError(f"milp: expected numbers in {name}, got NaN")
    return array


def _rows(kind: str, matrix: Any, right: Any, dim: int) -> tuple[np.ndarray, np.ndarray]:
    if matrix is None and right is None:
        return np.zeros((0, dim)), np.zeros(0)
    if matrix is None or right is None or matrix.ndim != 2 or right.shape != (len(matrix),):
        got = [None if part is None else part.shape for part in (matrix, right)]
        raise SettingsError(f"milp: expected A_{kind} of shape (rows, {dim}) and b_{kind} of shape (rows,), got {got}")
    return matrix, right


def _vector(name: str, part: Any, dim: int) -> np.ndarray:
    if part.shape not in ((), (dim,)):
        raise SettingsError(f"milp: expected {name} to be a number or of shape ({dim},), got {part.shape}")
    return np.broadcast_to(part, (dim,)).copy()


Change = np.ndarray | None
"""A part of the program that differs from row to row; None: as in the program."""


class BatchSolver:
    """Solve ``min c·w`` over a program for a batch of costs ``c``; ``workers`` threads share the rows."""

    def __init__(
        self, program: MixedIntegerProgram, time_limit: float = 60, gap: float = 0, workers: int | None = None
    ):
        self.program, self.time_limit, self.gap = program, time_limit, gap
        self.workers = workers or usable_cores()
        self._pools: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child has none of its parent's threads
        self._local = threading.local()
        self._start: highspy.HighsBasis | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_solver, (self.program, self.time_limit, self.gap, self.workers)

    def solve_batch(
        self, costs: np.ndarray, b_ub: Change = None, b_eq: Change = None, available: Change = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``w[b, d]`` in float64 and ``status[b]`` for ``costs[b, d]``.

        Each row may have its own right-hand sides, ``b_ub[b, m]`` and ``b_eq[b, e]``, and components that are not
        ``available[b, d]``: these are held at 0. The ``w`` of a row that is not SOLVED is 0 throughout.
        """
        costs = np.asarray(costs, np.float64)
        parts = [itertools.repeat(None) if part is None else part for part in (b_ub, b_eq, available)]
        try:  # map cancels rows that have not started when one fails or the user interrupts
            answers = [*self._pool().map(self._solve, costs, *parts)]
        except Exception as error:
            raise OracleError(f"HiGHS failed: {type(error).__name__}: {error}") from error
        w = np.array([answer[0] for answer in answers]).reshape(len(costs), self.program.dim)
        return w, np.array([answer[1] for answer in answers], np.int32)

    def _pool(self) -> ThreadPoolExecutor:
        pools, process = self._pools, os.getpid()
        if process not in pools:
            self._pools = pools = {process: ThreadPoolExecutor(self.workers, thread_name_prefix="solver")}
        return pools[process]

    def _solve(self, cost: np.ndarray, b_ub: Change, b_eq: Change, available: Change) -> tuple[np.ndarray, int]:
        program = self.program
        nothing = np.zeros(program.dim)
        finite = np.all(np.isfinite(cost)) and (b_eq is None or np.all(np.isfinite(b_eq)))
        if not finite or (b_ub is not None and np.any(np.isnan(b_ub))):
            return nothing, NOT_FINITE
        if available is not None and np.any(~available & ((program.lower > 0) | (program.upper < 0))):
            return nothing, INFEASIBLE
        solver = self._model()
        solver.clearSolver()
        solver.changeColsCost(program.dim, np.arange(program.dim, dtype=np.int32), scale_cost(cost))
        self._set_bounds(solver, b_ub, b_eq, available)
        if self._start is not None:
            solver.setBasis(self._start)
        # The clock of branch and bound restarts with every solve, that of the simplex method does not.
        spent = 0.0 if np.any(program.integer) else solver.getRunTime()
        solver.setOptionValue("time_limit", spent + self.time_limit)
        solver.run()
        status = _STATUS.get(solver.getModelStatus(), BROKEN)
        if status != SOLVED:
            return nothing, status
        w = np.array(solver.getSolution().col_value)
        return np.where(program.integer, np.round(w), np.clip(w, program.lower, program.upper)) + 0.0, SOLVED

    def _model(self) -> highspy.Highs:
        """Return the calling thread's model."""
        if not hasattr(self._local, "model"):
            self._local.model = build_model(self.program, self.gap)
        return self._local.model

    def _set_bounds(self, solver: Any, b_ub: Change, b_eq: Change, available: Change) -> None:
        """Set right-hand sides and bounds: the row's, or the program's if the row has none."""
        program = self.program
        above = (program.b_ub if b_ub is None else b_ub).astype(np.float64)
        equal = (program.b_eq if b_eq is None else b_eq).astype(np.float64)
        count = len(above) + len(equal)
        if count:
            low, high = np.concatenate([np.full(len(above), -np.inf), equal]), np.concatenate([above, equal])
            solver.changeRowsBounds(count, np.arange(count, dtype=np.int32), low, high)
        lower, upper = program.lower, program.upper
        if available is not None:
            lower, upper = np.where(available, lower, 0.0), np.where(available, upper, 0.0)
        solver.changeColsBounds(program.dim, np.arange(program.dim, dtype=np.int32), lower, upper)

    def begin(self) -> int:
        """Return the status of the program without costs; if it has no integers, every solve will start from there."""
        return self._pool().submit(self._begin).result()

    def _begin(self) -> int:
        status = self._solve(np.zeros(self.program.dim), None, None, None)[1]
        if status == SOLVED and not np.any(self.program.integer):
            self._start = self._model().getBasis()
        return status


def _restore_solver(program: MixedIntegerProgram, time_limit: float, gap: float, workers: int) -> BatchSolver:
    """Return a copy of a solver, with its start."""
    solver = BatchSolver(program, time_limit, gap, workers)
    solver.begin()
    return solver


def build_model(program: MixedIntegerProgram, gap: float) -> highspy.Highs:
    """Return a HiGHS model of the program, on one thread."""
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "random_seed": 0, "mip_rel_gap": float(gap), "mip_abs_gap": 1e-9}
    options["mip_heuristic_run_feasibility_jump"] = False  # takes three quarters of the time of a small program
    for name, value in options.items():
        solver.setOptionValue(name, value)
    matrix = np.concatenate([program.a_ub, program.a_eq])
    rows, columns = np.nonzero(matrix)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.dim, len(matrix)
    lp.col_cost_ = np.zeros(program.dim)
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_ = np.concatenate([np.full(len(program.b_ub), -np.inf), program.b_eq])
    lp.row_upper_ = np.concatenate([program.b_ub, program.b_eq])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.sum(matrix != 0, axis=1))]).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.astype(np.int32), matrix[rows, columns]
    if np.any(program.integer):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in program.integer]
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise OracleError("HiGHS rejects this model")
    return solver


def scale_cost(cost: np.ndarray) -> np.ndarray:
    """Return the cost times a power of two with a largest entry near 1000, where the solver's tolerances are small.

    A power of two changes no ratio of two costs, so that the optimum stays what it is.
    """
    largest = np.max(np.abs(cost), initial=0.0)
    return cost if largest == 0 else np.ldexp(cost, 10 - int(np.frexp(largest)[1]))


def unbounded_direction(program: MixedIntegerProgram) -> np.ndarray | None:
    """Return a direction in which the feasible set is unbounded, or None if it is bounded.

    Directions ``r`` satisfy ``A_ub r ≤ 0``, ``A_eq r = 0``, ``r_i ≥ 0`` where there is a lower bound, ``r_i ≤ 0``
    where there is an upper one; cut to ``|r_i| ≤ 1``, some ``±r_i`` is positive if there is any but 0. The relaxation
    of a program with integer variables has the same directions if its data are rational.
    """
    below, above = np.isfinite(program.lower), np.isfinite(program.upper)
    if np.all(below & above):
        return None
    cone = program._replace(
        b_ub=np.zeros_like(program.b_ub),
        b_eq=np.zeros_like(program.b_eq),
        lower=np.where(below, 0.0, -1.0),
        upper=np.where(above, 0.0, 1.0),
        integer=np.zeros(program.dim, bool),
    )
    signed = np.where(below & ~above, 1.0, np.where(above & ~below, -1.0, 0.0))
    free = np.eye(program.dim)[~below & ~above]
    solver = BatchSolver(cone)
    directions, _ = solver.solve_batch(-np.concatenate([signed[None], free, -free]))
    longest = directions[np.argmax(np.max(np.abs(directions), axis=1))]
    return longest if np.max(np.abs(longest)) > 1e-6 else None
