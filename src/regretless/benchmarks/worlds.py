"""Worlds for comparing policies: mean costs of several shapes, noise, wrong entries, drift and odd columns.

The feasible set is one of selection (from a vector or from feature rows), assignment, grid paths and covering.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, model_validator

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.oracles.base import Oracle
from regretless.oracles.dag import ShortestPathOracle, grid_edges
from regretless.oracles.matching import AssignmentOracle
from regretless.oracles.mixed_integer import MilpOracle
from regretless.oracles.selection import TopKOracle
from regretless.registry import require_known
from regretless.spec import number
from regretless.types import Context, Cost, Instance, Key

LOWEST_MEAN = 0.3
"""No mean cost is below this."""

LOW_BASE, HIGH_BASE = 2.0, 6.0
"""Base costs are uniform between these."""

DEGREES_OF_FREEDOM = 3
"""Degrees of freedom of Student's t noise."""

HUGE, CONSTANT = 1e6, 7.0
"""Scale of the huge odd column, and the value of the constant one."""


class WorldCoefficients(NamedTuple):
    """``base``, directions ``a`` and ``b`` of each coordinate (one row: of all of them), and one ``s`` for all."""

    base: Float[Array, " n"]
    a: Float[Array, "m p"]
    b: Float[Array, "m p"]
    s: Float[Array, " p"]


SHAPES: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "const": lambda base, u, v, s: base + jnp.zeros_like(u),
    "lin": lambda base, u, v, s: base + u,
    "relu": lambda base, u, v, s: base + 0.6 * u + jnp.maximum(v, 0.0) ** 1.5,
    "shared": lambda base, u, v, s: base * jnp.exp(0.5 * s) + 0.3 * u,
    "exp": lambda base, u, v, s: base * jnp.exp(0.7 * u),
    "inter": lambda base, u, v, s: base + 1.5 * u * jnp.sign(v),
    "step": lambda base, u, v, s: base + 2.0 * (u > 0.3),
    "wave": lambda base, u, v, s: base + 1.5 * jnp.sin(3.0 * u),
    "bowl": lambda base, u, v, s: base + jnp.square(u) - 0.5 * v,
}
"""Mean costs by their shape, before the lower limit; of base costs, ``u = a·x/√p``, ``v = b·x/√p`` and ``s·x/√p``."""


def draw_coefficients(key: Key, bases: int, directions: int, features: int) -> WorldCoefficients:
    """Return uniform base costs and standard normal directions."""
    base, a, b, s = jax.random.split(key, 4)
    return WorldCoefficients(
        draws.uniform(base, (bases,), LOW_BASE, HIGH_BASE),
        draws.normal(a, (directions, features)),
        draws.normal(b, (directions, features)),
        draws.normal(s, (features,)),
    )


def mean_costs(shape: str, coefficients: WorldCoefficients, x: Float[Array, "*d p"]) -> Cost:
    """Return the mean cost of each coordinate; ``x`` is one vector for all of them, or a row for each."""
    root = x.shape[-1] ** 0.5
    along = lambda directions: jnp.sum(directions * x, axis=-1) / root  # noqa: E731
    base, *directions = coefficients
    return jnp.maximum(SHAPES[shape](base, *map(along, directions)), LOWEST_MEAN)


def blend(before: WorldCoefficients, after: WorldCoefficients, share: Float[Array, ""]) -> WorldCoefficients:
    """Return coefficients between ``before`` (share 0) and ``after`` (1); directions turn and keep their size."""
    keep, gain = jnp.cos(0.5 * jnp.pi * share), jnp.sin(0.5 * jnp.pi * share)
    turned = jax.tree.map(lambda old, new: keep * old + gain * new, before, after)
    return turned._replace(base=(1.0 - share) * before.base + share * after.base)


def _student(key: Key, shape: tuple[int, ...]) -> Array:
    """Draw Student's t with three degrees of freedom: a normal number over the root of a mean of three squares."""
    top, bottom = jax.random.split(key)
    squares = jnp.square(draws.normal(bottom, (DEGREES_OF_FREEDOM, *shape)))
    return draws.normal(top, shape) / jnp.sqrt(jnp.mean(squares, axis=0))


