"""What surrogates with a pool of decisions share: every call adds ``w*(c)``, then ``w*(ĉ)``, before the gradient is taken."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import Field

from regretless import settings
from regretless.surrogates import pool as pools
from regretless.surrogates.base import Surrogate
from regretless.surrogates.pool import Pool
from regretless.types import Cost, Instance


class Pooled(Surrogate):
    """A surrogate whose gradient compares decisions of a pool ``P``; ``w_b`` is the pool's best under the target."""

    class Settings(settings.Settings):
        """The size of the pool."""

        pool: int = Field(pools.SIZE, ge=2, description="decisions that are remembered")

    pool: int = eqx.field(static=True)

    @abc.abstractmethod
    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        """``∇_ĉ ℓ`` from the pool; ``best`` is ``w*(c)``."""

    def init(self) -> Pool:
        return pools.empty(self.oracle.dim, self.pool)

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: None) -> Float[Array, "q d"]:
        return jnp.stack([target, prediction])

    def remember(self, memory: Pool, solutions: Float[Array, "q d"]) -> Pool:
        for w in solutions:
            memory = pools.add(memory, w)
        return memory

    def before_all(self, memory: Pool, solutions: Float[Array, "k q d"]) -> Pool:
        return pools.add(memory, solutions[0, 0])

    def after_all(self, memory: Pool, gradients: Float[Array, "k d"], solutions: Float[Array, "k q d"]) -> Pool:
        return pools.add_many(memory, solutions[:, 1:].reshape(-1, solutions.shape[-1]))

    def points(self, memory: Pool) -> Float[Array, "n d"]:
        return memory.decisions

    def available(self, memory: Pool, feasible: Bool[Array, " n"]) -> Pool:
        return memory.only(feasible)

    def gradient(
        self,
        memory: Pool,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "q d"],
        instance: Instance,
    ) -> Cost:
        return self.slope(memory, prediction, target, solutions[0])
