"""How the rows of a batch ended, in numbers and in words."""

from collections.abc import Sequence

import numpy as np

from regretless.errors import OracleError
from regretless.types import SOLVED, Solution

INFEASIBLE, OUT_OF_TIME, NOT_FINITE, BROKEN = range(SOLVED + 1, SOLVED + 5)

WHY = {
    INFEASIBLE: "infeasible: no decision satisfies the constraints",
    OUT_OF_TIME: "no proven optimum within the time limit",
    NOT_FINITE: "its costs are not finite numbers",
    BROKEN: "the solver gave up without an answer",
}


def why(code: int, time_limit: float | None = None) -> str:
    """What a status means, with the time limit where that was the reason."""
    limit = f" of {time_limit:g} s" if code == OUT_OF_TIME and time_limit is not None else ""
    return WHY.get(code, "the solver failed") + limit


def explain(status: Sequence[int] | np.ndarray, time_limit: float | None = None) -> str:
    """Which row of a batch failed first and why, and how many others did.

    >>> explain([0, 1, 1])
    'row 1 of a batch of 3: infeasible: no decision satisfies the constraints; 1 more of its rows failed'
    """
    codes = np.atleast_1d(np.asarray(status))
    failed = np.flatnonzero(codes != SOLVED)
    first = int(failed[0])
    return at(first, len(codes), why(int(codes[first]), time_limit), len(failed))


def at(row: int, rows: int, reason: str, failures: int = 1) -> str:
    """The sentence for a failure in this row, the first of so many."""
    others = f"; {failures - 1} more of its rows failed" if failures > 1 else ""
    return f"row {row} of a batch of {rows}: {reason}{others}"


def check(solution: Solution, what: str = "oracle", time_limit: float | None = None) -> None:
    """Raises OracleError unless every row is solved; names the first that is not, and how many are not."""
    if np.any(np.asarray(solution.status) != SOLVED):
        raise OracleError(f"{what}: {explain(np.asarray(solution.status), time_limit)}")
