"""Tuned presets of the paper as data: which settings a benchmark's published runs used."""

import csv
import functools
from importlib import resources
from typing import Any, NamedTuple

from regretless.errors import SettingsError
from regretless.settings import Settings, require_known

MODELS = ("gaussian_linear", "gaussian_nn", "flow", "diffusion")
_TEXT = {"surrogate", "alpha_gate", "baseline", "diffusion_weights"}


class Preset(NamedTuple):
    """Settings with the degree they were tuned at (None: the benchmark has no degrees)."""

    settings: Settings
    degree: int | None


def preset(benchmark: str, model: str, degree: int | None, feedback: str) -> Preset:
    """The tuned settings of this benchmark and model; for a degree without any, those of the nearest degree that has.

    >>> preset("topk", "gaussian_linear", 8, "bandit").settings.surrogate
    'pairwise_diff'
    """
    rows = [row for row in read("presets.csv") if row["benchmark"] == benchmark]
    if not rows:
        raise SettingsError(f"no preset for benchmark {benchmark!r}: give one with --preset FILE")
    require_known(f"model for {benchmark}", model, {row["model"] for row in rows})
    rows = [row for row in rows if row["model"] == model]
    row = min(rows, key=lambda row: (abs(int(row["degree"] or 0) - (degree or 0)), int(row["degree"] or 0)))
    values = {
        key: _parse(key, value) for key, value in row.items() if value and key not in {"benchmark", "degree", "model"}
    }
    for override in read("feedback_presets.csv"):
        if (override["benchmark"], override["feedback"]) == (benchmark, feedback):
            values[override["key"]] = _parse(override["key"], override["value"])
    return Preset(Settings.checked(**values), int(row["degree"]) if row["degree"] else None)


def _parse(key: str, value: str) -> Any:
    if key in _TEXT:
        return value
    return value == "true" if value in ("true", "false") else float(value)


@functools.cache
def read(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a data file of this package."""
    with (resources.files("regretless.benchmarks") / "data" / name).open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
