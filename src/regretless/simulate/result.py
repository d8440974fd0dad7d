"""What ``simulate_all`` gives: traces by policy, reference lines, and how to look at them."""

from typing import TYPE_CHECKING, Any, NamedTuple

from regretless.benchmarks.references import Reference
from regretless.trace import Backend, Trace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Simulation(NamedTuple):
    """Traces by policy name, the reference lines of the same stream, and where the time went."""

    traces: dict[str, Trace]
    references: list[Reference]
    seconds: dict[str, float]  # compile, run
    compiled: int  # programs of rounds that were not known yet

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        what: str = "average",
        references: bool = True,
        log: bool | None = None,
        backend: Backend = "matplotlib",
    ) -> Any:
        """Draws every policy's mean with ±1 standard error and the reference lines on ``ax``; returns the axes.

        ``what`` is ``"average"`` (regret per round so far), ``"cumulative"`` or the name of a diagnostic; ``backend="plotly"``
        returns a plotly figure.
        """
        from regretless.show import curves

        lines = [(line.name, line.mean) for line in self.references] if references else []
        return curves.plotted(self.traces, lines, what, ax, log, backend)

    def compare_table(self, against: str | None = None) -> "pd.DataFrame":
        """A row per policy: final regret, and the difference from ``against``, paired by seed, with its 95 % interval."""
        from regretless.show import curves

        return curves.compare_table(self.traces, against)

    def _repr_html_(self) -> str:
        from regretless.show import results

        lines = [(line.name, line.mean, line.standard_error) for line in self.references]
        return results.results_card("Simulation", self.traces, lines, self.seconds)
