"""What an oracle is: a feasible set ``S`` that solves ``min c·w over w in S`` for many costs at once, exactly."""

import abc
import dataclasses
import math
from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from regretless.errors import OracleError
from regretless.oracles import inputs
from regretless.oracles.status import NOT_FINITE, check, explain
from regretless.types import SOLVED, Cost, Instance, Solution


class Oracle(eqx.Module):
    """A feasible set ``S`` with its linear minimiser ``w*(c)``.

    Oracles hold no arrays, only hashable choices, so that one compiled program serves every number a policy can have.

    There are two ways to solve. ``answer`` is a plain Python call, NumPy in and out, and works for every oracle. ``solve``
    takes and returns JAX arrays; inside a compiled program it works for oracles in pure JAX only. A solver that runs
    ``on_host`` stays outside: a program that waits for Python can hang, because Python may wait for the program's threads.
    """

    dim: int = eqx.field(static=True)  # number of cost coordinates

    @abc.abstractmethod
    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        """``w*(c)`` for each row; the leaves of ``instances`` have the same leading axis. Ties fall the same way every time."""

    @abc.abstractmethod
    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Whether ``w`` is in ``S`` under ``instance``."""

    @property
    def on_host(self) -> bool:
        """Whether solving is Python's work; if not, ``solve`` is pure JAX and calls nothing outside the program."""
        return False

    @property
    def support(self) -> int:
        """At most how many coordinates of a decision are non-zero."""
        return self.dim

    @property
    def names(self) -> tuple[Hashable, ...] | None:
        """What the coordinates are called, if they have names."""
        return None

    def answer(self, costs: Any, instances: Instance = None) -> Solution:
        """``w*(c)`` for each row of ``costs[b, d]``, as NumPy arrays in float64; raises OracleError if any row fails."""
        rows = inputs.rows("costs", costs, self.dim)
        lost = ~np.all(np.isfinite(rows), axis=1)
        if np.any(lost):
            raise OracleError(f"oracle: {explain(np.where(lost, NOT_FINITE, SOLVED))}")
        return self._answer(rows, self.instances(instances, len(rows)))

    def _answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        """``answer`` for arguments that were checked; an oracle on the host has its own."""
        with jax.enable_x64(True):
            solution = jax.tree.map(np.array, _solve(self, costs, instances))
        check(solution)
        return solution

    def contained(self, points: Any, instances: Instance = None) -> np.ndarray:
        """Whether each row of ``points[n, d]`` is in ``S`` under its instance, as a NumPy array of booleans."""
        rows = inputs.rows("points", points, self.dim)
        return self._contained(rows, self.instances(instances, len(rows)))

    def _contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        """``contained`` for arguments that were checked."""
        with jax.enable_x64(True):
            return np.array(_feasible(self, points, instances))

    def instance(self, given: Any) -> Instance:
        """What changes in this round, as a user gives it, checked and in the form that programs expect; None: nothing."""
        return None if given is None else inputs.tree("instance", given)

    def instances(self, given: Any, rows: int) -> Instance:
        """The same for a batch: every array has a leading axis of ``rows``."""
        return None if given is None else inputs.tree("instances", given, rows)

    def example_instance(self) -> Instance:
        """An instance that changes nothing, where instances have one form; else None."""
        return None

    def aux_form(self) -> PyTree:
        """Shapes and types of what ``solve`` tells beside ``w``, for one cost vector; None if nothing."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """What defines the feasible set, as JSON data; not how it is solved. Here: the class and its fields that are data."""
        fields = {field.name: as_data(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"kind": type(self).__name__, **{name: value for name, value in fields.items() if value is not None}}

    def solve_one(self, cost: Cost, instance: Instance = None) -> Solution:
        """``w*(c)`` of one cost vector."""
        return jax.tree.map(lambda leaf: leaf[0], self.solve_round(jnp.asarray(cost)[None], instance))

    def solve_round(self, costs: Float[Array, "b d"], instance: Instance = None) -> Solution:
        """``w*(c)`` of several cost vectors that meet the same instance."""
        rows, own = len(costs), self._converted(instance)
        return self.solve(costs, jax.tree.map(lambda leaf: _repeated(leaf, rows), own))

    def _converted(self, instance: Instance) -> Instance:
        """``instance`` checked; one that a program is being compiled for was checked before."""
        return instance if traced(instance) else self.instance(instance)


class TraceableOracle(Oracle):
    """An oracle in pure JAX: written for one cost vector, batched by ``vmap``."""

    @abc.abstractmethod
    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        """``w*(c)`` of one cost vector."""

    def aux_form(self) -> PyTree:
        aux = lambda cost: self.minimise(cost, self.example_instance()).aux  # noqa: E731
        return jax.eval_shape(aux, jax.ShapeDtypeStruct((self.dim,), jnp.result_type(float)))

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        known = instances if traced(instances) else self.instances(instances, len(costs))
        return _minimise(self, jnp.asarray(costs), known)


class MaskedOracle(TraceableOracle):
    """A pure JAX oracle whose instances say which coordinates may be used: booleans, or numbers that are exactly 0 or 1."""

    def instance(self, given: Any) -> Instance:
        return None if given is None else inputs.mask("instance", given, (self.dim,))

    def instances(self, given: Any, rows: int) -> Instance:
        return None if given is None else inputs.mask("instances", given, (rows, self.dim))

    def example_instance(self) -> Instance:
        return np.ones(self.dim, bool)


def traced(*trees: Any) -> bool:
    """Whether any of this belongs to a program that is being compiled, or mapped over a batch."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def refuse_tracing(*trees: Any) -> None:
    """Raises OracleError if any of this belongs to a program that is being compiled."""
    if traced(*trees):
        raise OracleError(
            "a host solver cannot run inside a compiled program: expected arrays, got values of jit, vmap or scan; sample "
            "in one program, call oracle.answer (or oracle.contained) from Python, and record the answer in the next program"
        )


