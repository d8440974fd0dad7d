"""Worlds for comparing policies: mean costs of several shapes, noise, wrong entries, drift and odd columns.

The feasible set is one of selection (from a vector or from feature rows), assignment, grid paths, covering or packing,
and a storage that is charged and discharged.
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

NONZERO_SHARE = 0.1
"""How often a sparse feature is not zero."""

CALENDAR_SIZE = 0.4
"""Standard deviation of the logarithms of a calendar's factors, of those that all items share and of each item's."""

CLUSTER_SPREAD = 0.5
"""Standard deviation of the rows around the centre of their cluster, of 1 altogether."""

LOGNORMAL = "lognormal"
"""The noise that is a positive factor, ``exp(size · ε − size² / 2)`` with normal ``ε``."""


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


def _rates(key: Key, mean: Cost) -> tuple[Cost, Cost]:
    """Return the probabilities and whether it happened, 0 or 1."""
    rates = jnp.minimum(mean, 1.0)
    return rates, (draws.uniform(key, mean.shape) < rates).astype(mean.dtype)


def _counts(key: Key, mean: Cost) -> tuple[Cost, Cost]:
    """Return the means and Poisson numbers."""
    return mean, jax.random.poisson(key, mean.astype(jnp.float32)).astype(mean.dtype)


def _labels(key: Key, mean: Cost) -> tuple[Cost, Cost]:
    """Return the probability that a label is wrong, and whether it is: the right one is of low ``mean``."""
    probabilities = jax.nn.softmax(-mean)
    right = jnp.sum(jnp.cumsum(probabilities)[:-1] <= draws.uniform(key))
    return 1.0 - probabilities, (jnp.arange(len(mean)) != right).astype(mean.dtype)


OUTCOMES: dict[str, Callable[[Key, Cost], tuple[Cost, Cost]]] = {"rates": _rates, "counts": _counts, "labels": _labels}
"""Outcomes that are no amounts with noise, by name: functions that return mean costs and costs."""

AMOUNTS = "amounts"
"""The outcome that is the mean with noise."""


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
    outcome : {"amounts", "rates", "counts", "labels"}
        Amounts with noise; 0 or 1 at the rate of the mean cost; Poisson counts; or 1 where a label is wrong: label
        ``i`` is right with probability proportional to ``exp(−mean_i)``.
    noise : str, default "normal"
        Distribution of the noise of amounts, a key of ``NOISES``, or "lognormal", which multiplies the mean.
    noise_size : float, default 0.25
        Standard deviation of the noise as a share of the mean cost; of its logarithm if it is lognormal.
    outliers, outlier_factor : float
        Share of the rounds whose costs are recorded multiplied by the factor; no regret is counted on that.
    drift : {"none", "abrupt", "slow", "seasons"}
        How coefficients change: abruptly after half of the rounds, slowly over all of them, or to other coefficients
        and back in every second eighth of the rounds.
    growth : float, default 0
        Share by which all mean costs have grown at the end, in equal steps.
    calendar : int, default 0
        Length of a cycle of rounds, such as 7 weekdays, or 0. A day multiplies costs by factors of its own, partly the
        same for all items, and is in the context, one-hot.
    contexts : {"normal", "coins", "sparse", "levels"}
        Normal numbers, ±1, normal numbers of which nine in ten are 0, or categories, one-hot.
    levels : int, default 0
        Levels of each category; the first are the most frequent ones. ``features`` is a multiple of it.
    odd_columns : bool, default False
        Whether contexts have a constant, a huge and a duplicate feature.
    irrelevant : int, default 0
        Number of features that no cost depends on.
    unit : float, default 1
        Factor of all mean costs.
    rewards : bool, default False
        Whether costs are rewards with a minus sign.
    """

    shape: str = "lin"
    features: int = Field(default=6, ge=1, le=10**4)
    rounds: int = Field(default=1500, ge=2, le=10**8)
    outcome: Literal["amounts", "rates", "counts", "labels"] = "amounts"
    noise: str = "normal"
    noise_size: float = Field(default=0.25, ge=0, le=10)
    outliers: float = Field(default=0.0, ge=0, le=1)
    outlier_factor: float = 50.0
    drift: Literal["none", "abrupt", "slow", "seasons"] = "none"
    growth: float = Field(default=0.0, gt=-1, le=100)
    calendar: int = Field(default=0, ge=0, le=1000)
    contexts: Literal["normal", "coins", "sparse", "levels"] = "normal"
    levels: int = Field(default=0, ge=0, le=10**4)
    odd_columns: bool = False
    irrelevant: int = Field(default=0, ge=0, le=10**4)
    unit: float = Field(default=1.0, gt=0)
    rewards: bool = False

    @model_validator(mode="after")
    def _known(self) -> Self:
        require_known("shape", self.shape, SHAPES)
        require_known("noise", self.noise, [*NOISES, LOGNORMAL])
        if (self.contexts == "levels") != (self.levels > 0) or (self.levels and self.features % self.levels):
            raise ValueError(
                "expected contexts = 'levels' with a number of levels that divides the number of features, got contexts"
                f" = {self.contexts!r} with levels = {self.levels} and features = {self.features}"
            )
        return self


