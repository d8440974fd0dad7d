"""Histories: immutable tables of rounds, with errors that name the row and the column."""

import numpy as np
import pandas as pd
import pytest

import regretless as rg
from live.learners import make, play
from regretless.errors import SettingsError, StoreError
from regretless.live.history import History
from regretless.live.store import RecordStore, Snapshot

ROUNDS = 5
X = ["hour", "rain"]
W = ["a", "b", "c"]


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(ROUNDS, 2)), columns=X)
    frame[W] = np.eye(3)[[0, 1, 2, 0, 1]]
    frame["cost"] = [1.0, 2.0, np.nan, 4.0, 5.0]
    frame["when"] = pd.date_range("2024-01-01", periods=ROUNDS)
    frame["open_a"], frame["open_b"] = 1, [1, 0, 1, 0, 1]
    frame["p"] = [0.5, 0.25, np.nan, 1.0, 1.0]
    return frame


COLUMNS = {
    "contexts": X,
    "decisions": W,
    "total": "cost",
    "time": "when",
    "instance": ["open_a", "open_b"],
    "propensity": "p",
}


@pytest.mark.parametrize("form", ["pandas", "csv", "parquet"])
def test_comes_from_tables_and_goes_back(tmp_path, form):
    frame = table()
    if form == "pandas":
        history = History.from_pandas(frame, **COLUMNS)
    else:
        path = tmp_path / "rounds"
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
        history = getattr(rg.History, f"from_{form}")(path, **COLUMNS)
    assert len(history) == ROUNDS
    np.testing.assert_array_equal(history.contexts, frame[X].to_numpy())
    np.testing.assert_array_equal(history.totals, frame["cost"])
    assert (history.times[1] - history.times[0], history.times[0]) == (86400.0, 1704067200.0)
    third = history[2]
    assert (third.total, third.propensity, third.costs, third.instance.tolist()) == (None, None, None, [1.0, 1.0])
    assert [own.total for own in history] == [1.0, 2.0, None, 4.0, 5.0]
    assert history.seen().tolist() == [True, True, False, True, True]
    part = history[1:4]
    assert (len(part), part[0].total, part[0].instance.tolist()) == (3, 2.0, [1.0, 0.0])
    assert history[history.seen()].totals.tolist() == [1.0, 2.0, 4.0, 5.0]
    assert history[-1].total == 5.0
    shown = history.to_pandas()
    assert shown.columns.tolist() == [
        "context_0",
        "context_1",
        "decision_0",
        "decision_1",
        "decision_2",
        "total",
        "time",
        "propensity",
        "instance_0",
        "instance_1",
    ]
    again = History.from_pandas(shown[sorted(shown.columns)[::-1]])
    for name in ("contexts", "decisions", "totals", "times", "propensities", "instances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(history, name))
    assert repr(history) == (
        "History(5 rounds, contexts of shape (2,), decisions of 3 numbers, totals of 4 rounds, times, propensities of 4 "  # noqa: E501
        "rounds, instances)"
    )
    with pytest.raises(ValueError, match="read-only"):
        history.contexts[0, 0] = 7.0


def test_feature_rows_and_rewards():
    frame = pd.DataFrame(np.arange(24.0).reshape(4, 6)).rename(columns=str)
    history = History.from_pandas(
        frame, contexts=[["0", "1"], ["2", "3"]], decisions=["4", "5"], costs=["4", "5"], sense="max"
    )
    assert history.contexts.shape == (4, 2, 2)
    assert history.contexts[1].tolist() == [[6.0, 7.0], [8.0, 9.0]]
    assert np.array_equal(history.as_costs().costs, -history.costs)
    assert history.as_costs().sense == "min"
    assert np.array_equal(history.as_costs().contexts, history.contexts)
    shown = history.to_pandas()
    assert shown.columns.tolist()[:4] == ["context_0_0", "context_0_1", "context_1_0", "context_1_1"]
    assert np.array_equal(History.from_pandas(shown[shown.columns[::-1]]).contexts, history.contexts)
    with pytest.raises(SettingsError, match="contexts: expected as many columns for every coordinate"):
        History.from_pandas(frame, contexts=[["0", "1"], ["2"]], decisions=["4", "5"])


def test_instances_are_dictionaries_by_key():
    frame = table().assign(cap=[7, 8, 9, 7, 8])
    named = {"contexts": X, "decisions": W, "instance": {"open": ["open_a", "open_b"], "capacity": "cap"}}
    history = History.from_pandas(frame, **named)
    assert history[1].instance["open"].tolist() == [1.0, 0.0]
    assert history[1].instance["capacity"] == 8.0
    shown = history.to_pandas()
    assert shown["instance"][1] == '{"open": [1.0, 0.0], "capacity": 8.0}'
    again = History.from_pandas(shown)
    assert [(own.instance["open"].tolist(), own.instance["capacity"]) for own in again] == [
        (own.instance["open"].tolist(), own.instance["capacity"]) for own in history
    ]
    with pytest.raises(SettingsError, match="unknown column 'open_c' of the table"):
        History.from_pandas(frame, **{**named, "instance": {"open": ["open_c"]}})


def test_columns_are_found_by_number_not_by_order():
    rng = np.random.default_rng(0)
    history = History(rng.normal(size=(6, 12)), rng.normal(size=(6, 11)), costs=rng.normal(size=(6, 11)))
    frame = history.to_pandas()
    again = History.from_pandas(frame[sorted(frame.columns)])
    assert sorted(frame.columns)[2] == "context_10", "alphabetical order"
    for name in ("contexts", "decisions", "costs"):
        assert np.array_equal(getattr(again, name), getattr(history, name))


def broken(**cells):
    frame = table().astype(object)
    for column, (row, value) in cells.items():
        frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: History.from_pandas(table(), contexts=["hours"], decisions=W), "unknown column 'hours' of the table"),
        (
            lambda: History.from_pandas(broken(rain=(3, "much")), **COLUMNS),
            "'rain', row 3: expected a number, got 'much'",
        ),
        (lambda: History.from_pandas(broken(rain=(3, None)), **COLUMNS), "contexts, row 3: expected finite numbers"),
        (
            lambda: History.from_pandas(broken(when=(1, "noon?")), **COLUMNS),
            "column 'when', row 1: expected seconds or a date",
        ),
        (
            lambda: History.from_pandas(broken(p=(1, 1.5)), **COLUMNS),
            "propensities, row 1: expected a probability .* got 1.5",
        ),
        (
            lambda: History.from_pandas(table(), **{**COLUMNS, "total": ["cost"]}),
            "total: expected the name of one column",
        ),
        (
            lambda: History.from_pandas(table(), **{**COLUMNS, "decisions": "a"}),
            "decisions: expected a list of column names",
        ),
        (lambda: History.from_pandas(table(), contexts=X), "expected the columns of both contexts and decisions"),
        (
            lambda: History.from_pandas(table(), total="cost"),
            "expected the columns of both contexts and decisions",
        ),
        (lambda: History.from_pandas(table()), "expected columns context_0, context_1, …, got hour, rain"),
        (lambda: History.from_pandas([1], **COLUMNS), "expected a pandas DataFrame, got a list"),
        (lambda: History.from_csv("no such file", **COLUMNS), "cannot read no such file: No such file"),
        (lambda: History.from_parquet(__file__, **COLUMNS), "is not a Parquet file"),
        (lambda: History(np.ones((2, 1)), np.ones((3, 2))), "got 2 contexts, 3 decisions"),
        (
            lambda: History(np.ones((2, 1)), np.ones((2, 2)), costs=np.ones((2, 3))),
            r"costs: expected the shape of the decisions, \(2, 2\)",
        ),
        (
            lambda: History(np.ones((2, 1)), np.ones((2, 2)), totals=[1.0, np.inf]),
            "totals, row 1: expected finite numbers",
        ),
        (lambda: History(np.ones(2), np.ones((2, 2))), "contexts: expected a vector or feature rows for each round"),
        (lambda: History([["x"]], [[1.0]]), "contexts: expected numbers, got text"),
        (lambda: History([[1.0]], [[1.0]], sense="up"), "sense: expected 'min' .costs. or 'max' .rewards., got 'up'"),
    ],
)
def test_refuses(make_it, message):
    with pytest.raises(SettingsError, match=message):
        make_it()


