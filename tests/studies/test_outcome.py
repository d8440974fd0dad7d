"""Experiments that are run: what comes out, and arms in worlds of their own."""

import json

import numpy as np
import pytest

from regretless import benchmarks, oracles, policies
from regretless.report.gather import gather
from regretless.studies.compute import compute
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.outcome import run
from regretless.studies.plan import Plan
from regretless.studies.preparing import prepare
from regretless.studies.store import Store
from regretless.studies.study import Panel, Scale, Study

SMALL = {"benchmark": "topk", "seeds": 2, "horizon": 20}


def arm(label, **words):
    return Arm(label=label, policy="greedy", **words)


def alone(**words):
    """The regret of greedy in a run of its own."""
    return run(Experiment(**{**SMALL, "policies": "greedy", **words})).traces["greedy"].regret


def test_result_has_the_promised_form():
    outcome = run(Experiment(benchmark="topk", policies=("greedy", "thompson"), seeds=range(7, 10), horizon=20))
    result = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert set(result) == {
        "benchmark", "feedback", "degree", "model", "horizon", "seeds", "first_seed", "results", "references", "seconds",
        "settings", "notices", "data",
    }  # fmt: skip
    assert [result[name] for name in ("benchmark", "degree", "horizon", "seeds", "first_seed")] == ["topk", 8, 20, 3, 7]
    assert [row["policy"] for row in result["results"]] == ["greedy", "thompson"]
    for row in result["results"]:
        assert row["z"] is None, "20 rounds are not the published horizon"
        assert row["mean"] > 0
        assert (row["diverged"], row["world"]) == (0, "")
    assert [(line["name"], line["world"]) for line in result["references"]] == [
        ("random", ""), ("best_fixed", ""), ("clairvoyant", ""),
    ]  # fmt: skip
    assert set(result["seconds"]) == {"compile", "run"}
    assert outcome.traces["greedy"].seeds == (7, 8, 9)
    assert outcome.traces["greedy"].config["policy"] == "greedy"
    assert result["settings"]["greedy"]["policy_lr"] == outcome.prepared.settled["greedy"].settings.policy_lr


def test_one_replication_has_no_standard_error_and_no_z():
    row = run(Experiment(**{**SMALL, "policies": "greedy", "seeds": 1})).to_dict()["results"][0]
    assert (row["standard_error"], row["z"]) == (None, None)


def test_seeds_are_replications_in_their_order():
    both, swapped = alone(), alone(seeds=(1, 0))
    np.testing.assert_allclose(swapped, both[::-1], rtol=1e-12)


def test_arms_with_worlds_of_their_own_play_in_them():
    """Two sizes in one experiment: each arm is what it is in an experiment of its own."""
    arms = [arm("small", settings={"benchmark.items": 15}), arm("large", settings={"benchmark.items": 60})]
    outcome = run(Experiment(**SMALL, arms=arms))
    assert [world.oracle.dim for world in outcome.prepared.benchmarks.values()] == [15, 60]
    assert [row["world"] for row in outcome.to_dict()["results"]] == ["items 15", "items 60"]
    lines = {(line["world"], line["name"]): line["mean"] for line in outcome.lines()}
    assert len(lines) == 6
    assert lines["items 15", "random"] != lines["items 60", "random"]
    np.testing.assert_allclose(outcome.traces["small"].regret, alone(), rtol=1e-9)
    np.testing.assert_allclose(outcome.traces["large"].regret, alone(settings={"benchmark.items": 60}), rtol=1e-9)


def test_arms_with_their_own_feedback_degree_benchmark_and_preset():
    arms = [
        arm("plain"),
        arm("seen", feedback="full"),
        arm("easy", degree=2),
        arm("routed", benchmark="shortest_path"),
        arm("fast", preset={"policy_lr": 0.5, "scaling": False}),
    ]
    outcome = run(Experiment(**SMALL, arms=arms))
    assert outcome.prepared.worlds["plain"] == outcome.prepared.worlds["fast"] != outcome.prepared.worlds["seen"]
    assert len(set(outcome.prepared.worlds.values())) == 4
    assert "degree 2" in outcome.prepared.worlds["easy"]
    assert "shortest_path" in outcome.prepared.worlds["routed"]
    assert not np.array_equal(outcome.traces["fast"].regret, outcome.traces["plain"].regret)
    for label, words in (
        ("plain", {}),
        ("seen", {"feedback": "full"}),
        ("easy", {"degree": 2}),
        ("routed", {"benchmark": "shortest_path"}),
    ):
        np.testing.assert_allclose(outcome.traces[label].regret, alone(**words), rtol=1e-9, err_msg=label)


