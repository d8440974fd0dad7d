"""Evaluate every claim with stored results: a verdict if all its runs are there at full length, "not run" otherwise."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.experiments import Study
from regretless.results import Result
from regretless_dfhpg.claims.lines import all_claims
from regretless_dfhpg.claims.statistics import (
    AGREES,
    DISAGREES,
    INCONCLUSIVE,
    NOT_RUN,
    BaselineReducesVariance,
    BaselineVariesLess,
    Claim,
    ClaimArm,
    Finding,
    NoStudy,
    arms_of,
    evaluate_test,
)

VERDICTS = (AGREES, DISAGREES, INCONCLUSIVE, NOT_RUN)
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
            return INCONCLUSIVE
        return NOT_RUN if self.finding is None else self.finding.verdict

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
            "missing": self.missing,
        }


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
    results: dict[ClaimArm, Result] = {}
    for arm in arms_of(claim.test):
        benchmark = arm.benchmark or claim.benchmark
        where = f"{arm.label} in {arm.study} on {benchmark}"
        address = addresses.get((arm.study, benchmark, arm.cell, arm.label))
        if address is None:
            return ClaimOutcome(claim, None, f"{where} is not in the store")
        result = load(address)
        if result is None:
            return ClaimOutcome(claim, None, f"{where} is not computed yet")
        wanted = FULL_ROUNDS.get(benchmark, MODEL_ROUNDS if arm.study == "models" else OTHER_ROUNDS)
        count, rounds = result.regret.shape
        if rounds < wanted:
            return ClaimOutcome(claim, None, f"{where} is a short run: {rounds:,} of {wanted:,} rounds")
        if count < 2 or not np.all(np.isfinite(result.regret)):
            return ClaimOutcome(claim, None, f"{where} has too few finished replications")
        needs_baseline = isinstance(claim.test, BaselineReducesVariance | BaselineVariesLess)
        if needs_baseline and not set(result.diagnostics) >= BASELINE_DIAGNOSTICS:
            return ClaimOutcome(claim, None, f"{where} did not record its baseline")
        results[arm] = result
    if len({tuple(sorted(result.seeds)) for result in results.values()}) > 1:
        return ClaimOutcome(claim, None, "its runs have different seeds")

    def curve(arm: ClaimArm) -> np.ndarray:
        """Return cumulative regret, replications in the order of their seeds."""
        return results[arm].cumulative()[np.argsort(results[arm].seeds)]

    return ClaimOutcome(claim, evaluate_test(claim.test, curve, lambda arm: results[arm].diagnostics))


def tally(outcomes: Sequence[ClaimOutcome]) -> dict[str, int]:
    """Return how many claims have each verdict."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: counts[verdict] for verdict in VERDICTS}
