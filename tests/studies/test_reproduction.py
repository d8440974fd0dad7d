"""The top-k column of the paper's main table, from the program as users run it."""

from regretless.studies.experiment import Experiment, run


def test_top_k_column_is_reproduced():
    """All six cells within three standard errors of the difference, none diverged (seeds 0 to 29)."""
    result = run(Experiment(benchmark="topk")).to_dict()
    assert len(result["results"]) == 6
    for row in result["results"]:
        assert row["diverged"] == 0
        assert abs(row["z"]) <= 3, row
    regret = {row["policy"]: row["mean"] for row in result["results"]}
    assert regret["dfhpg"] < regret["dfhpg_1"] < regret["greedy"]
