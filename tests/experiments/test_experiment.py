"""An experiment as data: what it takes, and what it refuses with a sentence."""

import copy
import pickle

import numpy as np
import pytest

from regretless import benchmarks, policies
from regretless.errors import SettingsError
from regretless.experiments import Arm, Experiment
from regretless.experiments.experiment import default_policies, parse_experiment


def labels(**words):
    return {arm.label: arm.policy for arm in Experiment(**{"benchmark": "topk", **words}).arms}


def test_arguments_stay_as_they_were_given():
    experiment = Experiment("topk", ["greedy"], seeds=3, settings={"benchmark.k": 3})
    assert (experiment.policies, experiment.seeds) == (["greedy"], 3)
    assert experiment.seed_list == (0, 1, 2)
    assert copy.deepcopy(experiment) == pickle.loads(pickle.dumps(experiment)) == experiment


def test_policies_may_be_names_specifications_objects_arms_or_any_by_label():
    built = policies.parse("greedy").build(benchmarks.TopK().build().problem("bandit"))
    spec = policies.DFHPG(policy_lr=0.3)
    assert labels(policies="greedy") == labels(policies=["greedy"]) == {"greedy": "greedy"}
    assert labels(policies=(name for name in ("greedy", "dfhpg"))) == {"greedy": "greedy", "dfhpg": "dfhpg"}
    assert labels(policies=built) == {type(built).__name__: built}
    assert labels(policies=spec) == {"dfhpg": spec}
    assert labels(policies={"mine": built, "other": "dfhpg", "spec": spec}) == {
        "mine": built,
        "other": "dfhpg",
        "spec": spec,
    }
    assert labels(policies=["greedy", Arm("more", "greedy")]) == {"greedy": "greedy", "more": "greedy"}


def test_specifications_of_one_policy_are_named_by_their_differences():
    specs = [policies.DFHPG(policy_lr=0.1), policies.DFHPG(policy_lr=0.2)]
    assert list(labels(policies=specs)) == ["DFHPG(policy_lr=0.1)", "DFHPG(policy_lr=0.2)"]


def test_without_policies_all_that_exist_for_the_model_are_played():
    assert next(iter(labels())) == "adaptive"
    assert set(labels()) == {name for name, spec in policies.REGISTRY.items() if spec.by_default}
    flow = labels(settings={"model": "flow"})
    assert tuple(flow) == default_policies("flow") == ("dfhpg_1", "dfhpg", "dfhpg_0")


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (3, (0, 1, 2)),
        (range(7, 10), (7, 8, 9)),
        ([5, 2], (5, 2)),
        (iter((4, 1)), (4, 1)),
        (np.arange(3), (0, 1, 2)),
        (np.int64(2), (0, 1)),
    ],
)
def test_seeds_are_a_number_or_any_iterable(given, seeds):
    assert Experiment("topk", seeds=given).seed_list == seeds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"benchmark": 3}, "expected the name of a benchmark, a BenchmarkSpec or a Benchmark, got 3"),
        ({"policies": 3}, "expected names of policies, PolicySpec or Policy objects, or Arms, perhaps by label, got 3"),
        ({"policies": ("greedy", 3)}, "expected names of policies"),
        ({"policies": {"mine": None}}, "expected names of policies"),
        ({"policies": ("greedy", "greedy")}, "two arms are called 'greedy': give each a label"),
        ({"seeds": "3"}, "expected a number of replications or seeds, got '3'"),
        ({"seeds": 2.5}, "expected a number of replications or seeds, got 2.5"),
        ({"seeds": True}, "expected a number of replications or seeds, got True"),
        ({"seeds": 0}, "expected 1 to 1,000,000 replications, got 0"),
        ({"seeds": range(10**9)}, "expected at most 1,000,000 replications, got 1,000,000,000"),
        ({"seeds": []}, "expected at least one seed"),
        ({"seeds": (1, 1)}, "all different integers"),
        ({"horizon": 0}, "expected horizon to be a whole number from 1 to 100,000,000, got 0"),
        ({"horizon": 2.5}, "expected horizon to be a whole number"),
        ({"missing": 1.0}, "expected missing to be a probability below 1, got 1.0"),
        ({"delay": -1}, "expected delay to be a whole number from 0"),
        ({"settings": "alpha.max=3"}, "expected settings to be a mapping of settings by dotted name"),
        ({"title": 3}, "expected title to be text, got 3"),
    ],
)
def test_what_cannot_be_an_experiment_is_refused(words, message):
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
        Experiment(**{"benchmark": "topk", **words})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"polices": ["greedy"]}, "unknown setting 'polices' of Experiment; did you mean 'policies'?"),
        ({"arms": [{"label": "a", "policy": "greedy", "setings": {}}]}, "unknown setting 'setings' of Arm"),
        ({"arms": [{"label": "", "policy": "greedy"}]}, "expected a label for an arm, got ''"),
        ({"arms": [{"label": "a"}]}, "expected a policy for every arm"),
        ({"arms": 3}, "expected arms to be tables, got 3"),
        (
            {"policies": 3, "arms": [{"label": "a", "policy": "greedy"}]},
            "expected policies next to arms to be a list of names, got 3",
        ),
    ],
)
def test_a_table_that_is_no_experiment_is_refused(table, message):
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
        parse_experiment({"benchmark": "topk", **table})
    with pytest.raises(SettingsError, match="expected a benchmark for every cell"):
        parse_experiment({})


@pytest.mark.parametrize("grid", [{}, {"policy_lr": 0.1}, {"policy_lr": "0.1"}, {"policy_lr": ()}], ids=str)
def test_a_sweep_needs_values_for_each_setting(grid):
    with pytest.raises(SettingsError, match="sweep: expected settings with their values"):
        Experiment("topk", "dfhpg").sweep(grid)


def test_a_changed_experiment_is_checked_again():
    one = Experiment("topk", "greedy", seeds=2)
    changed = one.replace(seeds=(5,), settings={"benchmark.degree": 4})
    assert changed.name == "topk, bandit, seeds from 5, benchmark.degree 4: greedy"
    assert one.replace() == one
    with pytest.raises(SettingsError, match="expected 1 to"):
        one.replace(seeds=0)
