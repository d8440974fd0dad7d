"""Energy-cost-aware scheduling: tasks start when electricity is expected to be cheap; prices day by day, in order of time."""

import functools
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree
from pydantic import Field

from regretless import oracles
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.benchmarks.energy import files as energy_files
from regretless.benchmarks.energy.data import Days, least_squares, prepare, read_prices, split_days
from regretless.benchmarks.energy.instance import read_plant
from regretless.benchmarks.energy.synthetic import generate
from regretless.errors import SettingsError
from regretless.feedback import Measurement, Rows
from regretless.oracles import Plant
from regretless.types import Cost, Key, Operator

INSTANCES = ("load1", "load2", "load3")


class TaskCosts(Measurement):
    """The cost of each task is seen: row ``j`` of ``H`` is the load of task ``j``, from the start times in ``aux``."""

    oracle: oracles.scheduling

    @property
    def name(self) -> str:
        return "semi_bandit"

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        loads = self.oracle.task_loads(aux, w.dtype)
        return Rows(loads), jnp.ones(loads.shape[0], w.dtype)


class Energy(BenchmarkSpec):
    """Which plant, which days, and where the data are."""

    instance: str = Field(default="load3", description="load1, load2, load3 or an instance file")
    split: Literal["experiment", "validation"] = Field(
        default="experiment", description="the last 395 days, or those before"
    )
    data_dir: str = Field(default="", description="folder with the data; default: $REGRETLESS_DATA, then the cache")

    def build(self) -> "EnergyBenchmark":
        """Return the benchmark."""
        return EnergyBenchmark(self)


class EnergyBenchmark(Benchmark):
    """20 tasks on 5 machines over 48 half-hours (instance load3); the cost is the day's price curve, read in order of time.

    The context is one row of 8 standardised features per half-hour; a decision is the load of each half-hour. ``split`` is
    ``experiment`` (the last 395 days) or ``validation`` (those before); ``instance`` is load1, load2, load3 or a file's name.
    The data are looked for in ``data_dir``, in ``$REGRETLESS_DATA`` and in the user's cache; without any, prices and instances
    are synthetic.
    """

    oracle: oracles.scheduling
    features: np.ndarray  # [days, slots, features]
    prices: np.ndarray  # [days, slots]
    forecast: np.ndarray  # the market's, of the prices
    coefficients: np.ndarray  # of the least-squares predictor
    instance: str = eqx.field(static=True)
    split: str = eqx.field(static=True)
    source: str = eqx.field(static=True)

    def __init__(self, settings: Energy):
        instance, split = settings.instance, settings.split
        folder = energy_files.find(settings.data_dir)
        plant = _plant(instance, folder)
        days = split_days(_synthetic() if folder is None else _real(folder), split)
        if plant.slots != days.prices.shape[1]:
            raise SettingsError(
                f"instance {instance}: expected slots of 30 minutes as in the prices, got {plant.slot_minutes} minutes"
            )
        super().__init__("energy", oracles.scheduling(plant), days.features.shape[1:], len(days.prices), False)
        self.features, self.prices, self.forecast = days
        self.coefficients = least_squares(days)
        self.instance, self.split = instance, split
        self.source = "synthetic" if folder is None else "real"

    @property
    def data(self) -> str:
        return self.source

    @property
    def longest(self) -> int:
        return self.horizon

    def environment(self, key: Key) -> None:
        """Every replication meets the same days."""

    def round(self, key: Key, environment: None, t: Int[Array, ""]) -> Round:
        return Round(t - 1, jnp.asarray(self.prices)[t - 1].astype(jnp.result_type(float)))

    def context(self, environment: None, observation: Int[Array, ""]) -> Float[Array, "slots features"]:
        return jnp.asarray(self.features)[observation].astype(jnp.result_type(float))

    def measurement(self, name: str) -> Measurement:
        return TaskCosts(self.oracle) if name == "semi_bandit" else super().measurement(name)

    def predictions(self, environment: None, played: Round) -> dict[str, Cost]:
        """The market's own forecast, and the least-squares predictor that was fitted on these very days."""
        context = self.context(environment, played.observation)
        coefficients = jnp.asarray(self.coefficients)
        return {
            "market_forecast": jnp.asarray(self.forecast)[played.observation].astype(context.dtype),
            "least_squares": context @ coefficients[:-1] + coefficients[-1],
        }

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.oracle.plant.__repr__().encode())
        for array in (self.features, self.prices):
            digest.update(np.ascontiguousarray(array).tobytes())
        return {"name": self.name, "data": self.source, "digest": digest.hexdigest()[:16]}


@functools.lru_cache(maxsize=4)
def _real(folder: Path) -> Days:
    """Rows are checked before the checksum, because they tell in which line something is wrong."""
    path = folder / energy_files.PRICES
    series = read_prices(path)
    energy_files.verify(path)
    return prepare(series)


@functools.lru_cache(maxsize=1)
def _synthetic() -> Days:
    return prepare(generate())


def _plant(instance: str, folder: Path | None) -> Plant:
    """A named instance from the data, or from this package where there are none; any other name is a file's."""
    if instance not in INSTANCES:
        if not Path(instance).is_file():
            raise SettingsError(f"unknown instance {instance!r}; expected {', '.join(INSTANCES)} or an instance file")
        return read_plant(Path(instance))
    if folder is None:
        return read_plant(resources.files("regretless.benchmarks") / "data" / f"synthetic_{instance}.txt")
    path = folder / f"{instance}.txt"
    plant = read_plant(path)
    energy_files.verify(path)
    return plant
