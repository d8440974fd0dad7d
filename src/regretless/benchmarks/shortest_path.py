"""Shortest path on a grid, right and down."""

from pydantic import Field

from regretless.benchmarks.polynomial import PolynomialBenchmark, PolynomialSpec
from regretless.oracles.dag import ShortestPathOracle, grid_edges


class ShortestPath(PolynomialSpec):
    """The paper's sizes."""

    side: int = Field(default=5, ge=2, le=500, description="nodes of a side of the grid")
    features: int = Field(default=10, ge=1, le=10**5, description="p, of the context")

    def build(self) -> "ShortestPathBenchmark":
        """Return the benchmark."""
        return ShortestPathBenchmark(self)


class ShortestPathBenchmark(PolynomialBenchmark):
    """A 5 × 5 grid with 40 edges, 10 context features."""

    def __init__(self, settings: ShortestPath):
        super().__init__(
            name="shortest_path",
            oracle=ShortestPathOracle(grid_edges(settings.side, settings.side)),
            context_shape=(settings.features,),
            horizon=2000,
            regret_on_mean=False,
            degree=settings.degree,
            noise_radius=settings.noise_radius,
            sign=1.0,
        )
