"""Any Python function as an oracle, called from Python and never from inside a compiled program."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError, RegretlessError, SettingsError
from regretless.oracles import deadline, inputs
from regretless.oracles.base import Oracle, feasible_on_host, solve_on_host
from regretless.oracles.status import at
from regretless.types import SOLVED, Instance, Solution

Solver = Callable[..., Any]


class External(Oracle):
    """``S`` as a Python function of the user's.

    ``fn(cost)`` returns ``w`` for one cost vector; with ``batched=True`` it gets ``[b, d]`` and returns ``[b, d]``. If
    ``takes_instance``, the instance (or the batch of them) is the second argument. With ``aux``, an example of what the
    solver returns beside ``w`` (a pytree of arrays for one decision), it returns the pair ``(w, aux)``. ``contains(w)``, or
    ``contains(w, instance)``, says whether a decision is feasible; without it every decision counts as feasible. The functions
    get float64 copies, which they may change.

    An exception inside ``fn``, a wrong shape or an answer that is not finite becomes an OracleError. So does, with
    ``time_limit`` seconds, a call that takes longer: calls are then made in a thread of their own, and one that is out of time
    is left to its thread, for Python cannot stop it. It goes on in the background beside later calls, which get new threads.

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
    ):
        if not callable(fn) or not (contains is None or callable(contains)):
            raise SettingsError(f"external oracle: expected functions fn and contains, got {fn!r} and {contains!r}")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise SettingsError(f"external oracle: expected a positive number of cost coordinates, got {dim!r}")
        if time_limit is not None and not _is_duration(time_limit):
            raise SettingsError(
                f"external oracle: expected a time_limit in seconds, above 0, or None, got {time_limit!r}"
            )
        self.fn, self.dim, self.batched, self.takes_instance = fn, int(dim), batched, takes_instance
        leaves, structure = jax.tree.flatten(aux)
        examples = [inputs.numbers("external oracle: aux", leaf) for leaf in leaves]
        self.aux = (tuple((example.shape, str(example.dtype)) for example in examples), structure)
        self.contains, self.time_limit = contains, time_limit

    @property
    def on_host(self) -> bool:
        return True

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        return solve_on_host(self, costs, instances)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        return jnp.asarray(True) if self.contains is None else feasible_on_host(self, w, instance)

    def instance(self, given: Any) -> Instance:
        self._require(given)
        return super().instance(given)

    def instances(self, given: Any, rows: int) -> Instance:
        self._require(given)
        return super().instances(given, rows)

    def _require(self, given: Any) -> None:
        if self.takes_instance != (given is not None):
            raise SettingsError(
                "external oracle: expected an instance, got None; the solver was declared with takes_instance=True"
                if self.takes_instance
                else "external oracle: expected no instance; for a solver that takes one, say takes_instance=True"
            )

    def aux_form(self) -> Any:
        leaves, structure = self.aux
        return jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in leaves])

    def fingerprint(self) -> dict[str, Any]:
        leaves, structure = self.aux
        aux = {"form": str(structure), "leaves": [[list(shape), dtype] for shape, dtype in leaves]}
        return {"kind": "External", "dim": self.dim, "takes_instance": self.takes_instance, "aux": aux}

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        calls = _Calls(self.fn, costs, instances, self.takes_instance, self.time_limit)
        w: Any = np.zeros_like(costs)
        leaves: list[Any] = [np.zeros((len(costs), *shape), dtype) for shape, dtype in self.aux[0]]
        form, batched = self.aux[1], self.batched
        failed: list[tuple[int, BaseException]] = []
        for row in [0] if batched else range(len(costs)):
            try:
                _fill(slice(None) if batched else row, calls, w, form, leaves)
            except (Exception, SystemExit) as error:
                failed.append((row, error))
                if isinstance(error, deadline.OutOfTimeError):  # the other rows would hardly fare better
                    break
        if failed:
            row, cause = failed[0]
            batch = f"batch of {len(costs)}: {calls.why(cause)}"
            told = batch if batched else at(row, len(costs), calls.why(cause), len(failed))
            raise OracleError(f"the external solver failed: {told}") from cause
        status: Any = np.full(len(costs), SOLVED, np.int32)
        return Solution(w, status, jax.tree.unflatten(form, leaves))

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        inside = np.ones(len(points), bool)
        if self.contains is None:
            return inside
        calls = _Calls(self.contains, points, instances, self.takes_instance, self.time_limit)
        for row in range(len(points)):
            try:
                inside[row] = inputs.mask("contains", calls.make(row), ())
            except (Exception, SystemExit) as error:
                raise OracleError(f"contains failed: {at(row, len(points), calls.why(error))}") from error
        return inside


class _Calls(NamedTuple):
    """Calls of a user's function, for one row of a batch or for all of them."""

    fn: Solver
    rows: np.ndarray
    instances: Instance
    takes_instance: bool
    time_limit: float | None

    def make(self, row: Any) -> Any:
        """What the function returns for this row, within the time limit; the arrays are copies that ``answer`` made."""
        arguments = [self.rows[row]]
        if self.takes_instance:
            arguments.append(jax.tree.map(lambda leaf: leaf[row], self.instances))
        return self.fn(*arguments) if self.time_limit is None else deadline.call(self.time_limit, self.fn, *arguments)

    def why(self, error: BaseException) -> str:
        """What went wrong, in words."""
        if isinstance(error, deadline.OutOfTimeError):
            return f"no answer within the time limit of {self.time_limit:g} s; the call was left behind"
        return str(error) if isinstance(error, RegretlessError) else f"{type(error).__name__}: {error}"


def _fill(row: Any, calls: _Calls, w: np.ndarray, form: Any, leaves: list[Any]) -> None:
    """Solves one row, or all of them, and puts the checked answer in place."""
    answer = calls.make(row)
    if not leaves:
        w[row] = inputs.finite("the solver's decision", answer, w[row].shape)
        return
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        raise SettingsError(f"expected the pair (w, aux), the solver returned {_name(answer)}")
    w[row] = inputs.finite("the solver's decision", answer[0], w[row].shape)
    try:
        parts = form.flatten_up_to(answer[1])
    except ValueError as error:
        raise SettingsError(f"the solver's aux: expected the form of the example, got another: {error}") from None
    for leaf, part in zip(leaves, parts, strict=True):
        value = inputs.numbers("the solver's aux", part, leaf[row].shape)
        if not np.can_cast(value.dtype, leaf.dtype, "same_kind"):
            raise SettingsError(f"the solver's aux: expected numbers of type {leaf.dtype}, got {value.dtype}")
        leaf[row] = value


def _is_duration(seconds: Any) -> bool:
    number = isinstance(seconds, int | float | np.number) and not isinstance(seconds, bool)
    return number and 0 < seconds <= threading.TIMEOUT_MAX


def _name(answer: Any) -> str:
    return f"{len(answer)} things" if isinstance(answer, tuple | list) else f"one {type(answer).__name__}"
