"""Any mixed-integer linear program as a feasible set, solved exactly on the host by HiGHS."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import SettingsError
from regretless.oracles.base import Constraints, check, check_integer, check_mask, check_numbers, reason_of
from regretless.oracles.host import HostOracle
from regretless.types import SOLVED, Instance, Solution

if TYPE_CHECKING:
    from regretless.oracles.highs import BatchSolver

INSTANCE_KEYS = ("b_ub", "b_eq", "available")
TOLERANCE = 1e-5


class MilpOracle(HostOracle):
    """``S = {w : A_ub w ≤ b_ub, A_eq w = b_eq, low ≤ w ≤ high, w_i an integer where integrality_i = 1}``.

    An empty set is refused at construction, and so is one that is unbounded in some direction, because then some cost
    has no optimum. If a row fails later, the call raises an OracleError that names the row and the reason.

    An instance is a dictionary with any of ``b_ub`` ``[m]``, ``b_eq`` ``[e]`` and ``available`` ``[d]`` (a mask,
    booleans or exactly 0 and 1; what is not available stays 0).

    Parameters
    ----------
    A_ub, b_ub : arrays of shape (m, d) and (m,), optional
        Inequalities; NumPy or SciPy.
    A_eq, b_eq : arrays of shape (e, d) and (e,), optional
        Equations.
    bounds : pair (low, high), default (0, 1)
        Each a number or an array of shape (d,).
    integrality : 0, 1 or array of shape (d,), default 0
        1 where a component is an integer.
    time_limit : float, default 60
        Seconds after which a row fails.
    gap : float, default 0
        Relative distance from the optimum that is accepted.
    workers : int, optional
        Threads that share a batch; by default the number of cores.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> bag = rg.oracles.milp(A_ub=[[3, 4, 2]], b_ub=[6], integrality=1)
    >>> bag.answer([[-4.0, -5.0, -3.0]]).w.tolist()
    [[0.0, 1.0, 1.0]]
    >>> bag.solve_one(np.array([-4.0, -5.0, -3.0]), {"b_ub": [5.0]}).w.tolist()
    [1.0, 0.0, 1.0]
    """

    solver: "BatchSolver" = eqx.field(static=True)

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
        from regretless.oracles import highs  # loads the solver: not before it is needed

        program = highs.make_program(A_ub, b_ub, A_eq, b_eq, bounds, integrality)
        too_few = workers is not None and check_integer("milp: workers", workers) < 1
        if not time_limit > 0 or not gap >= 0 or too_few:
            raise SettingsError(
                f"milp: expected time_limit > 0, gap ≥ 0 and at least one worker, got {time_limit}, {gap} and {workers}"
            )
        self.dim = program.dim
        self.solver = highs.BatchSolver(program, time_limit, gap, workers)
        status = self.solver.begin()
        if status != SOLVED:
            raise SettingsError(f"milp: {reason_of(status, time_limit)}")
        direction = highs.unbounded_direction(program)
        if direction is not None:
            worst = int(np.argmax(np.abs(direction)))
            raise SettingsError(
                f"milp: the feasible set is unbounded: component {worst} can go to "
                f"{'plus' if direction[worst] > 0 else 'minus'} infinity, so that some costs have no optimum; "
                "give it finite bounds"
            )

    def __repr__(self) -> str:
        program = self.solver.program
        return f"MilpOracle(dim={self.dim}, inequalities={len(program.b_ub)}, equations={len(program.b_eq)})"

    @property
    def convex(self) -> bool:
        return not bool(np.any(self.solver.program.integer))

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        answer: Any = self.solver.solve_batch(costs, **(instances or {}))
        solution = Solution(*answer)
        check(solution, "milp", self.solver.time_limit)
        return solution

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Return whether ``w`` satisfies every constraint up to the solver's tolerances; pure JAX."""
        given = self._converted(instance) or {}
        program = self.solver.program
        a_ub, a_eq, lower, upper = (
            jnp.asarray(part, w.dtype) for part in (program.a_ub, program.a_eq, program.lower, program.upper)
        )
        available = jnp.asarray(given.get("available", np.ones(self.dim)), bool)
        lower, upper = jnp.where(available, lower, 0.0), jnp.where(available, upper, 0.0)
        size = jnp.abs(w) * TOLERANCE + TOLERANCE
        inside = jnp.all((w >= lower - size) & (w <= upper + size))
        whole = jnp.all(jnp.where(jnp.asarray(program.integer), jnp.abs(w - jnp.round(w)) <= size, True))
        above = a_ub @ w - jnp.asarray(given.get("b_ub", program.b_ub), w.dtype)
        apart = jnp.abs(a_eq @ w - jnp.asarray(given.get("b_eq", program.b_eq), w.dtype))
        kept = jnp.all(above <= jnp.abs(a_ub) @ size) & jnp.all(apart <= jnp.abs(a_eq) @ size)
        return inside & whole & kept

    def constraints(self, instance: Instance) -> Constraints:
        """Return the constraints without integrality: those of the relaxation."""
        given, program = instance or {}, self.solver.program
        available = jnp.asarray(given.get("available", np.ones(self.dim)), bool)
        low, high = (jnp.where(available, bound, 0.0) for bound in (program.lower, program.upper))
        return Constraints(program.a_ub, given.get("b_ub", program.b_ub), program.a_eq, low, high)

    def example_instance(self) -> Instance:
        program = self.solver.program
        sides = {"b_ub": program.b_ub.copy(), "b_eq": program.b_eq.copy()}
        return {"available": np.ones(self.dim, bool), **{name: part for name, part in sides.items() if len(part)}}

    def fingerprint(self) -> dict[str, Any]:
        program = self.solver.program
        rows = [len(program.b_ub), len(program.b_eq)]
        return {"kind": "Milp", "dim": self.dim, "rows": rows, "program": program.digest()}

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        """Return the checked parts; a single instance has the program's for the others, so that all have one form."""
        if given is None:
            return None
        if not isinstance(given, dict) or not set(given) <= set(INSTANCE_KEYS):
            got = list(given) if isinstance(given, dict) else type(given).__name__
            raise SettingsError(f"milp: {name}: expected a dictionary with keys of {INSTANCE_KEYS}, got {got}")
        program = self.solver.program
        sizes = {"b_ub": len(program.b_ub), "b_eq": len(program.b_eq)}
        parts = {} if lead else self.example_instance()
        for key, part in given.items():
            if key == "available":
                parts[key] = check_mask("milp: available", part, (*lead, self.dim))
                continue
            parts[key] = side = check_numbers(f"milp: {key}", part, (*lead, sizes[key])).astype(np.float64)
            wrong = ~np.isfinite(side) & ((side != np.inf) | (key == "b_eq"))
            if np.any(wrong):
                raise SettingsError(f"milp: {key}: expected finite numbers, got {side[wrong].flat[0]}")
        return parts
