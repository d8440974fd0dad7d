"""Mixed-integer programmes on the host: many objectives over one feasible set, solved exactly by HiGHS on several cores.

NumPy and highspy only. This module loads the solver's shared library, so it is imported where a programme is made and not
before. Each worker thread holds one model that is built once; between solves only the objective, right-hand sides and upper
bounds change. Every solve starts from the same state, so that the answer to a row depends neither on the rows before it nor
on the thread that solved it.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from regretless.errors import OracleError
from regretless.oracles.programme import Programme
from regretless.oracles.status import BROKEN, INFEASIBLE, NOT_FINITE, OUT_OF_TIME
from regretless.startup import usable_cores
from regretless.types import SOLVED

ADVICE = "install one that works here: pip install 'highspy>=1.13,<1.14'"

try:
    import highspy
except ImportError as error:
    raise OracleError(
        f"expected to load the solver HiGHS, got: {error}; from 1.15 on it cannot be loaded beside OR-Tools: {ADVICE}"
    ) from error


def refuse_faulty(version: str) -> None:
    """HiGHS 1.14 calls decisions optimal that are not: its presolve is wrong where some variables are integers."""
    if version.startswith("1.14."):
        raise OracleError(f"expected a HiGHS whose optima are optimal, got version {version}; {ADVICE}")


refuse_faulty(highspy.Highs().version())

_STATUS = {
    highspy.HighsModelStatus.kOptimal: SOLVED,
    highspy.HighsModelStatus.kInfeasible: INFEASIBLE,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: INFEASIBLE,  # never unbounded: refused at construction
    highspy.HighsModelStatus.kTimeLimit: OUT_OF_TIME,
}


class BatchSolver:
    """Solves ``min c·w`` over a programme for a batch of costs ``c``; ``workers`` threads share the rows."""

    def __init__(self, programme: Programme, time_limit: float = 60.0, gap: float = 0.0, workers: int | None = None):
        self.programme, self.time_limit, self.gap = programme, time_limit, gap
        self.workers = workers or usable_cores()
        self._pools: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child has none of its parent's threads
        self._own = threading.local()
        self._start: highspy.HighsBasis | None = None

    def solve_batch(
        self,
        costs: np.ndarray,
        b_ub: np.ndarray | None = None,
        b_eq: np.ndarray | None = None,
        available: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``w[b, d]`` in float64 and ``status[b]`` for ``costs[b, d]``.

        A row may have right-hand sides of its own, ``b_ub[b, m]`` and ``b_eq[b, e]``, and components that are not
        ``available[b, d]``: these are held at 0. The ``w`` of a row that is not SOLVED is 0 throughout.
        """
        costs = np.asarray(costs, np.float64)
        parts = (b_ub, b_eq, available)
        rows = [[None if part is None else part[i] for part in parts] for i in range(len(costs))]
        pool = self._pool()
        jobs = [pool.submit(self._solve, cost, *row) for cost, row in zip(costs, rows, strict=True)]
        try:
            answers = [job.result() for job in jobs]
        except Exception as error:
            raise OracleError(f"HiGHS failed: {type(error).__name__}: {error}") from error
        finally:
            for job in jobs:  # those that have not begun when one fails or the user interrupts
                job.cancel()
        w = np.array([answer[0] for answer in answers]).reshape(len(costs), self.programme.dim)
        return w, np.array([answer[1] for answer in answers], np.int32)

    def _pool(self) -> ThreadPoolExecutor:
        pools, process = self._pools, os.getpid()
        if process not in pools:
            self._pools = pools = {process: ThreadPoolExecutor(self.workers, thread_name_prefix="solver")}
        return pools[process]

    def _solve(
        self, cost: np.ndarray, b_ub: np.ndarray | None, b_eq: np.ndarray | None, available: np.ndarray | None
    ) -> tuple[np.ndarray, int]:
        programme = self.programme
        nothing = np.zeros(programme.dim)
        finite = np.all(np.isfinite(cost)) and (b_eq is None or np.all(np.isfinite(b_eq)))
        if not finite or (b_ub is not None and np.any(np.isnan(b_ub))):
            return nothing, NOT_FINITE
        if available is not None and np.any(~available & ((programme.lower > 0) | (programme.upper < 0))):
            return nothing, INFEASIBLE
        solver = self._model()
        solver.clearSolver()
        solver.changeColsCost(programme.dim, np.arange(programme.dim, dtype=np.int32), scaled(cost))
        self._confine(solver, b_ub, b_eq, available)
        if self._start is not None:
            solver.setBasis(self._start)
        # The clock of branch and bound starts anew with every solve, that of the simplex method runs on.
        spent = 0.0 if np.any(programme.integer) else solver.getRunTime()
        solver.setOptionValue("time_limit", spent + self.time_limit)
        solver.run()
        status = _STATUS.get(solver.getModelStatus(), BROKEN)
        if status != SOLVED:
            return nothing, status
        w = np.array(solver.getSolution().col_value)
        return np.where(programme.integer, np.round(w), np.clip(w, programme.lower, programme.upper)) + 0.0, SOLVED

    def _model(self) -> highspy.Highs:
        """The model that belongs to the calling thread."""
        if not hasattr(self._own, "model"):
            self._own.model = model(self.programme, self.gap)
        return self._own.model

    def _confine(
        self, solver: Any, b_ub: np.ndarray | None, b_eq: np.ndarray | None, available: np.ndarray | None
    ) -> None:
        """Sets right-hand sides and bounds: a row's own, or the programme's where it has none."""
        programme = self.programme
        above = (programme.b_ub if b_ub is None else b_ub).astype(np.float64)
        equal = (programme.b_eq if b_eq is None else b_eq).astype(np.float64)
        count = len(above) + len(equal)
        if count:
            low, high = np.concatenate([np.full(len(above), -np.inf), equal]), np.concatenate([above, equal])
            solver.changeRowsBounds(count, np.arange(count, dtype=np.int32), low, high)
        lower, upper = programme.lower, programme.upper
        if available is not None:
            lower, upper = np.where(available, lower, 0.0), np.where(available, upper, 0.0)
        solver.changeColsBounds(programme.dim, np.arange(programme.dim, dtype=np.int32), lower, upper)

    def begin(self) -> int:
        """Status of the programme without costs; for one without integer variables, where all solves will start."""

        def first() -> int:
            status = self._solve(np.zeros(self.programme.dim), None, None, None)[1]
            if status == SOLVED and not np.any(self.programme.integer):
                self._start = self._model().getBasis()
            return status

        return self._pool().submit(first).result()


