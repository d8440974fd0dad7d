"""Health of a live learner: figures, text, alarms, export, and that all of it is stored."""

import json
import re
import time

import numpy as np
import pytest

from live.learners import build, digest, forge
from regretless import oracles
from regretless.errors import SettingsError, StoreError
from regretless.live.comparison import OPENING_ROUNDS, WINDOW, CostComparison, HealthRecord, MeanCost
from regretless.live.health import Health
from regretless.live.learner import Learner

DIM, FEATURES = 6, 2
COSTS = np.array([5.0, 1.0, 6.0, 2.0, 7.0, 4.0])


def make(oracle=None, **options):
    return build(oracle or oracles.top_k(DIM, 2), context=FEATURES, **options)


def play(learner, rounds, costs=COSTS, seed=0, sign=1.0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        choice = learner.decide(rng.normal(size=FEATURES))
        learner.learn(choice.id, total=sign * float(costs @ choice.w + 0.3 * rng.normal()))
    return learner.health()


@pytest.fixture(scope="module")
def changed():
    """A learner whose costs turned around after 150 decisions, and its health before and after."""
    learner = make()
    return learner, play(learner, 150), play(learner, 60, 10.0 - COSTS, seed=1)


def test_compares_costs_with_others(changed):
    _, before, _ = changed
    assert before.random.high < 0
    assert before.random.low < before.paid.mean - 2 * COSTS.mean() < before.random.high
    assert before.paid.low < before.paid.mean < before.paid.high
    assert before.best_fixed.cost == pytest.approx(3.0, abs=0.8)
    assert "cheaper than random decisions (estimated) by" in before.verdict
    assert before.drift is None


def test_reports_a_change_and_compares_by_the_new_costs(changed):
    _, _, after = changed
    assert 150 < after.drift.noticed < 200
    assert abs(after.drift.since - 151) < 8
    assert after.verdict.startswith(f"costs have changed since about decision {after.drift.since}; ")
    assert after.random.all_rounds == 210 - after.drift.noticed, "rounds since the change"


def test_all_of_it_is_in_a_checkpoint(changed, tmp_path):
    learner, _, after = changed
    learner.save(tmp_path / "plant.db")
    again = Learner.open(tmp_path / "plant.db", learner.problem.oracle, read_only=True)
    assert again.health() == after
    for each in (learner, again):
        each.learn(each.decide(np.ones(FEATURES)).id, total=3.0)
    assert digest(again, tmp_path) == digest(learner, tmp_path)
    for name, change in (("world", [10**6, 0]), ("alarm", [-1, 0, 0]), ("opening", np.zeros((999, 3)))):
        change_array = lambda _, arrays, name=name, change=change: arrays.update({f"health/{name}": np.asarray(change)})  # noqa: E731
        forged = forge(tmp_path / "plant.db", tmp_path / "forged.db", change_array)
        with pytest.raises(StoreError):
            Learner.open(forged, learner.problem.oracle, read_only=True)


def test_rewards_are_shown_as_rewards():
    shown = play(make(sense="max"), 120, sign=-1.0)
    assert shown.paid.low < shown.paid.mean < shown.paid.high < 0
    assert shown.random.low > 0
    assert shown.random.cost < 0
    assert "earns more than random decisions (estimated) by" in shown.verdict


def test_compares_with_the_incumbent():
    learner = make(incumbent=[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], budget=0.5)
    incumbent = play(learner, 250).incumbent
    assert incumbent.cost == pytest.approx(7.0, abs=0.5)
    assert incumbent.low < incumbent.difference < incumbent.high < 0
    assert 120 < incumbent.rounds < incumbent.all_rounds == 250
    text = str(learner.health())
    saved = f"{-incumbent.total_difference:.0f} saved in total on {incumbent.rounds} of the last 250 rounds"
    assert f"cheaper than the incumbent by {-incumbent.share(incumbent.difference):.0%} (" in text
    assert f"), {saved} ({-incumbent.share(incumbent.total_difference / 250):.0%} over all 250)" in text


def test_a_solver_on_the_host_is_asked_only_while_it_is_free():
    asked = []

    def solve(cost):
        asked.append(cost)
        return np.eye(DIM)[np.argmin(cost)] + np.eye(DIM)[np.argsort(cost)[1]]

    learner = make(oracles.external(solve, DIM))
    play(learner, 60)
    assert len(asked) == 60 + 32 + 1  # random decisions once, and the best fixed one
    assert learner.health().random is not None
    assert len(asked) == 60 + 32 + 2


def test_is_exported_as_data_and_for_prometheus(changed):
    _, _, health = changed
    data = json.loads(json.dumps(health.to_dict()))
    assert data["drift"] == {"noticed": health.drift.noticed, "since": health.drift.since}
    assert data["random"]["difference"] == health.random.difference if health.random else data["random"] is None
    text = health.prometheus({"plant": 'no"rth\n'})
    assert '# TYPE regretless_learned gauge\nregretless_learned{plant="no\\"rth\\n"} 210\n' in text
    assert f'regretless_drift_since{{plant="no\\"rth\\n"}} {health.drift.since}\n' in text
    names = re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE)
    assert len(names) == len(set(names)) > 8
    sample = re.compile(r'(regretless_\w+)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.]+(e[+-]\d+)?')
    lines = [line for line in health.prometheus().splitlines() if not line.startswith("#")]
    assert all(sample.fullmatch(line) and sample.fullmatch(line)[1] in names for line in lines)
    for bad in ("9a", "a-b", "__a", ""):
        with pytest.raises(SettingsError, match="expected labels"):
            health.prometheus({bad: "x"})


