"""What a learner can be made of, and what is refused, each with a sentence that says what to do."""

import inspect
from decimal import Decimal

import numpy as np
import pytest

import regretless as rg
from live.learners import build
from regretless import feedback, models, oracles, policies, surrogates
from regretless.errors import SettingsError
from regretless.policies.regression import RegressionPolicy
from regretless.problem import Problem
from regretless.surrogates.direct import DBBSurrogate

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)


def make(**options):
    return build(**{"policy": "adaptive", **options})


def inner(learner):
    """Return the policy inside its wrappers."""
    engine = learner.state.engine
    return engine.static.policy(engine.numbers).inner


MODEL = models.GaussianLinear(start=0.7)
PROBLEM = Problem(ORACLE, (FEATURES,), "bandit", may_miss=True)
POLICY = policies.parse("greedy").build(PROBLEM)


def test_names_specifications_and_objects():
    spec = policies.DFHPG(surrogate=surrogates.DBB(), model=MODEL)
    assert float(inner(make(policy=spec)).model.start) == 0.7
    by_name = make(policy="dfhpg", settings={"surrogate": "dbb", "alpha.max": 0.25})
    by_spec = make(policy=policies.DFHPG(surrogate=surrogates.DBB(), alpha=policies.MixingWeight(max=0.25)))
    assert type(inner(by_name).surrogate) is type(inner(by_spec).surrogate) is DBBSurrogate
    assert float(inner(by_name).mixing.max) == float(inner(by_spec).mixing.max) == 0.25
    assert make(policy=POLICY).decide(np.ones(FEATURES)).log_density is None
    assert isinstance(inner(make(policy=POLICY)), RegressionPolicy), "a policy object is scaled, too"
    assert isinstance(inner(make(policy=policies.Scaled(PROBLEM, POLICY))), RegressionPolicy), "but not twice"
    assert make(policy=POLICY, offset=np.ones(DIM)).decide(np.ones(FEATURES)).id == 1
    assert isinstance(rg.Learner(ORACLE, context=3, policy=policies.Unscaled("greedy")).decide(np.ones(3)), rg.Choice)


def test_at_most_ten_parameters():
    parameters = inspect.signature(rg.Learner).parameters
    assert list(parameters)[:4] == ["problem", "context", "feedback", "policy"]
    assert len(parameters) <= 10
    for method in (rg.Learner.open, rg.Learner.decide, rg.Learner.decide_batch, rg.Learner.learn):
        assert len(inspect.signature(method).parameters) <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "linear_thomson"}, "unknown policy 'linear_thomson'; did you mean 'linear_thompson'"),
        ({"policy": "greedy", "settings": {"forgetting": 0.1}}, "no setting 'forgetting'; .*linear_thompson have it"),
        ({"settings": {"epsilonn": 1}}, "unknown setting 'epsilonn'"),
        ({"policy": 3}, "expected policy to be a specification such as rg.policies.Adaptive"),
        ({"feedback": "bandits"}, "unknown feedback 'bandits'"),
        ({"feedback": 3}, "expected feedback to be a name or a Measurement"),
        ({"context": 2.0}, "expected contexts of shape .*, got 2.0"),
        ({"context": 0}, r"expected contexts of shape \(p,\) or \(4, p\)"),
        ({"context": (3, 2)}, r"expected contexts of shape \(p,\) or \(4, p\)"),
        ({"limit": 0}, "pending: limit: expected an integer from 1 to"),
        ({"limit": "7"}, "pending: limit: expected an integer from 1 to .*, got '7'"),
        ({"max_age": -1}, "pending: max_age: expected an integer from 0"),
        ({"max_age_seconds": np.inf}, "pending: max_age_seconds: expected a number of at least 0, got inf"),
        ({"on_failure": "incumbent"}, "on_failure='incumbent' expects an incumbent"),
        ({"on_failure": "ignore"}, "expected on_failure 'raise', 'last' or 'incumbent', got 'ignore'"),
        ({"seed": -1}, "expected a seed from 0 to"),
        ({"seed": True}, "expected a seed from 0 to"),
        ({"offset": [1.0]}, "offset: expected shape"),
        ({"offset": ["1", "2", "3", "4"]}, "offset: expected numbers, got text"),
        ({"offset": [1.0, np.nan, 1.0, 1.0]}, "offset: expected finite numbers"),
        ({"sense": "best"}, "expected sense 'min' .* or 'max'"),
        ({"max_age_seconds": 10**400}, "pending: max_age_seconds: expected a number of at least 0, got 1000"),
        ({"store": 3}, "store: expected the path of a file, got 3"),
        ({"store": "plant\0.db"}, "store: expected the path of a file, got 'plant"),
    ],
)
def test_refuses(options, message):
    with pytest.raises(SettingsError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rollout": [1.0, 0, 0, 1]}, r"expected rollout to be rg.Rollout\(…\)"),
        ({"pending": 7}, r"expected pending to be rg.Pending\(…\)"),
        ({"context": None}, "expected context=p for a context of p numbers"),
    ],
)
def test_refuses_options_of_the_wrong_kind(options, message):
    with pytest.raises(SettingsError, match=message):
        rg.Learner(ORACLE, **{"context": 3, **options})


