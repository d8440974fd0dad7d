"""The interface of benchmarks: a stream of (context, cost) that no policy can influence, with its oracle."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from regretless.feedback import Measurement, regime
from regretless.oracles.base import Oracle
from regretless.problem import Problem
from regretless.registry import SpecRegistry
from regretless.spec import Spec
from regretless.types import Context, Cost, Instance, Key


class Round(eqx.Module):
    """One round of the stream; ``Benchmark.context`` makes the context from ``observation``.

    Parameters
    ----------
    observation : pytree
        What the context is made from.
    cost : array of shape (d,)
        The realised costs.
    mean : array of shape (d,), optional
        ``E[c|x]``, where it is known.
    instance : pytree, optional
        What changes in the feasible set.
    """

    observation: PyTree
    cost: Cost
    mean: Cost | None = None
    instance: Instance = None


class Benchmark(eqx.Module):
    """A sequential decision problem; numbers that differ between replications are in the environment.

    Parameters
    ----------
    name : str
        Its name in tables.
    oracle : Oracle
        The feasible set.
    context_shape : tuple of int
        ``(p,)``, or ``(d, p)`` for a row per cost coordinate.
    horizon : int
        The default number of rounds.
    regret_on_mean : bool
        Whether regret is counted on the conditional mean instead of the realised cost.
    """

    name: str = eqx.field(static=True)
    oracle: Oracle
    context_shape: tuple[int, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    regret_on_mean: bool = eqx.field(static=True)

    @abc.abstractmethod
    def environment(self, key: Key) -> PyTree:
        """Return what a replication draws once and keeps.

        Parameters
        ----------
        key : Key
            For its random draws.
        """

    @abc.abstractmethod
    def round(self, key: Key, environment: PyTree, t: Int[Array, ""]) -> Round:
        """Return round ``t = 1, 2, …``; every round has its own ``key``.

        Parameters
        ----------
        key : Key
            For the random draws of this round.
        environment : pytree
            What ``environment`` returned.
        t : integer array
            The round, from 1.
        """

    @abc.abstractmethod
    def context(self, environment: PyTree, observation: PyTree) -> Context:
        """Return the context that policies see.

        Parameters
        ----------
        environment : pytree
            What ``environment`` returned.
        observation : pytree
            That of the round.
        """

    def measurement(self, name: str) -> Measurement:
        """Return the feedback regime called ``name`` on this benchmark.

        Parameters
        ----------
        name : str
            Such as ``"bandit"``.
        """
        return regime(name)

    def problem(self, feedback: str | Measurement = "bandit", *, may_miss: bool | None = None) -> Problem:
        """Return the problem that policies for this benchmark are built for.

        Parameters
        ----------
        feedback : str or Measurement, default "bandit"
            What a decision reveals.
        may_miss : bool, optional
            Whether rows of the feedback may fail to arrive.
        """
        rule = self.measurement(feedback) if isinstance(feedback, str) else feedback
        first = lambda key: self.round(key, self.environment(key), jnp.int32(1)).instance  # noqa: E731
        instance = jax.eval_shape(first, jax.random.key(0))
        return Problem(self.oracle, self.context_shape, rule, may_miss=may_miss, instance=instance)

    def regret_cost(self, played: Round) -> Cost:
        """Return the cost that regret is counted on.

        Parameters
        ----------
        played : Round
            A round of the stream.
        """
        if self.regret_on_mean:
            assert played.mean is not None
            return played.mean
        return played.cost

    def predictions(self, environment: PyTree, played: Round) -> dict[str, Cost]:
        """Return predicted costs of further reference lines by name; they may depend on the round, not on policies.

        Parameters
        ----------
        environment : pytree
            What ``environment`` returned.
        played : Round
            A round of the stream.
        """
        return {}

    @property
    def data(self) -> str | None:
        """``"real"``, ``"synthetic"`` or ``"recorded"`` if the rounds are read from data; None if they are drawn."""
        return None

    @property
    def longest(self) -> int | None:
        """Largest number of rounds, by default that of the data; None without a limit."""
        return None if self.data is None else self.horizon

    def describe(self) -> dict[str, Any]:
        """Return what identifies this benchmark apart from its settings, as JSON data: name and digest of its data."""
        return {"name": self.name}


REGISTRY: SpecRegistry["BenchmarkSpec"] = SpecRegistry(
    "benchmark",
    "benchmarks",
    {
        "topk": "regretless.benchmarks.polynomial:TopK",
        "shortest_path": "regretless.benchmarks.polynomial:ShortestPath",
        "pricing": "regretless.benchmarks.pricing:Pricing",
        "energy": "regretless.benchmarks.energy:Energy",
        "grid_path": "regretless.benchmarks.published:GridPath",
        "knapsack": "regretless.benchmarks.published:Knapsack",
        "matching": "regretless.benchmarks.published:Matching",
        "portfolio": "regretless.benchmarks.published:Portfolio",
        "travelling_salesman": "regretless.benchmarks.published:TravellingSalesman",
        "grid_map": "regretless.benchmarks.maps:GridMap",
        "world_topk": "regretless.benchmarks.worlds:TopKWorld",
        "world_rows": "regretless.benchmarks.worlds:RowsWorld",
        "world_assignment": "regretless.benchmarks.worlds:AssignmentWorld",
        "world_grid": "regretless.benchmarks.worlds:GridWorld",
        "world_cover": "regretless.benchmarks.worlds:CoverWorld",
        "world_storage": "regretless.benchmarks.worlds:StorageWorld",
        "world_data": "regretless.benchmarks.datasets:DataWorld",
    },
    ("registry", "build"),
    "a subclass of regretless.benchmarks.BenchmarkSpec",
)


class BenchmarkSpec(Spec):
    """Base class of benchmarks as settings: subclass it, list the settings as fields and write ``build``."""

    registry: ClassVar[SpecRegistry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.benchmarks."

    @abc.abstractmethod
    def build(self) -> Benchmark:
        """Return the benchmark."""
