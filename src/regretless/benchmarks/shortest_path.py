"""Shortest path on a grid, right and down."""

from pydantic import Field

from regretless.benchmarks.polynomial import PolynomialBenchmark, PolynomialSettings
from regretless.oracles.dag import ShortestPath, grid_edges


class ShortestPathSettings(PolynomialSettings):
    """The paper's sizes."""

    side: int = Field(5, ge=2, le=500, description="nodes of a side of the grid")
    features: int = Field(10, ge=1, le=10**5, description="p, of the context")


class ShortestPathBenchmark(PolynomialBenchmark):
    """A 5 × 5 grid with 40 edges, 10 context features."""

    Settings = ShortestPathSettings

    def __init__(self, settings: ShortestPathSettings):
        super().__init__(
            name="shortest_path",
            oracle=ShortestPath(grid_edges(settings.side, settings.side)),
            context_shape=(settings.features,),
            horizon=2000,
            regret_on_mean=False,
            degree=settings.degree,
            noise_radius=settings.noise_radius,
            sign=1.0,
        )