def test_refuses_what_is_not_an_oracle_and_a_context_next_to_a_problem():
    with pytest.raises(SettingsError, match="expected a Problem or an oracle"):
        rg.Learner(lambda cost: cost, context=3)
    with pytest.raises(SettingsError, match="context= and feedback= belong to the Problem"):
        rg.Learner(PROBLEM, context=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 5.0}, "budget: expected a share above 0 and below 1, .*, got 5.0"),
        ({"budget": 1.0}, "expected a share above 0 and below 1"),
        ({"budget": 0}, "expected a share above 0 and below 1"),
        ({"budget": True}, "expected a share above 0 and below 1, .* got True"),
        ({"budget": float("nan")}, "expected a share above 0 and below 1, .* got nan"),
        ({"budget": 10**400}, "expected a share above 0 and below 1, .* got 1000"),
        ({"budget": None}, "expected a share, or an amount"),
        ({"mode": "watch"}, "expected mode 'act' or 'shadow', got 'watch'"),
        ({"incumbent": None, "budget": 0.1}, "without one there is no budget and no mode"),
    ],
)
def test_a_rollout_says_what_it_needs(given, message):
    with pytest.raises(SettingsError, match=message):
        rg.Rollout(**{"incumbent": [1.0, 0.0, 0.0, 1.0], **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected a share, or an amount"),
        ({"share": 0.05, "amount": 3.0}, "expected a share, or an amount"),
        ({"share": 0.05, "per": 100}, "expected a share, or an amount"),
        ({"amount": -3.0}, "expected an amount above 0, in the unit of the costs, got -3.0"),
        ({"amount": 3.0, "per": 0.5}, "expected a number of rounds of at least 1, got 0.5"),
    ],
)
def test_a_budget_is_a_share_or_an_amount(given, message):
    with pytest.raises(SettingsError, match=message):
        rg.Budget(**given)


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
        (np.ones(2), r"expected shape \(3,\), got \(2,\)"),
        ([1.0, np.nan, 0.0], "expected finite numbers"),
        ("abc", "expected numbers, got text"),
        (["1", "2", "3"], "expected numbers, got text"),
        (np.ones((2, 3)), "expected one context, got several; decide_batch takes several"),
        ([1.0, None, 0.0], "expected a number at position 1, got None"),
        ([1.0, [2.0], 0.0], "expected numbers"),
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
    ids=range(17),
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


def test_several_contexts_are_refused_without_numbers():
    with pytest.raises(SettingsError, match="at least one context"):
        make().decide_batch(np.ones((0, 3)))
    with pytest.raises(SettingsError, match="expected several contexts, got one"):
        make().decide_batch(np.ones(3))


def test_decimal_numbers_are_numbers():
    learner = make(policy="linear_thompson")
    choice = learner.decide([Decimal("0.5"), 1, 2.0])
    assert learner.learn(choice.id, total=Decimal("17.25")).residual is not None


def test_linear_rows_as_an_object():
    learner = make(feedback=feedback.ReportedRows(2))
    choice = learner.decide(np.ones(FEATURES))
    assert learner.learn(choice.id, linear=([[1.0, 1.0, 1.0, 1.0]], [3.0])).new
