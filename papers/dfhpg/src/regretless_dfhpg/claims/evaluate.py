"""Evaluate every claim with stored results: a verdict if all its runs are there at full length, "not run" otherwise.

The study ``claims`` repeats arms of the other studies with more seeds. A claim uses them if all its arms are there.
"""

import functools
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from regretless.experiments import Study
from regretless.results import Result
from regretless_dfhpg.claims.lines import all_claims
from regretless_dfhpg.claims.statistics import (
    AGREES,
    DISAGREES,
    EQUIVALENT,
    NOT_RUN,
    OPEN,
    BaselineReducesVariance,
    BaselineVariesLess,
    Claim,
    ClaimArm,
    Finding,
    LowerRegret,
    NoStudy,
    NotHigherRegret,
    arms_of,
    evaluate_test,
)
from regretless_dfhpg.presets import published
from regretless_dfhpg.studies import cell_with_more_seeds

VERDICTS = (AGREES, DISAGREES, EQUIVALENT, OPEN, NOT_RUN)
PUBLISHED_STUDIES = ("main", "semi_bandit")
CLEAR = 1.96
"""Standard errors from which a difference in the paper's own tables is clear."""

FULL_ROUNDS = {"energy": 395}
MODEL_ROUNDS, OTHER_ROUNDS = 15_000, 2_000
"""Rounds of a full run of the models, and of everything else but the benchmarks above."""

BASELINE_DIAGNOSTICS = {"total", "baseline", "score_norm"}
"""Diagnostics that a claim about a baseline needs."""

Load = Callable[[str], Result | None]


class ClaimOutcome(NamedTuple):
    """A claim with its finding; without one ``missing`` says why."""

    claim: Claim
    finding: Finding | None
    missing: str = ""

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        if isinstance(self.claim.test, NoStudy):
            return OPEN
        return NOT_RUN if self.finding is None else self.finding.verdict

    @property
    def verdict_text(self) -> str:
        """The verdict with its number: the margin of an equivalence, or the seeds that an open claim needs."""
        if self.verdict == EQUIVALENT and self.finding is not None:
            return f"equivalent within {math.ceil(max(-self.finding.low, self.finding.high))} %"
        if self.verdict == OPEN and self.finding is not None and self.finding.seeds_needed:
            return f"open ({_rounded(self.finding.seeds_needed):,} seeds)"
        return self.verdict

    @property
    def clear_in_the_paper(self) -> bool | None:
        """Whether every difference of the claim is clear in the published tables; None if they do not have it."""
        test, scores = self.claim.test, []
        if not isinstance(test, LowerRegret | NotHigherRegret):
            return None
        for pair in test.pairs:
            cells = [_published_cell(group, self.claim.benchmark) for group in pair]
            if None in cells:
                return None
            (first, first_error), (second, second_error) = (cell for cell in cells if cell is not None)
            scores.append(abs(first - second) / math.hypot(first_error, second_error))
        return min(scores) >= CLEAR

    @property
    def cause(self) -> str:
        """Why a claim disagrees; empty for every other verdict."""
        if self.verdict != DISAGREES:
            return ""
        matches = (entry for entry in _causes() if all(word in self.claim.text for word in entry["words"]))
        return str(next(matches, {"cause": "cause unknown, nothing tried"})["cause"])

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        arms = arms_of(self.claim.test)
        needs = sorted({f"{a.study}/{a.benchmark or self.claim.benchmark}/{a.cell}".rstrip("/") for a in arms})
        finding = {} if self.finding is None else self.finding._asdict()
        return {
            "line": self.claim.line,
            "claim": self.claim.text,
            "benchmark": self.claim.benchmark,
            "test": type(self.claim.test).__name__,
            "needs": needs,
            **finding,
            "verdict": self.verdict,
            "clear_in_the_paper": self.clear_in_the_paper,
            "cause": self.cause,
            "missing": self.missing,
        }


@functools.cache
def _causes() -> list[dict[str, Any]]:
    text = (resources.files("regretless_dfhpg") / "data" / "claim_causes.toml").read_text("utf-8")
    causes: list[dict[str, Any]] = tomllib.loads(text)["causes"]
    return causes


