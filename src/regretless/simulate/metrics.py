"""What a callback is told every so many rounds: regret so far and diagnostics of every policy."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from regretless.simulate.chunks import Chunk, of_policy


class Metrics(NamedTuple):
    """A run after some rounds, as means over the replications that run together and are finite so far.

    >>> metrics = Metrics(50, 200, (0, 1), {"dfhpg": 12.0}, {"dfhpg": 1.5}, {"dfhpg": {"alpha": 0.25}}, 0.1)
    >>> metrics.flat()
    {'dfhpg/regret': 12.0, 'dfhpg/regret_standard_error': 1.5, 'dfhpg/alpha': 0.25}
    """

    round: int
    horizon: int
    seeds: tuple[int, ...]  # the replications that this is about; where memory is short, others follow
    regret: dict[str, float]  # by policy: mean cumulative regret
    standard_error: dict[str, float]
    diagnostics: dict[str, dict[str, float]]  # by policy: the last ones that were kept
    seconds: float  # since the start

    def flat(self) -> dict[str, float]:
        """Every finite number under one name, as loggers want them."""
        found: dict[str, float] = {}
        for policy, regret in self.regret.items():
            found |= {f"{policy}/regret": regret, f"{policy}/regret_standard_error": self.standard_error[policy]}
            found |= {f"{policy}/{name}": value for name, value in self.diagnostics[policy].items()}
        return {name: value for name, value in found.items() if math.isfinite(value)}


Callback = Callable[[Metrics], Any]
"""Is told metrics; the run ends there if it returns True."""


class Watch(NamedTuple):
    """A callback, and after how many rounds each it is called."""

    callback: Callback
    every: int


def measured(chunk: Chunk, groups: Sequence[tuple[str, ...]], round: int, horizon: int, seconds: float) -> Metrics:
    """The metrics of a chunk after its last segment; ``groups`` are names of policies."""
    regret, errors, diagnostics = {}, {}, {}
    for index, names in enumerate(groups):
        last = chunk.latest(index)
        for place, name in enumerate(names):
            mine = partial(of_policy, place=place if len(names) > 1 else None)
            finite = mine(chunk.diverged_at[index]) == 0
            totals = mine(chunk.totals[index])[finite]
            regret[name] = float(totals.mean()) if len(totals) else math.nan
            errors[name] = float(totals.std(ddof=1) / len(totals) ** 0.5) if len(totals) > 1 else math.nan
            diagnostics[name] = {key: _mean(mine(values)[finite]) for key, values in last.items()}
    return Metrics(round, horizon, chunk.seeds, regret, errors, diagnostics, seconds)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64)) if len(values) else math.nan
