"""Cells: what their results' addresses depend on."""

import ast
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from regretless import benchmarks, models, oracles, policies, surrogates
from regretless.cli.worker import keep_to_own_cores
from regretless.errors import SettingsError
from regretless.studies import cells, identity, sources
from regretless.studies.campaign import Silent
from regretless.studies.cells import TheoryCell, describe, key
from regretless.studies.definitions import study
from regretless.studies.engines.processes import CELLS, Processes
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.identity import THEORY, code_version, late_parts, roots_of
from regretless.studies.plan import Plan
from regretless.studies.store import Store
from regretless.studies.study import Panel, Scale, Study
from regretless_dfhpg import presets
from regretless_dfhpg.theory import runs

ARMS = (Arm(label="a", policy="greedy"), Arm(label="b", policy="dfhpg"))
CELL = Experiment(benchmark="topk", arms=ARMS, seeds=3, horizon=40)


def renamed(**changes):
    return (Arm(label="a", policy="greedy", **changes), ARMS[1])


CHANGES = [
    {"seeds": 4},
    {"seeds": range(1, 4)},
    {"seeds": (0, 2, 1)},
    {"horizon": 41},
    {"degree": 4},
    {"feedback": "full"},
    {"arms": ARMS[:1]},
    {"arms": (Arm(label="c", policy="greedy"), ARMS[1])},
    {"arms": renamed(settings={"policy_lr": 0.123})},
    {"arms": renamed(settings={"benchmark.k": 3})},
    {"arms": renamed(preset={"policy_lr": 0.1})},
    {"arms": renamed(feedback="full")},
    {"arms": renamed(model="gaussian_nn")},
    {"settings": {"policy_lr": 0.123}},
    {"settings": {"benchmark.items": 16}},
    {"settings": {"scaling": True}},
    {"model": "gaussian_nn"},
    {"delay": 1},
    {"missing": 0.25},
]


def test_addresses_depend_on_everything_that_matters():
    keys = [key(CELL.changed(**change)) for change in CHANGES]
    assert len({key(CELL), *keys}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "same",
    [
        {"degree": 8},
        {"settings": {"benchmark.k": "2"}},
        {"settings": {"policy_lr": presets.preset("topk", 8, "gaussian_linear", "bandit").values["policy_lr"]}},
        {"arms": (Arm(label="a", policy="greedy", benchmark="topk"), ARMS[1])},
    ],
)
def test_words_that_say_the_same_have_the_same_address(same):
    assert key(CELL.changed(**same)) == key(CELL)


def test_a_preset_that_changes_moves_the_address(monkeypatch):
    before = key(CELL)
    rows = presets.read_table("presets.csv")
    monkeypatch.setattr(
        presets,
        "read_table",
        lambda name: tuple({**row, "policy_lr": "0.123"} for row in rows) if name == "presets.csv" else (),
    )
    assert key(CELL) != before


@pytest.mark.parametrize("cell", [CELL, CELL.changed(arms=renamed(feedback="full")), TheoryCell(short=True)])
def test_a_worker_gets_the_same_cell(cell):
    (again,) = CELLS.validate_python(CELLS.dump_python([cell], mode="json"))
    assert key(again) == key(cell)
    assert describe(again) == describe(cell)


def history(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    return benchmarks.from_arrays(x, scale * (3.0 + x @ rng.normal(size=(3, 15))), oracles.top_k(15, 2))


def planned(*cells):
    return Plan([Study("mine", "table", "", "", (Panel("", tuple(("", cell) for cell in cells)),))], Scale())


def test_a_store_refuses_objects_that_it_cannot_know_again():
    world = benchmarks.parse("topk").build()
    mine = policies.parse("greedy").build(world.problem("bandit"))
    with pytest.raises(
        SettingsError, match="arm 'mine' is a policy object, which a store cannot know again: register it"
    ):
        planned(Experiment(benchmark="topk", policies={"mine": mine}, seeds=2, horizon=20))
    with pytest.raises(
        SettingsError, match=r"benchmark 'topk' is an object that only tells its name.*: give it by name"
    ):
        planned(Experiment(benchmark=world, policies=("greedy",), seeds=2, horizon=20))


def test_recorded_data_are_known_by_their_numbers(tmp_path):
    one, other = (Experiment(benchmark=history(scale), policies="greedy", seeds=2, horizon=20) for scale in (1.0, 2.0))
    arm = Experiment(
        benchmark="topk", arms=[Arm(label="a", policy="greedy", benchmark=history(1.0))], seeds=2, horizon=20
    )
    plan = planned(one, other, one.changed(), arm)
    assert len(plan.cells) == 3
    assert [describe(cell)["benchmark"] for cell in plan.cells.values()] == ["history", "history", "topk"]
    assert describe(arm)["arms"][0]["benchmark"] == "history"
    with pytest.raises(
        SettingsError, match=r"it holds objects, which other processes cannot be given: .* use --jobs 1"
    ):
        Processes(["no", "such", "program"], 2).run(plan.planned(), Store(tmp_path), Silent())


WORKER = """
import json, sys
task = json.loads(sys.stdin.readline())
for key in task["keys"]:
    print(json.dumps({"what": "finished", "key": key}), flush=True)
"""


def test_the_dearest_cells_come_first(tmp_path):
    cells = [Experiment(benchmark=name, policies=("dfhpg",), seeds=2) for name in ("topk", "pricing", "shortest_path")]
    told = []
    listener = Silent()
    listener.finished = lambda item: told.append(item.cell.benchmark)
    Processes([sys.executable, "-c", WORKER], 1).run(planned(*cells).planned(), Store(tmp_path), listener)
    assert told == ["pricing", "shortest_path", "topk"]


def test_workers_share_the_cores_and_none_has_those_of_another(monkeypatch):
    chosen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 7}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: chosen.append(cores), raising=False)
    for place in range(3):
        keep_to_own_cores(place, 2)
    assert chosen == [{1, 2}, {5, 7}, {1, 2}]


