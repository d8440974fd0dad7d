"""What everything with traces by name can show of itself: curves with reference lines, and a table of paired differences."""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.plots import Backend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from regretless.results import Result


class Shown(abc.ABC):
    """Traces by name that draw and compare themselves: a simulation, the outcome of an experiment, a stored result."""

    traces: "dict[str, Result]"

    @abc.abstractmethod
    def _lines(self) -> list[tuple[str, float | None, float | None]]:
        """Reference lines: name, mean final regret, its standard error."""

    def _worlds(self) -> Mapping[str, str] | None:
        """The world of each trace; None: they all have one."""
        return None

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        quantity: str = "average",
        references: bool = True,
        log: bool | None = None,
        backend: Backend = "matplotlib",
    ) -> Any:
        """Draws every mean with ±1 standard error and the reference lines on ``ax`` (default: a new figure); returns the axes.

        ``quantity`` is ``"average"`` (regret per round so far), ``"cumulative"`` or the name of a diagnostic; ``log`` None: as
        it suits; ``backend="plotly"`` returns a plotly figure.
        """
        from regretless.plots import plot_results

        lines = [(name, mean) for name, mean, _ in self._lines() if mean is not None] if references else []
        return plot_results(self.traces, lines, ax=ax, quantity=quantity, log=log, backend=backend)

    def compare_table(self, against: str | None = None) -> "pd.DataFrame":
        """A row per name: final regret, and the difference from ``against``, paired by seed, with its 95 % interval.

        What was played in another world than ``against`` has no difference.
        """
        from regretless.show import results

        return results.compare_table(self.traces, against, self._worlds())
