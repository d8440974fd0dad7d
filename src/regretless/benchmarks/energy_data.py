"""Data of the energy benchmark: half-hourly electricity prices with covariates, real files or synthetic ones."""

import csv
import datetime
import hashlib
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regretless import files
from regretless.errors import SettingsError
from regretless.extras import require
from regretless.oracles.callback import TimeLimitError, call_with_limit
from regretless.startup import cache_directory, named_data_directory

SLOTS = 48
CALENDAR = ("HolidayFlag", "DayOfWeek", "WeekOfYear", "Month")
FEATURES = (*CALENDAR, "ForecastWindProduction", "SystemLoadEA", "SMPEA", "CO2Intensity")
TARGET = "SMPEP2"
FORECAST = FEATURES.index("SMPEA")
INTENSITY = FEATURES.index("CO2Intensity")
EXPERIMENT_DAYS = 395


SYNTHETIC_FIRST_DAY = datetime.date(2011, 11, 1)

PRICES = "prices2013.dat"
MAX_DOWNLOAD_SECONDS = 600.0
"""Time limit for each file."""

INSTANCES = {
    "load1": "770617778a56cf167d5ef389462e7ede95ac4a456eaa2cc6d3f68b60f62593d8",
    "load2": "63d4ddf681780fa72ae1bcfd663f9838feefde9abb7dda91d8a4ba3b7410ca2c",
    "load3": "0a73bbf82b49cb948f62e5ff1f64832f30f390d546a1d0ac91b752e4c5af9225",
}
"""The sha256 of each instance's file."""

ORIGIN = "https://raw.githubusercontent.com/PredOpt/predopt-benchmarks/main/Energy/"
FILES = {
    PRICES: ("Trainer/prices2013.dat", "c8086b6b026c1edce01bea265392e42ce46245e9f7f5e88d871232e8c6176faf"),
    **{f"{name}.txt": (f"SchedulingInstances/{name}/day01.txt", checksum) for name, checksum in INSTANCES.items()},
}
"""Name here, path at the origin (the MIT-licensed repository PredOpt/predopt-benchmarks), sha256."""


class PriceSeries(NamedTuple):
    """Features and price by day and slot; NaN where a value is missing."""

    features: np.ndarray  # [days, 48, 8]
    prices: np.ndarray  # [days, 48]


class Days(NamedTuple):
    """Complete days with features standardised over all of them; the market's forecast also as it was published."""

    features: np.ndarray
    prices: np.ndarray
    forecast: np.ndarray  # [days, 48]


def read_prices(path: Path) -> PriceSeries:
    """Return the content of the price file; refuse one that is not as it was published."""
    verify(path)
    with path.open(encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=" ", skipinitialspace=True))
    columns = {name: np.array([float(row[name]) for row in rows]).reshape(-1, SLOTS) for name in (*FEATURES, TARGET)}
    return PriceSeries(np.stack([columns[name] for name in FEATURES], axis=-1), columns[TARGET])


