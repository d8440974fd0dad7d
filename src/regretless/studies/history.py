"""Recorded data against every policy: files of contexts and costs, and the user's own oracle, as an experiment."""

import csv
import importlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regretless import policies
from regretless.benchmarks import from_arrays
from regretless.errors import SettingsError
from regretless.oracles import Oracle
from regretless.policies import Problem
from regretless.registry import require_known
from regretless.settings import Settings
from regretless.studies.experiment import Experiment, Prepared

NAME = "history"


class Files(NamedTuple):
    """Where a history is: CSV files of numbers, and the oracle as ``module:object``."""

    contexts: Path
    costs: Path
    oracle: str


def prepare_history(experiment: Experiment, files: Files) -> Prepared:
    """Builds the benchmark from files and the policies for it; refuses what cannot be run with a SettingsError."""
    if experiment.degree is not None or experiment.data_dir is not None:
        raise SettingsError("--degree and --data-dir are for benchmarks, a history has neither")
    oracle = load_oracle(files.oracle)
    contexts, costs = read_table(files.contexts), read_table(files.costs)
    if costs.shape[1] == oracle.dim and len(contexts) == len(costs) * oracle.dim and oracle.dim > 1:
        contexts = contexts.reshape(len(costs), oracle.dim, -1)  # a row of features for each coordinate of each round
    benchmark = from_arrays(contexts, costs, oracle, name=NAME)
    for key in experiment.overrides:
        require_known("setting", key, Settings.model_fields)
    settings = Settings.checked(**(experiment.preset or {})).updated(**experiment.overrides)
    rule = benchmark.measurement(experiment.feedback)
    problem = Problem(oracle, benchmark.context_shape, rule, experiment.model, experiment.missing > 0)
    built = {policy: policies.build(policy, settings, problem) for policy in experiment.policies}
    horizon = experiment.horizon or benchmark.horizon
    if horizon > benchmark.horizon:
        raise SettingsError(f"the history has {benchmark.horizon} rounds, got a horizon of {horizon}")
    notices = (
        [] if experiment.preset else ["nothing was tuned on this history: the library's default settings are used"]
    )
    return Prepared(benchmark, built, settings, horizon, None, False, tuple(notices))


def load_oracle(where: str) -> Oracle:
    """The oracle ``module:object``, or what the function of that name returns; modules in the working directory count."""
    module, separator, name = where.partition(":")
    if not separator or not module or not name:
        raise SettingsError(f"expected --oracle module:object, got {where!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise SettingsError(f"cannot import the module of --oracle {where}: {error}") from None
    except AttributeError:
        raise SettingsError(f"module {module!r} has no {name!r}: expected --oracle module:object") from None
    if not isinstance(found, Oracle) and callable(found):
        found = found()
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
