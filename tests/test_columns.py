"""Named columns: what is declared, what a row is encoded to, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.live.history import History

SKY = {"sky": ["rain", "clear"]}
PLAIN = Columns(numbers=["hour"], categories=SKY)
EVERY = Columns(
    numbers=["load", "hour"],
    booleans=["feast"],
    categories={**SKY, "zone": [7, 3]},
    fill={"load": 40},
    may_miss=["feast", "sky"],
    other=["zone", "sky"],
)
FULL = {"hour": 6, "load": 35.0, "feast": True, "sky": "rain", "zone": 7}
# hour, load, load missing | feast, feast missing | clear, rain, other, none | 3, 7, other
ENCODED = [6, 35, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0]
GAPS = {"hour": 6, "sky": None, "load": float("nan"), "zone": 12}
ENCODED_GAPS = [6, 40, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1]


def test_encodes_and_shows_again():
    assert EVERY.names == ["hour", "load", "feast", "sky", "zone"]
    assert EVERY.width == len(ENCODED)
    assert EVERY.encode([FULL, GAPS]).tolist() == [ENCODED, ENCODED_GAPS]
    assert EVERY.decode(np.array(ENCODED)) == FULL
    shown = EVERY.decode(np.array(ENCODED_GAPS))
    assert shown == {"hour": 6, "load": None, "feast": None, "sky": None, "zone": "other"}
    assert EVERY.encode([shown]).tolist() == [ENCODED_GAPS], "decoded cells can be encoded again"
    assert EVERY.decode(EVERY.encode([{**FULL, "sky": "hail", "feast": 0}])[0])["sky"] == "other"


def test_tables_and_their_marks_for_missing_cells():
    frame = pd.DataFrame([FULL, GAPS])
    frame["zone"] = pd.array([7, 12], dtype="Int64")
    assert EVERY.encode(frame).tolist() == [ENCODED, ENCODED_GAPS]
    assert EVERY.encode([frame.iloc[1]]).tolist() == [ENCODED_GAPS]
    frame["load"] = pd.array([35, None], dtype="Int64")
    assert EVERY.encode(frame.drop(columns="feast")).tolist()[1] == ENCODED_GAPS, "a whole column may be absent"
    floats = pd.DataFrame({**{name: [cell] for name, cell in FULL.items()}, "zone": [7.0]})
    assert EVERY.encode(floats).tolist() == [ENCODED], "integers are floats in a table with missing cells"


def test_declared_by_a_table():
    frame = pd.DataFrame([FULL, GAPS]).astype({"hour": int})
    found = Columns.from_pandas(frame, other=["sky"])
    assert found == Columns(
        numbers=["hour", "load", "zone"],
        booleans=["feast"],
        categories={"sky": ["rain"]},
        fill={"load": 35.0},
        may_miss=["feast", "sky"],
        other=["sky"],
    )
    levels = pd.DataFrame({"sky": pd.Categorical(["rain"], categories=["rain", "clear"]), "hour": [6.0]})
    assert Columns.from_pandas(levels) == PLAIN
    assert Columns.from_pandas(levels, may_miss=["hour"]).declaration()["fill"] == {"hour": 6.0}
    with pytest.raises(SettingsError, match="column 'day': expected numbers, booleans or text, got datetime64"):
        Columns.from_pandas(pd.DataFrame({"day": pd.date_range("2024-01-01", periods=2)}))
    with pytest.raises(SettingsError, match="expected each name and each level once, got 'hour' twice"):
        Columns.from_pandas(pd.DataFrame([[1.0, 2.0]], columns=["hour", "hour"]))


def test_a_declaration_is_json_and_its_order_does_not_matter():
    again = Columns(**json.loads(json.dumps(EVERY.declaration())))
    assert again == EVERY
    assert Columns(categories={"sky": ["clear", "rain"]}, numbers=["hour"]) == PLAIN
    assert repr(PLAIN) == "Columns(numbers=['hour'], categories={'sky': ['clear', 'rain']})"
    other = Columns(numbers=["hour"], categories=SKY, fill={"hour": 3.0})
    assert PLAIN.difference(other) == "fill: expected {}, got {'hour': 3.0}"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"hour": 6, "syk": "rain"}, "unknown column 'syk'; did you mean 'sky'"),
        ({"hour": 6, "sky": "rain", "q": 1, "x": 2}, "unknown column 'q'; expected hour, sky"),
        ({"sky": "rain"}, "column 'hour': expected a number, got none; .* fill="),
        ({"hour": 6}, "column 'sky': expected a category, got none; .* may_miss="),
        ({"hour": 6, "sky": "rian"}, "expected one of 'clear', 'rain', got 'rian'; did you mean 'rain'"),
        ({"hour": 6, "sky": ["rain"]}, "column 'sky': expected one of 'clear', 'rain', got"),
        ({"hour": 6, "sky": 5}, "got 5; levels are text"),
        ({"hour": 6, "sky": "fog"}, "got 'fog'; allow other levels by other="),
        ({"hour": "6", "sky": "rain"}, "column 'hour': expected a number, got '6'"),
        ({"hour": True, "sky": "rain"}, "column 'hour': expected a number, got True"),
        ({"hour": 10**400, "sky": "rain"}, "column 'hour': expected a finite number"),
    ],
)
def test_refuses_rows(row, message):
    with pytest.raises(SettingsError, match=f"^context: .*{message}"):
        PLAIN.encode([row])


@pytest.mark.parametrize("cell", ["1", True, np.bool(True), [1], {}, 3.5, pd.Timestamp("2024-01-01"), 1j, b"x"])
def test_other_is_an_undeclared_value_of_the_right_type(cell):
    zone, sky = Columns(categories={"zone": [1, 7]}, other=["zone"]), Columns(categories=SKY, other=["sky"])
    for value in (5, np.int64(5), 5.0, "other"):
        assert zone.encode([{"zone": value}]).tolist() == [[0, 0, 1]]
    assert sky.encode([{"sky": "hail"}]).tolist() == [[0, 0, 1]]
    with pytest.raises(SettingsError, match="column 'zone': expected one of 1, 7, got"):
        zone.encode([{"zone": cell}])
    if cell != "1":
        with pytest.raises(SettingsError, match="column 'sky': expected one of 'clear', 'rain', got"):
            sky.encode([{"sky": cell}])


def test_error_names_the_row():
    good = {"hour": 6, "sky": "rain"}
    with pytest.raises(SettingsError, match="context: column 'hour', row 1: expected a finite number, got inf"):
        PLAIN.encode([good, {**good, "hour": np.inf}])
    with pytest.raises(SettingsError, match="column 'feast': expected True or False, or 1 or 0, got 'yes'"):
        EVERY.encode([{**FULL, "feast": "yes"}])
    with pytest.raises(SettingsError, match=r"column 'zone': .*got none"):
        EVERY.encode([{**FULL, "zone": None}])
    with pytest.raises(SettingsError, match="expected each column once, got hour, sky, sky"):
        PLAIN.encode(pd.DataFrame([[6, "rain", "rain"]], columns=["hour", "sky", "sky"]))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "expected at least one of numbers, booleans and categories"),
        ({"numbers": "hour"}, "numbers: expected a list of names, got 'hour'"),
        ({"numbers": ["a", "a"]}, "expected each name and each level once, got 'a' twice"),
        ({"numbers": ["a"], "booleans": ["a"]}, "expected each name and each level once, got 'a' twice"),
        ({"categories": ["a"]}, "categories: expected a dictionary"),
        ({"categories": {"a": []}}, "levels of 'a': expected a list of texts, or of integers"),
        ({"categories": {"a": ["x", 1]}}, "levels of 'a': expected a list of texts, or of integers"),
        ({"categories": {"a": [True, False]}}, "levels of 'a': expected a list of texts, or of integers"),
        ({"categories": {"a": ["x", "x"]}}, "expected each name and each level once, got 'x' twice"),
        ({"categories": {"a": ["other"]}, "other": ["a"]}, "'a' has a level 'other' already"),
        (
            {"numbers": ["a"], "may_miss": ["a"]},
            "expected the name of a boolean or category .* got 'a'; a number .* fill=",
        ),
        ({"numbers": ["a"], "fill": {"b": 1.0}}, "fill: expected the name of a number \\(a\\), got 'b'"),
        ({"numbers": ["a"], "fill": {"a": None}}, "fill of 'a': expected a number, got None"),
        ({"numbers": ["a"], "other": ["a"]}, "other: expected the name of a category \\(there is none\\)"),
        ({"numbers": ["a"], "per_coordinate": 1}, "per_coordinate: expected True or False"),
    ],
)
def test_refuses_declarations(declared, message):
    with pytest.raises(SettingsError, match=f"^columns: .*{message}"):
        Columns(**declared)


def test_histories_by_name(tmp_path):
    frame = pd.DataFrame([FULL, GAPS]).assign(a=[1, 0], b=[0, 1], cost=[1.0, 2.0])
    frame.to_csv(tmp_path / "rounds.csv", index=False)
    history = History.from_csv(tmp_path / "rounds.csv", contexts=EVERY, decisions=["a", "b"], total="cost")
    assert history.contexts.tolist() == [ENCODED, ENCODED_GAPS]
    assert history[1:].columns == EVERY
    shown = history.to_pandas()
    assert shown.columns.tolist() == [*EVERY.names, "decision_0", "decision_1", "total"]
    again = History(shown[EVERY.names], history.decisions, columns=EVERY)
    assert again.contexts.tolist() == history.contexts.tolist()
    with pytest.raises(SettingsError, match="unknown column 'sky' of the table"):
        History.from_pandas(frame.drop(columns="sky"), contexts=EVERY, decisions=["a", "b"])
    with pytest.raises(SettingsError, match="history: column 'hour', row 1: expected a number, got 'six'"):
        History.from_pandas(
            frame.astype(object).replace({"hour": {6: "six"}}).assign(hour=[6, "six"]),
            contexts=EVERY,
            decisions=["a", "b"],
        )
    with pytest.raises(SettingsError, match=r"expected encoded columns of shape \('n', 3\), got \(2, 12\)"):
        History(history.contexts, history.decisions, columns=PLAIN)
    with pytest.raises(SettingsError, match="contexts: expected one for each round, got a single one"):
        History(FULL, history.decisions, columns=EVERY)


def test_a_row_for_each_coordinate():
    columns = Columns(numbers=["hour"], categories=SKY, per_coordinate=True)
    rows = [{"hour": 6, "sky": "rain"}, {"hour": 7, "sky": "clear"}]
    one, many = columns.contexts(pd.DataFrame(rows), (2, 3))
    assert (one.tolist(), many) == ([[[6, 0, 1], [7, 1, 0]]], False)
    several, many = columns.contexts([rows, pd.DataFrame(rows[::-1])], (2, 3))
    assert (several[1].tolist(), many) == ([[7, 1, 0], [6, 0, 1]], True)
    assert columns.decode(one[0]) == rows
    with pytest.raises(SettingsError, match="expected 2 rows, one for each coordinate, got 1"):
        columns.contexts(rows[:1], (2, 3))
    history = History([rows, rows[::-1]], np.eye(2), columns=columns)
    shown = history.to_pandas()
    assert shown["hour_1"].tolist() == [7, 6]
    again = History.from_pandas(shown, contexts=columns, decisions=["decision_0", "decision_1"])
    assert again.contexts.tolist() == history.contexts.tolist()
