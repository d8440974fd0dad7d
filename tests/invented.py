"""Results that nobody computed: they look like a campaign's, so that stores and reports can be tested in no time."""

import hashlib
import json
import time

import numpy as np

from regretless.results import DIAGNOSTICS_EVERY, Result
from regretless.studies.cell_files import CellResult
from regretless.studies.cells import TheoryCell, describe
from regretless.studies.definitions import study
from regretless.studies.identity import code_version, everything
from regretless.studies.plan import Plan
from regretless_dfhpg.presets import published
from regretless_dfhpg.theory import check as theory
from regretless_dfhpg.theory import world
from regretless_dfhpg.theory.statements import Interval

SCALE = {"topk": 2e5, "shortest_path": 1.5e6, "pricing": 4e4, "energy": 3e7}


def invent(cell, progress=lambda what, done, total: None):
    """A result for any cell, the same for the same cell; where a value is published, near it."""
    about = {
        "cell": describe(cell), "name": cell.name, "code": code_version(),
        "code_used": code_version(), "roots": list(everything()),
        "created": 1e9, "wall_seconds": 12.5,
        "environment": {"python": "3", "platform": "none", "packages": {"jax": "0"}, "devices": ["cpu none"]},
    }  # fmt: skip
    if isinstance(cell, TheoryCell):
        return CellResult({}, {**about, "document": theorems(cell.short)})
    horizon = min(cell.horizon or 2000, 395 if cell.benchmark == "energy" else 2000)
    traces = {arm.label: trace(cell, arm, horizon) for arm in cell.arms}
    level = SCALE[cell.benchmark]
    names = {"random": 3.0, "best_fixed": 0.5, "clairvoyant": 0.01}
    record = {
        **about,
        "horizon": horizon,
        "degree": cell.degree or 8,
        "references": [
            {"name": name, "mean": level * factor, "standard_error": level / 50, "world": ""}
            for name, factor in names.items()
        ],
        "seconds": {"compile": 8.0, "run": 4.5},
        "settings": {},
        "notices": [],
        "comparable": {arm.label: cell.horizon is None and not arm.settings for arm in cell.arms},
    }
    progress("running", 1, 1)
    return CellResult(traces, record)


def theorems(short=False):
    """A theory study with one claim that holds and one that does not."""
    near, far = Interval(-0.52, -0.53, -0.51), Interval(-0.48, -0.49, -0.47)
    claims = [
        theory.Statement("score_unbiased", "α = 1", "score / exact", Interval(1.0, 0.99, 1.01), "=", 1.0, p_value=0.4),
        theory.Statement("stationarity", "α = 1", "slope", near, "≤", -0.5, bound_share=0.01),
        theory.Statement("stationarity", "α = 0, adaptive step", "slope", far, "≤", -0.5, bound_share=0.01),
    ]
    levels = [Interval(0.1, 0.09, 0.11), Interval(0.05, 0.04, 0.06)]
    curves = [
        theory.Curve(quantity, rule, 0.5, [512, 1024], levels, [1.0, 0.5])
        for quantity in ("excess", "stationarity")
        for rule in ("adaptive", "constant")
    ]
    record = {"seed": 0, "horizons": [512, 1024], "replications": 4, "samples": 10, "short": short, "seconds": 1.0}
    facts = world.Constants(*[0.2] * len(world.Constants._fields))
    return theory.TheoryResult(claims, curves, facts, 0.3, 0, record).to_dict()


def trace(cell, arm, horizon):
    words = f"{cell.benchmark}{cell.feedback}{arm.label}{cell.degree}{cell.model}"
    rng = np.random.default_rng([cell.seeds[0], *words.encode()])
    known = published(cell.benchmark, cell.feedback, arm.label)
    mean = known.mean if known else SCALE[cell.benchmark] * rng.uniform(0.6, 2.5)
    spread = known.standard_error * 30**0.5 if known else 0.2 * mean
    final = np.abs(rng.normal(mean, spread, len(cell.seeds))) + 1.0
    shape = 1.0 + 4.0 * np.exp(-np.arange(horizon) / 150.0)
    regret = final[:, None] * shape / shape.sum() * rng.gamma(2.0, 0.5, (len(cell.seeds), horizon))
    count = horizon // DIAGNOSTICS_EVERY
    diagnostics = {"alpha": np.full((len(cell.seeds), count), 0.25)}
    return Result(arm.label, regret, seeds=cell.seeds, config={"policy": arm.label}, diagnostics=diagnostics)


def fill(store, names, scale):
    """A whole campaign's worth of invented results; gives the plan back."""
    plan = Plan([study(name, scale) for name in names], scale)
    store.create()
    plan.write(store)
    for item in plan.planned():
        store.put(item.key, invent(item.cell))
    for item in plan.follow_ups(store):
        store.put(item.key, invent(item.cell))
    return plan


def own_trace(rounds, means, diverged=False):
    """A trace of these rounds, one replication for each final regret in ``means``; or one that diverged in all of them."""
    means = np.atleast_1d(np.asarray(means, float))
    regret = np.repeat(means[:, None] / rounds, rounds, axis=1)
    if diverged:
        regret[:] = np.nan
    seeds = tuple(range(len(means)))
    return Result("any", regret, np.full(len(means), int(diverged), np.int32), seeds)


def own_study(store, panels, name="mine", title="My study", references=(), axis=None):
    """A store with one own study; ``panels`` are ``(kind, title, {cell label: {arm label: trace}})``."""
    store.create()
    cells, written = {}, []
    for kind, heading, content in panels:
        keys = []
        for label, traces in content.items():
            key = hashlib.sha256(repr((name, heading, label, list(traces))).encode()).hexdigest()
            cells[key] = f"{heading}, {label}"
            store.put(key, CellResult(traces, own_record(cells[key], traces, references)))
            keys.append([label, key])
        written.append({"title": heading, "kind": kind, "zoom": None, "cells": keys, "beside": []})
    study = {
        "name": name, "order": 0, "kind": "table", "title": title, "about": "What I tried.", "paper": False, "axis": axis,
        "panels": written,
    }  # fmt: skip
    document = {
        "id": "own", "command": "regretless reproduce mine.toml", "code": "0", "written": time.time(), "paper": False,
        "scale": {"seeds": 3, "first_seed": 0, "horizon": None}, "studies": [study], "cells": cells, "second": {},
    }  # fmt: skip
    (store.plans / "own.json").write_text(json.dumps(document))


def own_record(name, traces, references):
    """A record as somebody's own policies on somebody's own problem leave it."""
    return {
        "cell": {"kind": "simulation", "seeds": [0, 1, 2]}, "name": name, "code": "0", "created": 1e9, "wall_seconds": 1.0,
        "environment": {"python": "3", "platform": "none", "packages": {}, "devices": ["cpu none"]},
        "horizon": max(trace.regret.shape[1] for trace in traces.values()), "references": list(references),
        "seconds": {"compile": 1.0, "run": 1.0}, "settings": {}, "notices": [], "comparable": {},
    }  # fmt: skip
