"""Interface of oracles: a feasible set ``S`` that solves ``min c·w over w in S`` exactly, for many costs at once."""

import abc
import dataclasses
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from regretless.errors import OracleError, SettingsError, short_repr
from regretless.types import SOLVED, Cost, Instance, Solution

INFEASIBLE, OUT_OF_TIME, NOT_FINITE, BROKEN = range(SOLVED + 1, SOLVED + 5)
"""Why a row has no solution."""

BINDING = 1e-6
"""Largest distance from a constraint that binds."""

REASONS = {
    INFEASIBLE: "infeasible: no decision satisfies the constraints",
    OUT_OF_TIME: "no proven optimum within the time limit",
    NOT_FINITE: "its costs are not finite numbers",
    BROKEN: "the solver gave up without an answer",
}


def reason_of(status: int, time_limit: float | None = None) -> str:
    """Return what a status means, with the time limit if that was the reason."""
    limit = f" of {time_limit:g} s" if status == OUT_OF_TIME and time_limit is not None else ""
    return REASONS.get(status, "the solver failed") + limit


def failure_text(row: int, rows: int, reason: str, failures: int = 1) -> str:
    """Return the message for a failure in this row, the first of several."""
    others = f"; {failures - 1} more of its rows failed" if failures > 1 else ""
    return f"row {row} of a batch of {rows}: {reason}{others}"


def explain(status: Sequence[int] | np.ndarray, time_limit: float | None = None) -> str:
    """Return which row of a batch failed first and why, and how many others did.

    >>> explain([0, 1, 1])
    'row 1 of a batch of 3: infeasible: no decision satisfies the constraints; 1 more of its rows failed'
    """
    codes = np.atleast_1d(np.asarray(status))
    failed = np.flatnonzero(codes != SOLVED)
    first = int(failed[0])
    return failure_text(first, len(codes), reason_of(int(codes[first]), time_limit), len(failed))


def check(solution: Solution, name: str = "oracle", time_limit: float | None = None) -> None:
    """Check that every row is solved.

    Parameters
    ----------
    solution : Solution
        What an oracle returned.
    name : str, default "oracle"
        The oracle's name in the message.
    time_limit : float, optional
        Its time limit in seconds, for the message.

    Raises
    ------
    OracleError
        If a row is not solved; the message names the first one and how many others.
    """
    if np.any(np.asarray(solution.status) != SOLVED):
        raise OracleError(f"{name}: {explain(np.asarray(solution.status), time_limit)}")


_KIND_NAMES = {"U": "text", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "spans of time", "V": "records"}


def check_numbers(name: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a new array of real numbers or booleans; check its shape if one is given.

    >>> check_numbers("prices", [1, 2.5], (2,)).tolist()
    [1.0, 2.5]
    >>> check_numbers("prices", ["1", "2.5"])
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: prices: expected numbers, got text
    """
    if _has_mask(given):
        raise SettingsError(f"{name}: expected plain numbers, got a masked array; fill in the values that it hides")
    try:
        array = np.array(given)
    except Exception:
        raise SettingsError(f"{name}: expected numbers, got a {type(given).__name__} that is no array") from None
    if array.dtype.kind not in "biuf":
        kind = _KIND_NAMES.get(array.dtype.kind) or f"an object of type {type(given).__name__}"
        raise SettingsError(f"{name}: expected numbers, got {kind}")
    if shape is not None and array.shape != shape:
        raise SettingsError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def check_integer(name: str, given: Any) -> int:
    """Return an integer; refuse booleans and floating-point numbers, even whole ones."""
    if isinstance(given, bool | np.bool) or not isinstance(given, int | np.integer):
        raise SettingsError(f"{name}: expected an integer, got {short_repr(given)}")
    return int(given)


def check_rows(name: str, given: Any, dim: int) -> np.ndarray:
    """Return a batch of vectors ``[b, dim]`` in float64."""
    array = check_numbers(name, given)
    if array.ndim != 2 or array.shape[1] != dim:
        raise SettingsError(f"{name}: expected rows of {dim} numbers, shape (b, {dim}), got shape {array.shape}")
    return array.astype(np.float64)


def check_finite(name: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a new array as ``check_numbers`` does, floating-point numbers in float64; refuse NaN and infinity."""
    array = check_numbers(name, given, shape)
    if array.dtype.kind != "f":
        return array
    if not np.all(np.isfinite(array)):
        raise SettingsError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)].flat[0]}")
    return array.astype(np.float64)


