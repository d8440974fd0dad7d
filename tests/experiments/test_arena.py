"""The arena: untuned policies on worlds, scores relative to random, and results of earlier commands in the report."""

import functools

import jax
import numpy as np
import pytest

import regretless as rg
from regretless.benchmarks import datasets
from regretless.cli.studies import show_arena
from regretless.errors import SettingsError
from regretless.experiments import Plan, ResultStore, Scale, carry_out
from regretless.experiments.arena import (
    CONTENDERS,
    REFERENCE,
    WORLDS,
    Score,
    arena_experiment,
    arena_plan,
    choose_worlds,
    conclude,
    contender,
    overall_scores,
    score,
    summarise_arena,
)
from regretless.experiments.campaign import work
from regretless.experiments.runner import resolve
from regretless.extras import require
from regretless.results import Reference, Result

SCALE = Scale(2, 0, 20)


def test_parts_and_groups_stand_for_their_worlds():
    parts = [{world.name for world in choose_worlds([part])} for part in ("development", "held_out")]
    assert parts[0] | parts[1] == set(WORLDS)
    assert not parts[0] & parts[1]
    assert [world.name for world in choose_worlds(["real", "wine", "topk"])][2:] == ["wine", "tumours", "topk"]


def test_held_out_worlds_have_their_own_settings():
    shared = [world for world in WORLDS.values() if world.benchmark.startswith("world_")]
    held_out = [world for world in shared if world.held_out]
    assert len(held_out) == 28
    for world in held_out:
        same = [one for one in shared if not one.held_out and one.benchmark == world.benchmark]
        assert all(one.settings != world.settings for one in same)
        assert world.about
    for group in ("outcomes", "columns", "calendar", "small", "programs", "real"):
        assert {world.held_out for world in choose_worlds([group])} == {False, True}


@pytest.mark.parametrize("name", [world.name for world in WORLDS.values() if world.benchmark.startswith("world_")])
def test_every_world_can_be_made(name):
    world = WORLDS[name]
    assert world.horizon is not None
    if world.benchmark == "world_data":
        pytest.importorskip("sklearn")
    made = world.make()
    shapes = jax.eval_shape(lambda key: made.round(key, made.environment(key), jax.numpy.int32(1)), jax.random.key(0))
    assert shapes.cost.shape == (made.problem(world.feedback).dim,)


def invent(tasks, progress):
    lines = (Reference("random", 100.0, 1.0), Reference("best_fixed", 60.0, 1.0))
    return [
        Result(
            task.label,
            np.full((len(task.seeds), task.horizon), 50.0 / task.horizon),
            seeds=task.seeds,
            references=lines,
            seconds={"compile": 1.0, "run": 0.5},
        )
        for task in tasks
    ]


def test_contenders_are_played_with_their_defaults():
    (run,) = resolve(arena_experiment(WORLDS["topk"], contender("dfhpg"), SCALE))
    assert (run.tuned, run.scaling, run.policy.changed_names()) == (False, True, [])
    assert CONTENDERS[:3] == ("adaptive", "linear_thompson", REFERENCE)
    with pytest.raises(SettingsError, match="unknown policy 'adaptve'; did you mean 'adaptive'"):
        contender("adaptve")
    with pytest.raises(SettingsError, match="unknown world 'lin10'"):
        choose_worlds(["lin10"])


def test_a_shorter_run_is_shorter_for_the_world_too():
    experiment = arena_experiment(WORLDS["lin30drift"], contender("greedy"), SCALE)
    assert (experiment.horizon, experiment.settings["benchmark.rounds"]) == (20, 20)


def test_a_later_command_adds_to_the_report_and_repeats_nothing(tmp_path):
    store, worlds = ResultStore(tmp_path), choose_worlds(["lin100", "relu15"])
    first = arena_plan(worlds, ["greedy", "thompson"], SCALE, store)
    assert carry_out(first, store, functools.partial(work, compute=invent), largest_batch=1).computed == 4
    second = arena_plan(worlds, ["greedy", "adaptive"], SCALE, store)
    assert carry_out(second, store, functools.partial(work, compute=invent), largest_batch=1).computed == 2
    (campaign,) = store.read_campaigns()
    labels = {label for cell in campaign.studies[0].cells() for label, _ in cell.arms}
    assert labels == {"greedy", "thompson", "adaptive"}
    summary = summarise_arena(worlds, second, store)
    assert summary["failed"] == {}
    assert {row["policy"]: row["relative"] for row in summary["overall"]["all"]} == pytest.approx(
        {"greedy": 0.5, "adaptive": 0.5}
    )
    assert all(row["below_best_fixed"] for row in summary["worlds"][0]["results"])
    missing = summarise_arena(worlds, Plan(arena_plan(worlds, ["dfhpg"], SCALE, store).studies, SCALE), store)
    assert set(missing["failed"].values()) == {"not computed"}


