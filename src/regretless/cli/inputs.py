"""Files and objects that commands read: recorded data as a benchmark, presets, and an oracle as ``module:object``."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from regretless import files, oracles, plugins
from regretless.benchmarks import ArraysBenchmark, from_arrays
from regretless.errors import SettingsError
from regretless.oracles import Oracle

RECORDED = "history"
"""The name of the benchmark that recorded data make."""


def read_text(path: Path) -> str:
    """Return the text of a file; refuse devices, which may never end, and what is not UTF-8."""
    try:
        files.refuse_device(path)
        return path.read_bytes().decode("utf-8")
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
        oracle = plugins.call(oracle, f"--oracle {name}, called without arguments")
    if not isinstance(oracle, Oracle):
        raise SettingsError(
            f"--oracle {name}: expected an oracle (see rg.oracles) or a function that makes one, got "
            f"{type(oracle).__name__}"
        )
    return oracle


def read_table(path: Path) -> np.ndarray:
    """Return a CSV file of numbers; a first line without any is a header."""
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if lines and not any(map(_is_number, lines[0].split(","))):
        del lines[0]
    if not lines:
        raise SettingsError(f"{path}: expected rows of numbers, got none")
    try:
        table = np.loadtxt(lines, delimiter=",", comments=None, quotechar='"', ndmin=2)
    except ValueError as error:
        raise SettingsError(f"{path}: expected a CSV file of numbers, but {error}") from None
    if not np.isfinite(table).all():
        raise SettingsError(f"{path}: expected finite numbers, got {table[~np.isfinite(table)][0]}")
    return table


def _is_number(text: str) -> bool:
    try:
        float(text.strip(' "'))
    except ValueError:
        return False
    return True
