"""The contract: structure, shapes and types of every decision and feedback, and what differs between two problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless import feedback, oracles, policies
from regretless.errors import SettingsError
from regretless.problem import Problem, form_of, form_words
from regretless.testing.helpers import form_difference
from regretless.types import NOT_SAMPLED
from toys import DIM, FEATURES, PARTS_ONLY

ORACLE = oracles.top_k(DIM, 2)
MILP = oracles.milp(A_ub=[[1.0, 2.0, 1.0]], b_ub=[2.0], A_eq=[[1.0] * 3], b_eq=[1.0], integrality=1)
SCHEDULE = oracles.scheduling(oracles.Plant(360, ((9.0,),), (oracles.PlantTask(2, 0, 4, 3.0, (1.0,)),)))
FORMS = {
    "none": (ORACLE, None),
    "mask": (ORACLE, np.ones(DIM, bool)),
    "right-hand sides": (MILP, {"b_ub": np.array([2.0])}),
    "aux": (SCHEDULE, None),
}


CASES = [
    *(("greedy", mode, may_miss, form) for mode in feedback.REGISTRY for may_miss in (False, True) for form in FORMS),
    *((name, "semi_bandit" if name in PARTS_ONLY else "bandit", False, "aux") for name in policies.REGISTRY),
]


@pytest.mark.parametrize(("name", "mode", "may_miss", "form"), CASES)
@pytest.mark.usefixtures("float64")
def test_examples_have_the_form_of_real_decisions_and_feedback(name, mode, may_miss, form):
    oracle, instance = FORMS[form]
    problem = Problem(oracle, (FEATURES,), mode, may_miss=may_miss, instance=instance)
    policy = policies.parse(name).build(problem)
    given = jax.tree.map(jnp.asarray, instance)
    decision = policy.decide(jax.random.key(1), policy.init(jax.random.key(0)), jnp.ones(FEATURES), given)
    assert form_difference(decision, problem.example_decision()) == ""
    seen = problem.observe(decision, jnp.ones(oracle.dim))
    assert form_difference(seen, problem.example_feedback()) == ""
    assert (seen.seen is not None) == may_miss
    by_hand = problem.decision(decision.w, decision.context, given, decision.aux, id=3)
    assert form_difference(by_hand, decision) == ""
    assert int(by_hand.version) == NOT_SAMPLED
    assert not by_hand.sampled()
    assert np.isnan(by_hand.log_density)


def test_difference_names_what_differs():
    base = Problem(ORACLE, (3,), "bandit")
    for other, said in (
        (Problem(oracles.top_k(DIM, 2), (3,), "bandit"), ""),
        (Problem(ORACLE, (3,), feedback.Bandit()), ""),
        (Problem(oracles.top_k(DIM, 1), (3,), "bandit"), "oracle: k 2 and 1"),
        (Problem(oracles.top_k(5, 2), (3,), "bandit"), "oracle: dim 4 and 5"),
        (Problem(ORACLE, (2,), "bandit"), "shape of a context: (3,) and (2,)"),
        (Problem(ORACLE, (3,), "full"), "feedback: 'bandit' and 'full'"),
        (Problem(ORACLE, (3,), "bandit", instance=np.ones(DIM, bool)), "instances: none and booleans [4]"),
        (Problem(ORACLE, (3,), may_miss=True), "feedback: rows are never missing and rows may be missing"),
        (
            Problem(oracles.shortest_path(oracles.grid_edges(2, 2)), (3,), "bandit"),
            "oracle: kind TopK and ShortestPath",
        ),
    ):
        assert base.difference(other).startswith(said)
        assert bool(base.difference(other)) == bool(said)
    assert base.difference(Problem(ORACLE, (2,), "full")) == (
        "shape of a context: (3,) and (2,); feedback: 'bandit' and 'full'"
    )


def test_rows_may_all_arrive_where_they_may_be_missing_but_not_the_other_way_round():
    certain, open_ = Problem(ORACLE, (3,)), Problem(ORACLE, (3,), may_miss=True)
    open_.require_played_on(certain, "it")
    with pytest.raises(SettingsError, match=r"it was built for another problem .*build it for this one"):
        certain.require_played_on(open_, "it")
    with pytest.raises(SettingsError, match="rows of the feedback are missing, but it was made with may_miss=False"):
        certain.with_seen(certain.example_feedback(), jnp.ones(1, bool))


def test_other_forms_of_a_problem():
    problem = Problem(ORACLE, (3,), "semi_bandit", instance=np.ones(DIM, bool))
    assert problem.with_missing(True).may_miss
    assert problem.with_missing(True).difference(problem).startswith("feedback: rows may be missing")
    assert problem.with_instance(None).instance_form is None
    assert problem.with_instance(None).with_instance(np.zeros(DIM, bool)).difference(problem) == ""


def test_forms_of_instances():
    assert form_of(None) is None
    assert form_words(None) == "none"
    assert form_words(form_of({"b": np.zeros(2), "open": np.ones(3, bool), "n": np.int64(1)})) == (
        "{b: numbers [2], n: integers [], open: booleans [3]}"
    )
    assert form_of(np.zeros(2, np.float32)) == form_of(np.zeros(2)) != form_of(np.zeros(3))
    assert form_of(jax.ShapeDtypeStruct((2,), float)) == form_of(np.zeros(2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("top_k", (3,)), "expected an oracle"),
        (
            (ORACLE, ()),
            r"\(p,\) or \(4, p\), a row per cost coordinate, \(height, width, 3\) or Columns, got \(\)",
        ),
        ((ORACLE, (0,)), r"got \(0,\)"),
        ((ORACLE, (3, 2)), "a row per cost coordinate"),
        ((ORACLE, (2.5,)), "expected contexts"),
        ((ORACLE, True), "expected contexts"),
        ((ORACLE, None), "expected contexts"),
        ((ORACLE, (3,), "bandits"), "did you mean 'bandit'"),
        ((ORACLE, (3,), 7), "expected feedback to be a name or a Measurement, got 7"),
    ],
)
def test_what_is_no_problem_is_refused(given, message):
    with pytest.raises(SettingsError, match=message):
        Problem(*given)


def test_a_context_is_a_number_a_shape_or_columns():
    columns = rg.Columns(numbers=["hour"], booleans=["rain"])
    rows = rg.Columns(numbers=["hour"], per_coordinate=True)
    assert Problem(ORACLE, 3).context_shape == Problem(ORACLE, np.int64(3)).context_shape == (3,)
    assert Problem(ORACLE, (DIM, 2)).context_shape == (DIM, 2)
    assert Problem(ORACLE, columns).context_shape == (columns.width,)
    assert Problem(ORACLE, rows).context_shape == (DIM, 1)
    assert Problem(ORACLE, columns).with_missing(True).columns == columns
    assert Problem(ORACLE, 3).columns is None


def test_sense_and_known_offset_are_kept_but_no_concern_of_a_policy():
    problem = Problem(ORACLE, 3, "full", sense="max", offset=[1.0, 2.0, 3.0, 4.0])
    assert (problem.sign, problem.offset) == (-1.0, (1.0, 2.0, 3.0, 4.0))
    assert problem.with_missing(True).offset == problem.offset
    assert Problem(ORACLE, 3).difference(problem).endswith("sense: min and max; offset: None and (1.0, 2.0, 3.0, 4.0)")
    plain = problem.for_policy()
    assert (plain.sign, plain.offset) == (1.0, None)
    problem.require_played_on(Problem(ORACLE, 3, "full"), "policy")


def test_text_form():
    assert repr(Problem(ORACLE, 3)) == "Problem(TopK(dim=4), context=3, feedback='bandit')"
    problem = Problem(
        ORACLE, (4, 2), "full", may_miss=True, instance=np.ones(DIM, bool), sense="max", offset=np.zeros(4)
    )
    assert repr(problem) == (
        "Problem(TopK(dim=4), context=(4, 2), feedback='full', may_miss=True, sense='max', "
        "offset=(0.0, 0.0, 0.0, 0.0), instance=booleans [4])"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sense": "maximise"}, "expected sense 'min'"),
        ({"offset": [1.0]}, r"offset: expected shape \(4,\)"),
        ({"offset": [np.nan] * 4}, "offset: expected finite numbers"),
        ({"may_miss": 1}, "expected may_miss to be True, False or None"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        Problem(ORACLE, 3, **options)


def test_a_context_of_another_shape_is_refused():
    policy = policies.parse("greedy").build(Problem(ORACLE, (3,)))
    with pytest.raises(SettingsError, match=r"context: expected shape \(3,\), got \(2,\)"):
        policy.decide(jax.random.key(0), policy.init(jax.random.key(0)), jnp.ones(2))
