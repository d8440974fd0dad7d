"""Tuned presets of the paper as data: which settings a benchmark's published runs used."""

import csv
import functools
from importlib import resources
from typing import NamedTuple

KEYS = ("benchmark", "degree", "model")


class Preset(NamedTuple):
    """Settings by dotted name, with the degree they were tuned at (None: the benchmark has no degrees)."""

    values: dict[str, str]
    degree: int | None


def preset(benchmark: str, model: str, degree: int | None, feedback: str) -> Preset | None:
    """The tuned settings of this benchmark and model, None if it has none; for another degree, those of the nearest one.

    >>> preset("topk", "gaussian_linear", 8, "bandit").values["surrogate"]
    'pairwise_diff'
    """
    rows = [row for row in read("presets.csv") if (row["benchmark"], row["model"]) == (benchmark, model)]
    if not rows:
        return None
    row = min(rows, key=lambda row: (abs(int(row["degree"] or 0) - (degree or 0)), int(row["degree"] or 0)))
    values = {key: value for key, value in row.items() if value and key not in KEYS}
    for override in read("feedback_presets.csv"):
        if (override["benchmark"], override["feedback"]) == (benchmark, feedback):
            values[override["key"]] = override["value"]
    return Preset(values, int(row["degree"]) if row["degree"] else None)


@functools.cache
def read(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a data file of this package."""
    with (resources.files("regretless.benchmarks") / "data" / name).open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