class Picky(rg.policies.Greedy):
    """A policy for instances that are not there, and for no feature rows."""

    def build(self, problem):
        if len(problem.context_shape) > 1:
            raise SettingsError("expected context vectors, got feature rows")
        return {6: super().build}[problem.context_shape[0]](problem)


def test_worlds_that_a_policy_refuses_are_skipped_with_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(rg.policies.REGISTRY._parts, "picky", Picky)
    store, worlds = ResultStore(tmp_path), choose_worlds(["lin30drift", "rows_lin", "energy"])
    plan = arena_plan(worlds, ["picky", "greedy"], SCALE, store)
    assert carry_out(plan, store, functools.partial(work, compute=invent), largest_batch=1).computed == 4
    summary = summarise_arena(worlds, plan, store)
    assert summary["skipped"].keys() == {"rows_lin, picky", "energy, picky"}
    assert summary["failed"] == {}
    assert [(row["policy"], row["worlds"]) for row in summary["overall"]["all"]] == [("greedy", 3), ("picky", 1)]
    show_arena(summary)
    shown = capsys.readouterr().out
    reason = "policy 'picky': expected context vectors, got feature rows"
    assert f"skipped: rows_lin, picky; energy, picky: {reason}\n" in shown
    assert shown.endswith(f"{summary['conclusion']}\n")
    with pytest.raises(SettingsError, match="no policy can be played on any of these worlds"):
        arena_plan(choose_worlds(["rows_lin"]), ["picky"], SCALE, store)


def test_scores_count_diverged_replications_as_random():
    regret = np.full((4, 10), 1.0)
    lines = (Reference("random", 100.0, 1.0),)
    result = Result("a", regret, seeds=range(4), diverged_at=np.array([0, 0, 0, 5]), references=lines)
    found = score("w", "a", result)
    assert found.finals.tolist() == [10.0, 10.0, 10.0, 100.0]
    assert score("w (median)", "a", result).regret == 10.0
    (total,) = overall_scores([found])
    assert total.interval[0] <= total.relative <= total.interval[1]
    assert score("w", "a", Result("a", regret, seeds=range(4))) is None


def test_worlds_without_their_package_are_left_out_with_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(datasets, "_load", lambda name: require("no_such_package.datasets", extra="peers"))
    store, worlds = ResultStore(tmp_path), choose_worlds(["relu15", "digits", "wine"])
    plan = arena_plan(worlds, ["greedy", "thompson"], SCALE, store)
    assert carry_out(plan, store, functools.partial(work, compute=invent), largest_batch=1).computed == 2
    summary = summarise_arena(worlds, plan, store)
    show_arena(summary)
    shown = capsys.readouterr().out
    assert shown.count("skipped:") == 1
    assert "digits, greedy; digits, thompson and 2 more: this needs the package no_such_package" in shown


def test_results_are_in_order_with_a_winner_and_a_conclusion():
    def entry(world, policy, share):
        return Score(world, policy, share * np.array([90.0, 100.0, 110.0]), 100.0, 60.0, 12.0, 0)

    shares = {"a": {REFERENCE: 0.4, "bad": 0.9, "good": 0.2}, "b": {REFERENCE: 0.2, "bad": 0.8, "good": 0.4}}
    shares["c"] = {REFERENCE: 0.4, "good": 0.1}
    scores = [entry(world, policy, share) for world, row in shares.items() for policy, share in row.items()]
    totals = overall_scores(scores)
    assert [(total.policy, total.worlds, total.best_on) for total in totals] == [
        ("good", 3, 2),
        (REFERENCE, 3, 1),
        ("bad", 2, 0),
    ]
    assert totals[0].ratio_to_reference == pytest.approx((0.5 * 2 * 0.25) ** (1 / 3))
    assert totals[2].ratio_to_reference == pytest.approx((0.9 / 0.4 * 0.8 / 0.2) ** 0.5)
    sentence = conclude(scores)
    assert sentence.startswith("good has the lowest regret over 3 worlds: 0.2 of random's (geometric mean), 0.63 times")
    assert sentence.endswith("it is the best on 2 of them. Its worst world is b, with 0.4.")
    assert "inconclusive" not in sentence
    assert conclude([]) == ""
    assert conclude(scores[:1]).startswith(f"{REFERENCE} has a regret over 1 world: 0.4 of random's")
    easy = [*scores, entry("c", "picky", 0.01)]
    assert [total.policy for total in overall_scores(easy)] == ["good", REFERENCE, "picky", "bad"]
    equal = [entry("a", "one", 0.4), entry("a", "two", 0.4)]
    assert ", which is inconclusive; " in conclude(equal)
