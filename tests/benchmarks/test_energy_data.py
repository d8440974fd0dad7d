"""The price file and the instance files: read exactly, cleaned as described, refused with file, line and reason."""

import numpy as np
import pytest

from regretless.benchmarks import energy_data
from regretless.benchmarks.energy import read_plant
from regretless.benchmarks.energy_data import FEATURES, INTENSITY, PriceSeries, prepare, read_prices
from regretless.errors import SettingsError
from regretless.oracles import Plant, PlantTask

HEADER = (
    "#DateTime Holiday HolidayFlag DayOfWeek WeekOfYear Day Month Year PeriodOfDay ForecastWindProduction SystemLoadEA SMPEA "  # noqa: E501
    "ORKTemperature ORKWindspeed CO2Intensity ActualWindProduction SystemLoadEP2 SMPEP2"
)


def row(day, slot):
    calendar = f"0 4 9 {day} 3 2012 {slot}"
    return f'"fri {day}/3/2012 00:00" "St. Patrick\'s" {calendar}  1{slot}.5 30.25   4{day}.5 NaN 2.0 500.0 1 2 {50 + slot}'  # noqa: E501


def lines(days=2):
    return [HEADER, *(row(day, slot) for day in range(1, days + 1) for slot in range(48))]


def written(tmp_path, content):
    path = tmp_path / "prices.dat"
    path.write_text("\n".join(content) + "\n")
    return path


def test_reads_features_and_prices(tmp_path, monkeypatch):
    path = written(tmp_path, lines())
    monkeypatch.setitem(energy_data.FILES, path.name, ("", energy_data.sha256(path)))
    series = read_prices(path)
    assert series.features.shape == (2, 48, 8)
    assert series.features[1, 3].tolist() == [0, 4, 9, 3, 13.5, 30.25, 42.5, 500.0]
    assert series.prices[0].tolist() == list(range(50, 98))


def test_cleaning():
    """Intensity is interpolated over the whole series, across days; other gaps cost the day."""
    draw = np.random.default_rng(0)
    features, prices = draw.normal(10, 1, (4, 48, 8)), draw.normal(size=(4, 48))
    features[0, 47, INTENSITY], features[1, 0, INTENSITY] = 0.0, np.nan
    features[0, 46, INTENSITY], features[1, 1, INTENSITY] = 4.0, 7.0
    features[2, 5, 3] = np.nan
    kept = prepare(PriceSeries(features, prices))
    assert np.array_equal(kept.prices, prices[[0, 1, 3]])
    flat = kept.features.reshape(-1, 8)
    np.testing.assert_allclose(flat.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(flat.std(axis=0), 1, rtol=1e-12)
    four, five, six, seven = kept.features[[0, 0, 1, 1], [46, 47, 0, 1], INTENSITY]
    np.testing.assert_allclose([five - four, six - four], np.array([1, 2]) / 3 * (seven - four), rtol=1e-9)
    broken = PriceSeries(features, np.where(np.arange(4)[:, None] == 1, np.nan, prices))
    assert np.array_equal(prepare(broken).prices, prices[[0, 3]])


def test_least_squares_recovers_a_linear_price():
    draw = np.random.default_rng(1)
    features = draw.normal(size=(5, 48, 8))
    truth = np.arange(1.0, 10.0)
    days = energy_data.Days(features, features @ truth[:-1] + truth[-1], features[..., 6])
    np.testing.assert_allclose(energy_data.least_squares(days), truth, rtol=1e-9)


def test_synthetic_prices_have_the_shape_and_the_habits_of_real_ones():
    series = energy_data.generate_series()
    again = energy_data.generate_series()
    assert all(np.array_equal(*pair) for pair in zip(series, again, strict=True))
    assert series.features.shape == (792, 48, len(FEATURES))
    days = prepare(series)
    assert len(days.prices) >= 789
    prices, weekday = series.prices, series.features[:, 0, FEATURES.index("DayOfWeek")]
    assert prices[:, 34:40].mean() > 1.2 * prices[:, 4:10].mean(), "evenings cost more than nights"
    assert prices[weekday < 5].mean() > 1.03 * prices[weekday >= 5].mean(), "weekdays cost more than weekends"
    assert prices.max() > 5 * np.median(prices), "there are spikes"
    assert prices.min() < 0, "and negative prices"
    forecast = series.features[..., FEATURES.index("SMPEA")]
    assert 0.4 < np.corrcoef(forecast.ravel(), prices.ravel())[0, 1] < 0.98, "the forecast is good, not perfect"
    assert not np.array_equal(energy_data.generate_series(seed=1).prices, series.prices)


INSTANCE = ["30", "2", "1", "0 150 0.1 0.1", "5 6", "2", "0 3 1 9 4.5", "2 1", "1 48 0 48 2", "5 5.5"]


def test_reads_an_instance(tmp_path):
    path = tmp_path / "load.txt"
    path.write_text("\n".join(INSTANCE))
    tasks = (PlantTask(3, 1, 9, 4.5, (2.0, 1.0)), PlantTask(48, 0, 48, 2.0, (5.0, 5.5)))
    assert read_plant(path) == Plant(30, ((5.0, 6.0),), tasks)


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "31", "plant: expected slots that divide a day of 1440 minutes, got 31"),
        (1, "half", "line 1: expected the minutes per slot, got 'half'"),
        (2, "0", "line 2: expected the number of resources, an integer of at least 1, got 0"),
        (4, "0 150 0.1", r"line 4: expected machine 0: id idle up down \(4 numbers\), got 3"),
        (5, "5", r"line 5: expected the capacities of machine 0 \(2 numbers\), got 1"),
        (6, "3", "line 11: expected task 2: id duration earliest latest power, but the file ends: truncated"),
        (6, "1", "line 9: expected the end of the file after 1 tasks, got '1 48 0 48 2'"),
        (1, "nan", "line 1: expected the minutes per slot, an integer of at least 1, got nan"),
        (5, "5 nan", "plant: expected capacities of at least 0"),
        (7, "0 inf 1 9 4.5", "line 7: task 0: expected duration, earliest and latest as integers"),
        (7, "0 9 1 9 4.5", "plant: task 0: 9 slots do not fit between slot 1 and slot 9"),
        (7, "0 3.5 1 9 4.5", "line 7: task 0: expected duration, earliest and latest as integers"),
        (7, "0 3 1 49 4.5", "plant: task 0: expected 0 ≤ earliest < latest ≤ 48 slots"),
        (8, "2 7", r"plant: task 0: its usage \[2.0, 7.0\] fits no machine"),
        (8, "2 x", "line 8: expected the usages of task 0, got '2 x'"),
    ],
)
def test_refuses_an_instance_with_file_line_and_reason(tmp_path, line, text, message):
    path = tmp_path / "load.txt"
    content = list(INSTANCE)
    content[line - 1] = text
    path.write_text("\n".join(content))
    with pytest.raises(SettingsError, match=f"load.txt[,:] {message}"):
        read_plant(path)
    with pytest.raises(SettingsError, match="cannot read"):
        read_plant(tmp_path / "none.txt")
