"""What a simulated run leaves behind: regret by round, diagnostics of some rounds, seeds and configuration."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regretless.errors import SettingsError
from regretless.plots import Backend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

DIAGNOSTICS_EVERY = 10
"""Diagnostics are kept of every tenth round, unless another interval is asked for."""


class Comparison(NamedTuple):
    """Paired difference of final regret, first minus second, over the replications that both finished."""

    mean: float
    standard_error: float
    low: float  # 95 % confidence interval
    high: float
    pairs: int


@dataclasses.dataclass(frozen=True)
class Trace:
    """Replications of one policy on one benchmark.

    ``regret`` is ``[replications, rounds]``, round by round; ``diverged_at`` holds the round in which a replication's state
    stopped being finite, 0 if it never did. Diverged replications are counted, and left out of every average.

    >>> import numpy as np
    >>> regret = np.array([[4.0, 2.0], [6.0, 4.0]])
    >>> trace = Trace(regret, {}, np.zeros(2, int), (0, 1), {})
    >>> trace.mean(), trace.standard_error()
    (8.0, 2.0)
    """

    regret: np.ndarray
    diagnostics: dict[str, np.ndarray]  # [replications, rounds // diagnostics_every]
    diverged_at: np.ndarray
    seeds: tuple[int, ...]
    config: dict[str, Any]
    decisions: np.ndarray | None = None  # [replications, rounds, d], if asked for
    diagnostics_every: int = DIAGNOSTICS_EVERY

    def __post_init__(self) -> None:
        if len(self.regret) != len(self.seeds) or len(self.diverged_at) != len(self.seeds):
            raise ValueError(f"expected one row of regret per seed ({len(self.seeds)}), got {len(self.regret)}")

    @property
    def finished(self) -> np.ndarray:
        """Which replications stayed finite to the end."""
        return self.diverged_at == 0

    @property
    def diverged(self) -> int:
        """How many replications did not."""
        return int(np.sum(~self.finished))

    def cumulative(self) -> np.ndarray:
        """Cumulative regret in float64, ``[replications, rounds]``."""
        return np.cumsum(self.regret, axis=1, dtype=np.float64)

    def final(self) -> np.ndarray:
        """Final regret of the replications that stayed finite."""
        return _final(self.regret[self.finished])

    def mean(self) -> float:
        """Mean final regret."""
        return float(np.mean(self.final())) if self.finished.any() else math.nan

    def standard_error(self) -> float:
        """Standard error of the mean final regret (ddof = 1); nan with fewer than two replications."""
        final = self.final()
        return float(np.std(final, ddof=1) / len(final) ** 0.5) if len(final) > 1 else math.nan

    def median(self) -> float:
        """Median final regret."""
        return float(np.median(self.final())) if self.finished.any() else math.nan

    def compare(self, other: "Trace") -> Comparison:
        """Final regret of this trace minus another's, paired by seed: both met the same contexts and costs."""
        if self.seeds != other.seeds or self.regret.shape != other.regret.shape:
            raise ValueError("a paired comparison needs the same seeds and the same horizon in both traces")
        both = self.finished & other.finished
        difference = _final(self.regret[both]) - _final(other.regret[both])
        n = len(difference)
        mean = float(np.mean(difference)) if n else math.nan
        error = float(np.std(difference, ddof=1) / n**0.5) if n > 1 else math.nan
        margin = _student_t(n - 1) * error if n > 1 else math.nan
        return Comparison(mean, error, mean - margin, mean + margin, n)

    def to_pandas(self) -> "pd.DataFrame":
        """One row per replication and round; diagnostics are NaN in the rounds of which they were not kept."""
        import pandas as pd

        replications, rounds = self.regret.shape
        table: dict[str, Any] = {
            "seed": np.repeat(np.asarray(self.seeds), rounds),
            "round": np.tile(np.arange(1, rounds + 1), replications),
            "regret": self.regret.reshape(-1),
            "cumulative_regret": self.cumulative().reshape(-1),
        }
        for name, values in self.diagnostics.items():
            column = np.full((replications, rounds), np.nan)
            column[:, self.diagnostics_every - 1 :: self.diagnostics_every] = values
            table[name] = column.reshape(-1)
        return pd.DataFrame(table)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        quantity: str = "average",
        label: str | None = None,
        log: bool | None = None,
        backend: Backend = "matplotlib",
    ) -> Any:
        """Draws the mean over replications with ±1 standard error on ``ax`` (default: a new figure) and returns the axes.

        ``quantity`` is ``"average"`` (regret per round so far), ``"cumulative"`` or the name of a diagnostic; ``log`` None: as
        it suits; ``backend="plotly"`` returns a plotly figure.
        """
        from regretless.plots import plot_results

        name = str(self.config.get("policy", "regret")) if label is None else label
        return plot_results({name: self}, ax=ax, quantity=quantity, log=log, backend=backend)

    def _repr_html_(self) -> str:
        from regretless.show import results

        return results.trace_card(self)

    def save(self, path: Path) -> None:
        """Writes the trace as a result with one arm: one Parquet file, seeds and configuration in its metadata."""
        from regretless import files
        from regretless.results import Result, write_result

        with files.beside(path) as part:
            write_result(Result({str(self.config.get("policy", "trace")): self}, {}), part)

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """A trace that ``save`` wrote, bit by bit; refuses damaged files with a DamagedError."""
        from regretless.results import read_result

        try:
            traces = read_result(Path(path)).traces
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror or error}") from None
        if len(traces) != 1:
            raise SettingsError(f"{path}: expected one trace, got {len(traces)}: {', '.join(traces) or 'a document'}")
        return next(iter(traces.values()))


def _final(regret: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(regret, axis=1, dtype=np.float64))


def _student_t(degrees: int) -> float:
    """The 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))
