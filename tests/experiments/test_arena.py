"""The arena: untuned policies on worlds, scores relative to random, and results of earlier commands in the report."""

import functools

import numpy as np
import pytest

import regretless as rg
from regretless.cli.studies import show_arena
from regretless.errors import SettingsError
from regretless.experiments import Plan, ResultStore, Scale, carry_out
from regretless.experiments.arena import (
    WORLDS,
    arena_experiment,
    arena_plan,
    choose_worlds,
    contender,
    overall_scores,
    score,
    summarise_arena,
)
from regretless.experiments.campaign import work
from regretless.experiments.runner import resolve
from regretless.results import Reference, Result

SCALE = Scale(2, 0, 20)


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
    assert contender("linear_old").settings["clipping"] == 0.0
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
    assert [row["worlds"] for row in summary["overall"]["all"]] == [1, 3]
    show_arena(summary)
    shown = capsys.readouterr().out
    assert "skipped: rows_lin, picky: policy 'picky': expected context vectors, got feature rows\n" in shown
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
