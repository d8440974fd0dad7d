"""What changes in the feasible set from decision to decision."""

import numpy as np
import pytest

from live.learners import build
from regretless import oracles
from regretless.errors import OracleError, SettingsError
from regretless.live.history import History
from regretless.live.learner import Learner

DIM, FEATURES = 4, 3


def make(oracle, **options):
    return build(oracle, **options)


def test_feasible_set_that_changes_by_decision():
    learner = make(oracles.top_k(DIM, 2))
    rng = np.random.default_rng(1)
    for t in range(8):
        open_items = np.arange(DIM) != t % DIM
        choice = learner.decide(rng.normal(size=FEATURES), instance=open_items)
        assert choice.w[t % DIM] == 0
        learner.learn(choice.id, total=float(rng.normal()))
    for bad, message in (
        (None, r"expected the form of earlier ones, booleans \[4\], got none"),
        (np.ones(3), r"expected shape \(4,\)"),
        ([2, 0, 0, 0], "expected True and False"),
        ({0: 1, "a": 2}, "instance"),
        ("all", "expected numbers, got text"),
        (np.ma.masked_array(np.ones(DIM), mask=[1, 0, 0, 0]), "masked array"),
    ):
        with pytest.raises(SettingsError, match=message):
            learner.decide(np.ones(FEATURES), instance=bad)
    with pytest.raises(OracleError, match="infeasible: no decision satisfies the constraints"):
        learner.decide(np.ones(FEATURES), instance=np.array([True, False, False, False]))
    with pytest.raises(SettingsError, match="a list with one for each of 2 contexts, got 1"):
        learner.decide_batch(np.ones((2, FEATURES)), instances=[np.ones(DIM)])
    assert learner.health().decisions == 8
    mixed = learner.decide_batch(np.ones((2, FEATURES)), instances=[[1, 1, 0, 0], [0, 0, 1, 1]])
    assert [choice.w.tolist() for choice in mixed] == [[1, 1, 0, 0], [0, 0, 1, 1]]


def test_recorded_decisions_have_instances_like_others(tmp_path):
    learner = make(oracles.top_k(DIM, 2), store=tmp_path / "plant.db")
    mask = [True, True, True, False]
    recorded = learner.record(np.ones(FEATURES), [1, 1, 0, 0], instance=mask)
    assert learner.decide(np.ones(FEATURES), instance=mask).w[3] == 0
    assert learner.learn(recorded.id, total=3.0).new
    with pytest.raises(SettingsError, match=r"expected the form of earlier ones, booleans \[4\], got none"):
        learner.record(np.ones(FEATURES), [1, 1, 0, 0])
    assert History.from_store(tmp_path / "plant.db")[0].instance.tolist() == mask


def test_first_instance_fixes_the_form_unless_an_example_did():
    """The first decision, if it fails, fixes nothing; an example at the start does."""
    learner = make(oracles.top_k(DIM, 2), policy="dfhpg", settings={"surrogate": "pairwise_diff"})
    with pytest.raises(OracleError):
        learner.decide(np.ones(FEATURES), instance=np.zeros(DIM))
    assert not learner.problem.has_instances
    assert learner.decide(np.ones(FEATURES)).id == 1
    with pytest.raises(SettingsError, match="expected the form of earlier ones, none"):
        learner.decide(np.ones(FEATURES), instance=np.ones(DIM))
    fixed = make(oracles.top_k(DIM, 2), instance=np.ones(DIM, bool))
    with pytest.raises(SettingsError, match=r"expected the form of earlier ones, booleans \[4\]"):
        fixed.decide(np.ones(FEATURES))
    assert fixed.decide(np.ones(FEATURES), instance=[1, 1, 0, 1]).w[2] == 0


def test_all_kinds_of_instances_reach_the_solver_and_a_checkpoint(tmp_path):
    """A tree of arrays, integers among them; what no checkpoint could keep is refused before anything is decided."""
    met = []

    def solve(cost, instance):
        met.append(instance)
        return np.eye(DIM)[int(instance["ranks"][0])]

    oracle = oracles.external(solve, DIM, takes_instance=True)
    learner = make(oracle, policy="dfhpg", settings={"surrogate": "pairwise_diff"})
    with pytest.raises(SettingsError, match="by text"):
        learner.decide(np.ones(FEATURES), instance={1: np.ones(2), 2: np.ones(1)})
    with pytest.raises(SettingsError, match="takes_instance=True"):
        learner.decide(np.ones(FEATURES))
    given = {"ranks": np.array([2], np.int8), "limits": (np.float32(1.5), [np.ones((2, 2), bool)]), "none": None}
    choice = learner.decide(np.ones(FEATURES), instance=given)
    assert choice.w.tolist() == [0, 0, 1, 0]
    assert met[0]["limits"][0] == 1.5
    assert met[0]["limits"][1][0].dtype == bool
    path = tmp_path / "tree.db"
    learner.save(path)
    again = Learner.open(path, oracle, read_only=True)
    assert again.explain(1).cost_sample.tolist() == choice.cost_sample.tolist()
    assert again.decide(np.ones(FEATURES), instance=given).id == 2
    with pytest.raises(SettingsError, match="expected the form of earlier ones"):
        again.decide(np.ones(FEATURES), instance={"ranks": np.array([2])})
