"""The worlds of the arena as data, one entry each. No choice is made by those that are held out."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from regretless import benchmarks
from regretless.benchmarks.base import Benchmark
from regretless.registry import Registry

Group = Literal["benchmarks", "probe", "dirty", "changing", "late", "rows", "sets", "feedback", "held_out", "own"]
FIRST_GROUPS: tuple[Group, ...] = ("benchmarks", "probe")
"""The groups of the first thirteen worlds, which the first untuned defaults were measured on."""

SIZED = "world_"
"""Benchmarks whose name begins like this take the number of rounds: a drift must know when half of them are over."""


class ArenaWorld(NamedTuple):
    """One problem that policies are played on.

    Parameters
    ----------
    name, group, about : str
        What it is called, which worlds it belongs to, and one line about it.
    benchmark : str
        The name of the benchmark.
    settings : mapping
        The benchmark's settings.
    feedback : str
        What a decision reveals.
    delay, missing : int, float
        How feedback arrives.
    horizon : int, optional
        The number of rounds; by default the benchmark's own.
    judge : {"mean", "median"}
        How replications are summed up: by the median where few of them decide the mean.
    stationary : bool
        False where costs, or what may be chosen, change over time.
    """

    name: str
    group: Group
    benchmark: str
    settings: Mapping[str, Any] = {}
    about: str = ""
    feedback: str = "bandit"
    delay: int = 0
    missing: float = 0.0
    horizon: int | None = None
    judge: Literal["mean", "median"] = "mean"
    stationary: bool = True

    def benchmark_settings(self, horizon: int | None = None) -> dict[str, Any]:
        """Return the benchmark's settings for a run of ``horizon`` rounds instead of the world's own."""
        rounds = horizon or self.horizon
        return {**self.settings, **({"rounds": rounds} if self.benchmark.startswith(SIZED) and rounds else {})}

    def make(self) -> Benchmark:
        """Return the benchmark."""
        return benchmarks.parse(self.benchmark, self.benchmark_settings()).build()

    @property
    def play(self) -> dict[str, Any]:
        """What ``simulate`` takes in addition to policies, benchmark and seeds."""
        return {"horizon": self.horizon, "delay": self.delay, "missing": self.missing}


_LARGE = {"items": 100, "k": 10}
_MIDDLE = {"items": 30, "k": 5}
_SMALL = {"items": 15, "k": 3}

_TABLE = (
    ArenaWorld("topk", "benchmarks", "topk", about="the paper's, degree 8"),
    ArenaWorld("shortest_path", "benchmarks", "shortest_path", about="the paper's, degree 8"),
    ArenaWorld("pricing", "benchmarks", "pricing", about="the paper's, degree 8", judge="median"),
    ArenaWorld("energy", "benchmarks", "energy", {"split": "validation"}, about="the paper's, on its validation days"),
    ArenaWorld("const100", "probe", "world_topk", {**_LARGE, "shape": "const"}, "constant costs", horizon=1500),
    ArenaWorld("lin100", "probe", "world_topk", {**_LARGE, "shape": "lin"}, "linear costs", horizon=1500),
    ArenaWorld("relu100", "probe", "world_topk", {**_LARGE, "shape": "relu"}, "linear and bent costs", horizon=1500),
    ArenaWorld(
        "shared100", "probe", "world_topk", {**_LARGE, "shape": "shared"}, "one factor for all items",
        horizon=1500,
    ),
    ArenaWorld("exp30", "probe", "world_topk", {**_MIDDLE, "shape": "exp"}, "exponential costs", horizon=1500),
    ArenaWorld("inter30", "probe", "world_topk", {**_MIDDLE, "shape": "inter"}, "slopes change sign", horizon=2000),
    ArenaWorld("relu15", "probe", "world_topk", {**_SMALL, "shape": "relu"}, "few items", horizon=2000),
    ArenaWorld(
        "relu30out", "probe", "world_topk", {**_MIDDLE, "shape": "relu", "outliers": 0.005},
        "one total in 200 fifty-fold", horizon=1500,
    ),
    ArenaWorld(
        "lin30drift", "probe", "world_topk", {**_MIDDLE, "shape": "lin", "drift": "abrupt"},
        "new coefficients at half time", horizon=2000, stationary=False,
    ),
    ArenaWorld(
        "relu30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu"}, "relu30out without outliers",
        horizon=1500,
    ),
    ArenaWorld(
        "tails30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu", "noise": "student", "noise_size": 0.5},
        "heavy tails: Student's t with three degrees of freedom", horizon=1500,
    ),
    ArenaWorld(
        "columns30", "dirty", "world_topk", {**_MIDDLE, "odd_columns": True},
        "a constant, a huge and a duplicate feature", horizon=1500,
    ),
    ArenaWorld(
        "irrelevant15", "dirty", "world_topk", {**_SMALL, "odd_columns": True, "irrelevant": 40},
        "the same and forty irrelevant features", horizon=1500,
    ),
    ArenaWorld(
        "millions30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu", "unit": 1e6}, "millions",
        horizon=1500,
    ),
    ArenaWorld(
        "rewards30", "dirty", "world_topk", {**_MIDDLE, "rewards": True}, "rewards: negative costs",
        horizon=1500,
    ),
    ArenaWorld(
        "lin30slow", "changing", "world_topk", {**_MIDDLE, "drift": "slow"}, "coefficients change little by little",
        horizon=2000, stationary=False,
    ),
    ArenaWorld(
        "sets60", "changing", "world_topk", {"items": 60, "k": 5, "available": 0.5},
        "another half of the items every round", horizon=1500, stationary=False,
    ),
    ArenaWorld("lin30late", "late", "world_topk", _MIDDLE, "feedback 50 rounds late", delay=50, horizon=1500),
    ArenaWorld(
        "lin30lost", "late", "world_topk", _MIDDLE, "a fifth of the feedback is lost", missing=0.2,
        horizon=1500,
    ),
    ArenaWorld("rows_lin", "rows", "world_rows", {"shape": "lin"}, "a row of features for each item", horizon=1500),
    ArenaWorld("rows_relu", "rows", "world_rows", {"shape": "relu"}, "the same with bent costs", horizon=1500),
    ArenaWorld("rows_named", "rows", "world_rows", {"named": True}, "rows with the item's name, one-hot", horizon=1500),
    ArenaWorld("assignment8", "sets", "world_assignment", {"side": 8}, "8 × 8 assignment", horizon=1500),
    ArenaWorld(
        "assignment12", "sets", "world_assignment", {"side": 12},
        "12 × 12 assignment, totals a day late, a tenth of them lost", delay=1, missing=0.1, horizon=1000,
    ),
    ArenaWorld("grid6", "sets", "world_grid", {"shape": "relu"}, "paths on a 6 × 6 grid", horizon=1500),
    ArenaWorld("cover12", "sets", "world_cover", {}, "a small mixed-integer program", horizon=250),
    ArenaWorld("lin100semi", "feedback", "world_topk", _LARGE, "costs of chosen items", "semi_bandit", horizon=1500),
    ArenaWorld("relu30full", "feedback", "world_topk", {**_MIDDLE, "shape": "relu"}, "all costs", "full", horizon=1500),
    ArenaWorld(
        "step45", "held_out", "world_topk",
        {"items": 45, "k": 9, "features": 3, "shape": "step", "noise": "uniform", "noise_size": 0.4},
        "costs that jump", horizon=1200,
    ),
    ArenaWorld(
        "wave20", "held_out", "world_topk",
        {"items": 20, "k": 4, "features": 10, "shape": "wave", "noise": "skewed", "noise_size": 0.3},
        "costs that swing, skewed noise", horizon=1800,
    ),
    ArenaWorld(
        "bowl80", "held_out", "world_topk",
        {"items": 80, "k": 8, "features": 4, "shape": "bowl", "noise": "laplace", "noise_size": 0.3},
        "quadratic costs", horizon=1500,
    ),
    ArenaWorld(
        "coins40", "held_out", "world_topk",
        {"items": 40, "k": 6, "features": 12, "contexts": "coins", "outliers": 0.01, "outlier_factor": -20.0},
        "features of ±1, one total in a hundred minus twentyfold", horizon=1500,
    ),
    ArenaWorld(
        "seasons25", "held_out", "world_topk", {"items": 25, "k": 5, "features": 5, "shape": "relu",
        "drift": "seasons"},
        "two regimes that alternate", horizon=1600, stationary=False,
    ),
    ArenaWorld(
        "strip", "held_out", "world_grid", {"height": 3, "width": 8, "features": 8, "shape": "exp"},
        "paths on a 3 × 8 grid", horizon=1200,
    ),
    ArenaWorld(
        "match7", "held_out", "world_assignment",
        {"side": 7, "features": 4, "shape": "wave", "noise": "student", "noise_size": 0.2},
        "7 × 7 assignment, costs of chosen pairs", "semi_bandit", horizon=1000,
    ),
    ArenaWorld(
        "bundle10", "held_out", "world_cover", {"items": 10, "demands": 1, "features": 3, "layout": 7},
        "a knapsack, a third of the totals lost", missing=0.3, horizon=250,
    ),
    ArenaWorld(
        "rows_step", "held_out", "world_rows", {"items": 30, "k": 3, "features": 5, "shape": "step"},
        "feature rows, costs that jump", horizon=1200,
    ),
)  # fmt: skip

WORLDS: Registry[ArenaWorld] = Registry(
    "world", "worlds", {world.name: world for world in _TABLE}, ("judge",), "an ArenaWorld"
)
"""Every world by name."""

QUICK_WORLDS = ("topk", "relu30out", "lin30drift", "rows_lin", "assignment8")
"""Five worlds that stand for the others in a quick run."""