def model(programme: Programme, gap: float) -> highspy.Highs:
    """A HiGHS model of the programme, on one thread."""
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": float(gap)}
    options |= {"mip_abs_gap": 1e-9, "random_seed": 0}
    options["mip_heuristic_run_feasibility_jump"] = False  # takes three quarters of the time of a small programme
    for name, value in options.items():
        solver.setOptionValue(name, value)
    matrix = np.concatenate([programme.a_ub, programme.a_eq])
    rows, columns = np.nonzero(matrix)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = programme.dim, len(matrix)
    lp.col_cost_ = np.zeros(programme.dim)
    lp.col_lower_, lp.col_upper_ = programme.lower, programme.upper
    lp.row_lower_ = np.concatenate([np.full(len(programme.b_ub), -np.inf), programme.b_eq])
    lp.row_upper_ = np.concatenate([programme.b_ub, programme.b_eq])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.sum(matrix != 0, axis=1))]).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.astype(np.int32), matrix[rows, columns]
    if np.any(programme.integer):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in programme.integer]
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise OracleError("HiGHS refuses this model")
    return solver


def scaled(cost: np.ndarray) -> np.ndarray:
    """The cost times a power of two that brings its largest entry near 1000, where the solver's tolerances are small.

    A power of two changes no ratio of two costs, so that the optimum stays what it is.
    """
    largest = np.max(np.abs(cost), initial=0.0)
    return cost if largest == 0 else np.ldexp(cost, 10 - int(np.frexp(largest)[1]))


def ray(programme: Programme) -> np.ndarray | None:
    """A direction in which the feasible set goes on for ever, or None if it is bounded.

    Directions ``r`` satisfy ``A_ub r ≤ 0``, ``A_eq r = 0``, ``r_i ≥ 0`` where there is a lower bound, ``r_i ≤ 0`` where there
    is an upper one; cut to ``|r_i| ≤ 1``, some ``±r_i`` is positive if there is any but 0. The relaxation of a programme with
    integer variables has the same directions, if its data are rational.
    """
    below, above = np.isfinite(programme.lower), np.isfinite(programme.upper)
    if np.all(below & above):
        return None
    cone = programme._replace(
        b_ub=np.zeros_like(programme.b_ub),
        b_eq=np.zeros_like(programme.b_eq),
        lower=np.where(below, 0.0, -1.0),
        upper=np.where(above, 0.0, 1.0),
        integer=np.zeros(programme.dim, bool),
    )
    signed = np.where(below & ~above, 1.0, np.where(above & ~below, -1.0, 0.0))
    free = np.eye(programme.dim)[~below & ~above]
    solver = BatchSolver(cone)
    directions, _ = solver.solve_batch(-np.concatenate([signed[None], free, -free]))
    longest = directions[np.argmax(np.max(np.abs(directions), axis=1))]
    return longest if np.max(np.abs(longest)) > 1e-6 else None
