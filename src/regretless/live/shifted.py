"""A feasible set whose costs have a part that is known beforehand and need not be learnt."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.errors import OracleError
from regretless.oracles.base import Oracle
from regretless.types import Instance, Solution


class Shifted(Oracle):
    """Minimises ``(c + shift)·w``: an instance is the pair of the set's own instance and the known ``shift``."""

    inner: Oracle = eqx.field()

    def __init__(self, inner: Oracle):
        self.inner, self.dim = inner, inner.dim

    @property
    def support(self) -> int:
        return self.inner.support

    def solve(self, costs: Float[Array, "b d"], instances: Instance = None) -> Solution:
        own, shift = instances
        return self.inner.solve(jnp.asarray(costs) + shift, own)

    def feasible(self, w: Float[Array, " d"], instance: Instance = None) -> Bool[Array, ""]:
        return self.inner.feasible(w, None if instance is None else instance[0])

    def take_failure(self) -> OracleError | None:
        return self.inner.take_failure()

    def raise_failure(self) -> None:
        self.inner.raise_failure()
