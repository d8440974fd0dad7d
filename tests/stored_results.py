"""Stores with invented results, for tests of reports: nothing is simulated."""

import zlib

import numpy as np

from regretless.experiments.campaign import Plan
from regretless.experiments.runner import Run
from regretless.experiments.study import Scale
from regretless.results import Reference, Result

FACTORS = {"dfhpg": 1.0, "dfhpg_0": 1.2, "linear_thompson": 1.4, "dfhpg_1": 2.0, "thompson": 2.2, "greedy": 2.6}

FULL = Scale()


def invent_result(run, level=100.0):
    """Return a result for a resolved arm with regret that falls, at a level that depends on its label."""
    draw = np.random.default_rng(zlib.crc32(run.name.encode()))
    factor = FACTORS.get(run.label.split("/")[-1].split(",")[0], 1.5 + zlib.crc32(run.label.encode()) % 100 / 100)
    trend = factor * level * (0.1 + np.arange(1, run.horizon + 1) ** -0.5)
    common = np.array([np.random.default_rng(seed).uniform(0.8, 1.2) for seed in run.seeds])  # paired by seed
    regret = (trend * common[:, None] * draw.uniform(0.98, 1.02, (len(run.seeds), 1))).astype(np.float32)
    total = float(trend.sum())
    lines = (
        Reference("random", 3 * total, total / 50),
        Reference("best_fixed", total, 1.0),
        Reference("clairvoyant", 1.0, 0.1),
    )
    environment = {"python": "3.11", "platform": "Linux", "packages": {"jax": "1"}, "devices": ["cpu cpu"]}
    extra = {"standard": run.standard, "tuned": run.tuned, "notices": list(run.notices), "code": {"regretless": "test"}}
    config = {name: value for name, value in run.configuration.items() if name != "seeds"}
    seconds = {"compile": 1.0, "run": 2.0}
    about = {"seconds": seconds, "environment": environment, "extra": extra}
    return Result(run.label, regret, seeds=run.seeds, config=config, references=lines, **about)


def fill_store(store, studies, scale=FULL, command="regretless reproduce test", skip=()):
    """Write a campaign of these studies with an invented result for every arm, apart from tasks to skip."""
    store.create()
    plan = Plan(studies, scale, command)
    store.write_campaign(plan.campaign())
    for address, task in plan.tasks.items():
        if isinstance(task, Run) and task.label not in skip:
            store.put(address, invent_result(task), task.name, {"regretless": "test"})
    return plan
