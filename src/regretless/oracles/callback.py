"""Any Python function as an oracle: the host is called once per batch, from inside the compiled program."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError
from regretless.oracles import host
from regretless.oracles.base import Oracle
from regretless.types import SOLVED, Instance, Solution

Solver = Callable[..., Any]


class External(Oracle):
    """``S`` as a Python function of the user's.

    ``fn(cost)`` returns ``w`` for one cost vector; with ``batched=True`` it gets ``[b, d]`` and returns ``[b, d]``. If
    ``takes_instance``, the instance (or the batch of them) is the second argument. With ``aux``, an example of what the
    solver returns beside ``w`` (a pytree of arrays for one decision), it returns the pair ``(w, aux)``.

    An exception inside ``fn``, a wrong shape or a non-finite answer becomes a status; ``raise_failure`` tells what it was.

    >>> import numpy as np, regretless as rg
    >>> oracle = rg.oracles.external(lambda cost: np.eye(3)[np.argmin(cost)], 3)
    >>> oracle.solve_one(np.array([2.0, 0.5, 1.0])).w.tolist()
    [0.0, 1.0, 0.0]
    """

    fn: Solver = eqx.field(static=True)
    batched: bool = eqx.field(static=True)
    takes_instance: bool = eqx.field(static=True)
    aux: Any = eqx.field(static=True)
    contains: Callable[..., Any] | None = eqx.field(static=True)
    failure: host.Failure = eqx.field(static=True)

    def __init__(
        self,
        fn: Solver,
        dim: int,
        *,
        batched: bool = False,
        takes_instance: bool = False,
        aux: Any = None,
        contains: Callable[..., Any] | None = None,
    ):
        if dim < 1:
            raise ValueError(f"external oracle: expected a positive number of cost coordinates, got {dim}")
        self.fn, self.dim, self.batched, self.takes_instance = fn, dim, batched, takes_instance
        leaves, structure = jax.tree.flatten(aux)
        self.aux = (tuple((np.shape(leaf), str(np.asarray(leaf).dtype)) for leaf in leaves), structure)
        self.contains = contains
        self.failure = host.Failure()

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        costs = jnp.asarray(costs)
        rows = costs.shape[0]
        shapes, structure = self.aux
        results = [
            jax.ShapeDtypeStruct((rows, self.dim), costs.dtype),
            jax.ShapeDtypeStruct((rows,), np.int32),
            *(jax.ShapeDtypeStruct((rows, *shape), dtype) for shape, dtype in shapes),
        ]
        leaves, form = jax.tree.flatten(instances)
        w, status, *aux = host.call(lambda *given: self._call(form, *given), results, costs, *leaves)
        return Solution(w, status, jax.tree.unflatten(structure, aux))

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        if self.contains is None:
            return jnp.asarray(True)
        arguments = (w, instance) if self.takes_instance else (w,)
        inside = self.contains
        return jax.pure_callback(
            lambda *args: np.asarray(inside(*jax.tree.map(np.asarray, args)), bool),
            jax.ShapeDtypeStruct((), bool),
            *arguments,
            vmap_method="sequential",
        )

    def take_failure(self) -> OracleError | None:
        error = self.failure.take()
        if error is None:
            return None
        told = OracleError(f"the external solver failed: {error!r}")
        told.__cause__ = error
        return told

    def _call(self, form: Any, costs: np.ndarray, *leaves_of_instances: np.ndarray) -> list[np.ndarray]:
        """Host side, NumPy only: any number of leading axes comes in, one flat batch goes to the solver."""
        lead = costs.shape[:-1]
        flat = costs.reshape(-1, self.dim)
        rows = jax.tree.unflatten(form, [leaf.reshape(-1, *leaf.shape[len(lead) :]) for leaf in leaves_of_instances])
        w = np.zeros_like(flat)
        status = np.full(len(flat), SOLVED, np.int32)
        leaves = [np.zeros((len(flat), *shape), dtype) for shape, dtype in self.aux[0]]
        if self.batched:
            self._fill(slice(None), flat, rows, w, status, leaves)
        else:
            for i in range(len(flat)):
                self._fill(i, flat[i], jax.tree.map(lambda leaf, i=i: leaf[i], rows), w, status, leaves)
        return [answer.reshape(*lead, *answer.shape[1:]) for answer in (w, status, *leaves)]

    def _fill(self, at: Any, cost: Any, instance: Any, w: Any, status: Any, leaves: list[Any]) -> None:
        try:
            answer = self.fn(cost, instance) if self.takes_instance else self.fn(cost)
            decision, aux = answer if leaves else (answer, None)
            decision = np.asarray(decision, w.dtype)
            if decision.shape != w[at].shape:
                raise ValueError(f"expected a decision of shape {w[at].shape}, the solver returned {decision.shape}")
            if not np.all(np.isfinite(decision)):
                raise ValueError("the solver returned a decision that is not finite")
            w[at] = decision
            for leaf, value in zip(leaves, jax.tree.leaves(aux), strict=True):
                leaf[at] = value
        except Exception as error:
            self.failure.put(error)
            status[at] = 1
