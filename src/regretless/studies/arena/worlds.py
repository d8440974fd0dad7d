"""The worlds of the arena, one line each. Nobody chooses anything by those that are held out."""

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
    World("cover20", "sets", "world_cover", {}, "a small mixed-integer programme", horizon=400),
)  # fmt: skip

_FEEDBACK = (
    World("lin100semi", "feedback", "world_topk", _LARGE, "costs of chosen items", "semi_bandit", horizon=1500),
    World("relu30full", "feedback", "world_topk", {**_MIDDLE, "shape": "relu"}, "all costs", "full", horizon=1500),
)

_EVERY = (*_BENCHMARKS, *_PROBE, *_DIRTY, *_CHANGING, *_LATE, *_ROWS, *_SETS, *_FEEDBACK)

WORLDS: dict[str, World] = {world.name: world for world in _EVERY}
"""Every world by name."""
