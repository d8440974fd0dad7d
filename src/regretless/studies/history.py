"""Recorded data as a world: files of contexts and costs, and the user's own oracle."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless import oracles, plugins
from regretless.benchmarks import ArraysBenchmark, from_arrays
from regretless.errors import RegretlessError, SettingsError
from regretless.oracles import Oracle

NAME = "history"


class Files(NamedTuple):
    """Where a history is: CSV files of numbers, and the oracle as ``module:object`` or a registered name."""

    contexts: Path
    costs: Path
    oracle: str


def read_history(files: Files) -> ArraysBenchmark:
    """The benchmark that these files make; refuses what cannot be one with a SettingsError."""
    oracle = load_oracle(files.oracle)
    contexts, costs = read_table(files.contexts), read_table(files.costs)
    if costs.shape[1] == oracle.dim and len(contexts) == len(costs) * oracle.dim and oracle.dim > 1:
        contexts = contexts.reshape(len(costs), oracle.dim, -1)  # a row of features for each coordinate of each round
    return from_arrays(contexts, costs, oracle, name=NAME)


def load_oracle(where: str) -> Oracle:
    """The oracle ``module:object``, or what a function of that name returns; or one that is registered by name."""
    named = ":" not in where and where in oracles.REGISTRY
    found: Any = oracles.REGISTRY[where] if named else plugins.load_object(where, "--oracle")
    if not isinstance(found, Oracle) and callable(found):
        try:
            found = found()
        except RegretlessError as error:
            raise SettingsError(f"--oracle {where}: {error}") from None
        except TypeError as error:
            raise SettingsError(
                f"--oracle {where}: it needs arguments ({error}): give a function that makes it"
            ) from None
        except (Exception, SystemExit) as error:
            raise SettingsError(f"--oracle {where}: making it failed with {type(error).__name__}: {error}") from None
    if not isinstance(found, Oracle):
        raise SettingsError(
            f"--oracle {where}: expected an oracle (see rg.oracles) or a function that makes one, got {type(found).__name__}"
        )
    return found


def read_table(path: Path) -> np.ndarray:
    """A CSV file of numbers; a first line that holds none is a header."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [(number, line) for number, line in enumerate(csv.reader(file), 1) if line]
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingsError(f"{path}: expected a CSV file of numbers, but {error}") from None
    if lines and not any(_is_number(word) for word in lines[0][1]):
        lines = lines[1:]
    if not lines:
        raise SettingsError(f"{path}: expected rows of numbers, got none")
    width = len(lines[0][1])
    table = np.empty((len(lines), width))
    for row, (number, line) in enumerate(lines):
        if len(line) != width:
            raise SettingsError(f"{path}, line {number}: expected {width} columns, got {len(line)}")
        for column, word in enumerate(line):
            if not _is_number(word):
                raise SettingsError(f"{path}, line {number}, column {column + 1}: expected a number, got {word!r}")
            table[row, column] = float(word)
    return table


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
