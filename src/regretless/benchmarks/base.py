"""What a benchmark is: a stream of (context, cost) that no policy can influence, with its oracle."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from regretless.feedback import Measurement, regime
from regretless.oracles.base import Oracle
from regretless.problem import Problem
from regretless.registry import Registry
from regretless.spec import Spec
from regretless.types import Context, Cost, Instance, Key


class Round(eqx.Module):
    """One round of the stream; ``observation`` is what ``Benchmark.context`` makes the context of."""

    observation: PyTree
    cost: Cost  # realised
    mean: Cost | None = None  # E[c|x], where it is known
    instance: Instance = None


class Benchmark(eqx.Module):
    """A sequential decision problem. Numbers that differ between replications live in the environment."""

    name: str = eqx.field(static=True)
    oracle: Oracle
    context_shape: tuple[int, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    regret_on_mean: bool = eqx.field(static=True)  # regret of the conditional mean instead of the realised cost

    @abc.abstractmethod
    def environment(self, key: Key) -> PyTree:
        """What a replication draws once and keeps."""

    @abc.abstractmethod
    def round(self, key: Key, environment: PyTree, t: Int[Array, ""]) -> Round:
        """Round ``t = 1, 2, …``; ``key`` is that round's own."""

    @abc.abstractmethod
    def context(self, environment: PyTree, observation: PyTree) -> Context:
        """The context that policies see."""

    def measurement(self, name: str) -> Measurement:
        """The feedback regime called ``name``, as it is on this benchmark."""
        return regime(name)

    def problem(self, feedback: str | Measurement = "bandit", *, may_miss: bool | None = None) -> Problem:
        """What policies are built for to be played on this benchmark."""
        rule = self.measurement(feedback) if isinstance(feedback, str) else feedback
        first = lambda key: self.round(key, self.environment(key), jnp.int32(1)).instance  # noqa: E731
        instance = jax.eval_shape(first, jax.random.key(0))
        return Problem(self.oracle, self.context_shape, rule, may_miss=may_miss, instance=instance)

    def judged(self, played: Round) -> Cost:
        """The cost that regret is counted on."""
        if self.regret_on_mean:
            assert played.mean is not None
            return played.mean
        return played.cost

    def predictions(self, environment: PyTree, played: Round) -> dict[str, Cost]:
        """Predicted costs that reference lines play by, by name; they must depend on what the round shows, not on policies."""
        return {}

    @property
    def data(self) -> str | None:
        """``real`` or ``synthetic`` where the rounds are read from data; None where they are drawn."""
        return None

    @property
    def longest(self) -> int | None:
        """At most how many rounds there are; None for no limit."""
        return None

    def describe(self) -> dict[str, Any]:
        """What tells this benchmark from another, apart from its settings: its name, a digest of the data that it reads."""
        return {"name": self.name}


REGISTRY: Registry[type["BenchmarkSpec"]] = Registry(
    "benchmark",
    "benchmarks",
    {
        "topk": "regretless.benchmarks.topk:TopK",
        "shortest_path": "regretless.benchmarks.shortest_path:ShortestPath",
        "pricing": "regretless.benchmarks.pricing:Pricing",
        "energy": "regretless.benchmarks.energy.benchmark:Energy",
        "world_topk": "regretless.benchmarks.worlds.sets:TopKWorld",
        "world_rows": "regretless.benchmarks.worlds.rows:RowsWorld",
        "world_assignment": "regretless.benchmarks.worlds.sets:AssignmentWorld",
        "world_grid": "regretless.benchmarks.worlds.sets:GridWorld",
        "world_cover": "regretless.benchmarks.worlds.sets:CoverWorld",
    },
    ("registry", "build"),
    "a subclass of regretless.benchmarks.BenchmarkSpec",
)


class BenchmarkSpec(Spec):
    """Base class of benchmarks as settings: subclass it, list the settings as fields and write ``build``."""

    registry: ClassVar[Registry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.benchmarks."

    @abc.abstractmethod
    def build(self) -> Benchmark:
        """Return the benchmark."""