def solve_on_host(oracle: Oracle, costs: Any, instances: Instance) -> Solution:
    """``solve`` by ``answer``: JAX arrays in the precision of ``costs``."""
    refuse_tracing(costs, instances)
    solution = oracle.answer(costs, instances)
    w = jnp.asarray(solution.w, jnp.result_type(jnp.asarray(costs).dtype, float))
    return Solution(w, *jax.tree.map(jnp.asarray, (solution.status, solution.aux)))


def feasible_on_host(oracle: Oracle, w: Any, instance: Instance) -> Bool[Array, ""]:
    """``feasible`` by ``contained``."""
    refuse_tracing(w, instance)
    batch = jax.tree.map(lambda leaf: leaf[None], oracle.instance(instance))
    return jnp.asarray(oracle.contained(np.asarray(w)[None], batch)[0])


def as_data(value: Any) -> Any:
    """A value as JSON data; None if it is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple | list):
        return [as_data(part) for part in value]
    return value if isinstance(value, bool | int | float | str) else None


def _repeated(leaf: Any, rows: int) -> Any:
    spread: Any = jnp.broadcast_to if traced(leaf) else np.broadcast_to
    return spread(leaf, (rows, *np.shape(leaf)))


@jax.jit
def _minimise(oracle: TraceableOracle, costs: Float[Array, "b d"], instances: Instance) -> Solution:
    return jax.vmap(oracle.minimise)(costs, instances)


@jax.jit
def _solve(oracle: Oracle, costs: Float[Array, "b d"], instances: Instance) -> Solution:
    return oracle.solve(costs, instances)


@jax.jit
def _feasible(oracle: Oracle, points: Float[Array, "n d"], instances: Instance) -> Bool[Array, " n"]:
    return jax.vmap(oracle.feasible)(points, instances)
