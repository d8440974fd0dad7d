"""Every claim judged by what a store holds: a verdict where all its cells are there at full length, "not run" otherwise."""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import DamagedError
from regretless.results import Result
from regretless.studies.cell_files import CellResult
from regretless.studies.claims.forms import Arm, Calmer, Line, Quieter, Untested, arms_of
from regretless.studies.claims.lines import lines
from regretless.studies.claims.names import SURROGATES
from regretless.studies.claims.statistics import AGREES, DISAGREES, NOT_RUN, OPEN, Finding, judge
from regretless.studies.joining import Source, joined

VERDICTS = (AGREES, DISAGREES, OPEN, NOT_RUN)
ROUNDS = {"energy": 395}
LONG, SHORT = 15_000, 2_000
"""Rounds of a full run: of the models, and of everything else but the benchmarks above."""

RECORDED = {"total", "baseline", "score_norm"}
"""Diagnostics that a claim about a baseline needs."""

Place = tuple[str, str, str]
"""Study, panel (a benchmark) and label of a cell."""


class Outcome(NamedTuple):
    """A claim and what was found; ``finding`` is None where it was not run, and ``why`` says what is missing."""

    line: Line
    finding: Finding | None
    why: str = ""

    @property
    def verdict(self) -> str:
        """``agrees``, ``disagrees``, ``cannot be told`` or ``not run``."""
        if isinstance(self.line.test, Untested):
            return OPEN
        return NOT_RUN if self.finding is None else self.finding.verdict

    def to_dict(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        found = {} if self.finding is None else self.finding._asdict()
        needs = sorted(
            {f"{arm.study}/{_place(arm, self.line)}/{arm.cell}".rstrip("/") for arm in arms_of(self.line.test)}
        )
        about = {"line": self.line.line, "claim": self.line.words, "benchmark": self.line.benchmark}
        test = {"statistic": type(self.line.test).__name__, "needs": needs}
        return {**about, **test, **found, "verdict": self.verdict, "why": self.why}


def evaluate(
    cells: Mapping[Place, Source], load: Callable[[str], CellResult], given: Sequence[Line] | None = None
) -> list[Outcome]:
    """The outcome of every claim; ``cells`` says where the arms of each are stored, ``load`` reads a result."""
    read = functools.cache(load)
    outcomes = []
    for line in lines() if given is None else given:
        if isinstance(line.test, Untested):
            outcomes.append(Outcome(line, None, line.test.why))
            continue
        found = {arm: _trace(cells, read, arm, line) for arm in arms_of(line.test)}
        traces = {arm: trace for arm, trace in found.items() if not isinstance(trace, str)}
        missing = next((why for why in found.values() if isinstance(why, str)), "")
        if len({tuple(sorted(trace.seeds)) for trace in traces.values()}) > 1:
            missing = missing or "its cells have different seeds"
        finding = (
            None if missing else judge(line.test, functools.partial(_curve, traces), functools.partial(_told, traces))
        )
        outcomes.append(Outcome(line, finding, missing))
    return outcomes


def _curve(traces: Mapping[Arm, Result], arm: Arm) -> np.ndarray:
    """Cumulative regret of an arm, replications in the order of their seeds."""
    return np.cumsum(traces[arm].regret[np.argsort(traces[arm].seeds)], axis=1)


def _told(traces: Mapping[Arm, Result], arm: Arm) -> Mapping[str, np.ndarray]:
    """What the rounds of an arm told, every tenth."""
    return traces[arm].diagnostics


def _place(arm: Arm, line: Line) -> str:
    """The benchmark that an arm is played on."""
    return arm.benchmark or line.benchmark


def _heat_map(cells: Mapping[Place, Source], arm: Arm, line: Line) -> Source | None:
    """The cell of the heat map that holds a surrogate: its label names the first and the last of several."""
    name = arm.label.split("/")[0]
    for (study, panel, label), source in cells.items():
        ends = label.split(" to ")
        if (study, panel) != (arm.study, _place(arm, line)) or len(ends) != 2 or not {*ends, name} <= {*SURROGATES}:
            continue
        first, last, own = (SURROGATES.index(each) for each in (*ends, name))
        if first <= own <= last:
            return source
    return None


def _trace(cells: Mapping[Place, Source], load: Callable[[str], CellResult], arm: Arm, line: Line) -> Result | str:
    """What an arm left behind; or what is missing."""
    place = _place(arm, line)
    where = f"{arm.study} on {place}"
    source = cells.get((arm.study, place, arm.cell)) or _heat_map(cells, arm, line)
    if source is None:
        return f"{where} is not in the store"
    try:
        trace = joined(source, load).traces.get(arm.label)
    except (FileNotFoundError, DamagedError):
        return f"{where} is not computed yet"
    if trace is None and any(each.label == arm.label for each in source.borrowed):
        return f"{arm.label} in {where} is not computed yet"
    if trace is None:
        return f"{arm.label} was not played in {where}"
    wanted = ROUNDS.get(place, LONG if arm.study == "models" else SHORT)
    count, played = trace.regret.shape
    if played < wanted:
        return f"{where} is a short run: {played:,} of {wanted:,} rounds"
    if count < 2 or not np.all(np.isfinite(trace.regret)):
        return f"{arm.label} in {where} has too few finished replications"
    if isinstance(line.test, Calmer | Quieter) and not set(trace.diagnostics) >= RECORDED:
        return f"{arm.label} in {where} did not record its baseline"
    return trace


def tally(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many claims have each verdict."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: counts[verdict] for verdict in VERDICTS}
