"""Energy-cost-aware scheduling: tasks start when electricity is expected to be cheap; prices in order of time."""

import functools
import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from regretless.benchmarks import energy_data
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.benchmarks.energy_data import INSTANCES, Days
from regretless.errors import SettingsError
from regretless.feedback import Measurement, Rows
from regretless.oracles.plant import Plant, PlantTask, SchedulingOracle, check_plant
from regretless.types import Cost, Key, Operator


class TaskCosts(Measurement):
    """Feedback with the cost of each task: row ``j`` of ``H`` is the load of task ``j`` that starts as in ``aux``."""

    oracle: SchedulingOracle

    name = "semi_bandit"

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        loads = self.oracle.task_loads(aux, w.dtype)
        return Rows(loads), jnp.ones(loads.shape[0], w.dtype)


class Energy(BenchmarkSpec):
    """Schedule 20 tasks on 5 machines over 48 half-hours (instance load3); the cost is the day's price curve.

    The context is one row of 8 standardised features per half-hour; a decision is the load of each half-hour. Without
    data, prices and instances are synthetic.

    Parameters
    ----------
    instance : str, default "load3"
        load1, load2, load3, or the name of an instance file.
    split : {"experiment", "validation"}
        The last 395 days, or those before.
    data_dir : str, optional
        Folder with the data; by default ``$REGRETLESS_DATA``, then the user's cache.
    """

    instance: str = "load3"
    split: Literal["experiment", "validation"] = "experiment"
    data_dir: str = ""

    def build(self) -> "EnergyBenchmark":
        """Return the benchmark."""
        return EnergyBenchmark(self)


class EnergyBenchmark(Benchmark):
    """The stream of days of ``Energy``."""

    oracle: SchedulingOracle
    features: np.ndarray  # [days, slots, features]
    prices: np.ndarray  # [days, slots]
    forecast: np.ndarray  # the market's, of the prices
    coefficients: np.ndarray  # of the least-squares predictor
    source: str = eqx.field(static=True)

    def __init__(self, settings: Energy):
        instance = settings.instance
        folder = energy_data.find_folder(settings.data_dir)
        plant = _plant(instance, folder)
        days = energy_data.split_days(_days(folder), settings.split)
        if plant.slots != days.prices.shape[1]:
            raise SettingsError(
                f"instance {instance}: expected slots of 30 minutes as in the prices, got {plant.slot_minutes} minutes"
            )
        super().__init__("energy", SchedulingOracle(plant), days.features.shape[1:], len(days.prices), False)
        self.features, self.prices, self.forecast = days
        self.coefficients = energy_data.least_squares(days)
        self.source = "synthetic" if folder is None else "real"

    @property
    def data(self) -> str:
        return self.source

    def environment(self, key: Key) -> None:
        """Return None: every replication meets the same days."""

    def round(self, key: Key, environment: None, t: Int[Array, ""]) -> Round:
        return Round(t - 1, jnp.asarray(self.prices)[t - 1].astype(jnp.result_type(float)))

    def context(self, environment: None, observation: Int[Array, ""]) -> Float[Array, "slots features"]:
        return jnp.asarray(self.features)[observation].astype(jnp.result_type(float))

    def measurement(self, name: str) -> Measurement:
        return TaskCosts(self.oracle) if name == "semi_bandit" else super().measurement(name)

    def predictions(self, environment: None, played: Round) -> dict[str, Cost]:
        """Return the market's forecast, and the least-squares predictor that was fitted on these days."""
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
def _days(folder: Path | None) -> Days:
    """Return the days of a folder, or synthetic ones."""
    prices = None if folder is None else folder / energy_data.PRICES
    return energy_data.prepare(energy_data.generate_series() if prices is None else energy_data.read_prices(prices))


def _plant(instance: str, folder: Path | None) -> Plant:
    """Return a named instance from the data, or from this package without data; any other name is a file's."""
    if instance not in INSTANCES:
        if not Path(instance).is_file():
            raise SettingsError(f"unknown instance {instance!r}; expected {', '.join(INSTANCES)} or an instance file")
        return read_plant(Path(instance))
    if folder is None:
        return read_plant(resources.files("regretless.benchmarks") / "data" / f"synthetic_{instance}.txt")
    energy_data.verify(folder / f"{instance}.txt")
    return read_plant(folder / f"{instance}.txt")


class _PlantFile:
    """A file that is read line by line, with the line in its errors."""

    def __init__(self, path: Path | Traversable):
        self.path, self.number = path, 0
        try:
            self.lines = path.read_text(encoding="ascii").rstrip().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"cannot read {path}: {error}") from None

    def error(self, reason: str) -> SettingsError:
        return SettingsError(f"{self.path}, line {self.number}: {reason}")

    def numbers(self, name: str, count: int) -> list[float]:
        """Return the next line, which must hold ``count`` numbers."""
        self.number += 1
        if self.number > len(self.lines):
            raise self.error(f"expected {name}, but the file ends: truncated")
        fields = self.lines[self.number - 1].split()
        try:
            values = [float(field) for field in fields]
        except ValueError:
            raise self.error(f"expected {name}, got {' '.join(fields)!r}") from None
        if len(values) != count:
            raise self.error(f"expected {name} ({count} numbers), got {len(values)}: {' '.join(fields)!r}")
        return values

    def integer(self, name: str, least: int) -> int:
        """Return the next line, which must hold one integer."""
        (value,) = self.numbers(name, 1)
        if not value.is_integer() or value < least:
            raise self.error(f"expected {name}, an integer of at least {least}, got {value:g}")
        return int(value)


def read_plant(path: Path | Traversable) -> Plant:
    """Return the plant in an instance file; an error names the file, the line and what is wrong there.

    Numbers line by line: minutes per slot; resources; machines; for each machine ``id idle up down`` and a line with
    its capacity of each resource; tasks; for each task ``id duration earliest latest power`` and a line with its
    usage of each resource.
    """
    file = _PlantFile(path)
    minutes = file.integer("the minutes per slot", 1)
    resources = file.integer("the number of resources", 1)
    capacities = []
    for machine in range(file.integer("the number of machines", 1)):
        file.numbers(f"machine {machine}: id idle up down", 4)
        capacities.append(tuple(file.numbers(f"the capacities of machine {machine}", resources)))
    tasks = []
    for index in range(file.integer("the number of tasks", 1)):
        _, duration, earliest, latest, power = file.numbers(f"task {index}: id duration earliest latest power", 5)
        if not all(value.is_integer() for value in (duration, earliest, latest)):
            raise file.error(f"task {index}: expected duration, earliest and latest as integers")
        usage = tuple(file.numbers(f"the usages of task {index}", resources))
        tasks.append(PlantTask(int(duration), int(earliest), int(latest), power, usage))
    if file.number < len(file.lines):
        file.number += 1
        raise file.error(f"expected the end of the file after {len(tasks)} tasks, got {file.lines[file.number - 1]!r}")
    plant = Plant(minutes, tuple(capacities), tuple(tasks))
    try:
        check_plant(plant)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return plant