def _laplace(key: Key, shape: tuple[int, ...]) -> Array:
    """Draw the difference of two exponential numbers, of unit variance."""
    one, other = -jnp.log1p(-draws.uniform(key, (2, *shape)))
    return (one - other) / 2**0.5


def _skewed(key: Key, shape: tuple[int, ...]) -> Array:
    """Draw a log-normal number minus its mean, of unit variance: rarely far above, never far below."""
    return (jnp.exp(draws.normal(key, shape)) - math.e**0.5) / (math.e**2 - math.e) ** 0.5


NOISES: dict[str, Callable[[Key, tuple[int, ...]], Array]] = {
    "normal": draws.normal,
    "student": _student,
    "laplace": _laplace,
    "skewed": _skewed,
    "uniform": lambda key, shape: 3**0.5 * draws.uniform(key, shape, -1.0, 1.0),
}
"""Draws of mean zero and about unit size, by the name of their distribution."""


class WorldSpec(BenchmarkSpec):
    """Settings of all worlds.

    Parameters
    ----------
    shape : str, default "lin"
        Formula of the mean costs, a key of ``SHAPES``.
    features : int, default 6
        Number of features that costs may depend on.
    rounds : int, default 1500
        The horizon; drift is over at its end.
    noise : str, default "normal"
        Distribution of the noise, a key of ``NOISES``.
    noise_size : float, default 0.25
        Standard deviation of the noise as a share of the mean cost.
    outliers, outlier_factor : float
        Share of the rounds whose costs are recorded multiplied by the factor; no regret is counted on that.
    drift : {"none", "abrupt", "slow", "seasons"}
        How coefficients change: abruptly after half of the rounds, slowly over all of them, or to other coefficients
        and back in every second eighth of the rounds.
    contexts : {"normal", "coins"}
        Normal numbers, or ±1.
    odd_columns : bool, default False
        Whether contexts have a constant, a huge and a duplicate feature.
    irrelevant : int, default 0
        Number of features that no cost depends on.
    unit : float, default 1
        Factor of all costs.
    rewards : bool, default False
        Whether costs are rewards with a minus sign.
    """

    shape: str = "lin"
    features: int = Field(default=6, ge=1, le=10**4)
    rounds: int = Field(default=1500, ge=2, le=10**8)
    noise: str = "normal"
    noise_size: float = Field(default=0.25, ge=0, le=10)
    outliers: float = Field(default=0.0, ge=0, le=1)
    outlier_factor: float = 50.0
    drift: Literal["none", "abrupt", "slow", "seasons"] = "none"
    contexts: Literal["normal", "coins"] = "normal"
    odd_columns: bool = False
    irrelevant: int = Field(default=0, ge=0, le=10**4)
    unit: float = Field(default=1.0, gt=0)
    rewards: bool = False

    @model_validator(mode="after")
    def _known(self) -> Self:
        require_known("shape", self.shape, SHAPES)
        require_known("noise", self.noise, NOISES)
        return self


class DriftRegimes(NamedTuple):
    """The coefficients that a replication begins with, and those that it drifts to; None without drift."""

    first: WorldCoefficients
    last: WorldCoefficients | None


