"""Synthetic electricity prices of the same shape as the real ones, for machines without the data. Nothing here is measured.

Load follows daily, weekly and yearly cycles, wind comes and goes over days, the price follows what load wind leaves over, with
rare spikes on tight evenings; the market's forecast knows most of that and none of the spikes' size.
"""

import datetime

import numpy as np

from regretless.benchmarks.energy.data import SLOTS, Series

DAYS = 792
FIRST_DAY = datetime.date(2011, 11, 1)
SEED = 20111101


def generate(days: int = DAYS, seed: int = SEED) -> Series:
    """A series of ``days`` days, the same every time for the same seed."""
    draw = np.random.RandomState(seed)
    dates = [FIRST_DAY + datetime.timedelta(days=day) for day in range(days)]
    hour = np.arange(SLOTS) / 2
    weekday = np.array([date.weekday() for date in dates])
    yearly = 2 * np.pi * np.array([date.timetuple().tm_yday for date in dates]) / 365.25
    holiday = (draw.uniform(size=days) < 0.03).astype(float)

    daily = (
        0.55 * np.exp(-(((hour - 18.5) / 2.5) ** 2)) + 0.35 * np.exp(-(((hour - 11) / 4.0) ** 2)) - 0.25 * (hour < 6)
    )
    level = 3500 + 450 * np.cos(yearly) - 350 * (weekday >= 5) - 300 * holiday
    load = level[:, None] * (1 + 0.35 * daily) + 60 * _wander(draw, days, 0.7)
    wind = 700 * np.exp(0.8 * _wander(draw, days, 0.985))
    wind_forecast = wind * np.exp(0.15 * _wander(draw, days, 0.9))

    tightness = (load - wind) / 1000
    trend = 14 + 9 * tightness + 1.2 * np.maximum(tightness - 3.3, 0) ** 3
    spike = (draw.uniform(size=(days, SLOTS)) < 0.02 * (tightness > 4)) * draw.exponential(140, (days, SLOTS))
    prices = trend + 4 * _wander(draw, days, 0.6) + spike
    prices = np.where(draw.uniform(size=(days, SLOTS)) < 0.0005, -20.0, prices)
    forecast = trend + 6 * _wander(draw, days, 0.8) + 0.3 * spike
    intensity = np.clip(480 + 55 * tightness + 25 * _wander(draw, days, 0.9), 50, None)

    by_day = [holiday, weekday, [date.isocalendar().week for date in dates], [date.month for date in dates]]
    constant = [np.repeat(np.asarray(values, float)[:, None], SLOTS, axis=1) for values in by_day]
    features = np.stack([*constant, wind_forecast, load, forecast, intensity], axis=-1)
    return Series(np.round(features, 2), np.round(prices, 2))


def _wander(draw: np.random.RandomState, days: int, memory: float) -> np.ndarray:
    """A stationary autoregression of unit variance over all slots, ``[days, 48]``."""
    steps = draw.normal(size=days * SLOTS) * (1 - memory**2) ** 0.5
    values = np.empty_like(steps)
    last = draw.normal()
    for index, step in enumerate(steps):
        last = memory * last + step
        values[index] = last
    return values.reshape(days, SLOTS)
