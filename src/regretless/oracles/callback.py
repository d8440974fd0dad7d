"""Any Python function, or PyEPO model, as an oracle: called outside compiled programs, with a time limit."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError, RegretlessError, SettingsError
from regretless.extras import require
from regretless.oracles.base import check_finite, check_integer, check_mask, check_numbers, failure_text
from regretless.oracles.host import HostOracle
from regretless.types import SOLVED, Instance, Solution

Solver = Callable[..., Any]


class TimeLimitError(Exception):
    """A call that did not return within its time limit; its thread is still running."""


def call_with_limit(seconds: float, fn: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``fn(*arguments)`` in a new thread and return its result.

    Python cannot stop a thread: one that is out of time continues in the background until its call returns, and ends
    with the process at the latest.

    Raises
    ------
    TimeLimitError
        After ``seconds``. An exception of ``fn`` is raised again.
    """
    outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def call() -> None:
        try:
            outcome.put((fn(*arguments), None))
        except BaseException as error:  # raised again in the calling thread
            outcome.put((None, error))

    threading.Thread(target=call, name="regretless-solver", daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeLimitError from None
    if error is not None:
        raise error
    return result


class ExternalOracle(HostOracle):
    """``S`` as a Python function of the user.

    The functions receive float64 copies, which they may change. An exception inside ``fn``, a wrong shape, an answer
    that is not finite, or a call beyond the time limit becomes an OracleError.

    Parameters
    ----------
    fn : callable
        ``fn(cost)`` returns ``w`` for one cost vector; with ``batched=True`` it receives ``[b, d]`` and returns ``[b,
        d]``.
    dim : int
        Number of cost coordinates ``d``.
    batched : bool, default False
        Whether ``fn`` solves a whole batch.
    takes_instance : bool, default False
        Whether the instance, or the batch of them, is the second argument of ``fn`` and ``contains``.
    aux : pytree of arrays, optional
        An example of what the solver returns next to ``w``, for one decision; ``fn`` then returns the pair ``(w,
        aux)``.
    contains : callable, optional
        Return whether a decision is feasible; without it every decision counts as feasible.
    time_limit : float, optional
        Seconds for one call. Each call is then made in a new thread; Python cannot stop a thread, so a call that is
        out of time continues in the background.
    convex : bool, default False
        Whether any mixture of two decisions is a decision: then a guard leaves the incumbent in small steps.
    workers : int, default 1
        Rows that are solved at the same time, each in a thread: for an ``fn`` that may be called from several threads
        and that releases Python's global lock while it solves.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> oracle = rg.oracles.external(lambda cost: np.eye(3)[np.argmin(cost)], 3)
    >>> oracle.answer([[2.0, 0.5, 1.0]]).w.tolist()
    [[0.0, 1.0, 0.0]]
    """

    fn: Solver = eqx.field(static=True)
    batched: bool = eqx.field(static=True)
    takes_instance: bool = eqx.field(static=True)
    aux: Any = eqx.field(static=True)
    contains: Callable[..., Any] | None = eqx.field(static=True)
    time_limit: float | None = eqx.field(static=True)
    workers: int = eqx.field(static=True)
    mixable: bool = eqx.field(static=True)

    def __init__(
        self,
        fn: Solver,
        dim: int,
        *,
        batched: bool = False,
        takes_instance: bool = False,
        aux: Any = None,
        contains: Callable[..., Any] | None = None,
        time_limit: float | None = None,
        workers: int = 1,
        convex: bool = False,
    ):
        if not callable(fn) or not (contains is None or callable(contains)):
            raise SettingsError(f"external oracle: expected functions fn and contains, got {fn!r} and {contains!r}")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise SettingsError(f"external oracle: expected a positive number of cost coordinates, got {dim!r}")
        if time_limit is not None and not _is_time_limit(time_limit):
            raise SettingsError(f"external oracle: expected a time_limit in seconds, above 0, got {time_limit!r}")
        if check_integer("external oracle: workers", workers) < 1 or (batched and workers > 1):
            raise SettingsError(
                f"external oracle: expected at least one worker, and one for a batched solver, got {workers}"
            )
        self.workers, self.mixable = int(workers), bool(convex)
        self.fn, self.dim, self.batched, self.takes_instance = fn, int(dim), batched, takes_instance
        leaves, structure = jax.tree.flatten(aux)
        examples = [check_numbers("external oracle: aux", leaf) for leaf in leaves]
        self.aux = (tuple((example.shape, str(example.dtype)) for example in examples), structure)
        self.contains, self.time_limit = contains, time_limit

    @property
    def convex(self) -> bool:
        return self.mixable

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        return jnp.asarray(True) if self.contains is None else super().feasible(w, instance)

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        if self.takes_instance != (given is not None):
            raise SettingsError(
                "external oracle: expected an instance, got None; the solver was declared with takes_instance=True"
                if self.takes_instance
                else "external oracle: expected no instance; for a solver that takes one, pass takes_instance=True"
            )
        return super()._check_instance(name, given, lead)

    def aux_form(self) -> Any:
        leaves, structure = self.aux
        return jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in leaves])

    def fingerprint(self) -> dict[str, Any]:
        leaves, structure = self.aux
        aux = {"form": str(structure), "leaves": [[list(shape), dtype] for shape, dtype in leaves]}
        return {"kind": "External", "dim": self.dim, "takes_instance": self.takes_instance, "aux": aux}

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        w: Any = np.zeros_like(costs)
        status: Any = np.full(len(costs), SOLVED, np.int32)
        leaves: list[Any] = [np.zeros((len(costs), *shape), dtype) for shape, dtype in self.aux[0]]

        def store(row: Any, answer: Any) -> None:
            decision, parts = self._split(answer)
            w[row] = check_finite("the solver's decision", decision, w[row].shape)
            for leaf, part in zip(leaves, parts, strict=True):
                value = check_numbers("the solver's aux", part, leaf[row].shape)
                if not np.can_cast(value.dtype, leaf.dtype, "same_kind"):
                    raise SettingsError(f"the solver's aux: expected numbers of type {leaf.dtype}, got {value.dtype}")
                leaf[row] = value

        self._call("the external solver", self.fn, costs, instances, store, self.batched)
        return Solution(w, status, jax.tree.unflatten(self.aux[1], leaves))

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        inside = np.ones(len(points), bool)

        def store(row: Any, answer: Any) -> None:
            inside[row] = check_mask("contains", answer, ())

        if self.contains is not None:
            self._call("contains", self.contains, points, instances, store)
        return inside

    def _split(self, answer: Any) -> tuple[Any, list[Any]]:
        """Return the decision and the leaves of aux."""
        if not self.aux[0]:
            return answer, []
        if not (isinstance(answer, tuple | list) and len(answer) == 2):
            got = f"{len(answer)} values" if isinstance(answer, tuple | list) else f"one {type(answer).__name__}"
            raise SettingsError(f"expected the pair (w, aux), the solver returned {got}")
        try:
            return answer[0], self.aux[1].flatten_up_to(answer[1])
        except ValueError as error:
            raise SettingsError(f"the solver's aux: expected the form of the example, got another: {error}") from None

    def _call(
        self, name: str, fn: Solver, rows: np.ndarray, instances: Instance, store: Solver, batched: bool = False
    ) -> None:
        """Call a function for each row, or once for all, within the time limit, and store what it returns.

        The arrays are copies that ``answer`` made. One error names the first row that failed.
        """
        given = (rows, instances) if self.takes_instance else (rows,)
        limit = self.time_limit
        failed: list[tuple[Any, BaseException]] = []

        def call(row: Any) -> None:
            if any(isinstance(error, TimeLimitError) for _, error in failed):  # this row would hardly be faster
                return
            arguments = jax.tree.map(lambda leaf: leaf[row], given)
            try:
                store(row, fn(*arguments) if limit is None else call_with_limit(limit, fn, *arguments))
            except (Exception, SystemExit) as error:
                failed.append((row, error))

        if self.workers == 1 or len(rows) == 1:
            for row in [slice(None)] if batched else range(len(rows)):
                call(row)
        else:
            with ThreadPoolExecutor(self.workers, "regretless-solver") as pool:
                list(pool.map(call, range(len(rows))))
        if failed:
            failed.sort(key=lambda pair: pair[0])
            row, cause = failed[0]
            reason = self._describe(cause)
            text = f"batch of {len(rows)}: {reason}" if batched else failure_text(row, len(rows), reason, len(failed))
            raise OracleError(f"{name} failed: {text}") from cause

    def _describe(self, error: BaseException) -> str:
        if isinstance(error, TimeLimitError):
            return f"no answer within the time limit of {self.time_limit:g} s; the call continues in the background"
        return str(error) if isinstance(error, RegretlessError) else f"{type(error).__name__}: {error}"