class WorldBenchmark(Benchmark):
    """Costs ``mean(x) · (1 + size · ε)`` with contexts ``x ~ N(0, I_p)``; regret is counted on the means.

    Wrong entries do not change the mean: regret is counted without them.
    """

    settings: WorldSpec = eqx.field(static=True)  # but for the size of the noise
    noise_size: Float[Array, ""]

    def __init__(self, name: str, oracle: Oracle, settings: WorldSpec):
        self.name, self.oracle = name, oracle
        self.settings, self.noise_size = settings.replace(noise_size=0.0), number(settings.noise_size)
        self.horizon, self.regret_on_mean = settings.rounds, True
        odd = 3 if settings.odd_columns else 0
        self.context_shape = (settings.features + odd + settings.irrelevant,)

    def environment(self, key: Key) -> DriftRegimes:
        sizes = (*self.coefficient_rows, self.settings.features)
        first, last = (draw_coefficients(part, *sizes) for part in jax.random.split(key))
        return DriftRegimes(first, None if self.settings.drift == "none" else last)

    @property
    def coefficient_rows(self) -> tuple[int, int]:
        """Number of base costs and of directions: one for each coordinate, or one shared by all."""
        return self.oracle.dim, self.oracle.dim

    def coefficients(self, environment: DriftRegimes, t: Int[Array, ""]) -> WorldCoefficients:
        """Return the coefficients of round ``t``."""
        first, last = environment
        if last is None:
            return first
        rounds = self.settings.rounds
        if self.settings.drift == "slow":
            return blend(first, last, jnp.minimum(t / rounds, 1.0))
        is_last = t > rounds // 2 if self.settings.drift == "abrupt" else (8 * (t - 1) // rounds) % 2 == 1
        return jax.tree.map(lambda old, new: jnp.where(is_last, new, old), first, last)

    def round(self, key: Key, environment: DriftRegimes, t: Int[Array, ""]) -> Round:
        settings = self.settings
        context_key, noise_key, wrong_key, column_key, set_key = jax.random.split(key, 5)
        x = self.draw_features(context_key)
        mean = settings.unit * mean_costs(settings.shape, self.coefficients(environment, t), x)
        mean = -mean if settings.rewards else mean
        cost = mean * (1.0 + self.noise_size * NOISES[settings.noise](noise_key, mean.shape))
        if settings.outliers:
            cost *= jnp.where(draws.uniform(wrong_key) < settings.outliers, settings.outlier_factor, 1.0)
        return Round(self.make_context(column_key, x), cost, mean, self.draw_instance(set_key))

    def draw_features(self, key: Key) -> Float[Array, "*d p"]:
        """Return the features that costs depend on."""
        return self.features(key, (self.settings.features,))

    def features(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Return independent features."""
        x = draws.normal(key, shape)
        return x if self.settings.contexts == "normal" else jnp.where(x > 0, 1.0, -1.0)

    def make_context(self, key: Key, x: Float[Array, "*d p"]) -> Context:
        """Return the context of these features, with odd and irrelevant columns."""
        settings = self.settings
        columns = [x]
        extra = draws.normal(key, (settings.irrelevant + 1,))
        if settings.odd_columns:
            columns.append(jnp.stack([jnp.full((), CONSTANT, x.dtype), HUGE * extra[0], x[0]]))
        return jnp.concatenate([*columns, extra[1:]]) if settings.odd_columns or settings.irrelevant else x

    def draw_instance(self, key: Key) -> Instance:
        """Return the instance of this round; None if the feasible set never changes."""
        return None

    def context(self, environment: DriftRegimes, observation: Context) -> Context:
        return observation


class TopKWorld(WorldSpec):
    """Pick the ``k`` cheapest of ``items``, or of a random share of them that changes every round.

    Parameters
    ----------
    items, k : int
        How many items there are, and how many are selected.
    available : float, default 1
        Share of the items that are available in each round.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    items: int = Field(default=30, ge=1, le=10**6)
    k: int = Field(default=5, ge=1)
    available: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        available = self.available_items
        if self.k > available:
            raise ValueError(f"expected k ≤ the {available} items that are available at a time, got k = {self.k}")
        return self

    @property
    def available_items(self) -> int:
        """How many items are available in each round."""
        return int(self.available * self.items)

    def build(self) -> "TopKWorldBenchmark":
        """Return the benchmark."""
        return TopKWorldBenchmark(self)


class TopKWorldBenchmark(WorldBenchmark):
    """A selection whose items may be available only in some rounds."""

    settings: TopKWorld = eqx.field(static=True)

    def __init__(self, settings: TopKWorld):
        super().__init__("world_topk", TopKOracle(settings.items, settings.k), settings)

    def draw_instance(self, key: Key) -> Instance:
        items, available = self.settings.items, self.settings.available_items
        rank = jnp.argsort(jnp.argsort(draws.uniform(key, (items,))))
        return None if available == items else rank < available


class RowsWorld(WorldSpec):
    """Pick the ``k`` cheapest of ``items``; costs depend on the rows ``z_i ~ N(0, I_p)`` by one formula.

    Parameters
    ----------
    features : int, default 8
        Length of each row.
    items, k : int
        How many items there are, and how many are selected.
    named : bool, default False
        Whether each item has its own base cost, and its name in its row, one-hot.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    features: int = Field(default=8, ge=1, le=10**4)
    items: int = Field(default=50, ge=1, le=10**6)
    k: int = Field(default=5, ge=1)
    named: bool = False

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.odd_columns or self.irrelevant:
            raise ValueError("odd_columns and irrelevant have no effect on feature rows: leave them out")
        return self

    def build(self) -> "RowsWorldBenchmark":
        """Return the benchmark."""
        return RowsWorldBenchmark(self)


class RowsWorldBenchmark(WorldBenchmark):
    """A selection from feature rows."""

    settings: RowsWorld = eqx.field(static=True)

    def __init__(self, settings: RowsWorld):
        super().__init__("world_rows", TopKOracle(settings.items, settings.k), settings)
        self.context_shape = (settings.items, settings.features + (settings.items if settings.named else 0))

    @property
    def coefficient_rows(self) -> tuple[int, int]:
        return (self.oracle.dim if self.settings.named else 1), 1

    def draw_features(self, key: Key) -> Float[Array, "d p"]:
        return self.features(key, (self.oracle.dim, self.settings.features))

    def make_context(self, key: Key, x: Float[Array, "d p"]) -> Context:
        return jnp.column_stack([jnp.eye(len(x), dtype=x.dtype), x]) if self.settings.named else x


class AssignmentWorld(WorldSpec):
    """Give each of ``side`` workers one of ``side`` jobs.

    Parameters
    ----------
    side : int, default 8
        Number of workers and of jobs; costs are an n × n table.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    side: int = Field(default=8, ge=1, le=1000)

    def build(self) -> WorldBenchmark:
        """Return the benchmark."""
        return WorldBenchmark("world_assignment", AssignmentOracle(self.side), self)


class GridWorld(WorldSpec):
    """Walk from the first corner of a grid to the last, right and down.

    Parameters
    ----------
    height, width : int
        Nodes from top to bottom and from left to right.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    height: int = Field(default=6, ge=1, le=500)
    width: int = Field(default=6, ge=2, le=500)

    def build(self) -> WorldBenchmark:
        """Return the benchmark."""
        return WorldBenchmark("world_grid", ShortestPathOracle(grid_edges(self.height, self.width)), self)


class CoverWorld(WorldSpec):
    """Choose items that cover several demands: a small mixed-integer program, solved on the host.

    Item ``i`` gives demand ``j`` an integer from 1 to 9, the same in every replication.

    Parameters
    ----------
    items, demands : int
        How many items and demands there are.
    cover : float, default 0.4
        What must be covered of each demand, as a share of what all items give.
    layout : int, default 0
        Seed of the integers.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    items: int = Field(default=12, ge=1, le=1000)
    demands: int = Field(default=2, ge=1, le=100)
    cover: float = Field(default=0.4, gt=0, le=1)
    layout: int = Field(default=0, ge=0, le=2**31)

    def build(self) -> WorldBenchmark:
        """Return the benchmark."""
        given = np.random.RandomState(self.layout).randint(1, 10, (self.demands, self.items))
        demanded = np.floor(self.cover * given.sum(axis=1))
        oracle = MilpOracle(A_ub=-given, b_ub=-demanded, bounds=(0, 1), integrality=1)
        return WorldBenchmark("world_cover", oracle, self)
