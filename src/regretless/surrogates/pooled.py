"""What surrogates with a pool of decisions share: every call adds ``w*(c)``, then ``w*(ĉ)``, before the gradient is taken."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.surrogates import pool as pools
from regretless.surrogates.base import Surrogate
from regretless.surrogates.pool import Pool
from regretless.types import Cost, Instance


class Pooled(Surrogate):
    """A surrogate whose gradient compares decisions of a pool ``P``; ``w_b`` is the pool's best under the target."""

    @abc.abstractmethod
    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        """``∇_ĉ ℓ`` from the pool; ``best`` is ``w*(c)``."""

    def init(self) -> Pool:
        return pools.empty(self.oracle.dim)

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: None) -> Float[Array, "q d"]:
        return jnp.stack([target, prediction])

    def remember(self, memory: Pool, solutions: Float[Array, "q d"]) -> Pool:
        for w in solutions:
            memory = pools.add(memory, w)
        return memory

    def prepare(self, memory: Pool, solutions: Float[Array, "k q d"]) -> Pool:
        return pools.add(memory, solutions[0, 0])

    def absorb(self, memory: Pool, gradients: Float[Array, "k d"], solutions: Float[Array, "k q d"]) -> Pool:
        return pools.add_many(memory, solutions[:, 1:].reshape(-1, solutions.shape[-1]))

    def available(self, memory: Pool, instance: Instance) -> Pool:
        return memory.available(self.oracle, instance)

    def gradient(
        self, memory: Pool, prediction: Cost, target: Cost, noise: None, solutions: Float[Array, "q d"]
    ) -> Cost:
        return self.slope(memory, prediction, target, solutions[0])
