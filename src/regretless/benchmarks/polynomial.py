"""Polynomial costs with multiplicative noise, shared by top-k and shortest path (the paper's Appendix on data generation)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.types import Context, Key


class PolynomialSpec(BenchmarkSpec):
    """How hard the costs are to predict."""

    degree: int = Field(default=8, ge=1, le=100, description="of the polynomial costs")
    noise_radius: float = Field(default=0.5, ge=0, le=1, description="ξ̄, half the width of the multiplicative noise")


class PolynomialBenchmark(Benchmark):
    """``u = [1 + (1 + Ω x/√p)^degree] ⊙ ξ`` with ``x ~ N(0, I_p)``, ``Ω`` Bernoulli(½), ``ξ`` uniform on 1 ± radius."""

    degree: int = eqx.field(static=True)
    noise_radius: float = eqx.field(static=True)
    sign: float = eqx.field(static=True)  # c = sign · u

    def environment(self, key: Key) -> Float[Array, "d p"]:
        shape = (self.oracle.dim, self.context_shape[0])
        return (draws.uniform(key, shape) < 0.5).astype(jnp.result_type(float))

    def round(self, key: Key, environment: Float[Array, "d p"], t: Int[Array, ""]) -> Round:
        context_key, noise_key = jax.random.split(key)
        x = draws.normal(context_key, self.context_shape)
        low, high = 1.0 - self.noise_radius, 1.0 + self.noise_radius
        xi = draws.uniform(noise_key, (self.oracle.dim,), low, high)
        mean = self.sign * (1.0 + (1.0 + environment @ x / self.context_shape[0] ** 0.5) ** self.degree)
        return Round(x, mean * xi, mean)

    def context(self, environment: Float[Array, "d p"], observation: Float[Array, " p"]) -> Context:
        return observation