def playing(policy, benchmark="topk", **options):
    return Experiment(benchmark=benchmark, policies=(policy,), seeds=1, horizon=20, **options)


NAMED = [
    (policies, lambda name: playing(name, preset={})),
    (surrogates, lambda name: playing("dfhpg", settings={"surrogate": name})),
    (models, lambda name: playing("dfhpg_1", model=name)),
    (benchmarks, lambda name: playing("greedy", benchmark=name)),
]


@pytest.mark.parametrize(("family", "cell"), NAMED, ids=["policies", "surrogates", "models", "benchmarks"])
def test_a_cell_depends_on_the_late_parts_that_it_names_and_on_no_other(family, cell):
    registry = family.REGISTRY
    for name in filter(registry.built_in, registry):
        roots = cells.identity(cell(name))[1]
        named = identity._closure(roots_of(cells._definer(registry[name])))
        late = {module for module in late_parts() if module.startswith(f"{family.__name__}.")}
        assert late & set(identity._closure(roots)) == late & set(named), name


def test_the_theorems_are_checked_with_what_they_import():
    closure = identity._closure((THEORY,))
    for variant in ("plug_in", "listwise_ltr", "spo_plus"):
        used = cells._within(runs.policy("adaptive", 0.5, 0.1, 0.1, variant))
        assert set(roots_of(*map(cells._definer, used))) - {"jax"} <= set(closure), variant
    assert "regretless.policies.adaptive.policy" not in closure


def test_our_own_parts_are_taken_from_where_they_are_defined():
    """A name that a package loads later would hide its module from the addresses."""
    late = {f"{family.__name__}.{name}" for family in (benchmarks, models, oracles, policies) for name in family._LATE}
    for name, source in identity._closure(identity.everything()).items():
        imported = {f"{module}.{each}" for module, each in source.imports if module != name}
        nodes = ast.walk(ast.parse(Path(source.path).read_bytes()))
        taken = {f"regretless.{ast.unparse(node)}" for node in nodes if isinstance(node, ast.Attribute)}
        assert not late & (imported | taken), name


MAIN = next(cell for cell in study("main", Scale(seeds=1, horizon=20)).cells() if cell.benchmark == "topk")
NAMING = {"main": MAIN, "adaptive": playing("adaptive"), "imle": playing("dfhpg", settings={"surrogate": "imle"})}


@pytest.mark.parametrize(
    ("module", "stale"),
    [
        ("policies.adaptive.linear", {"adaptive"}),
        ("surrogates.perturbation", {"imle"}),
        ("models.diffusion", set()),
        ("simulation.stream", set(NAMING)),
    ],
)
def test_a_change_makes_those_results_old_that_use_it(monkeypatch, module, stale):
    before, find, whole = {name: key(cell) for name, cell in NAMING.items()}, sources.find, code_version()
    changed = lambda name: find(name)._replace(digest="other") if name == f"regretless.{module}" else find(name)  # noqa: E731
    monkeypatch.setattr(sources, "find", changed)
    monkeypatch.setattr(identity, "_known", {})
    assert {name for name, cell in NAMING.items() if key(cell) != before[name]} == stale
    assert code_version() != whole


def test_other_peoples_parts_depend_on_all_of_ours(monkeypatch):
    monkeypatch.setattr(policies.LinearThompson, "__module__", "json")
    assert set(late_parts()) <= set(cells.identity(playing("linear_thompson"))[1])