def _published_cell(group: Sequence[ClaimArm], benchmark: str) -> tuple[float, float] | None:
    """Return the published mean and standard error of a group of one arm at the end of the main tables."""
    if len(group) != 1 or group[0].study not in PUBLISHED_STUDIES or group[0].rounds is not None:
        return None
    feedback = "bandit" if group[0].study == "main" else group[0].study
    value = published(group[0].benchmark or benchmark, feedback, group[0].label)
    return None if value is None else (value.mean, value.standard_error)


def _rounded(number: int) -> int:
    """Return a number with two significant digits."""
    return int(float(f"{number:.2g}"))


def evaluate_claims(studies: Iterable[Study], load: Load, claims: Sequence[Claim] | None = None) -> list[ClaimOutcome]:
    """Evaluate claims with stored results.

    Parameters
    ----------
    studies : iterable of Study
        Studies with the addresses of their results.
    load : callable
        Returns the result with an address, or None.
    claims : sequence of Claim, optional
        By default all claims of the paper.

    Returns
    -------
    list of ClaimOutcome
        One outcome per claim, in their order.
    """
    addresses = {
        (study.name, panel.title, cell.label, label): address
        for study in studies
        for panel in study.panels
        for cell in panel.cells
        for label, address in cell.arms
    }
    return [_evaluate(claim, addresses, load) for claim in (all_claims() if claims is None else claims)]


def _evaluate(claim: Claim, addresses: Mapping[tuple[str, str, str, str], str], load: Load) -> ClaimOutcome:
    if isinstance(claim.test, NoStudy):
        return ClaimOutcome(claim, None, claim.test.why)
    results, missing = _load_arms(claim, addresses, load, more_seeds=True)
    if missing:
        results, missing = _load_arms(claim, addresses, load, more_seeds=False)
    if missing:
        return ClaimOutcome(claim, None, missing)

    def curve(arm: ClaimArm) -> np.ndarray:
        """Return cumulative regret, replications in the order of their seeds."""
        return results[arm].cumulative()[np.argsort(results[arm].seeds)]

    return ClaimOutcome(claim, evaluate_test(claim.test, curve, lambda arm: results[arm].diagnostics))


def _load_arms(
    claim: Claim, addresses: Mapping[tuple[str, str, str, str], str], load: Load, *, more_seeds: bool
) -> tuple[dict[ClaimArm, Result], str]:
    """Return the results of a claim's arms, or why they cannot be used."""
    results: dict[ClaimArm, Result] = {}
    for arm in arms_of(claim.test):
        benchmark = arm.benchmark or claim.benchmark
        where = f"{arm.label} in {arm.study} on {benchmark}"
        place = ("claims", cell_with_more_seeds(arm.study, arm.cell)) if more_seeds else (arm.study, arm.cell)
        address = addresses.get((place[0], benchmark, place[1], arm.label))
        if address is None:
            return {}, f"{where} is not in the store"
        result = load(address)
        if result is None:
            return {}, f"{where} is not computed yet"
        wanted = FULL_ROUNDS.get(benchmark, MODEL_ROUNDS if arm.study == "models" else OTHER_ROUNDS)
        count, rounds = result.regret.shape
        if rounds < wanted:
            return {}, f"{where} is a short run: {rounds:,} of {wanted:,} rounds"
        if count < 2 or not np.all(np.isfinite(result.regret)):
            return {}, f"{where} has too few finished replications"
        needs_baseline = isinstance(claim.test, BaselineReducesVariance | BaselineVariesLess)
        if needs_baseline and not set(result.diagnostics) >= BASELINE_DIAGNOSTICS:
            return {}, f"{where} did not record its baseline"
        results[arm] = result
    if len({tuple(sorted(result.seeds)) for result in results.values()}) > 1:
        return {}, "its runs have different seeds"
    return results, ""


def tally(outcomes: Sequence[ClaimOutcome]) -> dict[str, int]:
    """Return how many claims have each verdict."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: counts[verdict] for verdict in VERDICTS}