def history(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    return benchmarks.from_arrays(x, scale * (3.0 + x @ rng.normal(size=(3, 15))), oracles.top_k(15, 2))


def test_objects_of_the_same_name_are_worlds_of_their_own():
    one, other = history(1.0), history(10.0)
    arms = [arm("a", benchmark=one), arm("b", benchmark=other), arm("c", benchmark=one)]
    outcome = run(Experiment(**SMALL, arms=arms, preset={"scaling": False}))
    assert outcome.prepared.worlds == {"a": "", "b": "(2)", "c": ""}
    lines = {world: line.mean for world, line in outcome.references if line.name == "random"}
    assert lines["(2)"] == pytest.approx(10 * lines[""], rel=1e-6)
    np.testing.assert_array_equal(outcome.traces["a"].regret, outcome.traces["c"].regret)


def test_policy_and_benchmark_objects_are_played():
    world = benchmarks.parse("topk").build()
    mine = policies.parse("greedy", {"policy_lr": 0.0680961}).build(world.problem("bandit"))
    outcome = run(Experiment(benchmark=world, policies={"mine": mine}, seeds=2, horizon=20))
    np.testing.assert_allclose(outcome.traces["mine"].regret, alone(settings={"policy_lr": 0.0680961}), rtol=1e-9)
    assert outcome.to_dict()["settings"] == {"mine": {}}


def test_only_the_paper_s_own_runs_are_compared_with_its_tables():
    def comparable(**words):
        prepared = prepare(Experiment(**{"benchmark": "topk", "policies": "greedy", **words}))
        return prepared.comparable("greedy")

    assert comparable()
    assert comparable(seeds=3)
    for change in (
        {"degree": 4}, {"horizon": 1999}, {"delay": 1}, {"missing": 0.1}, {"settings": {"policy_lr": 0.1}},
        {"settings": {"scaling": True}}, {"settings": {"benchmark.k": 3}}, {"preset": {}}, {"model": "gaussian_nn"},
    ):  # fmt: skip
        assert not comparable(**change), change
    own = Experiment(benchmark="topk", arms=[arm("greedy", settings={"policy_lr": 0.1}), arm("b")])
    assert [prepare(own).comparable(label) for label in ("greedy", "b")] == [False, True]


def test_the_report_pairs_no_arms_of_different_worlds(tmp_path):
    """Reference lines carry the name of their world, from the record to the page."""
    store = Store(tmp_path)
    store.create()
    two = Experiment(**SMALL, arms=[arm("a"), arm("b", settings={"benchmark.items": 60})])
    one = Experiment(**SMALL, arms=[arm("a"), arm("b", settings={"policy_lr": 0.5})])
    study = Study("mine", "table", "Mine", "", (Panel("", (("two", two), ("one", one))),))
    plan = Plan([study], Scale())
    plan.write(store)
    for item in plan.planned():
        store.put(item.key, compute(item.cell))
    apart, paired = gather(store).studies[0].panels[0].cells
    assert [each.difference for each in apart.arms.values()] == [None, None]
    assert paired.arms["b"].difference is not None
    assert paired.arms["b"].anchor == "a"
    names = [line.name for line in apart.references()]
    assert names[:3] == ["random", "best_fixed", "clairvoyant"]
    assert names[3:] == [f"{name} (items 60)" for name in names[:3]]
    assert [line.name for line in paired.references()] == names[:3]


def test_progress_counts_all_worlds():
    told = []
    arms = [arm("a"), arm("b", feedback="full")]
    run(Experiment(**SMALL, arms=arms), lambda *words: told.append(words))
    running = [(done, total) for what, done, total in told if what == "running"]
    assert running == sorted(running)
    assert running[-1][0] == running[-1][1]
