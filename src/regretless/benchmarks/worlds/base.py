"""A world: what its contexts and costs are like; the feasible set is the subclass's."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field, field_validator

from regretless import draws
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.benchmarks.worlds.noise import NOISES, noisy, with_wrong_entries
from regretless.benchmarks.worlds.shapes import SHAPES, Coefficients, blended, draw_coefficients, mean_costs
from regretless.oracles.base import Oracle
from regretless.registry import require_known
from regretless.types import Context, Instance, Key

HUGE, CONSTANT = 1e6, 7.0


class WorldSpec(BenchmarkSpec):
    """What costs depend on, what blurs them, and what is wrong with the data."""

    shape: str = Field(default="lin", description="of the mean costs: const, lin, relu, shared, exp, inter, …")
    features: int = Field(default=6, ge=1, le=10**4, description="p, that costs may depend on")
    rounds: int = Field(default=1500, ge=2, le=10**8, description="the horizon; drift is over at its end")
    noise: str = Field(default="normal", description="of the costs: normal, student, …")
    noise_size: float = Field(default=0.25, ge=0, le=10, description="of the noise, as a share of the mean cost")
    outliers: float = Field(
        default=0.0, ge=0, le=1, description="share of the rounds whose costs are recorded wrongly …"
    )
    outlier_factor: float = Field(default=50.0, description="… by this factor; no regret is counted on it")
    drift: Literal["none", "abrupt", "slow", "seasons"] = Field(
        default="none",
        description="other coefficients from half time on, little by little, or in every other eighth of the rounds",
    )
    contexts: Literal["normal", "coins"] = Field(default="normal", description="normal numbers, or ±1")
    odd_columns: bool = Field(default=False, description="a constant, a huge and a duplicate feature beside the others")
    irrelevant: int = Field(default=0, ge=0, le=10**4, description="features that no cost depends on")
    unit: float = Field(default=1.0, gt=0, description="what all costs are multiplied with")
    rewards: bool = Field(default=False, description="costs are rewards with a minus sign")

    @field_validator("shape")
    @classmethod
    def _known_shape(cls, shape: str) -> str:
        require_known("shape", shape, SHAPES)
        return shape

    @field_validator("noise")
    @classmethod
    def _known_noise(cls, noise: str) -> str:
        require_known("noise", noise, NOISES)
        return noise


class Regimes(NamedTuple):
    """The coefficients that a replication begins with, and those that it drifts to; None: it stays with the first."""

    first: Coefficients
    last: Coefficients | None


class WorldBenchmark(Benchmark):
    """Costs ``mean(x) · (1 + size · ε)`` with contexts ``x ~ N(0, I_p)``; regret is counted on the means.

    With wrong entries the mean is that of the costs without them: an entry that is wrong costs nobody anything.
    """

    settings: WorldSpec = eqx.field(static=True)

    def __init__(self, name: str, oracle: Oracle, settings: WorldSpec):
        self.name, self.oracle, self.settings = name, oracle, settings
        self.horizon, self.regret_on_mean = settings.rounds, True
        odd = 3 if settings.odd_columns else 0
        self.context_shape = (settings.features + odd + settings.irrelevant,)

    def environment(self, key: Key) -> Regimes:
        sizes = (*self.coefficient_rows, self.settings.features)
        first, last = (draw_coefficients(each, *sizes) for each in jax.random.split(key))
        return Regimes(first, None if self.settings.drift == "none" else last)

    @property
    def coefficient_rows(self) -> tuple[int, int]:
        """How many base costs there are and how many directions: one for each coordinate, or one that all of them share."""
        return self.oracle.dim, self.oracle.dim

    def coefficients(self, environment: Regimes, t: Int[Array, ""]) -> Coefficients:
        """Those that hold in round ``t``."""
        first, last = environment
        if last is None:
            return first
        rounds = self.settings.rounds
        if self.settings.drift == "slow":
            return blended(first, last, jnp.minimum(t / rounds, 1.0))
        is_last = t > rounds // 2 if self.settings.drift == "abrupt" else (8 * (t - 1) // rounds) % 2 == 1
        return jax.tree.map(lambda old, new: jnp.where(is_last, new, old), first, last)

    def round(self, key: Key, environment: Regimes, t: Int[Array, ""]) -> Round:
        own = self.settings
        context_key, noise_key, wrong_key, column_key, set_key = jax.random.split(key, 5)
        x = self.drawn(context_key)
        mean = own.unit * mean_costs(own.shape, self.coefficients(environment, t), x)
        mean = -mean if own.rewards else mean
        cost = noisy(noise_key, own.noise, own.noise_size, mean)
        if own.outliers:
            cost = with_wrong_entries(wrong_key, own.outliers, own.outlier_factor, cost)
        return Round(self.shown(column_key, x), cost, mean, self.feasible_now(set_key))

    def drawn(self, key: Key) -> Float[Array, "*d p"]:
        """The features that costs depend on."""
        return self.features(key, (self.settings.features,))

    def features(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Independent features."""
        x = draws.normal(key, shape)
        return x if self.settings.contexts == "normal" else jnp.where(x > 0, 1.0, -1.0)

    def shown(self, key: Key, x: Float[Array, "*d p"]) -> Context:
        """The context that is made of them: odd and irrelevant columns beside them."""
        own = self.settings
        columns = [x]
        extra = draws.normal(key, (own.irrelevant + 1,))
        if own.odd_columns:
            columns.append(jnp.stack([jnp.full((), CONSTANT, x.dtype), HUGE * extra[0], x[0]]))
        return jnp.concatenate([*columns, extra[1:]]) if own.odd_columns or own.irrelevant else x

    def feasible_now(self, key: Key) -> Instance:
        """What of the feasible set is there this round; None: always the same."""
        return None

    def context(self, environment: Regimes, observation: Context) -> Context:
        return observation
