"""The worlds of the arena, one line each. Nobody chooses anything by those that are held out."""

from regretless.registry import Registry
from regretless.studies.arena.world import World

_LARGE = {"items": 100, "k": 10}
_MIDDLE = {"items": 30, "k": 5}
_SMALL = {"items": 15, "k": 3}

_BENCHMARKS = (
    World("topk", "benchmarks", "topk", about="the paper's, degree 8"),
    World("shortest_path", "benchmarks", "shortest_path", about="the paper's, degree 8"),
    World("pricing", "benchmarks", "pricing", about="the paper's, degree 8", judge="median"),
    World("energy", "benchmarks", "energy", {"split": "validation"}, about="the paper's, on its validation days"),
)

_PROBE = (
    World("const100", "probe", "world_topk", {**_LARGE, "shape": "const"}, "constant costs", horizon=1500),
    World("lin100", "probe", "world_topk", {**_LARGE, "shape": "lin"}, "linear costs", horizon=1500),
    World("relu100", "probe", "world_topk", {**_LARGE, "shape": "relu"}, "linear and bent costs", horizon=1500),
    World("shared100", "probe", "world_topk", {**_LARGE, "shape": "shared"}, "one factor for all items", horizon=1500),
    World("exp30", "probe", "world_topk", {**_MIDDLE, "shape": "exp"}, "exponential costs", horizon=1500),
    World("inter30", "probe", "world_topk", {**_MIDDLE, "shape": "inter"}, "slopes change sign", horizon=2000),
    World("relu15", "probe", "world_topk", {**_SMALL, "shape": "relu"}, "few items", horizon=2000),
    World(
        "relu30out", "probe", "world_topk", {**_MIDDLE, "shape": "relu", "outliers": 0.005},
        "one total in 200 fifty-fold", horizon=1500,
    ),
    World(
        "lin30drift", "probe", "world_topk", {**_MIDDLE, "shape": "lin", "drift": "abrupt"},
        "new coefficients at half time", horizon=2000, stationary=False,
    ),
)  # fmt: skip

_DIRTY = (
    World("relu30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu"}, "relu30out without outliers", horizon=1500),
    World(
        "tails30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu", "noise": "student", "noise_size": 0.5},
        "heavy tails: Student's t with three degrees of freedom", horizon=1500,
    ),
    World(
        "columns30", "dirty", "world_topk", {**_MIDDLE, "odd_columns": True},
        "a constant, a huge and a duplicate feature", horizon=1500,
    ),
    World(
        "irrelevant15", "dirty", "world_topk", {**_SMALL, "odd_columns": True, "irrelevant": 40},
        "the same and forty irrelevant features", horizon=1500,
    ),
    World("millions30", "dirty", "world_topk", {**_MIDDLE, "shape": "relu", "unit": 1e6}, "millions", horizon=1500),
    World("rewards30", "dirty", "world_topk", {**_MIDDLE, "rewards": True}, "rewards: negative costs", horizon=1500),
)  # fmt: skip

_CHANGING = (
    World(
        "lin30slow", "changing", "world_topk", {**_MIDDLE, "drift": "slow"}, "coefficients change little by little",
        horizon=2000, stationary=False,
    ),
    World(
        "sets60", "changing", "world_topk", {"items": 60, "k": 5, "available": 0.5},
        "another half of the items every round", horizon=1500, stationary=False,
    ),
)  # fmt: skip

_LATE = (
    World("lin30late", "late", "world_topk", _MIDDLE, "feedback 50 rounds late", delay=50, horizon=1500),
    World("lin30lost", "late", "world_topk", _MIDDLE, "a fifth of the feedback is lost", missing=0.2, horizon=1500),
)

_ROWS = (
    World("rows_lin", "rows", "world_rows", {"shape": "lin"}, "a row of features for each item", horizon=1500),
    World("rows_relu", "rows", "world_rows", {"shape": "relu"}, "the same with bent costs", horizon=1500),
    World("rows_named", "rows", "world_rows", {"named": True}, "rows with the item's name, one-hot", horizon=1500),
)

_SETS = (
    World("assignment8", "sets", "world_assignment", {"side": 8}, "8 × 8 assignment", horizon=1500),
    World(
        "assignment12", "sets", "world_assignment", {"side": 12},
        "12 × 12 assignment, totals a day late, a tenth of them lost", delay=1, missing=0.1, horizon=1000,
    ),
    World("grid6", "sets", "world_grid", {"shape": "relu"}, "paths on a 6 × 6 grid", horizon=1500),
    World("cover12", "sets", "world_cover", {}, "a small mixed-integer programme", horizon=250),
)  # fmt: skip

_FEEDBACK = (
    World("lin100semi", "feedback", "world_topk", _LARGE, "costs of chosen items", "semi_bandit", horizon=1500),
    World("relu30full", "feedback", "world_topk", {**_MIDDLE, "shape": "relu"}, "all costs", "full", horizon=1500),
)

_HELD_OUT = (
    World(
        "step45", "held_out", "world_topk",
        {"items": 45, "k": 9, "features": 3, "shape": "step", "noise": "uniform", "noise_size": 0.4},
        "costs that jump", horizon=1200,
    ),
    World(
        "wave20", "held_out", "world_topk",
        {"items": 20, "k": 4, "features": 10, "shape": "wave", "noise": "skewed", "noise_size": 0.3},
        "costs that swing, skewed noise", horizon=1800,
    ),
    World(
        "bowl80", "held_out", "world_topk",
        {"items": 80, "k": 8, "features": 4, "shape": "bowl", "noise": "laplace", "noise_size": 0.3},
        "quadratic costs", horizon=1500,
    ),
    World(
        "coins40", "held_out", "world_topk",
        {"items": 40, "k": 6, "features": 12, "contexts": "coins", "outliers": 0.01, "outlier_factor": -20.0},
        "features of ±1, one total in a hundred minus twentyfold", horizon=1500,
    ),
    World(
        "seasons25", "held_out", "world_topk", {"items": 25, "k": 5, "features": 5, "shape": "relu", "drift": "seasons"},
        "two regimes that alternate", horizon=1600, stationary=False,
    ),
    World(
        "strip", "held_out", "world_grid", {"height": 3, "width": 8, "features": 8, "shape": "exp"},
        "paths on a 3 × 8 grid", horizon=1200,
    ),
    World(
        "match7", "held_out", "world_assignment",
        {"side": 7, "features": 4, "shape": "wave", "noise": "student", "noise_size": 0.2},
        "7 × 7 assignment, costs of chosen pairs", "semi_bandit", horizon=1000,
    ),
    World(
        "bundle10", "held_out", "world_cover", {"items": 10, "demands": 1, "features": 3, "layout": 7},
        "a knapsack, a third of the totals lost", missing=0.3, horizon=250,
    ),
    World(
        "rows_step", "held_out", "world_rows", {"items": 30, "k": 3, "features": 5, "shape": "step"},
        "feature rows, costs that jump", horizon=1200,
    ),
)  # fmt: skip

_EVERY = (*_BENCHMARKS, *_PROBE, *_DIRTY, *_CHANGING, *_LATE, *_ROWS, *_SETS, *_FEEDBACK, *_HELD_OUT)

WORLDS: Registry[World] = Registry("world", "worlds", {world.name: world for world in _EVERY}, ("judge",), "a World")
"""Every world by name."""

QUICK_WORLDS = ("topk", "relu30out", "lin30drift", "rows_lin", "assignment8")
"""A handful that stands for the others where there is no time for all."""
