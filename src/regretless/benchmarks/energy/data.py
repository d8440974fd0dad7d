"""Half-hourly electricity prices with their covariates: read from the SEMO file row by row, and made ready to learn from."""

import csv
import datetime
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regretless.errors import SettingsError

SLOTS = 48
FEATURES = (
    "HolidayFlag", "DayOfWeek", "WeekOfYear", "Month", "ForecastWindProduction", "SystemLoadEA", "SMPEA", "CO2Intensity",
)  # fmt: skip
TARGET = "SMPEP2"
FORECAST = FEATURES.index("SMPEA")
INTENSITY = FEATURES.index("CO2Intensity")
TEXT = ("#DateTime", "Holiday")
CALENDAR = ("Day", "Month", "Year", "PeriodOfDay")
EXPERIMENT_DAYS = 395


class Series(NamedTuple):
    """Day by day and slot by slot: the features and the price; NaN where a value is missing."""

    features: np.ndarray  # [days, 48, 8]
    prices: np.ndarray  # [days, 48]


class Days(NamedTuple):
    """Complete days with features standardised over all of them; the market's forecast also as it was given."""

    features: np.ndarray
    prices: np.ndarray
    forecast: np.ndarray  # [days, 48]


def read_prices(path: Path) -> Series:
    """The price file; an error names the file, the line and what is wrong there."""
    try:
        with path.open(encoding="ascii", newline="") as file:
            reader = csv.reader(file, delimiter=" ", skipinitialspace=True)
            lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError(f"cannot read {path}: {error}") from None
    if not lines:
        raise SettingsError(f"{path}: expected a header and rows of prices, the file is empty")
    header, rows = lines[0][1], lines[1:]
    missing = [name for name in dict.fromkeys((*CALENDAR, *FEATURES, TARGET)) if name not in header]
    if missing:
        raise SettingsError(f"{path}, line 1: missing columns {', '.join(missing)}")
    table = np.empty((len(rows), len(header)))
    day: datetime.date | None = None
    for index, (line, row) in enumerate(rows):
        try:
            table[index] = _values(header, row)
            day = _next_slot(dict(zip(header, table[index], strict=True)), index % SLOTS, day)
        except ValueError as error:
            raise SettingsError(f"{path}, line {line}: {error}") from None
    if len(rows) % SLOTS or not rows:
        raise SettingsError(
            f"{path}, line {len(rows) + 1}: the file ends after {len(rows) % SLOTS} of the {SLOTS} slots of {day}: truncated"
        )
    columns = {name: table[:, index].reshape(-1, SLOTS) for index, name in enumerate(header)}
    return Series(np.stack([columns[name] for name in FEATURES], axis=-1), columns[TARGET])


def _values(header: list[str], row: list[str]) -> list[float]:
    """The numbers of a row, NaN for texts and for what is missing."""
    if len(row) != len(header):
        raise ValueError(f"expected {len(header)} fields, got {len(row)}")
    values = []
    for name, field in zip(header, row, strict=True):
        if name in TEXT or field == "NaN":
            values.append(math.nan)
            continue
        try:
            value = float(field)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"expected a number or NaN in column {name}, got {field!r}")
        values.append(value)
    return values


def _next_slot(row: dict[str, float], slot: int, day: datetime.date | None) -> datetime.date:
    """The day of a row; refuses one that is not the next slot of the same day, or the first of the next day."""
    if any(math.isnan(row[name]) for name in CALENDAR):
        raise ValueError("expected a date and a slot, got NaN")
    found = datetime.date(int(row["Year"]), int(row["Month"]), int(row["Day"]))
    expected = day if slot and day else None if day is None else day + datetime.timedelta(days=1)
    if (expected is not None and found != expected) or row["PeriodOfDay"] != slot:
        raise ValueError(
            f"expected slot {slot} of {expected or found}, got slot {row['PeriodOfDay']:g} of {found}: "
            f"every day needs its {SLOTS} slots in order"
        )
    return found


def prepare(series: Series) -> Days:
    """Complete days, ready to learn from.

    A carbon intensity of 0 or missing is interpolated linearly over the whole series; then days with any missing value drop
    out, and features are standardised over the days that stay (population standard deviation).
    """
    features = series.features.copy()
    intensity = features[..., INTENSITY].reshape(-1)
    known = np.isfinite(intensity) & (intensity != 0)
    position = np.arange(len(intensity))
    features[..., INTENSITY] = np.interp(position, position[known], intensity[known]).reshape(features.shape[:2])
    complete = ~(np.isnan(features).any(axis=(1, 2)) | np.isnan(series.prices).any(axis=1))
    features, prices = features[complete], series.prices[complete]
    rows = features.reshape(-1, features.shape[-1])
    spread = rows.std(axis=0)
    standardised = (features - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Days(standardised, prices, features[..., FORECAST])


def split_days(days: Days, split: str) -> Days:
    """The last 395 days (``experiment``) or those before them (``validation``), in order of time."""
    part = slice(-EXPERIMENT_DAYS, None) if split == "experiment" else slice(None, -EXPERIMENT_DAYS)
    return Days(*(values[part] for values in days))


def least_squares(days: Days) -> np.ndarray:
    """Coefficients ``[8 + 1]`` of the linear price predictor with intercept (the last) that fits these days best."""
    rows = days.features.reshape(-1, days.features.shape[-1])
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    return np.linalg.lstsq(rows, days.prices.reshape(-1), rcond=None)[0]
