"""A world of the arena as data: which benchmark, how its feedback travels, and how it is judged."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from regretless import benchmarks
from regretless.benchmarks.base import Benchmark

Group = Literal["benchmarks", "probe", "dirty", "changing", "late", "rows", "sets", "feedback", "held_out", "own"]
THIRTEEN: tuple[Group, ...] = ("benchmarks", "probe")
"""The groups of the worlds that the first untuned defaults were measured on."""

OWN = "world_"
"""Benchmarks whose name begins so are told how many rounds they have, because a drift must know when it is half over."""


class World(NamedTuple):
    """One problem that policies are played on.

    ``judge`` is how replications are summed up: by the mean of their regrets, or by the median where a few of them decide the
    mean. ``stationary`` is False where costs, or what may be chosen, change over time.
    """

    name: str
    group: Group
    benchmark: str
    settings: Mapping[str, Any] = {}
    about: str = ""
    feedback: str = "bandit"
    delay: int = 0
    missing: float = 0.0
    horizon: int | None = None  # None: as long as the benchmark is
    judge: Literal["mean", "median"] = "mean"
    stationary: bool = True

    def own_settings(self, horizon: int | None = None) -> dict[str, Any]:
        """The benchmark's settings, for a run of ``horizon`` rounds instead of the world's own."""
        rounds = horizon or self.horizon
        return {**self.settings, **({"rounds": rounds} if self.benchmark.startswith(OWN) and rounds else {})}

    def make(self) -> Benchmark:
        """The benchmark."""
        return benchmarks.parse(self.benchmark, self.own_settings()).build()

    @property
    def play(self) -> dict[str, Any]:
        """What ``simulate`` is told beside policies, benchmark and seeds."""
        return {"horizon": self.horizon, "delay": self.delay, "missing": self.missing}
