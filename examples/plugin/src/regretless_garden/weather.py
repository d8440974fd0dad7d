"""A benchmark: what to plant in each bed, depending on the weather."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.benchmarks import Round
from regretless.types import Context, Key
from regretless_garden.oracles import OneOfEach


class WeatherBenchmark(rg.benchmarks.Benchmark):
    """Costs linear in the weather with noise; one plant is sold out."""

    plants: int = eqx.field(static=True)
    noise: float = eqx.field(static=True)

    def __init__(self, spec: "Weather") -> None:
        super().__init__(
            name="weather",
            oracle=OneOfEach(spec.beds, spec.plants),
            context_shape=(2,),
            horizon=500,
            regret_on_mean=False,
        )
        self.plants, self.noise = spec.plants, spec.noise

    def environment(self, key: Key) -> Array:
        return draws.normal(key, (self.oracle.dim, 2))

    def round(self, key: Key, environment: Any, t: Any) -> Round:
        sky, noise, stock = jax.random.split(key, 3)
        weather = draws.normal(sky, (2,))
        mean = environment @ weather
        cost = mean + self.noise * draws.normal(noise, (self.oracle.dim,))
        return Round(weather, cost, mean, self._in_stock(stock))

    def _in_stock(self, key: Key) -> Array:
        """Mark the available plants: all but one, if a bed has others."""
        sold_out = jax.random.randint(key, (), 0, self.oracle.dim)
        others = jnp.arange(self.oracle.dim) != sold_out
        return others | (self.plants == 1)

    def context(self, environment: Any, observation: Context) -> Context:
        return observation


class Weather(rg.benchmarks.BenchmarkSpec):
    """One plant per bed, whose cost depends on the weather.

    Parameters
    ----------
    beds : int, default 3
        Beds, with one plant each.
    plants : int, default 2
        Plants to choose from for each bed.
    noise : float, default 0.3
        Standard deviation of the costs given the weather.
    """

    beds: int = Field(default=3, ge=1, description="with one plant each")
    plants: int = Field(default=2, ge=1, description="to choose from")
    noise: float = Field(
        default=0.3, ge=0, description="deviation of the costs"
    )

    def build(self) -> WeatherBenchmark:
        """Return the benchmark."""
        return WeatherBenchmark(self)
