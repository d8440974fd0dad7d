"""The interface of benchmarks: a stream of (context, cost) that no policy can influence, with its oracle.

``contextuality`` measures what the context of a stream is worth, before any policy is played.
"""

import abc
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from regretless.draws import ENVIRONMENT, STREAM, purpose_key
from regretless.errors import SettingsError
from regretless.feedback import Measurement, regime
from regretless.oracles.base import Oracle, check_rows
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


# How contextual is it?

TIE = 1e-9
"""Relative difference of two costs that is attributed to rounding."""


class Contextuality(NamedTuple):
    """Mean costs of a round with and without the context, and how often the context changes the best decision.

    Costs are conditional means where the benchmark knows them, otherwise realised costs, whose noise counts as if it
    could be foreseen.

    Parameters
    ----------
    best_fixed : float or None
        The best decision that is the same in every round; None if the feasible set changes.
    context_free : float
        The decisions for the mean cost vector of all rounds; the best fixed decision if the feasible set never changes.
    clairvoyant : float
        The best decision for the costs of each round.
    random : float
        Decisions for random costs.
    differs : float
        Share of rounds in which ``context_free`` costs more than ``clairvoyant``.
    rounds : int
        How many rounds were measured.
    means : bool
        Whether costs are conditional means.
    """

    best_fixed: float | None
    context_free: float
    clairvoyant: float
    random: float
    differs: float
    rounds: int
    means: bool

    @property
    def value(self) -> float:
        """What the context is worth in a round."""
        return self.context_free - self.clairvoyant

    @property
    def share(self) -> float:
        """The value of the context as a share of what a clairvoyant gains over random decisions."""
        gain = self.random - self.clairvoyant
        return self.value / gain if gain > TIE * abs(self.random) else math.nan

    def __str__(self) -> str:
        name = "best context-free decision" if self.best_fixed is None else "best fixed decision"
        share = "" if math.isnan(self.share) else f", {self.share:.1%} of what knowing all costs gains over random"
        noise = "" if self.means else "; realised costs, with their noise"
        return (
            f"the context changes the optimum in {self.differs:.1%} of {self.rounds:,} rounds and is worth "
            f"{self.value:.4g} a round{share} ({name}: {self.context_free:.4g}, clairvoyant: {self.clairvoyant:.4g}"
            f"{noise})"
        )


def contextuality(benchmark: Benchmark | BenchmarkSpec | str, *, seeds: int = 4, rounds: int = 250) -> Contextuality:
    """Measure how much the context of a benchmark matters; no policy is played.

    Parameters
    ----------
    benchmark : Benchmark, BenchmarkSpec or str
        The benchmark, or its name.
    seeds : int, default 4
        Number of replications, from seed 0; each has its own best fixed decision.
    rounds : int, default 250
        Rounds of each replication.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.benchmarks.contextuality("pricing", seeds=2, rounds=50).differs
    0.0
    """
    world = benchmark if isinstance(benchmark, Benchmark) else BenchmarkSpec.coerce(benchmark).build()
    if seeds < 1 or rounds < 1:
        raise SettingsError(f"contextuality: expected at least one replication and one round, got {seeds} and {rounds}")
    if world.data is not None:
        seeds = 1  # every replication meets the same rounds
    rounds = rounds if world.longest is None else min(rounds, world.longest)
    with jax.enable_x64(True):
        keys = jax.vmap(jax.random.key)(jnp.arange(seeds))
        costs, instances = jax.tree.map(
            np.asarray, _draw_costs(world, keys, jnp.arange(1, rounds + 1, dtype=jnp.int32))
        )
        first = jax.eval_shape(lambda: world.round(keys[0], world.environment(keys[0]), jnp.int32(1)))
    return _measure(costs, world.oracle, instances, first.mean is not None)


def contextuality_of(costs: Any, oracle: Oracle, *, instances: Instance = None, means: bool = False) -> Contextuality:
    """Measure how much the context of recorded costs matters.

    Parameters
    ----------
    costs : array of shape (rounds, d)
        All costs of each round, or their conditional means.
    oracle : Oracle
        The feasible set.
    instances : pytree, optional
        What changes in the feasible set, with a leading axis of rounds in every leaf.
    means : bool, default False
        Whether the costs are conditional means.

    Examples
    --------
    >>> import regretless as rg
    >>> print(rg.benchmarks.contextuality_of([[1.0, 2.0], [1.0, 4.0], [2.0, 1.0]], rg.oracles.top_k(2, 1)).differs)
    0.3333333333333333
    """
    rows = check_rows("costs", costs, oracle.dim)
    if not len(rows):
        raise SettingsError("contextuality: expected at least one round, got none")
    checked = jax.tree.map(lambda leaf: np.asarray(leaf)[None], oracle.instances(instances, len(rows)))
    return _measure(rows[None], oracle, checked, means)


@eqx.filter_jit
def _draw_costs(world: Benchmark, keys: Any, times: Any) -> Any:
    """Return the costs of rounds as ``simulate`` plays them, means where they are known, and the instances."""

    def replication(key: Any) -> Any:
        environment = world.environment(purpose_key(key, ENVIRONMENT))
        played = jax.vmap(lambda t: world.round(purpose_key(key, STREAM, t), environment, t))(times)
        return played.cost if played.mean is None else played.mean, played.instance

    return jax.lax.map(replication, keys)


def _measure(costs: np.ndarray, oracle: Oracle, instances: Instance, means: bool) -> Contextuality:
    """Return the figures for ``costs[seeds, rounds, d]``."""
    seeds, rounds, dim = costs.shape
    average, noise = costs.mean(axis=1, keepdims=True), np.random.default_rng(0).normal(size=costs.shape)
    if instances is not None:  # without instances the decision for the average is one for all rounds
        average = np.broadcast_to(average, costs.shape)
    asked = (costs, average, noise)
    flat = jax.tree.map(lambda leaf: np.concatenate([leaf.reshape(-1, *leaf.shape[2:])] * 3), instances)
    w = oracle.answer(np.concatenate([part.reshape(-1, dim) for part in asked]), flat).w
    parts = np.split(w, np.cumsum([part.shape[0] * part.shape[1] for part in asked])[:-1])
    spent = [np.sum(costs * part.reshape(like.shape), axis=2) for part, like in zip(parts, asked, strict=True)]
    clairvoyant, context_free, random = spent
    differs = context_free - clairvoyant > TIE * (np.abs(context_free) + np.abs(clairvoyant))
    free = float(np.mean(context_free))
    fixed = free if instances is None else None
    return Contextuality(
        fixed, free, float(clairvoyant.mean()), float(random.mean()), float(differs.mean()), seeds * rounds, means
    )
