"""The paper's two tables: mean and standard error of the final regret over 30 replications."""

from typing import NamedTuple

from regretless.benchmarks.presets import read


class Published(NamedTuple):
    """A cell of a published table."""

    mean: float
    standard_error: float

    def z(self, mean: float, standard_error: float) -> float:
        """How many standard errors of the difference ours is above the published mean."""
        return float((mean - self.mean) / (standard_error**2 + self.standard_error**2) ** 0.5)


def published(benchmark: str, feedback: str, policy: str) -> Published | None:
    """The published cell, or None if the paper has none.

    >>> published("topk", "bandit", "dfhpg")
    Published(mean=168000.0, standard_error=14700.0)
    """
    for row in read("published.csv"):
        if (row["benchmark"], row["feedback"], row["method"]) == (benchmark, feedback, policy):
            return Published(float(row["mean"]), float(row["standard_error"]))
    return None
