"""A learner with named columns: the same learner as one with the encoded numbers, in checkpoints and logs too."""

import numpy as np
import pandas as pd
import pytest

import regretless as rg
from live.logs import DIM, ORACLE, make
from regretless.columns import Columns
from regretless.errors import CheckpointError, LogError, SettingsError

COLUMNS = Columns(numbers=["hour"], categories={"sky": ["clear", "rain"]})
OTHERS = Columns(numbers=["hour"], categories={"sky": ["clear", "snow"]})
ROWS = [{"hour": 6.0, "sky": "rain"}, {"hour": 7.0, "sky": "clear"}, {"hour": 8.5, "sky": "rain"}]
BOTH = [1.0, 1.0, 0.0, 0.0]


def named(**options):
    return make(context_dim=None, columns=COLUMNS, **options)


def test_decides_and_learns_as_with_the_encoded_numbers():
    one, other = named(), make()
    for row, x in zip(ROWS, COLUMNS.encode(ROWS), strict=True):
        mine, theirs = one.decide(row), other.decide(x)
        assert np.array_equal(mine.cost_sample, theirs.cost_sample)
        assert mine.context == row
        for learner in (one, other):
            learner.learn(mine.id, costs=np.arange(DIM) + row["hour"])
    several = [one.decide(ROWS), one.decide(pd.DataFrame(ROWS)), other.decide(COLUMNS.encode(ROWS))]
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
        (lambda learner: learner.decide([]), "expected at least one context, got none"),
        (lambda learner: learner.decide([ROWS[0], {"hour": 6.0, "sky": "snow"}]), "column 'sky', row 1: expected one of"),
        (lambda learner: learner.record({**ROWS[0], "skyes": 1}, BOTH), "unknown column 'skyes'; did you mean 'sky'"),
        (lambda learner: learner.record(ROWS, BOTH), "record: expected one context"),
        (lambda learner: learner.learn_from(rg.History(np.ones((1, 3)), [BOTH], costs=[BOTH])), "got no columns"),
        (lambda learner: learner.learn_from(rg.History(ROWS[1:2], [BOTH], costs=[BOTH], columns=OTHERS)),
         "the learner's columns .*categories: expected .*'rain'.* got .*'snow'"),
        (lambda learner: learner.explain(make().decide(np.ones(3))), "expected a Choice of this learner"),
    ],
)  # fmt: skip
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
    """After a restart nothing is given again, and ids that wait or were learnt are explained as before."""
    learner = named(log=tmp_path / "log")
    learnt, waits = learner.decide(ROWS[:2])
    learner.learn(learnt.id, costs=np.arange(DIM))
    told = [learner.explain(choice.id) for choice in (learnt, waits)]
    learner.save(tmp_path / "plant.rgl")
    learner.close()
    for again in (
        rg.Learner.load(tmp_path / "plant.rgl", ORACLE, columns=COLUMNS),
        rg.Learner.replay(tmp_path / "log", ORACLE),
    ):
        assert again.columns == COLUMNS
        for before, after in zip(told, [again.explain(learnt.id), again.explain(waits.id)], strict=True):
            assert before.context == after.context
            assert np.array_equal(before.mean, after.mean)
            assert np.array_equal(before.cost_sample, after.cost_sample)
            assert (before.residual, before.gap) == (after.residual, after.gap)
        assert np.array_equal(again.decide(ROWS[2]).w, learner_after(tmp_path, ROWS[2]))
    history = rg.History.from_log(tmp_path / "log")
    assert history.columns == COLUMNS
    assert history.to_pandas()["sky"].tolist() == ["rain", "clear"]
    with pytest.raises(
        CheckpointError, match=r"saved with other columns: categories: expected .*'rain'.* got .*'snow'"
    ):
        rg.Learner.load(tmp_path / "plant.rgl", ORACLE, columns=OTHERS)
    with pytest.raises(LogError, match="saved with other columns"):
        rg.Learner.replay(tmp_path / "log", ORACLE, columns=OTHERS)


def learner_after(folder, row):
    return rg.Learner.load(folder / "plant.rgl", ORACLE).decide(row).w


def test_incumbents_and_candidates_are_asked_by_name():
    asked = []
    learner = named(incumbent=lambda row: asked.append(row) or BOTH, mode="shadow")
    learner.decide(ROWS[:2])
    assert asked == ROWS[:2]
    rows = [{"hour": float(t), "sky": "rain" if t % 3 else "clear"} for t in range(60)]
    drawn = np.arange(60) % 2
    history = rg.History(rows, np.eye(2)[drawn], totals=5.0 + drawn, propensities=np.full(60, 0.5), columns=COLUMNS)
    found = rg.evaluate({"dry": lambda row: [1, 0] if row["sky"] == "rain" else [0, 1]}, history)
    assert found["dry"].method == "doubly_robust"


def test_columns_instead_of_a_shape():
    with pytest.raises(SettingsError, match="or columns= for contexts by name, and only one of them"):
        make(columns=COLUMNS)
    with pytest.raises(SettingsError, match=r"expected columns to be rg.Columns\(...\), got \['hour'\]"):
        make(context_dim=None, columns=["hour"])