def _is_time_limit(seconds: Any) -> bool:
    number = isinstance(seconds, int | float | np.number) and not isinstance(seconds, bool)
    return number and 0 < seconds <= threading.TIMEOUT_MAX


def from_pyepo(model: Any) -> ExternalOracle:
    """Return a PyEPO model as an oracle: ``w*(c)`` by ``model.setObj(c)`` and ``model.solve()``.

    A model that maximises receives ``−c``, so that costs stay costs on this side: predict and report costs, minus the
    rewards of the model. If a model predicts the cost of some variables only, the decision holds those variables;
    known fixed costs on top are refused, because the cost of a decision would no longer be ``c·w``.

    One cost vector is solved after the other, by one thread at a time, because a PyEPO model holds its objective as
    state. The model must not be used elsewhere meanwhile. An exception in it becomes an OracleError that names the
    row.

    Parameters
    ----------
    model : pyepo.model.opt.optModel
        Any model with a linear objective.

    Raises
    ------
    SettingsError
        If it is not such a model.
    MissingExtraError
        If PyEPO is not installed.
    """
    sign = _sense_sign(model)
    problem = getattr(model, "problem", None)  # of a model that was compiled from PyEPO's modelling language
    if problem is not None and problem.obj_Q is not None:
        raise SettingsError(f"expected a linear objective c·w, got {model!r} with a quadratic term; take that term out")
    if problem is not None and np.any(problem.fixed_cost):
        raise SettingsError(
            f"expected a model whose whole objective is predicted, got {model!r} with known fixed costs; predict the "
            "cost of those variables too, and put what is known into the features"
        )
    predicted = None if model.c_pred_index is None else np.asarray(model.c_pred_index)
    lock = threading.Lock()

    def solve(cost: np.ndarray) -> np.ndarray:
        with lock:
            return _solve_pyepo(model, sign * cost, predicted)

    return ExternalOracle(solve, int(model.num_cost))


def _sense_sign(model: Any) -> float:
    """Return 1 for a model that minimises, −1 for one that maximises; refuse anything else."""
    EPO, optModel = require("pyepo", extra="pyepo").EPO, require("pyepo.model.opt", extra="pyepo").optModel
    if not isinstance(model, optModel):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise SettingsError(f"expected an instance of pyepo's optModel, got {kind}; for functions use external")
    if model.modelSense not in (EPO.MINIMIZE, EPO.MAXIMIZE):
        raise SettingsError(
            f"expected {model!r} to have modelSense EPO.MINIMIZE or EPO.MAXIMIZE, got {model.modelSense!r}"
        )
    return 1.0 if model.modelSense == EPO.MINIMIZE else -1.0


def _solve_pyepo(model: Any, objective: np.ndarray, predicted: np.ndarray | None) -> np.ndarray:
    """Solve once; the model may return a tensor, a list or an array."""
    model.setObj(objective)
    solution, _ = model.solve()
    w = np.asarray(solution.detach().cpu() if hasattr(solution, "detach") else solution, float)
    return w if predicted is None else w[predicted]
