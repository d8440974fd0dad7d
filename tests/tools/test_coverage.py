"""The honesty of evaluations, on a few simulated logs with fixed seeds; tools/coverage.py measures it on hundreds."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "coverage.py"


def test_intervals_cover_and_silent_logs_stay_silent():
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    counts = tool.measure(logs=8, seed=0)
    told = sum(counts[f"{kind}: told"] for kind in ("with propensities", "without propensities"))
    covered = sum(counts[f"{kind}: covered"] for kind in ("with propensities", "without propensities"))
    assert told >= 16, "of 32"
    assert covered >= 0.85 * told
    assert counts["pairs wrong"] == 0
    assert counts["pairs apart"] >= 3
    assert counts["deterministic: told"] == counts["handful: told"] == 0
    assert counts["deterministic: asked"] == 4