class WorldEnvironment(NamedTuple):
    """The coefficients that a replication begins with, those that it drifts to, and what else it keeps."""

    first: WorldCoefficients
    last: WorldCoefficients | None  # None without drift
    factors: Float[Array, "days d"] | None = None  # of the calendar
    centres: Float[Array, "clusters p"] | None = None  # of the rows


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
        self.context_shape = (settings.features + odd + settings.irrelevant + settings.calendar,)

    def environment(self, key: Key) -> WorldEnvironment:
        settings = self.settings
        sizes = (*self.coefficient_rows, settings.features)
        first, last = (draw_coefficients(part, *sizes) for part in jax.random.split(key))
        regimes = WorldEnvironment(first, None if settings.drift == "none" else last)
        if not settings.calendar:
            return regimes
        all_items, own = jax.random.split(jax.random.fold_in(key, 1))
        logs = draws.normal(all_items, (settings.calendar, 1)) + draws.normal(own, (settings.calendar, self.oracle.dim))
        return regimes._replace(factors=jnp.exp(CALENDAR_SIZE * logs))

    @property
    def coefficient_rows(self) -> tuple[int, int]:
        """Number of base costs and of directions: one for each coordinate, or one shared by all."""
        return self.oracle.dim, self.oracle.dim

    def coefficients(self, environment: WorldEnvironment, t: Int[Array, ""]) -> WorldCoefficients:
        """Return the coefficients of round ``t``."""
        first, last = environment[:2]
        if last is None:
            return first
        rounds = self.settings.rounds
        if self.settings.drift == "slow":
            return blend(first, last, jnp.minimum(t / rounds, 1.0))
        is_last = t > rounds // 2 if self.settings.drift == "abrupt" else (8 * (t - 1) // rounds) % 2 == 1
        return jax.tree.map(lambda old, new: jnp.where(is_last, new, old), first, last)

    def round(self, key: Key, environment: WorldEnvironment, t: Int[Array, ""]) -> Round:
        settings = self.settings
        context_key, noise_key, wrong_key, column_key, set_key = jax.random.split(key, 5)
        x = self.draw_features(context_key, environment)
        mean = settings.unit * mean_costs(settings.shape, self.coefficients(environment, t), x)
        if settings.growth:
            mean *= 1.0 + settings.growth * t / settings.rounds
        if environment.factors is not None:
            mean *= environment.factors[t % settings.calendar]
        if settings.outcome == AMOUNTS:
            cost = mean * self.draw_noise(noise_key, mean.shape)
        else:
            mean, cost = OUTCOMES[settings.outcome](noise_key, mean)
        if settings.rewards:
            mean, cost = -mean, -cost
        if settings.outliers:
            cost *= jnp.where(draws.uniform(wrong_key) < settings.outliers, settings.outlier_factor, 1.0)
        return Round(self.make_context(column_key, x, t), cost, mean, self.draw_instance(set_key))

    def draw_noise(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Return the factors of amounts, of mean 1."""
        size = self.noise_size
        if self.settings.noise == LOGNORMAL:
            return jnp.exp(size * draws.normal(key, shape) - jnp.square(size) / 2)
        return 1.0 + size * NOISES[self.settings.noise](key, shape)

    def draw_features(self, key: Key, environment: WorldEnvironment) -> Float[Array, "*d p"]:
        """Return the features that costs depend on."""
        return self.features(key, (self.settings.features,))

    def features(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Return features of unit size, independent but for the levels of one category."""
        settings = self.settings
        if settings.contexts == "levels":
            levels, columns = settings.levels, (*shape[:-1], shape[-1] // settings.levels)
            weights = 1.0 / np.arange(1, levels + 1)
            level = jax.random.choice(key, levels, columns, p=jnp.asarray(weights / weights.sum(), jnp.float32))
            one_hot = level[..., None] == jnp.arange(levels)
            return jnp.where(one_hot, levels**0.5, 0.0).reshape(shape).astype(jnp.result_type(float))
        x = draws.normal(key, shape)
        if settings.contexts == "sparse":
            given = draws.uniform(jax.random.fold_in(key, 1), shape) < NONZERO_SHARE
            return jnp.where(given, x / NONZERO_SHARE**0.5, 0.0)
        return x if settings.contexts == "normal" else jnp.where(x > 0, 1.0, -1.0)

    def make_context(self, key: Key, x: Float[Array, "*d p"], t: Int[Array, ""]) -> Context:
        """Return the context of these features, with odd and irrelevant columns and the day of the calendar."""
        settings = self.settings
        columns = [x]
        if settings.odd_columns or settings.irrelevant:
            extra = draws.normal(key, (settings.irrelevant + 1,))
            odd = [jnp.full((), CONSTANT, x.dtype), HUGE * extra[0], x[0]] if settings.odd_columns else []
            columns += [*(jnp.stack([column]) for column in odd), extra[1:]]
        if settings.calendar:
            columns.append((jnp.arange(settings.calendar) == t % settings.calendar).astype(x.dtype))
        return jnp.concatenate(columns)

    def draw_instance(self, key: Key) -> Instance:
        """Return the instance of this round; None if the feasible set never changes."""
        return None

    def context(self, environment: WorldEnvironment, observation: Context) -> Context:
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
    clusters : int, default 0
        If positive, items belong to this many clusters in turn: each has its own base cost, and the rows of its items
        lie around its centre.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    features: int = Field(default=8, ge=1, le=10**4)
    items: int = Field(default=50, ge=1, le=10**6)
    k: int = Field(default=5, ge=1)
    named: bool = False
    clusters: int = Field(default=0, ge=0, le=10**6)

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.odd_columns or self.irrelevant or self.calendar:
            raise ValueError("odd_columns, irrelevant and calendar have no effect on feature rows: leave them out")
        if self.clusters and (self.named or self.contexts != "normal"):
            raise ValueError("clusters have normal features and no names: leave out named and contexts")
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
        return (self.oracle.dim if self.settings.named else self.settings.clusters or 1), 1

    @property
    def cluster(self) -> np.ndarray:
        """The cluster of each item."""
        return np.arange(self.oracle.dim) % self.settings.clusters

    def environment(self, key: Key) -> WorldEnvironment:
        regimes, settings = super().environment(key), self.settings
        if not settings.clusters:
            return regimes
        shape = settings.clusters, settings.features
        return regimes._replace(centres=draws.normal(jax.random.fold_in(key, 2), shape))

    def coefficients(self, environment: WorldEnvironment, t: Int[Array, ""]) -> WorldCoefficients:
        now = super().coefficients(environment, t)
        return now._replace(base=now.base[self.cluster]) if self.settings.clusters else now

    def draw_features(self, key: Key, environment: WorldEnvironment) -> Float[Array, "d p"]:
        rows = self.features(key, (self.oracle.dim, self.settings.features))
        if environment.centres is None:
            return rows
        return (1.0 - CLUSTER_SPREAD**2) ** 0.5 * environment.centres[self.cluster] + CLUSTER_SPREAD * rows

    def make_context(self, key: Key, x: Float[Array, "d p"], t: Int[Array, ""]) -> Context:
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
    """Choose items that cover several demands, or that fit budgets: a small integer program, solved on the host.

    Item ``i`` gives demand ``j``, or takes from budget ``j``, an integer from 1 to 9, the same in every replication.

    Parameters
    ----------
    items, demands : int
        How many items, and demands or budgets, there are.
    cover : float, default 0.4
        What must be covered of each demand, or what each budget allows, as a share of all items together.
    pack : bool, default False
        Whether budgets are kept instead of demands covered; with ``rewards``, or else the empty bag is best.
    change : float, default 0
        Demands or budgets of a round are multiplied by factors between ``1 − change`` and ``1 + change``.
    layout : int, default 0
        Seed of the integers.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    items: int = Field(default=12, ge=1, le=1000)
    demands: int = Field(default=2, ge=1, le=100)
    cover: float = Field(default=0.4, gt=0, le=1)
    pack: bool = False
    change: float = Field(default=0.0, ge=0, le=1)
    layout: int = Field(default=0, ge=0, le=2**31)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.pack and self.cover * (1.0 + self.change) > 1.0:
            raise ValueError(
                "expected cover · (1 + change) ≤ 1, because all items together cover 1, "
                f"got {self.cover} and {self.change}"
            )
        return self

    def build(self) -> "CoverWorldBenchmark":
        """Return the benchmark."""
        return CoverWorldBenchmark(self)


class CoverWorldBenchmark(WorldBenchmark):
    """An integer program whose right-hand sides may change from round to round."""

    settings: CoverWorld = eqx.field(static=True)
    oracle: MilpOracle

    def __init__(self, settings: CoverWorld):
        amounts = np.random.RandomState(settings.layout).randint(1, 10, (settings.demands, settings.items))
        side = np.floor(settings.cover * amounts.sum(axis=1))
        sign = 1 if settings.pack else -1
        oracle = MilpOracle(A_ub=sign * amounts, b_ub=sign * side, bounds=(0, 1), integrality=1)
        super().__init__("world_cover", oracle, settings)

    def draw_instance(self, key: Key) -> Instance:
        change = self.settings.change
        if not change:
            return None
        plain = jax.tree.map(jnp.asarray, self.oracle.example_instance())
        factors = draws.uniform(key, plain["b_ub"].shape, 1.0 - change, 1.0 + change)
        return {**plain, "b_ub": jnp.floor(factors * plain["b_ub"])}


class StorageWorld(WorldSpec):
    """Charge (positive) and discharge (negative) a storage at prices that differ by slot: a linear program.

    Each slot moves at most ``rate``; the level stays between 0 and ``capacity`` and ends where it began, at half.

    Parameters
    ----------
    slots : int, default 12
        Number of slots, which are the cost coordinates.
    capacity, rate : float
        Of the storage.

    Notes
    -----
    The other parameters are those of ``WorldSpec``.
    """

    slots: int = Field(default=12, ge=2, le=1000)
    capacity: float = Field(default=4.0, gt=0)
    rate: float = Field(default=1.0, gt=0)

    def build(self) -> WorldBenchmark:
        """Return the benchmark."""
        moved = np.tril(np.ones((self.slots, self.slots)))
        oracle = MilpOracle(
            A_ub=np.concatenate([moved, -moved]),
            b_ub=np.full(2 * self.slots, self.capacity / 2),
            A_eq=np.ones((1, self.slots)),
            b_eq=[0.0],
            bounds=(-self.rate, self.rate),
        )
        return WorldBenchmark("world_storage", oracle, self)
