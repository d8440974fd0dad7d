"""The theorems as measurements: is each claim borne out by the library's own DFHPG, with what confidence?

The world is ``world`` (with ``surrogate`` for the second theorem), the runs are ``runs``, the single steps ``points``; what is
claimed of them stands in ``estimators`` (one round), ``rates`` (whole runs) and ``regularity`` (constants), the verdicts in
``lines``.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from regretless.simulate.programs import Progress
from regretless.studies.theory import surrogate, world
from regretless.studies.theory.estimators import (
    descent_claims,
    estimator_claims,
    minimiser_claims,
    surrogate_claims,
)
from regretless.studies.theory.lines import Claim, Curve
from regretless.studies.theory.rates import all_curves, all_runs, rate_claims, shortest_horizon
from regretless.studies.theory.regularity import regularity_claims

REPLICATIONS = 128
SAMPLES = 2**21
DOUBLINGS = 4


class TheoryResult(NamedTuple):
    """All claims, the curves behind them, and the constants they rest on."""

    claims: list[Claim]
    curves: list[Curve]
    constants: world.Constants
    visited_convexity: float  # smallest eigenvalue at any θ that was looked at along the runs
    clipped: int  # rounds in which the policy's clipping interfered (the theorems have none)
    record: dict[str, Any]  # seed, horizons, replications, samples, whether that is too short to judge, seconds
    surrogate_constants: surrogate.SurrogateConstants | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object."""
        more = self.surrogate_constants
        return {
            "claims": [claim.to_dict(self.record["short"]) for claim in self.claims],
            "curves": [curve.to_dict() for curve in self.curves],
            "constants": self.constants._asdict(),
            "surrogate_constants": None if more is None else more.to_dict(),
            "visited_convexity": self.visited_convexity,
            "clipped": self.clipped,
            **self.record,
        }


def run(
    progress: Progress = lambda what, done, total: None,
    seed: int = 0,
    replications: int = REPLICATIONS,
    samples: int = SAMPLES,
    horizons: Sequence[int] | None = None,
) -> TheoryResult:
    """Measures every claim; ``horizons`` are multiples of 512 (default: five, doubling, the shortest by ``FORGOTTEN``)."""
    if replications < 2 or seed < 0:
        raise ValueError(f"expected at least 2 replications and a seed of at least 0, got {replications} and {seed}")
    began = time.perf_counter()
    progress("constants of the theorems", 0, 1)
    facts, more = world.constants(), surrogate.constants()
    shortest = shortest_horizon(facts)
    horizons = horizons or [shortest * 2**k for k in range(DOUBLINGS + 1)]
    claims = regularity_claims()
    with jax.enable_x64(True):
        claims += estimator_claims(samples, seed, progress)
        claims += surrogate_claims(samples, seed, progress)
        claims += minimiser_claims(samples, seed, progress)
        claims += descent_claims(samples, horizons[-1], seed, progress)
        runs = all_runs(horizons, replications, seed, progress)
    curves = all_curves(horizons, runs)
    claims += rate_claims(curves, seed)
    record = {
        "seed": seed,
        "horizons": list(horizons),
        "replications": replications,
        "samples": samples,
        "short": horizons[0] < shortest or samples < SAMPLES,
        "seconds": round(time.perf_counter() - began, 1),
    }
    measured = [one for row in runs.values() for one in row]
    return TheoryResult(
        claims,
        [curve for curve, _ in curves],
        facts,
        min(one.convexity for one in measured),
        sum(one.clipped for one in measured),
        record,
        more,
    )
