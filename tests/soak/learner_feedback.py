"""Feedback on a decision in one of its five forms, all of it or a part, perhaps contradicting itself."""

import random
from typing import Any

import numpy as np

from soak.learner_kinds import DIM, EDGES, ROWS, Kind
from soak.learner_model import Taken, measured, taken, taken_rows


def report_on(
    kind: Kind, w: np.ndarray, cost: np.ndarray, rng: random.Random, noise: np.random.Generator
) -> tuple[dict[str, Any], Taken | None]:
    """A piece of feedback, and the rows that it must be taken as; None: it cannot be used."""
    regime = kind.regime
    form = rng.choice(["total", "components", "costs", "linear", "values"])
    known = np.ones(DIM, bool) if rng.random() < 0.6 else noise.random(DIM) < 0.6
    costs = np.where(known, cost, np.nan)
    matrix = w[None] if regime == "rows" else measured(regime, w)[0]
    arrived = ~np.any((matrix != 0) & ~known, axis=1)
    report: dict[str, Any] = {}
    if form == "total":
        report["total"], arrived = float(cost @ w), np.ones(len(matrix), bool)
        usable = regime in ("bandit", "rows")
    elif form == "components":
        names = [EDGES[i] if kind.name == "semi_bandit" and rng.random() < 0.5 else i for i in range(DIM)]
        shown = known & (w != 0) if rng.random() < 0.7 else known
        report["components"] = {names[i]: cost[i] for i in np.flatnonzero(shown)}
        arrived = ~np.any((matrix != 0) & ~shown, axis=1)
        known, usable = shown, regime != "semi_bandit" or not np.any(shown & (w == 0))
    elif form == "costs":
        report["costs"], usable = rng.choice([costs, costs.tolist()]), True
    elif form == "values":
        report["values"], usable = np.where(arrived, matrix @ cost, np.nan), regime != "rows"
    elif regime in ("bandit", "rows"):
        matrix = noise.integers(-1, 2, (rng.randrange(1, ROWS + 2), DIM)).astype(float)
        matrix[0] = w if rng.random() < 0.6 else matrix[0]
        report["linear"], arrived = (matrix, matrix @ cost), np.ones(1, bool)
        usable = regime == "rows" or np.linalg.matrix_rank(np.vstack([matrix, w])) == np.linalg.matrix_rank(matrix)
    else:
        places = noise.permutation(np.flatnonzero(arrived & matrix.any(axis=1)))
        arrived, usable = np.isin(np.arange(len(matrix)), places), len(places) > 0
        report["linear"] = (matrix[places], matrix[places] @ cost)
    if not usable:
        return report, None
    expected = _rows_taken(form, report, w, cost, known) if regime == "rows" else taken(regime, w, cost, arrived)
    if not kind.options.get("may_miss", True):
        expected = expected if expected is not None and expected.seen.all() else None
    if expected is not None and expected.complete and rng.random() < 0.2:
        wrong = rng.random() < 0.3 and form != "total"
        report["total"] = float(cost @ w) + (wrong and (1.0 + np.max(np.abs(cost))))
        expected = None if wrong else expected
    return report, expected


def _rows_taken(form: str, report: Any, w: np.ndarray, cost: np.ndarray, known: np.ndarray) -> Taken | None:
    matrix = {"total": w[None], "linear": report.get("linear", (None,))[0]}.get(form, np.eye(DIM)[known])
    return taken_rows(matrix, matrix @ cost, w, ROWS) if 0 < len(matrix) <= ROWS else None