def test_a_record_is_quick_and_bounded():
    record = HealthRecord.empty((6,), 144)
    rng = np.random.default_rng(0)
    form = make().problem.example_decision()
    decision = type(form)(
        **{
            **vars(form),
            "context": rng.normal(size=6),
            "w": np.ones(144),
            "cost_sample": np.ones(144),
            "member": np.int32(0),
        }
    )
    began = time.process_time()
    for id in range(1, 1001):
        record = record.after_feedback({"residual": rng.normal(), "total": 5.0 + rng.normal()}, id, decision)
    assert (time.process_time() - began) / 1000 < 0.3e-3
    sizes = {name: len(np.atleast_1d(array)) for name, array in record.arrays().items()}
    assert (sizes["opening"], sizes["steps"]) == (OPENING_ROUNDS, WINDOW)
    for id in range(1001, 1022):
        record = record.after_feedback({"residual": 1e308, "total": 1e308 * (-1) ** id}, id, decision)
    assert all(np.all(np.isfinite(array)) for name, array in record.arrays().items() if name != "steps")
    restored = HealthRecord.from_arrays(record.arrays(), (6,), 144)
    again = record.after_feedback({"residual": 0.5, "total": 1.0}, 1022, decision).arrays()
    assert all(
        np.array_equal(again[name], array, equal_nan=True)
        for name, array in restored.after_feedback({"residual": 0.5, "total": 1.0}, 1022, decision).arrays().items()
    )


FIGURES = {
    "decisions": 120,
    "learned": 116,
    "waiting": 3,
    "expired": 1,
    "feedback_share": 0.99,
    "relative_error": 0.12,
    "error_trend": 0.9,
    "paid": MeanCost(3.21, 3.05, 3.37, 47, 116),
    "best_fixed": None,
    "random": None,
    "drift": None,
    "details": {},
    "incumbent": CostComparison(4.0, -0.79, -0.95, -0.63, 47, 116, False),
}


def health(**changes):
    return Health(**{**FIGURES, **changes})


def test_prints_a_card_with_denominators_and_totals():
    assert str(health()).splitlines() == [
        "Health after 120 decisions: 116 learned from, 3 waiting, 1 expired",
        "  paid 3.21 per round (3.05 to 3.37) on 47 of the last 116 rounds",
        "  cheaper than the incumbent by 20% (16% to 24%), 37.1 saved in total on 47 of the last 116 rounds "
        "(8.0% over all 116)",
        "  prediction errors are 12% of the costs",
    ]
    assert repr(health()).startswith(
        "<Health: cheaper than the incumbent by 20% (16% to 24%), 37.1 saved in total on 47 of"
    )
    text = str(health(details={"weight_b": 1.0, "error_b": 0.1}))
    assert "weights of the base learners (relative errors): b 100% (0.10)" in text


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"learned": 7}, "too early to tell: 7 of the first 40 decisions have been learned from"),
        ({"incumbent": None}, "too early to tell how good the decisions are"),
        (
            {"incumbent": CostComparison(4.0, 0.1, -0.3, 0.5, 47, 116, False)},
            "inconclusive against the incumbent: difference -0.3 to 0.5 per round on 47 of the last 116 rounds",
        ),
        (
            {"incumbent": CostComparison(4.0, 0.4, 0.2, 0.6, 99, 99, True)},
            "more expensive than the incumbent (estimated) by 10% (5.0% to 15%), 39.6 lost in total on 99 of the last 99 rounds",  # noqa: E501
        ),
        (
            {"incumbent": CostComparison(-1.5, -2.0, -2.5, -1.5, 100, 100, False)},
            "cheaper than the incumbent by 133% (100% to 167%), 200 saved in total on 100 of the last 100 rounds",
        ),
        (
            {"incumbent": CostComparison(1.5, -2.0, -2.5, -1.5, 100, 100, False)},
            "cheaper than the incumbent by 2 per round (1.5 to 2.5), 200 saved in total on 100 of the last 100 rounds",
        ),
        (
            {"rewards": True, "incumbent": CostComparison(4.0, 0.4, 0.2, 0.6, 50, 100, False)},
            "earns more than the incumbent by 10% (5.0% to 15%), 20 gained in total on 50 of the last 100 rounds "
            "(5.0% over all 100)",
        ),
        (
            {"random": CostComparison(4.0, 0.1, -0.3, 0.5, 100, 116, True)},
            "decides no better than random: inconclusive against random decisions (estimated): difference -0.3 to 0.5 per round "  # noqa: E501
            "on 100 of the last 116 rounds",
        ),
        (
            {"guard": "the guard gives every decision to the incumbent"},
            "the guard gives every decision to the incumbent",
        ),
        ({"relative_error": None}, "totals are not known, so prediction errors are not either"),
    ],
)
def test_card_lines(changes, line):
    assert f"  {line}" in str(health(**changes)).splitlines()


def test_verdict_has_what_is_conclusive_first_what_is_urgent():
    shown = health(feedback_share=0.3, random=CostComparison(4.0, 0.1, -0.3, 0.5, 50, 116, True)).verdict
    assert shown.startswith(
        "feedback is lost: only 30% of the settled decisions were learned from; cheaper than the incumbent"
    )
    assert "random" not in shown
    unclear = health(incumbent=CostComparison(4.0, 0.1, -0.3, 0.5, 47, 116, False)).verdict
    assert (
        unclear
        == "inconclusive whether decisions are better than the incumbent; prediction errors are 12% of the costs"
    )