def prepare(series: PriceSeries) -> Days:
    """Return complete days, ready to learn from.

    A carbon intensity of 0 or missing is interpolated linearly over the whole series; then days with any missing
    value are dropped, and features are standardised over the remaining days (population standard deviation).
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
    """Return the last 395 days (``experiment``) or those before them (``validation``), in order of time."""
    part = slice(-EXPERIMENT_DAYS, None) if split == "experiment" else slice(None, -EXPERIMENT_DAYS)
    return Days(*(values[part] for values in days))


def least_squares(days: Days) -> np.ndarray:
    """Return the coefficients ``[8 + 1]`` of the linear price predictor with intercept (the last) for these days."""
    rows = days.features.reshape(-1, days.features.shape[-1])
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    return np.linalg.lstsq(rows, days.prices.reshape(-1), rcond=None)[0]


def generate_series(days: int = 792, seed: int = 20111101) -> PriceSeries:
    """Return synthetic prices of the same shape as the real ones, the same every time for the same seed.

    Load follows daily, weekly and yearly cycles, wind varies over days, the price follows load minus wind, with rare
    spikes on tight evenings; the market's forecast knows most of that and nothing of the spikes' size. Nothing here
    is measured.
    """
    draw = np.random.RandomState(seed)
    dates = [SYNTHETIC_FIRST_DAY + datetime.timedelta(days=day) for day in range(days)]
    hour = np.arange(SLOTS) / 2
    weekday = np.array([date.weekday() for date in dates])
    yearly = 2 * np.pi * np.array([date.timetuple().tm_yday for date in dates]) / 365.25
    holiday = (draw.uniform(size=days) < 0.03).astype(float)

    daily = (
        0.55 * np.exp(-(((hour - 18.5) / 2.5) ** 2)) + 0.35 * np.exp(-(((hour - 11) / 4.0) ** 2)) - 0.25 * (hour < 6)
    )
    level = 3500 + 450 * np.cos(yearly) - 350 * (weekday >= 5) - 300 * holiday
    load = level[:, None] * (1 + 0.35 * daily) + 60 * _autoregression(draw, days, 0.7)
    wind = 700 * np.exp(0.8 * _autoregression(draw, days, 0.985))
    wind_forecast = wind * np.exp(0.15 * _autoregression(draw, days, 0.9))

    tightness = (load - wind) / 1000
    trend = 14 + 9 * tightness + 1.2 * np.maximum(tightness - 3.3, 0) ** 3
    spike = (draw.uniform(size=(days, SLOTS)) < 0.02 * (tightness > 4)) * draw.exponential(140, (days, SLOTS))
    prices = trend + 4 * _autoregression(draw, days, 0.6) + spike
    prices = np.where(draw.uniform(size=(days, SLOTS)) < 0.0005, -20.0, prices)
    forecast = trend + 6 * _autoregression(draw, days, 0.8) + 0.3 * spike
    intensity = np.clip(480 + 55 * tightness + 25 * _autoregression(draw, days, 0.9), 50, None)

    by_day = [holiday, weekday, [date.isocalendar().week for date in dates], [date.month for date in dates]]
    constant = [np.repeat(np.asarray(values, float)[:, None], SLOTS, axis=1) for values in by_day]
    features = np.stack([*constant, wind_forecast, load, forecast, intensity], axis=-1)
    return PriceSeries(np.round(features, 2), np.round(prices, 2))


def _autoregression(draw: np.random.RandomState, days: int, memory: float) -> np.ndarray:
    """Return a stationary autoregression of unit variance over all slots, ``[days, 48]``."""
    steps = draw.normal(size=days * SLOTS) * (1 - memory**2) ** 0.5
    values = itertools.accumulate(steps, lambda last, step: memory * last + step, initial=draw.normal())
    return np.array([*values][1:]).reshape(days, SLOTS)


def cache_folder() -> Path:
    """Return where ``regretless data fetch energy`` puts the files."""
    return cache_directory() / "data" / "energy"


def find_folder(data_dir: str = "") -> Path | None:
    """Return the folder with the energy files, None without one: ``data_dir``, ``$REGRETLESS_DATA`` or the cache.

    The first two may hold the files themselves or a folder ``energy`` with them; a folder without any is refused.
    """
    named = Path(data_dir) if data_dir else named_data_directory()
    if named is None:
        return cache_folder() if (cache_folder() / PRICES).is_file() else None
    for folder in (named / "energy", named):
        if (folder / PRICES).is_file():
            return folder
    what = "--data-dir" if data_dir else "REGRETLESS_DATA"
    raise SettingsError(
        f"no energy data in {named}: expected {PRICES} there or in its folder 'energy'; "
        f"name another directory with {what}, or download the files with 'regretless data fetch energy'"
    )


def verify(path: Path) -> None:
    """Refuse one of the known files if its content is not the published one."""
    expected = FILES[path.name][1]
    try:
        checksum = sha256(path)
    except OSError as error:
        raise SettingsError(
            f"cannot read {path}: {error.strerror}; download it with 'regretless data fetch energy'"
        ) from None
    if checksum != expected:
        raise SettingsError(
            f"{path}: the file was altered: expected sha256 {expected}, got {checksum}; "
            "download it again with 'regretless data fetch energy'"
        )


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(
    folder: Path,
    origin: str = ORIGIN,
    report: Callable[[str], None] = lambda line: None,
    seconds: float = MAX_DOWNLOAD_SECONDS,
) -> list[Path]:
    """Download what is not in ``folder`` yet, or was altered there, and verify every checksum.

    Parameters
    ----------
    folder : path
        Where the files are written.
    origin : str, optional
        Where they come from.
    report : callable, optional
        Receives a line per file.
    seconds : float, optional
        Time for each download.

    Raises
    ------
    OSError
        If the origin cannot be reached or takes too long.
    ValueError
        If it serves something else.
    """
    pooch, requests = require("pooch", extra="data"), require("requests", extra="data")
    pooch.get_logger().setLevel("ERROR")
    folder.mkdir(parents=True, exist_ok=True)
    for name, (path, checksum) in FILES.items():
        known = (folder / name).is_file() and sha256(folder / name) == checksum
        report(f"{name}: {'already present' if known else 'downloading'}")
        if known:
            continue
        url = origin + path
        with tempfile.TemporaryDirectory() as download:
            try:
                got = call_with_limit(seconds, pooch.retrieve, url, f"sha256:{checksum}", name, download)
            except TimeLimitError:
                raise OSError(f"cannot download {url}: it takes more than {seconds:g} seconds") from None
            except requests.exceptions.RequestException as error:
                reason = "the server cannot be reached" if error.response is None else str(error)
                raise OSError(f"cannot download {url}: {reason}") from None
            with files.atomic(folder / name) as file:
                file.write(Path(got).read_bytes())
    return [folder / name for name in FILES]
