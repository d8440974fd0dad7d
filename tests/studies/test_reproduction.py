"""The top-k column of the paper's main table, from the program as users run it."""

import json
import os
import subprocess
import sys

from regretless.studies.definitions import BANDIT


def test_top_k_column_is_reproduced(tmp_path):
    """All six cells within three standard errors of the difference, none diverged (ten of the thirty seeds)."""
    environment = {**os.environ, "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu", "REGRETLESS_CACHE": str(tmp_path)}
    played = [word for name in BANDIT for word in ("--policy", name)]
    words = [sys.executable, "-m", "regretless", "run", "topk", *played, "--seeds", "10", "--format", "json"]
    rows = json.loads(subprocess.run(words, env=environment, check=True, capture_output=True).stdout)["results"]
    assert [row["policy"] for row in rows if row["published_mean"] is None] == ["linear_thompson"]
    assert len(rows) == 7
    for row in rows:
        assert row["diverged"] == 0
        assert row["z"] is None or abs(row["z"]) <= 3, row
    regret = {row["policy"]: row["mean"] for row in rows}
    assert regret["linear_thompson"] < regret["dfhpg"] < regret["dfhpg_1"] < regret["greedy"]
