"""What ``simulate_all`` gives: traces by policy, reference lines, and how to look at them."""

import dataclasses

from regretless.benchmarks.references import Reference
from regretless.show.shown import Shown
from regretless.trace import Trace


@dataclasses.dataclass(frozen=True)
class Simulation(Shown):
    """Traces by policy name, the reference lines of the same stream, and where the time went."""

    traces: dict[str, Trace]
    references: list[Reference]
    seconds: dict[str, float]  # compile, run
    compiled: int  # programs of rounds that were not known yet

    def _lines(self) -> list[tuple[str, float | None, float | None]]:
        return [(line.name, line.mean, line.standard_error) for line in self.references]

    def _repr_html_(self) -> str:
        from regretless.show import results

        return results.results_card("Simulation", self.traces, self._lines(), self.seconds)