def check_mask(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return booleans of this shape, given as such or as numbers that are exactly 0 or 1.

    >>> check_mask("open edges", [1, 0], (2,)).tolist()
    [True, False]
    >>> check_mask("open edges", [2, 0], (2,))
    Traceback (most recent call last):
    ...
    regretless.errors.SettingsError: open edges: expected True and False, or exactly 1 and 0, got 2
    """
    array = check_numbers(name, given, shape)
    other = array[(array != 0) & (array != 1)]
    if other.size:
        raise SettingsError(f"{name}: expected True and False, or exactly 1 and 0, got {other.flat[0]}")
    return array.astype(bool)


def check_tree(name: str, given: Any, length: int | None = None) -> Any:
    """Return a pytree of finite numbers as new arrays; with ``length``, each has a leading axis of it."""
    leaves, structure = jax.tree.flatten(given)
    arrays = [check_finite(name, leaf) for leaf in leaves]
    for array in arrays:
        if length is not None and array.shape[:1] != (length,):
            raise SettingsError(f"{name}: expected a leading axis of {length} rows, got shape {array.shape}")
    return jax.tree.unflatten(structure, arrays)


def _has_mask(given: Any) -> bool:
    if isinstance(given, np.ma.MaskedArray):
        return True
    return isinstance(given, list | tuple) and any(_has_mask(part) for part in given)


class Constraints(NamedTuple):
    """``A_ub w ≤ b_ub``, ``A_eq w = b_eq`` and ``low ≤ w ≤ high``.

    Parameters
    ----------
    a_ub, b_ub : arrays of shape (m, d) and (m,)
        Inequalities.
    a_eq : array of shape (e, d)
        Left-hand sides of equations.
    low, high : arrays of shape (d,)
        Bounds.
    """

    a_ub: Any
    b_ub: Any
    a_eq: Any
    low: Any
    high: Any


class Oracle(eqx.Module):
    """A feasible set ``S`` with its linear minimiser ``w*(c)``.

    Oracles hold no arrays, only hashable choices, so that one compiled program serves every number a policy can have.

    There are two ways to solve. ``answer`` is a plain Python call, NumPy in and out, and works for every oracle.
    ``solve`` takes and returns JAX arrays, in functions that JAX traces too. A solver that runs ``on_host`` is called
    between two compiled programs, see ``host_calls``: ``simulate`` and ``Learner`` do so, ``jax.jit`` refuses it.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    """

    dim: int = eqx.field(static=True)

    if not TYPE_CHECKING:
        # Equinox makes a module of every bound method, 35 µs a call on the host; oracles hold no arrays to pass on.
        __getattribute__ = object.__getattribute__

    @abc.abstractmethod
    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        """Return ``w*(c)`` for each row; ties are broken the same way every time.

        Parameters
        ----------
        costs : array of shape (b, d)
            Cost vectors.
        instances : pytree, optional
            What changes in the feasible set, with a leading axis of ``b`` in every leaf.
        """

    @abc.abstractmethod
    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Return whether ``w`` is in ``S`` under ``instance``.

        Parameters
        ----------
        w : array of shape (d,)
            A decision.
        instance : pytree, optional
            What changed in the feasible set.
        """

    @property
    def kind(self) -> str:
        """The name of its class without "Oracle"."""
        return type(self).__name__.removesuffix("Oracle")

    @property
    def on_host(self) -> bool:
        """Whether Python solves; if not, ``solve`` is pure JAX and calls nothing outside the program."""
        return False

    @property
    def nonnegative(self) -> bool:
        """Whether it is exact for costs of at least 0 only; lower ones count as 0."""
        return False

    @property
    def convex(self) -> bool:
        """Whether any mixture of two decisions is a decision, as in linear programs without integers."""
        return False

    @property
    def support(self) -> int:
        """Largest possible number of non-zero coordinates of a decision."""
        return self.dim

    @property
    def names(self) -> tuple[Hashable, ...] | None:
        """Names of the coordinates, if they have any."""
        return None

    def answer(self, costs: Any, instances: Instance = None) -> Solution:
        """Return ``w*(c)`` for each row of ``costs[b, d]``, as NumPy arrays in float64.

        Parameters
        ----------
        costs : array of shape (b, d)
            Cost vectors.
        instances : pytree, optional
            What changes in the feasible set, with a leading axis of ``b`` in every leaf.

        Raises
        ------
        OracleError
            If any row fails.
        """
        rows = check_rows("costs", costs, self.dim)
        unusable = ~np.all(np.isfinite(rows), axis=1)
        if np.any(unusable):
            raise OracleError(f"oracle: {explain(np.where(unusable, NOT_FINITE, SOLVED))}")
        return self._answer(rows, self.instances(instances, len(rows)))

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        """``answer`` for arguments that were checked; overridden by oracles on the host."""
        with jax.enable_x64(True):
            solution = jax.tree.map(np.array, _solve(self, costs, instances))
        check(solution)
        return solution

    def contained(self, points: Any, instances: Instance = None) -> np.ndarray:
        """Return whether each row of ``points[n, d]`` is in ``S`` under its instance, as NumPy booleans.

        Parameters
        ----------
        points : array of shape (n, d)
            Decisions.
        instances : pytree, optional
            What changes in the feasible set, with a leading axis of ``n`` in every leaf.
        """
        rows = check_rows("points", points, self.dim)
        return self._contained(rows, self.instances(instances, len(rows)))

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        """``contained`` for arguments that were checked."""
        with jax.enable_x64(True):
            return np.array(_feasible(self, points, instances))

    def instance(self, given: Any) -> Instance:
        """Return a user's instance, checked and in the form that programs expect; None if nothing changes.

        Parameters
        ----------
        given : object
            What a user passes as ``instance``.

        Raises
        ------
        SettingsError
            If it is not an instance of this oracle.
        """
        return self._check_instance("instance", given, ())

    def instances(self, given: Any, rows: int) -> Instance:
        """Return a batch of instances, checked: every array has a leading axis of ``rows``.

        Parameters
        ----------
        given : object
            What a user passes as ``instances``.
        rows : int
            Number of rows of the batch.

        Raises
        ------
        SettingsError
            If these are not ``rows`` instances of this oracle.
        """
        return self._check_instance("instances", given, (rows,))

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        """Return an instance, or a batch of them with this leading axis, in the form that programs expect."""
        return None if given is None else check_tree(name, given, *lead)

    def example_instance(self) -> Instance:
        """Return an instance that changes nothing, if instances have one form; else None."""
        return None

    def constraints(self, instance: Instance) -> "Constraints | None":
        """Return linear constraints whose solutions are the hull of the feasible set, or its relaxation; None: unknown.

        Parameters
        ----------
        instance : pytree or None
            What changed in the feasible set.
        """
        return None

    def require_constraints(self, name: str) -> None:
        """Refuse an oracle that does not know its constraints.

        Parameters
        ----------
        name : str
            What needs them, for the message.

        Raises
        ------
        SettingsError
            If it does not know them.
        """
        if type(self).constraints is Oracle.constraints:
            raise SettingsError(
                f"{name}: expected an oracle that knows its constraints (top_k, pricing, assignment, shortest_path or "
                f"milp), got {self.kind}"
            )

    def binding_normals(self, w: Float[Array, " d"], instance: Instance = None) -> Float[Array, "m d"]:
        """Return the outer normals of the constraints that bind at a decision, and rows of zeros for all others.

        Parameters
        ----------
        w : array of shape (d,)
            A feasible decision.
        instance : pytree, optional
            What changed in the feasible set.

        Raises
        ------
        SettingsError
            If the oracle does not know its constraints.

        Examples
        --------
        >>> import jax.numpy as jnp, regretless as rg
        >>> rg.oracles.top_k(2, 1).binding_normals(jnp.array([1.0, 0.0])).tolist()
        [[1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [0.0, 0.0], [-0.0, -0.0], [-0.0, -1.0]]
        """
        self.require_constraints("binding_normals")
        known: Any = self.constraints(self._converted(instance))
        unit, a_ub, a_eq = jnp.eye(self.dim, dtype=w.dtype), jnp.asarray(known.a_ub, w.dtype), known.a_eq
        tight = lambda gap: jnp.asarray(jnp.abs(gap) <= BINDING, w.dtype)[:, None]  # noqa: E731
        equations = jnp.asarray(a_eq, w.dtype)
        above, low, high = tight(a_ub @ w - known.b_ub), tight(w - known.low), tight(w - known.high)
        return jnp.concatenate([equations, -equations, above * a_ub, high * unit, -(low * unit)])

    def aux_form(self) -> PyTree:
        """Return shapes and types of what ``solve`` returns next to ``w``, for one cost vector; None if nothing."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Return what defines the feasible set, as JSON data; not how it is solved."""
        fields = {field.name: as_data(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"kind": self.kind, **{name: value for name, value in fields.items() if value is not None}}

    def solve_one(self, cost: Cost, instance: Instance = None) -> Solution:
        """Return ``w*(c)`` of one cost vector.

        Parameters
        ----------
        cost : array of shape (d,)
            The costs.
        instance : pytree, optional
            What changed in the feasible set.
        """
        return jax.tree.map(lambda leaf: leaf[0], self.solve_round(jnp.asarray(cost)[None], instance))

    def solve_round(self, costs: Float[Array, "b d"], instance: Instance = None) -> Solution:
        """Return ``w*(c)`` of several cost vectors with the same instance.

        Parameters
        ----------
        costs : array of shape (b, d)
            Cost vectors.
        instance : pytree, optional
            What changed in the feasible set.
        """
        rows, checked = len(costs), self._converted(instance)
        return self.solve(costs, jax.tree.map(lambda leaf: _repeated(leaf, rows), checked))

    def _converted(self, instance: Instance) -> Instance:
        """Return the checked instance; one inside a program that is being compiled was checked before."""
        return instance if traced(instance) else self.instance(instance)


class TraceableOracle(Oracle):
    """An oracle in pure JAX: written for one cost vector, batched by ``vmap``.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    """

    @abc.abstractmethod
    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        """Return ``w*(c)`` of one cost vector.

        Parameters
        ----------
        cost : array of shape (d,)
            The costs.
        instance : pytree or None
            What changed in the feasible set.
        """

    def aux_form(self) -> PyTree:
        aux = lambda cost: self.minimise(cost, self.example_instance()).aux  # noqa: E731
        return jax.eval_shape(aux, jax.ShapeDtypeStruct((self.dim,), jnp.result_type(float)))

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        checked = instances if traced(instances) else self.instances(instances, len(costs))
        return _minimise(self, jnp.asarray(costs), checked)


class MaskedOracle(TraceableOracle):
    """A pure JAX oracle whose instances mark the coordinates that may be used: booleans, or exactly 0 and 1.

    Parameters
    ----------
    dim : int
        Number of cost coordinates.
    """

    def _within(self, a_eq: Any, instance: Instance) -> Constraints:
        """Return equations with bounds 0 and 1, or 0 where a coordinate may not be used."""
        high = jnp.ones(self.dim) if instance is None else jnp.asarray(instance, float)
        return Constraints(np.zeros((0, self.dim)), np.zeros(0), a_eq, jnp.zeros(self.dim), high)

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        return None if given is None else check_mask(name, given, (*lead, self.dim))

    def example_instance(self) -> Instance:
        return np.ones(self.dim, bool)


def traced(*trees: Any) -> bool:
    """Return whether any leaf belongs to a program that is being compiled, or is mapped over a batch."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def as_data(value: Any) -> Any:
    """Return a value as JSON data; None if it is not data."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple | list):
        return [as_data(part) for part in value]
    return value if isinstance(value, bool | int | float | str) else None


def _repeated(leaf: Any, rows: int) -> Any:
    broadcast: Any = jnp.broadcast_to if traced(leaf) else np.broadcast_to
    return broadcast(leaf, (rows, *np.shape(leaf)))


@jax.jit
def _minimise(oracle: TraceableOracle, costs: Float[Array, "b d"], instances: Instance) -> Solution:
    return jax.vmap(oracle.minimise)(costs, instances)


@jax.jit
def _solve(oracle: Oracle, costs: Float[Array, "b d"], instances: Instance) -> Solution:
    return oracle.solve(costs, instances)


@jax.jit
def _feasible(oracle: Oracle, points: Float[Array, "n d"], instances: Instance) -> Bool[Array, " n"]:
    return jax.vmap(oracle.feasible)(points, instances)
