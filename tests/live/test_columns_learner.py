"""A learner with named columns: the same learner as one with the encoded numbers, in checkpoints and logs too."""

import numpy as np
import pandas as pd
import pytest

import regretless as rg
from live.learners import DIM, ORACLE, make
from regretless.columns import Columns
from regretless.errors import SettingsError, StoreError

COLUMNS = Columns(numbers=["hour"], categories={"sky": ["clear", "rain"]})
OTHERS = Columns(numbers=["hour"], categories={"sky": ["clear", "snow"]})
ROWS = [{"hour": 6.0, "sky": "rain"}, {"hour": 7.0, "sky": "clear"}, {"hour": 8.5, "sky": "rain"}]
BOTH = [1.0, 1.0, 0.0, 0.0]


def named(**options):
    return make(context=COLUMNS, **options)


def test_decides_and_learns_as_with_the_encoded_numbers():
    one, other = named(), make()
    for row, x in zip(ROWS, COLUMNS.encode(ROWS), strict=True):
        mine, theirs = one.decide(row), other.decide(x)
        assert np.array_equal(mine.cost_sample, theirs.cost_sample)
        assert mine.context == row
        for learner in (one, other):
            learner.learn(mine.id, costs=np.arange(DIM) + row["hour"])
    several = [one.decide_batch(ROWS), one.decide_batch(pd.DataFrame(ROWS)), other.decide_batch(COLUMNS.encode(ROWS))]
    assert [choice.context for choice in several[1]] == ROWS
    assert len(several[0]) == len(several[2]) == 3
    series = one.decide(pd.DataFrame(ROWS).iloc[1])
    assert series.context == ROWS[1]
    by_person = one.record(ROWS[0], BOTH)
    assert by_person.context == one.explain(by_person).context == ROWS[0]
    assert one.explain(series).context == one.explain(series.id).context == ROWS[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda learner: learner.decide([6.0, 0.0, 1.0]), "expected a dictionary of the columns hour, sky; .*got"),
        (lambda learner: learner.decide(np.ones(3)), "expected a dictionary of the columns hour, sky; .*got array"),
        (lambda learner: learner.decide_batch([]), "expected at least one context, got none"),
        (
            lambda learner: learner.decide_batch([ROWS[0], {"hour": 6.0, "sky": "snow"}]),
            "column 'sky', row 1: expected",
        ),
        (lambda learner: learner.record({**ROWS[0], "skyes": 1}, BOTH), "unknown column 'skyes'; did you mean 'sky'"),
        (lambda learner: learner.record(ROWS, BOTH), "expected one context, got several"),
        (lambda learner: learner.learn_from(rg.History(np.ones((1, 3)), [BOTH], costs=[BOTH])), "got no columns"),
        (
            lambda learner: learner.learn_from(rg.History(ROWS[1:2], [BOTH], costs=[BOTH], columns=OTHERS)),
            "the learner's columns .*categories: expected .*'rain'.* got .*'snow'",
        ),
        (lambda learner: learner.explain(make().decide(np.ones(3))), "expected a Choice of this learner"),
    ],
)
def test_what_is_refused_changes_nothing(call, message):
    learner = named()
    learner.decide(ROWS[0])
    before = learner.waiting
    with pytest.raises(SettingsError, match=message):
        call(learner)
    assert learner.waiting == before


def test_learns_from_a_history_by_name():
    costs = np.arange(12.0).reshape(3, DIM)
    history = rg.History(ROWS, [BOTH] * 3, costs=costs, columns=COLUMNS)
    learner, other = named(), make()
    assert learner.learn_from(history) == 3
    other.learn_from(rg.History(COLUMNS.encode(ROWS), [BOTH] * 3, costs=costs))
    assert np.array_equal(learner.predict(history)[0], other.predict(history)[0])


def test_columns_are_kept_and_others_refused(tmp_path):
    """After a restart nothing is given again, and ids that wait or were learned are explained as before."""
    learner = named(store=tmp_path / "log")
    learned, waits = learner.decide_batch(ROWS[:2])
    learner.learn(learned.id, costs=np.arange(DIM))
    explained = [learner.explain(choice.id) for choice in (learned, waits)]
    learner.save(tmp_path / "plant.db")
    learner.close()
    for again in (
        rg.Learner.open(tmp_path / "plant.db", rg.Problem(ORACLE, COLUMNS, "semi_bandit"), read_only=True),
        rg.Learner.open(tmp_path / "log", ORACLE, read_only=True),
    ):
        assert again.columns == COLUMNS
        for before, after in zip(explained, [again.explain(learned.id), again.explain(waits.id)], strict=True):
            assert before.context == after.context
            assert np.array_equal(before.mean, after.mean)
            assert np.array_equal(before.cost_sample, after.cost_sample)
            assert (before.residual, before.gap) == (after.residual, after.gap)
        assert np.array_equal(again.decide(ROWS[2]).w, learner_after(tmp_path, ROWS[2]))
    history = rg.History.from_store(tmp_path / "log")
    assert history.columns == COLUMNS
    assert history.to_pandas()["sky"].tolist() == ["rain", "clear"]
    with pytest.raises(StoreError, match=r"expected the columns that it was stored with: .*'rain'.* got .*'snow'"):
        rg.Learner.open(tmp_path / "plant.db", rg.Problem(ORACLE, OTHERS, "semi_bandit"), read_only=True)


def learner_after(folder, row):
    return rg.Learner.open(folder / "plant.db", ORACLE, read_only=True).decide(row).w


def test_incumbents_and_candidates_are_asked_by_name():
    asked = []
    learner = named(incumbent=lambda row: asked.append(row) or BOTH, mode="shadow")
    learner.decide_batch(ROWS[:2])
    assert asked == ROWS[:2]
    rows = [{"hour": float(t), "sky": "rain" if t % 3 else "clear"} for t in range(60)]
    drawn = np.arange(60) % 2
    history = rg.History(rows, np.eye(2)[drawn], totals=5.0 + drawn, propensities=np.full(60, 0.5), columns=COLUMNS)
    evaluation = rg.evaluate({"dry": lambda row: [1, 0] if row["sky"] == "rain" else [0, 1]}, history)
    assert evaluation["dry"].method == "doubly_robust"
