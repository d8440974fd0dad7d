"""What a learner can be made of, and what is refused, each with a sentence that says what to do."""

import inspect

import numpy as np
import pytest

from regretless import feedback, models, oracles, policies, surrogates
from regretless.errors import SettingsError
from regretless.live.learner import Learner
from regretless.policies.regression import RegressionPolicy
from regretless.problem import Problem
from regretless.surrogates.direct import DBBSurrogate

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)


def make(**options):
    return Learner(options.pop("oracle", ORACLE), **{"context_dim": FEATURES, **options})


def inner(learner):
    """The policy inside its wrappers."""
    kernel = learner._books.kernel
    return kernel.choices.policy(kernel.numbers).inner


MODEL = models.GaussianLinear(start=0.7)
PROBLEM = Problem(ORACLE, (FEATURES,), "bandit", may_miss=True)
POLICY = policies.parse("greedy").build(PROBLEM)


def test_names_objects_and_settings():
    surrogate = surrogates.DBB()
    assert float(inner(make(policy="dfhpg", model=MODEL, surrogate=surrogate)).model.start) == 0.7
    by_name = make(policy="dfhpg", surrogate="dbb", settings={"alpha.max": 0.25})
    by_object = make(policy="dfhpg", settings=policies.parse("dfhpg", {"surrogate": "dbb", "alpha.max": 0.25}))
    assert type(inner(by_name).surrogate) is type(inner(by_object).surrogate) is DBBSurrogate
    assert float(inner(by_name).mixing.max) == float(inner(by_object).mixing.max) == 0.25
    assert make(policy=POLICY).decide(np.ones(FEATURES)).log_density is None
    assert isinstance(inner(make(policy=POLICY)), RegressionPolicy), "scaling is put around a policy object, too"
    assert isinstance(inner(make(policy=policies.Scaled(PROBLEM, POLICY))), RegressionPolicy), "but not twice"
    assert make(policy=POLICY, offset=np.ones(DIM)).decide(np.ones(FEATURES)).id == 1


def test_signature_says_what_there_is():
    parameters = inspect.signature(Learner).parameters
    assert list(parameters)[:3] == ["oracle", "context_dim", "context_shape"]
    assert parameters["max_pending"].default == 1000
    assert parameters["policy"].default == "adaptive"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"polcy": "dfhpg"}, "unknown argument 'polcy'; did you mean 'policy'[?] Expected some of oracle, context_dim"),
        ({"colour": "red"}, "unknown argument 'colour'; .*Expected some of oracle, context_dim, .*on_failure, seed"),
        ({"policy": "linear_thomson"}, "unknown policy 'linear_thomson'; did you mean 'linear_thompson'"),
        ({"model": MODEL}, "policy 'adaptive' has no setting 'model'; greedy, .* have it"),
        ({"model": "gaussian_nn"}, "policy 'adaptive' has no setting 'model'; greedy, .* have it"),
        ({"surrogate": "dbb"}, "policy 'adaptive' has no setting 'surrogate'; dfhpg, dfhpg_0 and dfhpg_auto have it"),
        ({"policy": POLICY, "settings": {}}, "settings, model and surrogate are for a policy by name"),
        ({"policy": "dfhpg", "surrogate": "spoplus"}, "did you mean 'spo_plus'"),
        ({"policy": "dfhpg", "surrogate": 3}, "expected surrogate to be a name or an object, got 3"),
        ({"policy": "greedy", "settings": {"forgetting": 0.1}}, "no setting 'forgetting'; .*linear_thompson have it"),
        ({"settings": {"epsilonn": 1}}, "unknown setting 'epsilonn'"),
        ({"settings": [1]}, r"expected the policy's specification, or a dictionary .*, got \[1\]"),
        ({"policy": None}, "expected policy to be a name or an object, got None"),
        ({"feedback": "bandits"}, "unknown feedback 'bandits'"),
        ({"feedback": 3}, "expected feedback to be a name or a Measurement"),
        ({"feedback": "linear"}, "rows= is the most rows"),
        ({"rows": 3}, "rows= is the most rows"),
        ({"context_dim": None}, "expected context_dim=p for a context vector"),
        ({"context_dim": 2.0}, "expected whole numbers for the shape of a context, got 2.0"),
        ({"context_dim": 0}, r"expected contexts of shape \(p,\) or \(4, p\)"),
        ({"context_dim": None, "context_shape": (3, 2)}, r"expected contexts of shape \(p,\) or \(4, p\)"),
        ({"context_dim": None, "context_shape": 3}, "expected whole numbers for the shape of a context, got 3"),
        ({"max_pending": 0}, "max_pending: Input should be greater than or equal to 1, got 0"),
        ({"max_pending": "7"}, "max_pending: Input should be a valid integer, got '7'"),
        ({"scaling": 1}, "scaling: Input should be a valid boolean, got 1"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"seed": -1}, "seed"),
        ({"offset": [1.0]}, "expected offset to be 4 finite numbers"),
        ({"offset": ["1", "2", "3", "4"]}, "offset: expected numbers, got text"),
        ({"offset": [True, False, True, False]}, "offset: expected numbers, got True or False"),
        ({"offset": np.ma.masked_array(np.ones(4), mask=[1, 0, 0, 0])}, "offset: .*masked array"),
        ({"offset": [1.0, np.nan, 1.0, 1.0]}, "expected offset to be 4 finite numbers"),
        ({"instance": np.ones(3)}, r"instance: expected shape \(4,\), got \(3,\)"),
        ({"instance": "none"}, "instance: expected numbers, got text"),
        ({"oracle": lambda cost: cost}, "expected an oracle"),
    ],
)  # fmt: skip
def test_refuses(options, message):
    with pytest.raises(SettingsError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem(ORACLE, (FEATURES,), "full", may_miss=True), "feedback: 'full' and 'bandit'"),
        (Problem(oracles.top_k(DIM, 1), (FEATURES,), "bandit", may_miss=True), "oracle: k 1 and 2"),
        (Problem(ORACLE, (5,), "bandit", may_miss=True), r"shape of a context: \(5,\) and \(3,\)"),
        (Problem(ORACLE, (FEATURES,), "bandit"), "rows are never missing and rows may be missing"),
    ],
)
def test_a_policy_object_must_be_built_for_this_problem(problem, message):
    with pytest.raises(SettingsError, match=f"the policy object was built for another problem .*{message}"):
        make(policy=policies.parse("greedy").build(problem))


