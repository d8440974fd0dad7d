"""The arena: its worlds as data, its cells, a run that is resumed, its JSON and its section of the report."""

import json

import pytest
from typer.testing import CliRunner

from regretless.cli.main import app
from regretless.errors import SettingsError
from regretless.report.writing import write_report
from regretless.studies.arena import contenders
from regretless.studies.arena.contenders import Contender
from regretless.studies.arena.study import QUICK, cell, chosen, study
from regretless.studies.arena.world import World
from regretless.studies.arena.worlds import QUICK_WORLDS, WORLDS
from regretless.studies.preparing import prepare
from regretless.studies.store import Store
from regretless.studies.study import Scale

runner = CliRunner()


def test_there_are_enough_worlds_and_the_thirteen_are_those_that_were_measured():
    worlds = [WORLDS[name] for name in WORLDS]
    assert len(worlds) >= 26
    assert sum(world.group == "held_out" for world in worlds) >= 6
    thirteen = {world.name: world for world in worlds if world.group in ("benchmarks", "probe")}
    assert set(thirteen) == {
        "topk", "shortest_path", "pricing", "energy", "const100", "lin100", "relu100", "shared100", "exp30", "inter30",
        "relu15", "relu30out", "lin30drift",
    }  # fmt: skip
    assert {name: world.horizon for name, world in thirteen.items() if world.horizon == 2000} == {
        "inter30": 2000, "lin30drift": 2000, "relu15": 2000,
    }  # fmt: skip
    assert thirteen["energy"].settings == {"split": "validation"}
    assert thirteen["pricing"].judge == "median"
    hard = WORLDS["assignment12"]
    assert (hard.make().oracle.dim, hard.make().context_shape, hard.delay, hard.missing) == (144, (6,), 1, 0.1)


@pytest.mark.parametrize("name", [name for name in WORLDS if WORLDS[name].benchmark.startswith("world_")])
def test_every_world_is_an_experiment_that_can_be_prepared(name):
    world = WORLDS[name]
    prepared = prepare(cell(world, contenders.arm("greedy"), Scale()))
    assert prepared.horizon == world.horizon == prepared.benchmark.horizon == world.make().horizon
    assert prepared.policies["greedy"].problem.may_miss == (world.missing > 0)
    assert not prepared.settled["greedy"].tuned
    assert prepare(cell(world, contenders.arm("greedy"), QUICK)).benchmark.horizon == min(300, world.horizon)


def test_worlds_and_policies_that_are_unknown_are_named_with_the_nearest():
    with pytest.raises(SettingsError, match="unknown world 'lin10'; did you mean 'lin100'"):
        chosen(["lin10"], quick=False)
    with pytest.raises(SettingsError, match="unknown policy 'linear_c'; did you mean 'linear_"):
        contenders.arm("linear_c")
    assert [world.name for world in chosen([], quick=True)] == list(QUICK_WORLDS)
    assert len(chosen([], quick=False)) == len(WORLDS)


def test_everyone_who_is_played_by_default_can_be_built():
    for name in contenders.DEFAULT:
        prepare(cell(WORLDS["relu15"], contenders.arm(name), QUICK))


def test_own_worlds_are_registered_and_take_no_others_name(monkeypatch):
    monkeypatch.setattr(WORLDS, "_own", dict(WORLDS._own))
    mine = World("mine", "own", "world_topk", {"items": 4, "k": 2}, horizon=20)
    WORLDS.register("mine", mine)
    assert study([WORLDS["mine"]], ["greedy"], QUICK).panels[0].cells[0][0] == "mine"
    with pytest.raises(SettingsError, match="world 'lin100' exists already"):
        WORLDS.register("lin100", mine)


def test_a_run_is_resumed_extended_told_and_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(WORLDS, "_own", dict(WORLDS._own))
    monkeypatch.setitem(contenders.REFERENCES, "wide", Contender("linear_thompson", {"posterior_scale": 0.5}))
    for name, judge in (("one", "mean"), ("two", "median")):
        WORLDS.register(name, World(name, "own", "world_topk", {"items": 4, "k": 2}, horizon=12, judge=judge))

    def arena(*words):
        given = ["arena", *words, "--seeds", "3", "--out", str(tmp_path / "store"), "--format", "json"]
        found = runner.invoke(app, given)
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    first = arena("one", "--policy", "linear_thompson")
    assert (first["cells"], first["computed"], first["failed"]) == (1, 1, {})
    whole = arena("one", "two", "--policy", "linear_thompson", "--policy", "wide")
    assert (whole["cells"], whole["computed"]) == (2, 1), (
        "the two worlds are one, judged in two ways; nothing is played twice"
    )
    assert whole["worlds"][0]["results"][0] == first["worlds"][0]["results"][0]
    assert set(whole) == {
        "worlds", "overall", "seeds", "first_seed", "failed", "cells", "computed", "seconds", "store",
    }  # fmt: skip
    assert set(whole["worlds"][1]) == {"world", "group", "judge", "random", "best_fixed", "results"}
    assert set(whole["worlds"][1]["results"][0]) == {
        "policy", "regret", "standard_error", "relative", "below_best_fixed", "microseconds", "diverged",
    }  # fmt: skip
    rows = whole["overall"]["all"]
    assert [row["policy"] for row in rows] == ["linear_thompson", "wide"]
    relative = [world["results"][1]["relative"] for world in whole["worlds"]]
    assert relative[0] != relative[1]
    assert rows[1]["relative"] == pytest.approx((relative[0] * relative[1]) ** 0.5)
    assert rows[1]["interval"][0] <= rows[1]["relative"] <= rows[1]["interval"][1]
    assert whole["overall"]["held_out"] == []

    again = arena("one", "--policy", "wide")
    assert again["computed"] == 0
    page = write_report(Store(tmp_path / "store"), tmp_path / "report")
    assert {cell.label for _, panel in page.panels() for cell in panel.cells} == {"one", "two (median)"}
    text = (tmp_path / "report" / "report.html").read_text()
    assert "The arena" in text
    assert '"kind":"arena"' in text
    source = (tmp_path / "report" / "reproduction.md").read_text()
    assert "| policy | worlds | relative |" in source
    assert f"| wide | 2 | {rows[1]['relative']:.3g} |" in source
    assert (tmp_path / "report" / "figures" / "arena_More_worlds.png").exists()
