"""What an oracle is: a feasible set ``S`` that solves ``min c·w over w in S`` for many costs at once, exactly."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError
from regretless.types import Cost, Instance, Solution


class Oracle(eqx.Module):
    """A feasible set ``S`` with its linear minimiser ``w*(c)``.

    Oracles hold no arrays, only hashable choices, so that one compiled program serves every number a policy can have.
    """

    dim: int = eqx.field(static=True)  # number of cost coordinates

    @abc.abstractmethod
    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        """``w*(c)`` for each row; the leaves of ``instances`` have the same leading axis. Ties fall the same way every time."""

    @abc.abstractmethod
    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        """Whether ``w`` is in ``S`` under ``instance``."""

    @property
    def support(self) -> int:
        """At most how many coordinates of a decision are non-zero."""
        return self.dim

    def solve_one(self, cost: Cost, instance: Instance = None) -> Solution:
        """``w*(c)`` of one cost vector."""
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], instance)
        return jax.tree.map(lambda leaf: leaf[0], self.solve(cost[None], batch))

    def solve_round(self, costs: Float[Array, "b d"], instance: Instance = None) -> Solution:
        """``w*(c)`` of several cost vectors that meet the same instance."""
        rows = costs.shape[0]
        batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows, *jnp.shape(leaf))), instance)
        return self.solve(costs, batch)

    def take_failure(self) -> "OracleError | None":
        """The latest solve that failed on the host since this was last asked, whatever asked for it; None for pure JAX."""
        return None

    def raise_failure(self) -> None:
        """Raises what went wrong in the solver, after a status other than ``SOLVED`` came back."""
        raise self.take_failure() or OracleError("the feasible set is empty for at least one instance")


class TraceableOracle(Oracle):
    """An oracle in pure JAX: written for one cost vector, batched by ``vmap``."""

    @abc.abstractmethod
    def minimise(self, cost: Cost, instance: Instance) -> Solution:
        """``w*(c)`` of one cost vector."""

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        return _solve(self, jnp.asarray(costs), instances)


@jax.jit
def _solve(oracle: TraceableOracle, costs: Float[Array, "b d"], instances: Instance) -> Solution:
    return jax.vmap(oracle.minimise)(costs, instances)
