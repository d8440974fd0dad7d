"""An experiment as data: what it takes, and what it refuses with a sentence."""

import numpy as np
import pytest

from regretless import benchmarks, policies
from regretless.errors import SettingsError
from regretless.studies.experiment import Arm, Experiment, available


def labels(**words):
    return {arm.label: arm.policy for arm in Experiment(**{"benchmark": "topk", **words}).arms}


def test_policies_may_be_names_objects_or_either_by_label():
    mine = policies.parse("greedy").build(benchmarks.parse("topk").build().problem("bandit"))
    assert labels(policies="greedy") == labels(policies=["greedy"]) == {"greedy": "greedy"}
    assert labels(policies=(name for name in ("greedy", "dfhpg"))) == {"greedy": "greedy", "dfhpg": "dfhpg"}
    assert labels(policies=mine) == {"RegressionPolicy": mine}
    assert labels(policies={"mine": mine, "theirs": "dfhpg"}) == {"mine": mine, "theirs": "dfhpg"}
    assert labels(policies="greedy", arms=[Arm(label="more", policy="greedy")]) == {
        "greedy": "greedy",
        "more": "greedy",
    }
    assert labels(arms=[{"label": "more", "policy": "greedy"}]) == {"more": "greedy"}


def test_without_policies_all_that_exist_for_the_model_are_played():
    assert next(iter(labels())) == "adaptive"
    assert set(labels()) == {name for name, entry in policies.REGISTRY.items() if entry.by_default}
    assert tuple(labels(model="flow")) == available("flow") == ("dfhpg_1", "dfhpg", "dfhpg_0")


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (3, (0, 1, 2)),
        (range(7, 10), (7, 8, 9)),
        ([5, 2], (5, 2)),
        (iter((4, 1)), (4, 1)),
        (np.arange(3), (0, 1, 2)),
        (np.int64(2), (0, 1)),
        ({9}, (9,)),
    ],
)
def test_seeds_are_a_number_or_any_iterable(given, seeds):
    assert Experiment(benchmark="topk", seeds=given).seeds == seeds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"policy": "greedy"}, "unknown setting 'policy' of Experiment; did you mean 'policies'?"),
        ({"first_seed": 3}, "unknown setting 'first_seed' of Experiment"),
        ({"benchmark": 3}, "expected the name of a benchmark, or a Benchmark, got 3"),
        ({"benchmark": None}, "expected the name of a benchmark, or a Benchmark, got None"),
        ({"policies": 3}, "expected names of policies or Policy objects, perhaps by label, got 3"),
        ({"policies": ("greedy", 3)}, "expected names of policies or Policy objects"),
        ({"policies": {"mine": None}}, "expected names of policies or Policy objects"),
        ({"policies": ("greedy", "greedy")}, "two arms are called 'greedy': give each a label of its own"),
        ({"arms": [{"label": "a", "policy": "greedy", "setings": {}}]}, "unknown setting 'setings' of Arm"),
        ({"arms": [{"label": "", "policy": "greedy"}]}, "'label': String should have at least 1 character"),
        ({"seeds": "3"}, "expected a number of replications or seeds, got '3'"),
        ({"seeds": 2.5}, "expected a number of replications or seeds, got 2.5"),
        ({"seeds": True}, "expected a number of replications or seeds, got True"),
        ({"seeds": 0}, "expected 1 to 1,000,000 replications, got 0"),
        ({"seeds": 10**23}, "expected 1 to 1,000,000 replications"),
        ({"seeds": range(10**9)}, "expected at most 1,000,000 replications, got 1,000,000,000"),
        ({"seeds": []}, "expected at least one seed"),
        ({"seeds": (1, 1)}, "all different whole numbers"),
        ({"seeds": (1, 2.5)}, "all different whole numbers"),
        ({"seeds": (2**32,)}, "all different whole numbers from 0 to"),
        ({"horizon": 0}, "'horizon': Input should be greater than or equal to 1, got 0"),
        ({"horizon": 10**12}, "'horizon': Input should be less than or equal to 100000000"),
        ({"missing": 1.0}, "'missing': Input should be less than 1"),
        ({"delay": -1}, "'delay': Input should be greater than or equal to 0"),
        ({"settings": "alpha.max=3"}, "'settings': Input should be a valid dictionary"),
    ],
)
def test_what_cannot_be_an_experiment_is_refused(words, message):
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
        Experiment(**{"benchmark": "topk", **words})


def test_a_changed_experiment_is_checked_again():
    one = Experiment(benchmark="topk", policies="greedy", seeds=2)
    assert one.changed(seeds=(5,), degree=4).name == "topk, bandit, degree 4, seeds from 5: greedy"
    assert one.changed() == one
    with pytest.raises(SettingsError, match="expected 1 to"):
        one.changed(seeds=0)
