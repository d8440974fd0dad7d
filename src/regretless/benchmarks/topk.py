"""Top-k selection: pick the ``k`` cheapest of ``items`` items."""

from typing import Literal, Self

from pydantic import Field, model_validator

from regretless.benchmarks.polynomial import PolynomialBenchmark, PolynomialSpec
from regretless.oracles.selection import TopKOracle


class TopK(PolynomialSpec):
    """The paper's sizes, and the sign of the costs."""

    items: int = Field(default=15, ge=1, le=10**6, description="to choose from")
    k: int = Field(default=2, ge=1, description="to be chosen")
    features: int = Field(default=5, ge=1, le=10**5, description="p, of the context")
    sign: Literal[1, -1] = Field(
        default=1, description="c = sign · u: 1 for the published numbers, -1 as the paper's text says"
    )

    @model_validator(mode="before")
    @classmethod
    def _sign(cls, values: dict[str, object]) -> dict[str, object]:
        """``"-1"`` from the command line is the number."""
        return {**values, "sign": int(str(values["sign"]))} if str(values.get("sign")) in ("1", "-1") else values

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.k > self.items:
            raise ValueError(f"expected k ≤ items, got k = {self.k} of {self.items} items")
        return self

    def build(self) -> "TopKBenchmark":
        """Return the benchmark."""
        return TopKBenchmark(self)


class TopKBenchmark(PolynomialBenchmark):
    """15 items, 2 to pick, 5 context features.

    The paper writes ``c = −u``; its published numbers are for ``c = +u``, the default here. ``sign=-1`` gives the text's.
    """

    def __init__(self, settings: TopK):
        super().__init__(
            name="topk",
            oracle=TopKOracle(settings.items, settings.k),
            context_shape=(settings.features,),
            horizon=2000,
            regret_on_mean=False,
            degree=settings.degree,
            noise_radius=settings.noise_radius,
            sign=float(settings.sign),
        )
