"""Polynomial costs with multiplicative noise, shared by top-k and shortest path (the paper's Appendix on data generation)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from regretless import draws
from regretless.benchmarks.base import Benchmark, Round
from regretless.errors import SettingsError
from regretless.types import Context, Key

DEGREE = 8
NOISE_RADIUS = 0.5


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

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "degree": self.degree, "noise_radius": self.noise_radius, "sign": self.sign}


def check_polynomial(degree: int, noise_radius: float, features: int) -> None:
    """Refuses numbers that no environment can be made of."""
    if degree < 1:
        raise SettingsError(f"expected a degree of at least 1, got {degree}")
    if not 0.0 <= noise_radius <= 1.0:
        raise SettingsError(f"expected a noise_radius between 0 and 1, got {noise_radius}")
    if features < 1:
        raise SettingsError(f"expected at least one context feature, got {features}")
