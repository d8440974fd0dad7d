"""Top-k selection: pick the ``k`` cheapest of ``items`` items."""

from regretless import oracles
from regretless.benchmarks.polynomial import DEGREE, NOISE_RADIUS, PolynomialBenchmark, check_polynomial
from regretless.errors import SettingsError


class TopKBenchmark(PolynomialBenchmark):
    """15 items, 2 to pick, 5 context features.

    The paper writes ``c = −u``; its published numbers are for ``c = +u``, the default here. ``sign=-1`` gives the text's.
    """

    def __init__(
        self,
        degree: int = DEGREE,
        items: int = 15,
        k: int = 2,
        features: int = 5,
        noise_radius: float = NOISE_RADIUS,
        sign: int = 1,
    ):
        check_polynomial(degree, noise_radius, features)
        if sign not in (-1, 1):
            raise SettingsError(f"expected sign 1 (published numbers) or -1 (the paper's text), got {sign}")
        super().__init__(
            name="topk",
            oracle=oracles.top_k(items, k),
            context_shape=(features,),
            horizon=2000,
            regret_on_mean=False,
            degree=degree,
            noise_radius=noise_radius,
            sign=float(sign),
        )
