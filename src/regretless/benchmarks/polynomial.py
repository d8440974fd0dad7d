"""Top-k selection and shortest path with polynomial costs and multiplicative noise (the paper's appendix on data)."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field, field_validator

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.oracles.base import Oracle
from regretless.oracles.selection import TopKOracle
from regretless.spec import number
from regretless.types import Context, Key


class PolynomialSpec(BenchmarkSpec):
    """Settings of polynomial costs.

    Parameters
    ----------
    degree : int, default 8
        Degree of the polynomial.
    noise_radius : float, default 0.5
        Half the width ``ξ̄`` of the multiplicative noise.
    """

    degree: int = Field(default=8, ge=1, le=100)
    noise_radius: float = Field(default=0.5, ge=0, le=1)

    def on(self, name: str, oracle: Oracle, features: int, sign: float = 1.0) -> "PolynomialBenchmark":
        """Return the benchmark with this feasible set.

        Parameters
        ----------
        name : str
            Its name in tables.
        oracle : Oracle
            The feasible set.
        features : int
            Length of the context.
        sign : float, default 1
            Factor of all costs.
        """
        degree, radius = jnp.asarray(self.degree, jnp.int32), number(self.noise_radius)
        return PolynomialBenchmark(name, oracle, (features,), 2000, False, degree, radius, sign)


class PolynomialBenchmark(Benchmark):
    """``u = [1 + (1 + Ω x/√p)^degree] ⊙ ξ`` with ``x ~ N(0, I_p)``, ``Ω`` Bernoulli(½), ``ξ`` uniform on 1 ± radius."""

    degree: Int[Array, ""]
    noise_radius: Float[Array, ""]
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


class TopK(PolynomialSpec):
    """Pick the ``k`` cheapest of ``items`` items; by default with the paper's sizes.

    The paper writes ``c = −u``; its published numbers are for ``c = +u``, the default here.

    Parameters
    ----------
    items, k : int
        How many items there are, and how many are selected.
    features : int, default 5
        Length ``p`` of the context.
    sign : {1, -1}, default 1
        ``c = sign · u``: 1 for the published numbers, -1 as the paper's text says.
    degree, noise_radius
        As in ``PolynomialSpec``.
    """

    items: int = Field(default=15, ge=1, le=10**6)
    k: int = Field(default=2, ge=1)
    features: int = Field(default=5, ge=1, le=10**5)
    sign: Literal[1, -1] = 1

    @field_validator("sign", mode="before")
    @classmethod
    def _sign(cls, sign: object) -> object:
        """Convert ``"-1"`` from the command line."""
        return int(str(sign)) if str(sign) in ("1", "-1") else sign

    def build(self) -> PolynomialBenchmark:
        """Return the benchmark."""
        return self.on("topk", TopKOracle(self.items, self.k), self.features, float(self.sign))


class ShortestPath(PolynomialSpec):
    """Walk through a grid, right and down; by default 5 × 5 nodes with 40 edges, as in the paper.

    Parameters
    ----------
    side : int, default 5
        Nodes of a side of the grid.
    features : int, default 10
        Length ``p`` of the context.
    degree, noise_radius
        As in ``PolynomialSpec``.
    """

    side: int = Field(default=5, ge=2, le=500)
    features: int = Field(default=10, ge=1, le=10**5)

    def build(self) -> PolynomialBenchmark:
        """Return the benchmark."""
        from regretless.oracles.dag import ShortestPathOracle, grid_edges  # not needed for top-k

        return self.on("shortest_path", ShortestPathOracle(grid_edges(self.side, self.side)), self.features)
