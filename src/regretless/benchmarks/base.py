"""What a benchmark is: a stream of (context, cost) that no policy can influence, with its oracle."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Int, PyTree

from regretless import feedback
from regretless.feedback import Measurement
from regretless.oracles.base import Oracle
from regretless.settings import require_known
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
        require_known("feedback", name, feedback.REGISTRY)
        return feedback.REGISTRY[name]

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
        """The numbers that define this benchmark, for the record."""
        return {"name": self.name}