def test_a_policy_object_knows_its_instances():
    with_masks = policies.parse("greedy").build(PROBLEM.with_instance(np.ones(DIM, bool)))
    learner = make(policy=with_masks)
    assert learner.decide(np.ones(FEATURES), instance=[0, 0, 1, 1]).w.tolist() == [0, 0, 1, 1]
    with pytest.raises(SettingsError, match="expected the form of earlier ones"):
        make(policy=POLICY).decide(np.ones(FEATURES), instance=[0, 0, 1, 1])
    with pytest.raises(SettingsError, match=r"instances: none and booleans \[4\]"):
        make(policy=POLICY, instance=np.ones(DIM))
    complete = make(policy=POLICY, may_miss=False)
    assert complete.learn(complete.decide(np.ones(FEATURES)).id, total=1.0).new


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(2), r"expected shape \(3,\), or \('n', 3\) for several, got \(2,\)"),
        ([1.0, np.nan, 0.0], "expected finite numbers"),
        ("abc", "expected numbers, got text"),
        (["1", "2", "3"], "expected numbers, got text"),
        (np.ones((0, 3)), "at least one context"),
        (np.ones((2, 2, 3)), "expected shape"),
        (np.ma.masked_array(np.ones(3), mask=[0, 1, 0]), "masked array"),
        (np.array(["2026-01-01"] * 3, "datetime64[D]"), "expected numbers, got dates"),
        (np.ones(3) + 1j, "expected numbers, got complex numbers"),
        ([True, False, True], "expected numbers, got True or False"),
        ([1.0, True, 0.0], "expected numbers, got True or False"),
        ([1.0, 10**400, 0.0], "expected numbers"),
        (None, "expected numbers"),
        (object(), "expected numbers"),
        ({"a": 1.0}, "expected numbers"),
    ],
    ids=range(15),
)
def test_contexts_are_numbers(bad, message):
    learner = make()
    with pytest.raises(SettingsError, match=message):
        learner.decide(bad)
    assert learner.health().decisions == 0


def test_decisions_are_made_with_finite_costs_only():
    learner = make(scaling=False)
    for t in range(4):
        learner.learn(learner.decide(np.full(FEATURES, t)).id, total=1e3 * t)
    with pytest.raises(SettingsError, match="expected one with finite predicted costs"):
        learner.decide(np.full(FEATURES, 1.7e308))
    with pytest.raises(SettingsError, match="expected explore to be True or False"):
        learner.decide(np.ones(FEATURES), explore="no")
    assert learner.health().decisions == 4


def test_linear_rows_as_an_object():
    told = make(feedback=feedback.RowsTold(2))
    choice = told.decide(np.ones(FEATURES))
    assert told.learn(choice.id, linear=([[1.0, 1.0, 1.0, 1.0]], [3.0])).new
