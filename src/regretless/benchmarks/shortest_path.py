"""Shortest path on a grid, right and down."""

from regretless import oracles
from regretless.benchmarks.polynomial import DEGREE, NOISE_RADIUS, PolynomialBenchmark, check_polynomial


class ShortestPathBenchmark(PolynomialBenchmark):
    """A 5 × 5 grid with 40 edges, 10 context features."""

    def __init__(self, degree: int = DEGREE, side: int = 5, features: int = 10, noise_radius: float = NOISE_RADIUS):
        check_polynomial(degree, noise_radius, features)
        super().__init__(
            name="shortest_path",
            oracle=oracles.shortest_path(oracles.grid_edges(side, side)),
            context_shape=(features,),
            horizon=2000,
            regret_on_mean=False,
            degree=degree,
            noise_radius=noise_radius,
            sign=1.0,
        )
