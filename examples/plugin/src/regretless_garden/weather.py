"""A benchmark: what to plant in each bed, when the trouble that each plant makes depends on the weather."""

import equinox as eqx
import jax
import jax.numpy as jnp
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.benchmarks import Round
from regretless_garden.oracles import OneOfEach


class WeatherBenchmark(rg.benchmarks.Benchmark):
    """Costs that are linear in the weather and noisy; now and then a plant is sold out."""

    noise: float = eqx.field(static=True)

    def __init__(self, settings):
        super().__init__(
            name="weather",
            oracle=OneOfEach(settings.beds, settings.plants),
            context_shape=(2,),
            horizon=500,
            regret_on_mean=False,
        )
        self.noise = settings.noise

    def environment(self, key):
        return draws.normal(key, (self.oracle.dim, 2))

    def round(self, key, environment, t):
        sky, noise, stock = jax.random.split(key, 3)
        weather = draws.normal(sky, (2,))
        mean = environment @ weather
        cost = mean + self.noise * draws.normal(noise, (self.oracle.dim,))
        return Round(weather, cost, mean, self._in_stock(stock))

    def _in_stock(self, key):
        """One plant is sold out in each round, as long as its bed has others."""
        gone = jax.random.randint(key, (), 0, self.oracle.dim)
        return (jnp.arange(self.oracle.dim) != gone) | (self.oracle.size == 1)

    def context(self, environment, observation):
        return observation


class Weather(rg.benchmarks.BenchmarkSpec):
    """One plant per bed, when the trouble that each plant makes depends on the weather."""

    beds: int = Field(default=3, ge=1, description="beds, one plant for each")
    plants: int = Field(default=2, ge=1, description="plants to choose from for each bed")
    noise: float = Field(default=0.3, ge=0, description="standard deviation of the costs given the weather")

    def build(self):
        """Return the benchmark."""
        return WeatherBenchmark(self)
