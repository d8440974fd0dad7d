"""What a report needs of a trace: the curve thinned to some hundred points, and the final regrets."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from regretless.results import PairedDifference, Result
from regretless.show.series import Curve, anchor_of, curve


class ArmSummary(NamedTuple):
    """One policy of one cell, summarised."""

    label: str
    mean: float
    error: float
    median: float
    replications: int
    diverged: int
    curve: Curve | None  # None if every replication diverged
    anchor: str  # label of the arm that the paired difference is taken from
    final: np.ndarray  # final regret of the replications that stayed finite
    difference: (
        PairedDifference | None
    )  # this arm minus the anchor, paired by seed; None where there is nothing to compare


def summarise(traces: Mapping[str, Result], same_world: bool = True) -> dict[str, ArmSummary]:
    """Every arm of a cell; differences are paired only if all arms met the same world. The traces may be dropped afterwards."""
    anchor = anchor_of(traces) if same_world else ""
    return {
        label: ArmSummary(
            label,
            trace.mean(),
            trace.standard_error(),
            trace.median(),
            len(trace.seeds),
            trace.diverged,
            curve(trace),
            anchor,
            trace.final(),
            _difference(trace, traces[anchor]) if anchor not in ("", label) else None,
        )
        for label, trace in traces.items()
    }


def _difference(trace: Result, anchor: Result) -> PairedDifference | None:
    paired = trace.seeds == anchor.seeds and trace.regret.shape == anchor.regret.shape
    return trace.compare(anchor) if paired else None
