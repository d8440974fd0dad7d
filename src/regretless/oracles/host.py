"""Oracles on the host inside traced functions: calls between programs, stand-ins that share programs, shifted costs."""

import dataclasses
import json
from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.host_calls import host_call
from regretless.oracles.base import Oracle, traced
from regretless.types import SOLVED, Cost, Instance, Solution


@dataclasses.dataclass(frozen=True)
class OracleCall:
    """``answer`` and ``contained`` of an oracle, as functions of rows; costs that are not finite have no solution."""

    oracle: Oracle
    solves: bool

    def bound(self, host: Any) -> "OracleCall":
        """Return the call of the solver that a stand-in stands for."""
        return dataclasses.replace(self, oracle=host) if isinstance(self.oracle, HostOracleForm) else self

    def __call__(self, rows: np.ndarray, instances: Instance) -> Any:
        rows = rows.astype(np.float64)
        if not self.solves:
            return self.oracle.contained(rows, instances)
        usable = np.isfinite(rows).all(axis=1)
        if usable.all():
            return self.oracle.answer(rows, instances)
        w: Any = np.zeros_like(rows)
        status: Any = np.full(len(rows), SOLVED, np.int32)
        aux = jax.tree.map(lambda leaf: np.zeros((len(rows), *leaf.shape), leaf.dtype), self.oracle.aux_form())
        if usable.any():
            part = self.oracle.answer(rows[usable], jax.tree.map(lambda leaf: leaf[usable], instances))
            for place, leaf in zip([w, status, *jax.tree.leaves(aux)], jax.tree.leaves(part), strict=True):
                place[usable] = leaf
        return Solution(w, status, aux)


def solve_on_host(oracle: Oracle, costs: Any, instances: Instance) -> Solution:
    """Return ``solve`` by ``answer``, at once or as a call of Python: JAX arrays in the precision of ``costs``."""
    costs = jnp.asarray(costs)
    precision = jnp.result_type(costs.dtype, float)
    if not traced(costs, instances):
        solution = oracle.answer(costs, instances)
        return Solution(jnp.asarray(solution.w, precision), *jax.tree.map(jnp.asarray, (solution.status, solution.aux)))
    w: Any = jax.ShapeDtypeStruct((oracle.dim,), precision)
    status: Any = jax.ShapeDtypeStruct((), jnp.int32)
    form = Solution(w, status, oracle.aux_form())
    solved: Solution = host_call(OracleCall(oracle, solves=True), form, costs, instances)
    return solved


def feasible_on_host(oracle: Oracle, w: Any, instance: Instance) -> Bool[Array, ""]:
    """Return ``feasible`` by ``contained``, at once or as a call of Python."""
    if not traced(w, instance):
        batch = jax.tree.map(lambda leaf: leaf[None], oracle.instance(instance))
        return jnp.asarray(oracle.contained(np.asarray(w)[None], batch)[0])
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (w, instance))
    inside: Array = host_call(OracleCall(oracle, solves=False), jax.ShapeDtypeStruct((), bool), *rows)
    return inside[0]


@dataclasses.dataclass(frozen=True)
class _FeasibleSet:
    """What is known of the feasible set of a solver; ``oracle``, the solver itself, does not count in comparisons."""

    identity: Hashable
    oracle: Oracle = dataclasses.field(compare=False)


class HostOracle(Oracle):
    """Base class of solvers on the host: write ``_answer``, and ``_contained`` or ``feasible``."""

    on_host = True

    def solve(self, costs: Any, instances: Instance = None) -> Solution:
        return solve_on_host(self, costs, instances)

    def feasible(self, w: Any, instance: Instance = None) -> Any:
        return feasible_on_host(self, w, instance)


class HostOracleForm(HostOracle):
    """Stand for a solver on the host in compiled programs: equal for equal feasible sets, so that these share them."""

    known: _FeasibleSet = eqx.field(static=True)

    @property
    def convex(self) -> bool:
        return bool(self.known.oracle.convex)

    @property
    def support(self) -> int:
        return int(self.known.oracle.support)

    def example_instance(self) -> Instance:
        return self.known.oracle.example_instance()

    def aux_form(self) -> Any:
        return self.known.oracle.aux_form()


def without_solver(tree: Any) -> Any:
    """Return a tree with a stand-in for every oracle on the host."""

    def replace(node: Any) -> Any:
        if not isinstance(node, Oracle) or not node.on_host or isinstance(node, HostOracleForm):
            return node
        aux, instance = node.aux_form(), node.example_instance()
        forms = [f"{np.shape(leaf)} {np.asarray(leaf).dtype}" for leaf in jax.tree.leaves(instance)]
        forms += [str(aux), str(jax.tree.structure(instance))]
        identity = type(node), node.support, node.convex, json.dumps([node.fingerprint(), forms])
        return HostOracleForm(node.dim, _FeasibleSet(identity, node))

    return jax.tree.map(replace, tree, is_leaf=lambda node: isinstance(node, Oracle))


class ShiftedOracle(Oracle):
    """An oracle in other units: it solves ``unit · c + known`` for costs ``c``."""

    base: Oracle
    unit: Float[Array, ""] | None
    known: Cost | None

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        if self.unit is not None:
            costs = costs * self.unit
        return self.base.solve(costs if self.known is None else costs + self.known, instances)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        return self.base.feasible(w, instance)

    @property
    def on_host(self) -> bool:
        return self.base.on_host

    @property
    def convex(self) -> bool:
        return self.base.convex

    @property
    def support(self) -> int:
        return self.base.support

    def _check_instance(self, name: str, given: Any, lead: tuple[int, ...]) -> Instance:
        return self.base._check_instance(name, given, lead)

    def example_instance(self) -> Instance:
        return self.base.example_instance()

    def aux_form(self) -> Any:
        return self.base.aux_form()


def in_units(tree: Any, unit: Float[Array, ""] | None = None, known: Cost | None = None) -> Any:
    """Return a policy whose oracles solve ``unit · c + known`` where the policy asks for ``c``."""

    def replace(node: Any) -> Any:
        return ShiftedOracle(node.dim, node, unit, known) if isinstance(node, Oracle) else node

    return jax.tree.map(replace, tree, is_leaf=lambda node: isinstance(node, Oracle))
