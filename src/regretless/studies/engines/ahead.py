"""Compiles the programs of the next cells while the present one is computed: on many cores compiling is most of the time."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from regretless.simulation.programs import Progress
from regretless.startup import usable_cores
from regretless.studies import compute as computing
from regretless.studies.cell_files import CellResult
from regretless.studies.cells import AnyCell, TheoryCell
from regretless.studies.outcome import compile_prepared
from regretless.studies.preparing import Prepared, prepare

CORES_PER_CELL = 4
"""So many cores are kept busy by the programs of one cell."""


class Ahead:
    """Computes cells in their order; ``many`` of those that follow are compiled meanwhile (default: as the cores allow)."""

    def __init__(self, cells: Sequence[AnyCell], many: int | None = None):
        self.cells = list(cells)
        self.many = usable_cores() // CORES_PER_CELL if many is None else many
        self.pool = ThreadPoolExecutor(max(1, self.many))
        self.begun: dict[int, Future[Prepared]] = {}  # by place, until it is used
        self.seen = 0

    def __call__(self, cell: AnyCell, progress: Progress) -> CellResult:
        """The result of a cell, after the programs of the next ones were begun."""
        if not self.many or cell not in self.cells:
            return computing.compute(cell, progress)
        place = self.cells.index(cell)
        for each in range(max(place, self.seen), min(place + 1 + self.many, len(self.cells))):
            if not isinstance(self.cells[each], TheoryCell):
                self.begun[each] = self.pool.submit(_compiled, self.cells[each])
            self.seen = each + 1
        future = self.begun.pop(place, None)
        if future is None:
            return computing.compute(cell, progress)
        while not wait([future], timeout=0.2).done:
            progress("compiling", 0, 1)
        prepared = None if future.exception() else future.result()  # what failed here fails again, and says why
        return computing.compute(cell, progress, prepared)

    def close(self) -> None:
        """Begins nothing more."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def _compiled(cell: AnyCell) -> Prepared:
    """A cell whose programs are known."""
    assert not isinstance(cell, TheoryCell)
    prepared = prepare(cell)
    compile_prepared(prepared)
    return prepared
