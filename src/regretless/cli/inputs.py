"""Files and objects that commands read: recorded data as a benchmark, presets, and an oracle as ``module:object``."""

import csv
import io
import json
import stat
from pathlib import Path
from typing import Any

import numpy as np

from regretless import oracles, plugins
from regretless.benchmarks import ArraysBenchmark, from_arrays
from regretless.errors import RegretlessError, SettingsError
from regretless.oracles import Oracle

RECORDED = "history"
"""The name of the benchmark that recorded data make."""


def read_text(path: Path) -> str:
    """Return the text of a file; refuse devices, which may never end, and what is not UTF-8."""
    try:
        with path.open("rb") as file:
            mode = path.stat().st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                raise SettingsError(f"cannot read {path}: it is a device, expected a file")
            return file.read().decode("utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"cannot read {path}: expected text in UTF-8, but {error}") from None


def read_preset(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a preset file, and what the user should know about it."""
    text = read_text(path)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"preset {path}: expected one JSON object of settings, but {error}") from None
    if not isinstance(values, dict) or any(isinstance(value, dict | list) for value in values.values()):
        raise SettingsError(f"preset {path}: expected one JSON object of settings by dotted name")
    if "scaling" not in values:
        return values, [f"preset {path} does not set 'scaling': contexts and costs are scaled"]
    return values, []


def read_recorded(contexts: Path, costs: Path, oracle: str) -> ArraysBenchmark:
    """Return the benchmark that CSV files of contexts and costs make with an oracle."""
    feasible = load_oracle(oracle)
    x, c = read_table(contexts), read_table(costs)
    if c.shape[1] == feasible.dim and len(x) == len(c) * feasible.dim and feasible.dim > 1:
        x = x.reshape(len(c), feasible.dim, -1)  # a row of features for each coordinate of each round
    return from_arrays(x, c, feasible, name=RECORDED)


def load_oracle(name: str) -> Oracle:
    """Return the oracle ``module:object``, or what a function of that name returns; or a registered one."""
    registered = ":" not in name and name in oracles.REGISTRY
    oracle: Any = oracles.REGISTRY[name] if registered else plugins.load_object(name, "--oracle")
    if not isinstance(oracle, Oracle) and callable(oracle):
        try:
            oracle = oracle()
        except RegretlessError as error:
            raise SettingsError(f"--oracle {name}: {error}") from None
        except TypeError as error:
            raise SettingsError(
                f"--oracle {name}: it needs arguments ({error}): give a function that makes it"
            ) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise SettingsError(f"--oracle {name}: making it failed with {type(error).__name__}: {error}") from None
    if not isinstance(oracle, Oracle):
        raise SettingsError(
            f"--oracle {name}: expected an oracle (see rg.oracles) or a function that makes one, got "
            f"{type(oracle).__name__}"
        )
    return oracle


def read_table(path: Path) -> np.ndarray:
    """Return a CSV file of numbers; a first line without any is a header."""
    try:
        reader = csv.reader(io.StringIO(read_text(path), newline=""))
        lines = [(number, line) for number, line in enumerate(reader, 1) if line]
    except csv.Error as error:
        raise SettingsError(f"{path}: expected a CSV file of numbers, but {error}") from None
    if lines and not any(_is_number(text) for text in lines[0][1]):
        lines = lines[1:]
    if not lines:
        raise SettingsError(f"{path}: expected rows of numbers, got none")
    width = len(lines[0][1])
    table = np.empty((len(lines), width))
    for row, (number, line) in enumerate(lines):
        if len(line) != width:
            raise SettingsError(f"{path}, line {number}: expected {width} columns, got {len(line)}")
        for column, text in enumerate(line):
            if not _is_number(text):
                raise SettingsError(f"{path}, line {number}, column {column + 1}: expected a number, got {text!r}")
            table[row, column] = float(text)
    return table


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