def test_rows_out_of_range():
    history = History(np.ones((2, 1)), np.ones((2, 2)), instances=[{"a": 1}, {"b": 2}])
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        history[2]
    assert [own.instance for own in History.from_pandas(history.to_pandas())] == [{"a": 1}, {"b": 2}]
    with pytest.raises(SettingsError, match="column 'instance': expected JSON in every row"):
        History.from_pandas(history.to_pandas().assign(instance="{"))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_store_is_a_history(tmp_path, sense):
    """A learner's store holds what it received, and another learner learns the same from it."""
    learner = make(store=tmp_path / "plant.db", sense=sense)
    play(learner, 8)
    history = History.from_store(tmp_path / "plant.db")
    assert (len(history), history.sense) == (8, "max" if sense == "max" else "min")
    assert history.seen().tolist() == [True, True, True, False, True, True, False, False]
    assert history[4].decision.tolist() == [1.0, 1.0, 0.0, 0.0], "the person's"
    assert history[0].total == pytest.approx(np.nansum(history[0].values))
    assert history[0].total > 0, "in the units of the caller"
    other = make(sense=sense)
    assert other.learn_from(history) == 5
    np.testing.assert_allclose(other.predict(history)[0], learner.predict(history)[0], atol=1e-9)
    make(store=tmp_path / "empty")
    with pytest.raises(StoreError, match="expected at least one decision"):
        History.from_store(tmp_path / "empty")


@pytest.mark.parametrize(
    ("config", "records"),
    [
        ({}, []),
        ({"config": {"problem": {"sense": "up", "feedback": "bandit", "columns": None}}}, ["decide"]),
        ({"config": 3}, ["decide", "feedback"]),
        ({"config": {"problem": {"sense": "min", "feedback": 3, "columns": {"numbers": 7}}}}, ["history"]),
    ],
)
def test_forged_stores_are_refused(tmp_path, config, records):
    store = RecordStore.create(tmp_path / "forged.db", Snapshot(0, 0, config, {}))
    parts = {"decision.id": np.ones(1, int), "decision.context": np.ones((1, 2)), "decision.w": np.ones((1, 2))}
    for number, kind in enumerate(records, 1):
        store.append(number, kind, {"time": 0.0, "id": [1], "totals": "x"}, parts)
    store.close()
    with pytest.raises(StoreError):
        History.from_store(tmp_path / "forged.db")
