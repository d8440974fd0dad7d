"""Every way to report feedback, and every way to contradict an earlier report."""

import jax.numpy as jnp
import numpy as np
import pytest

from live.learners import build
from regretless import feedback, oracles
from regretless.errors import FeedbackError
from regretless.live.feedback_parser import RawFeedback

EDGES = [("depot", "north"), ("depot", "south"), ("north", "shop"), ("south", "shop")]
ORACLE = oracles.shortest_path(EDGES, "depot", "shop")
NAN = float("nan")
COSTS = np.array([1.0, 2.0, 3.0, 4.0])
HALVES = feedback.Linear(
    lambda w, aux: jnp.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]) * w,
    lambda w, aux: jnp.ones(2),
    label="halves",
)
LEARNERS = {
    name: build(ORACLE, context=1, feedback=rule)
    for name, rule in {
        "bandit": "bandit",
        "semi_bandit": "semi_bandit",
        "full": "full",
        "linear": feedback.ReportedRows(4),
        "halves": HALVES,
    }.items()
}


def read(name, w, **report):
    return LEARNERS[name].state.engine.parser.parse(RawFeedback(**report), np.asarray(w), None)


NORTH = [1.0, 0.0, 1.0, 0.0]
PATH = {("depot", "north"): 1.0, ("north", "shop"): 3.0}


@pytest.mark.parametrize(
    "report",
    [
        {"total": 4.0},
        {"components": PATH},
        {"components": {0: 1.0, 2: 3.0}, "total": 4.0},
        {"costs": COSTS},
        {"costs": [1.0, NAN, 3.0, NAN]},
        {"linear": ([[1.0, 0, 0, 0], [0, 0, 2.0, 0]], [1.0, 6.0])},
        {"values": [4.0]},
    ],
    ids=str,
)
def test_bandit_takes_whatever_gives_the_total(report):
    arrival = read("bandit", NORTH, **report)
    assert arrival.values == pytest.approx([4.0])
    assert arrival.seen.all()


@pytest.mark.parametrize(
    ("name", "report", "values", "seen"),
    [
        ("semi_bandit", {"components": PATH}, [1, 0, 3, 0], [1, 1, 1, 1]),
        ("semi_bandit", {"components": {2: 3.0}}, [0, 0, 3, 0], [0, 1, 1, 1]),
        ("semi_bandit", {"costs": COSTS, "total": 4.0}, [1, 0, 3, 0], [1, 1, 1, 1]),
        ("semi_bandit", {"linear": ([[0, 0, 1.0, 0]], [3.0])}, [0, 0, 3, 0], [0, 1, 1, 1]),
        ("full", {"costs": COSTS}, COSTS, [1, 1, 1, 1]),
        ("full", {"costs": [1.0, NAN, 3.0, NAN], "total": 4.0}, [1, 0, 3, 0], [1, 0, 1, 0]),
        ("full", {"components": {1: 2.0}}, [0, 2, 0, 0], [0, 1, 0, 0]),
        ("halves", {"values": [1.0, 3.0], "total": 4.0}, [1, 3], [1, 1]),
        ("halves", {"values": [NAN, 3.0]}, [0, 3], [0, 1]),
        ("halves", {"costs": COSTS}, [1, 3], [1, 1]),
        ("halves", {"components": {0: 1.0}}, [1, 0], [1, 0]),
        ("halves", {"linear": ([[0, 0, 1.0, 0]], [3.0])}, [0, 3], [0, 1]),
    ],
)
def test_rows_that_arrive(name, report, values, seen):
    arrival = read(name, NORTH, **report)
    np.testing.assert_allclose(arrival.values, values)
    assert arrival.seen.tolist() == [bool(one) for one in seen]


def test_a_row_that_shows_nothing_is_no_feedback_and_its_form_does_not_matter():
    """Both edges of the first half are chosen: the second half measures nothing, and its zero is no news."""
    first = [1.0, 1.0, 0.0, 0.0]
    report = [{"costs": COSTS}, {"values": [3.0, NAN]}, {"linear": ([first], [3.0])}, {"components": {0: 1.0, 1: 2.0}}]
    signatures = [read("halves", first, **each).signature().tolist() for each in report]
    assert signatures == [[3.0, 0.0, 1.0, 1.0]] * 4
    for nothing in ({"costs": [NAN, 2.0, 3.0, 4.0]}, {"values": [NAN, 0.0]}, {"components": {2: 3.0}}):
        with pytest.raises(FeedbackError, match="expected at least one cost, got none"):
            read("halves", first, **nothing)


def test_free_rows_carry_their_linkage_and_hide_a_total_that_is_not_known():
    known = read("linear", NORTH, linear=([[2.0, 0, 0, 0], [0, 0, 1.0, 0]], [2.0, 3.0]))
    assert known.linkage @ known.values == pytest.approx(4.0)
    np.testing.assert_allclose(known.matrix.T @ known.linkage, NORTH)
    unknown = read("linear", NORTH, linear=([[0, 0, 1.0, 0]], [3.0]))
    assert unknown.linkage.tolist() == [0, 0, 0, 0, 1]
    assert not unknown.seen[-1]
    assert read("linear", NORTH, total=4.0).matrix[0].tolist() == NORTH
    assert read("linear", NORTH, costs=[1.0, NAN, 3.0, NAN]).seen.sum() == 2


