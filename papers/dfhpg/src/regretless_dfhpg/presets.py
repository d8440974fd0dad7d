"""Tuned settings and published values of the paper, read from its tables; registered as ``regretless.presets``."""

import csv
import functools
from importlib import resources

from regretless.experiments import Preset, Published
from regretless_dfhpg.tuning import tuning

__all__ = ["preset", "published", "tuning"]

_KEYS = ("benchmark", "degree", "model")


def preset(benchmark: str, degree: int | None, model: str, feedback: str) -> Preset | None:
    """Return the tuned settings of DFHPG for a benchmark.

    Parameters
    ----------
    benchmark, model, feedback : str
        Names as on the command line.
    degree : int or None
        The degree of a synthetic benchmark; the settings of the nearest tuned degree are returned.

    Returns
    -------
    Preset or None
        None if the paper has no settings for this benchmark and model.

    Examples
    --------
    >>> preset("topk", 8, "gaussian_linear", "bandit").values["surrogate"]
    'pairwise_diff'
    """
    rows = [row for row in read_table("presets.csv") if (row["benchmark"], row["model"]) == (benchmark, model)]
    if not rows:
        return None
    row = min(rows, key=lambda row: (abs(int(row["degree"] or 0) - (degree or 0)), int(row["degree"] or 0)))
    values = {key: value for key, value in row.items() if value and key not in _KEYS}
    for override in read_table("feedback_presets.csv"):
        if (override["benchmark"], override["feedback"]) == (benchmark, feedback):
            values[override["key"]] = override["value"]
    return Preset(values, int(row["degree"]) if row["degree"] else None)


def published(benchmark: str, feedback: str, policy: str) -> Published | None:
    """Return the published mean final regret over 30 replications, or None if the paper has none.

    Parameters
    ----------
    benchmark, feedback, policy : str
        Names as on the command line.

    Examples
    --------
    >>> published("topk", "bandit", "dfhpg")
    Published(mean=168000.0, standard_error=14700.0)
    """
    for row in read_table("published.csv"):
        if (row["benchmark"], row["feedback"], row["method"]) == (benchmark, feedback, policy):
            return Published(float(row["mean"]), float(row["standard_error"]))
    return None


@functools.cache
def read_table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a data file of this package."""
    with (resources.files("regretless_dfhpg") / "data" / name).open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
