"""Benchmarks of the literature on decision-focused learning: polynomial costs of Gaussian features with random factors.

The formulas are those of Elmachtoub and Grigas (2022) and of Tang and Khalil (PyEPO, 2024), whose generators draw from
the same distributions. With ``x ~ N(0, I_p)``, a random matrix ``B`` and ``s = B x / √p``, costs are a polynomial of
``s`` times a random factor that is uniform on ``1 ± noise_width``.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.oracles.base import Oracle
from regretless.oracles.dag import ShortestPathOracle, grid_edges
from regretless.oracles.frontier import PortfolioOracle
from regretless.oracles.matching import AssignmentOracle
from regretless.oracles.packing import KnapsackOracle
from regretless.oracles.tour import TourOracle
from regretless.spec import number
from regretless.types import Context, Cost, Key

HORIZON = 2000
"""Default number of rounds."""


class PublishedWorld(NamedTuple):
    """What a replication draws once: the matrix ``B``, and a part of the costs that does not depend on the features."""

    matrix: Float[Array, "d p"]
    base: Float[Array, " d"] | None


class PublishedSpec(BenchmarkSpec):
    """Settings of all benchmarks of this kind.

    Parameters
    ----------
    features : int, default 5
        Length ``p`` of the context.
    degree : int, default 4
        Degree of the polynomial: 1 is linear, 4 and more are hard for a linear model.
    noise_width : float, default 0.5
        Half the width of the random factor.
    """

    features: int = Field(default=5, ge=1, le=10**5)
    degree: int = Field(default=4, ge=1, le=100)
    noise_width: float = Field(default=0.5, ge=0, le=1)


class PublishedBenchmark(Benchmark):
    """``((3 + s)^degree + 1) / 3.5^degree`` times the random factor, with ``B`` Bernoulli(½)."""

    settings: Any = eqx.field(static=True)  # but for the degree and the size of the noise
    degree: Int[Array, ""]
    noise_width: Float[Array, ""]

    def __init__(self, oracle: Oracle, settings: PublishedSpec):
        self.name, self.oracle = str(settings.registered_name), oracle
        self.context_shape, self.horizon, self.regret_on_mean = (settings.features,), HORIZON, False
        self.degree, self.noise_width = jnp.asarray(settings.degree, jnp.int32), number(settings.noise_width)
        self.settings = settings.replace(degree=1, noise_width=0.0)

    def environment(self, key: Key) -> PublishedWorld:
        return PublishedWorld(self._coins(key), None)

    def _coins(self, key: Key) -> Float[Array, "d p"]:
        return (draws.uniform(key, (self.oracle.dim, self.settings.features)) < 0.5).astype(jnp.result_type(float))

    def round(self, key: Key, environment: PublishedWorld, t: Int[Array, ""]) -> Round:
        context_key, noise_key = jax.random.split(key)
        x = draws.normal(context_key, (self.settings.features,))
        signal = jnp.sum(environment.matrix * x, axis=1) / self.settings.features**0.5
        cost, mean = self.costs(noise_key, environment, signal)
        return Round(x, cost, mean)

    def costs(self, key: Key, environment: PublishedWorld, signal: Float[Array, " d"]) -> tuple[Cost, Cost]:
        """Return the costs and their conditional mean.

        Parameters
        ----------
        key : Key
            For the noise.
        environment : PublishedWorld
            What the replication drew.
        signal : array of shape (d,)
            ``s = B x / √p``.
        """
        mean = self.polynomial(signal)
        return mean * self.factors(key), mean

    def polynomial(self, signal: Float[Array, " d"]) -> Cost:
        """Return ``((3 + s)^degree + 1) / 3.5^degree``.

        Parameters
        ----------
        signal : array of shape (d,)
            ``s = B x / √p``.
        """
        return ((3.0 + signal) ** self.degree + 1.0) / 3.5**self.degree

    def factors(self, key: Key) -> Float[Array, " d"]:
        """Return factors uniform on ``1 ± noise_width``.

        Parameters
        ----------
        key : Key
            For the random draws.
        """
        return draws.uniform(key, (self.oracle.dim,), 1.0 - self.noise_width, 1.0 + self.noise_width)

    def context(self, environment: PublishedWorld, observation: Float[Array, " p"]) -> Context:
        return observation


class GridPath(PublishedSpec):
    """Walk through a grid, right and down; costs of edges ``((3 + s)^degree + 1) / 3.5^degree``.

    ``ShortestPath`` is the same problem with the costs of the paper on DFHPG.

    Parameters
    ----------
    side : int, default 5
        Nodes of a side of the grid.
    features, degree, noise_width
        As in ``PublishedSpec``.
    """

    side: int = Field(default=5, ge=2, le=500)

    def build(self) -> PublishedBenchmark:
        """Return the benchmark."""
        return PublishedBenchmark(ShortestPathOracle(grid_edges(self.side, self.side)), self)


class Matching(PublishedSpec):
    """Match the nodes of a complete bipartite graph; costs of pairs ``((3 + s)^degree + 1) / 3.5^degree``.

    Parameters
    ----------
    side : int, default 6
        Nodes of each side.
    features, degree, noise_width
        As in ``PublishedSpec``.
    """

    side: int = Field(default=6, ge=1, le=1000)

    def build(self) -> PublishedBenchmark:
        """Return the benchmark."""
        return PublishedBenchmark(AssignmentOracle(self.side), self)


class Knapsack(PublishedSpec):
    """Pack items under several capacities; values ``⌈5 ((3 + s)^degree + 1) / 3.5^degree · factor⌉``.

    Costs are the negative values. Weights are uniform on 3.00, 3.01, …, 7.99, the same in every replication.

    Parameters
    ----------
    items : int, default 16
        Number of items.
    capacities : int, default 2
        Number of capacities, which every item uses.
    capacity : float, default 20
        Size of each capacity.
    layout : int, default 0
        Seed of the weights.
    features, degree, noise_width
        As in ``PublishedSpec``.
    """

    items: int = Field(default=16, ge=1, le=10**4)
    capacities: int = Field(default=2, ge=1, le=100)
    capacity: float = Field(default=20.0, gt=0)
    layout: int = Field(default=0, ge=0, le=2**31)

    def build(self) -> "KnapsackBenchmark":
        """Return the benchmark."""
        return KnapsackBenchmark(self)


class KnapsackBenchmark(PublishedBenchmark):
    """Integer values as negative costs."""

    def __init__(self, settings: Knapsack):
        shape = (settings.capacities, settings.items)
        weights = np.random.RandomState(settings.layout).randint(300, 800, shape) / 100
        super().__init__(KnapsackOracle(weights, np.full(settings.capacities, settings.capacity)), settings)

    def costs(self, key: Key, environment: PublishedWorld, signal: Float[Array, " d"]) -> tuple[Cost, Cost]:
        value = 5.0 * self.polynomial(signal)
        return -jnp.ceil(value * self.factors(key)), -_mean_of_ceiling(value, self.noise_width)


def _mean_of_ceiling(value: Array, width: Array) -> Array:
    """Return ``E ⌈value · u⌉`` for ``u`` uniform on ``1 ± width``, by the integral of ⌈·⌉."""

    def integral(y: Array) -> Array:
        k = jnp.ceil(y)
        return k * y - k * (k - 1.0) / 2.0

    spread = 2.0 * width * value
    is_wide = jnp.abs(spread) > 1e-6
    mean = (integral(value * (1.0 + width)) - integral(value * (1.0 - width))) / jnp.where(is_wide, spread, 1.0)
    return jnp.where(is_wide, mean, jnp.ceil(value))


class TravellingSalesman(PublishedSpec):
    """Visit all nodes; costs of edges are distances plus ``(3 + s)^degree / 3^(degree − 1)`` times the factor.

    Half of the nodes are uniform on ``[−2, 2]²``, the others standard normal; ``B`` is Bernoulli(½) times uniform on
    ``[−2, 2]``. Edges are ``(i, j)`` with ``i < j``, row by row.

    Parameters
    ----------
    nodes : int, default 10
        Number of nodes.
    features, degree, noise_width
        As in ``PublishedSpec``.
    """

    nodes: int = Field(default=10, ge=3, le=16)

    def build(self) -> "TravellingSalesmanBenchmark":
        """Return the benchmark."""
        return TravellingSalesmanBenchmark(self)


class TravellingSalesmanBenchmark(PublishedBenchmark):
    """Distances and a polynomial of the features."""

    def __init__(self, settings: TravellingSalesman):
        super().__init__(TourOracle(settings.nodes), settings)

    def environment(self, key: Key) -> PublishedWorld:
        coin_key, size_key, box_key, cloud_key = jax.random.split(key, 4)
        nodes = self.settings.nodes
        matrix = self._coins(coin_key) * draws.uniform(size_key, (self.oracle.dim, self.settings.features), -2.0, 2.0)
        box, cloud = (
            draws.uniform(box_key, (nodes // 2, 2), -2.0, 2.0),
            draws.normal(cloud_key, (nodes - nodes // 2, 2)),
        )
        places = jnp.concatenate([box, cloud])
        first, second = np.triu_indices(nodes, 1)
        return PublishedWorld(matrix, jnp.linalg.norm(places[first] - places[second], axis=1))

    def costs(self, key: Key, environment: PublishedWorld, signal: Float[Array, " d"]) -> tuple[Cost, Cost]:
        depends = 3.0 * ((3.0 + signal) / 3.0) ** self.degree
        assert environment.base is not None
        return environment.base + depends * self.factors(key), environment.base + depends


class Portfolio(BenchmarkSpec):
    """Invest within a limit on the variance; returns ``(0.05 s + 0.1^(1/degree))^degree + L f + 0.01 τ ε``.

    Costs are the negative returns; ``f`` and ``ε`` are standard normal, the loadings ``L`` uniform on ``± 0.0025 τ``,
    the same in every replication. The limit is ``risk`` times the mean entry of ``L Lᵀ + (0.01 τ)² I``.

    Parameters
    ----------
    assets : int, default 20
        Number of assets.
    noise_level : float, default 1
        The scale ``τ`` of the noise.
    risk : float, default 2.25
        The limit on the variance, in units of the mean entry of the covariance matrix.
    layout : int, default 0
        Seed of the loadings.
    features, degree
        As in ``PublishedSpec``.
    """

    features: int = Field(default=5, ge=1, le=10**5)
    degree: int = Field(default=4, ge=1, le=100)
    assets: int = Field(default=20, ge=2, le=1000)
    noise_level: float = Field(default=1.0, gt=0, le=1e6)
    risk: float = Field(default=2.25, gt=0)
    layout: int = Field(default=0, ge=0, le=2**31)

    def build(self) -> "PortfolioBenchmark":
        """Return the benchmark."""
        return PortfolioBenchmark(self)

    def loadings(self) -> np.ndarray:
        """Return the loadings ``L``."""
        limit = 0.0025 * self.noise_level
        return np.random.RandomState(self.layout).uniform(-limit, limit, (self.assets, self.features))


class PortfolioBenchmark(PublishedBenchmark):
    """Factor returns as negative costs."""

    def __init__(self, settings: Portfolio):
        loadings = settings.loadings()
        covariance = loadings @ loadings.T + (0.01 * settings.noise_level) ** 2 * np.eye(settings.assets)
        self.oracle = PortfolioOracle(covariance, settings.risk * float(np.mean(covariance)))
        self.name, self.context_shape = "portfolio", (settings.features,)
        self.horizon, self.regret_on_mean = HORIZON, False
        self.degree, self.noise_width = jnp.asarray(settings.degree, jnp.int32), number(0.0)
        self.settings = settings.replace(degree=1)

    def costs(self, key: Key, environment: PublishedWorld, signal: Float[Array, " d"]) -> tuple[Cost, Cost]:
        factor_key, asset_key = jax.random.split(key)
        mean = (0.05 * signal + 0.1 ** (1.0 / self.degree)) ** self.degree
        common = self.settings.loadings() @ draws.normal(factor_key, (self.settings.features,))
        own = 0.01 * self.settings.noise_level * draws.normal(asset_key, mean.shape)
        return -(mean + common + own), -mean