@pytest.mark.parametrize(
    ("name", "report", "message"),
    [
        (
            "bandit",
            {"components": {0: 1.0, 2: 3.0}, "total": 5.0},
            "contradicts itself: the parts add up to 4, the total is 5",
        ),
        ("bandit", {"components": {0: 1.0}}, r"needs the total, but the cost of \('north', 'shop'\) is missing"),
        ("bandit", {"linear": ([[1.0, 0, 0, 0]], [1.0])}, "the total cannot be recovered"),
        ("bandit", {"costs": [1.0, 2.0]}, r"expected costs of shape \(4,\), got \(2,\)"),
        ("bandit", {"costs": [np.inf, 1, 1, 1]}, "expected finite costs"),
        ("bandit", {"components": {("depot", "moon"): 1.0}}, "expected a coordinate from 0 to 3 or one of its names"),
        ("bandit", {"components": {7: 1.0}}, "expected a coordinate from 0 to 3"),
        ("bandit", {"linear": ([[1.0, 0]], [1.0])}, r"with H of shape \(rows, 4\)"),
        ("semi_bandit", {"total": 4.0}, "needs components= or costs=, got the total alone"),
        ("semi_bandit", {"components": {1: 2.0}}, r"\('depot', 'south'\) was not chosen"),
        ("semi_bandit", {"components": PATH, "total": 9.0}, "contradicts itself"),
        ("semi_bandit", {"components": {}}, "expected at least one cost, got none"),
        ("semi_bandit", {"linear": ([[0, 1.0, 0, 0]], [3.0])}, "is not a row of H"),
        ("full", {"costs": COSTS, "total": 9.0}, "contradicts itself"),
        ("halves", {"values": [1.0, 3.0], "total": 9.0}, "contradicts itself"),
        ("halves", {"total": 9.0}, "expected values= of the 2 rows of 'halves'"),
        ("halves", {"linear": ([[1.0, 1.0, 0, 0]], [3.0])}, "is not a row of H"),
        (
            "linear",
            {"linear": ([[1.0, 0, 0, 0], [1.0, 0, 0, 0]], [1.0, 2.0])},
            "no cost vector explains all of these rows",
        ),
        ("linear", {"linear": (np.ones((5, 4)), np.ones(5))}, "expected at most 4 rows, got 5"),
        ("linear", {"values": [1.0]}, r"give linear=\(H, v\) instead"),
        ("linear", {"costs": np.ones(4), "total": 3.0}, "contradicts itself"),
        ("full", {"components": {("depot", "north"): 1.0, 0: 2.0}}, "coordinate 0 was given twice"),
    ],
)
def test_refuses_what_contradicts_itself_or_the_decision(name, report, message):
    with pytest.raises(FeedbackError, match=message):
        read(name, NORTH, **report)


MASKED = np.ma.masked_array([1.0, 99.0, 3.0, 4.0], mask=[False, True, False, False])
DATES = np.array(["2026-01-01"] * 4, "datetime64[D]")


@pytest.mark.parametrize(
    "report",
    [
        {"total": "3.1"},
        {"total": 10**400},
        {"total": True},
        {"total": 3.0 + 1.0j},
        {"total": np.datetime64("2026-01-01")},
        {"total": np.ma.masked},
        {"total": [4.0]},
        {"total": object()},
        {"total": float("inf")},
        {"costs": COSTS, "total": "4"},
        {"costs": MASKED},
        {"costs": DATES},
        {"costs": COSTS + 0j},
        {"costs": ["1", "2", "3", "4"]},
        {"costs": [True, False, True, False]},
        {"costs": [1.0, True, 3.0, 4.0]},
        {"costs": [1.0, 10**400, 3.0, 4.0]},
        {"costs": {0: 1.0}},
        {"costs": 3.0},
        {"values": "4"},
        {"values": [[4.0]]},
        {"values": MASKED[:1].astype("datetime64[D]")},
        {"components": [1.0, 3.0]},
        {"components": 3},
        {"components": {0: "1", 2: 3.0}},
        {"components": {0: None, 2: 3.0}},
        {"components": {True: 1.0, 2: 3.0}},
        {"components": {10**5000: 1.0}},
        {"components": {0: 10**400, 2: 3.0}},
        {"linear": 3},
        {"linear": (NORTH,)},
        {"linear": (NORTH, 4.0)},
        {"linear": ([NORTH], 4.0)},
        {"linear": ([NORTH], ["4"])},
        {"linear": ([NORTH], DATES[:1])},
        {"linear": (np.ma.masked_array([NORTH], mask=[[True, False, False, False]]), [4.0])},
        {"linear": ([NORTH, [1.0]], [4.0, 1.0])},
        {"linear": (np.zeros((0, 4)), [])},
        {"linear": ([[True, False, True, False]], [4.0])},
        {"linear": {"H": [NORTH], "v": [4.0]}},
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_refuses_what_is_no_number(name, report):
    """Whatever is given in place of numbers is a FeedbackError, in every regime."""
    with pytest.raises(FeedbackError):
        read(name, NORTH, **report)


def test_complete_feedback_can_be_demanded():
    strict = build(ORACLE, context=1, feedback="full", may_miss=False)
    choice = strict.decide([0.0])
    with pytest.raises(FeedbackError, match="some rows are missing"):
        strict.learn(choice.id, costs=[1.0, NAN, 1.0, 1.0])
    assert strict.learn(choice.id, costs=COSTS).complete


@pytest.mark.parametrize("name", LEARNERS)
def test_every_regime_learns(name):
    learner = LEARNERS[name]
    for t in range(4):
        choice = learner.decide([float(t)])
        receipt = learner.learn(choice.id, costs=COSTS)
        assert receipt.new
        assert receipt.complete
    choice = learner.decide([0.5])
    if name in ("semi_bandit", "full", "linear", "halves"):
        chosen = int(np.argmax(choice.w))
        receipt = learner.learn(choice.id, components={chosen: COSTS[chosen]})
        assert not receipt.complete
        assert receipt.residual is None
        assert not learner.learn(choice.id, components={chosen: COSTS[chosen]}).new
