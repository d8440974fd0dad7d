"""Tuning in two stages: few seeds for all candidates, all seeds for the best of them."""

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from regretless.errors import SettingsError
from regretless.studies.tuning import spaces, stages
from regretless.studies.tuning.search import task

SMALL = {"policy_lr": FloatDistribution(1e-3, 0.2, log=True), "alpha": CategoricalDistribution(spaces.ALPHA_PAIRS)}
TASK = task("topk", settings={"surrogate": "nid"}, seeds=5, horizon=12)


def test_finalists_are_the_best_of_the_screen_and_ranked_on_all_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(spaces, "space", lambda policy, benchmark, model, fixed: SMALL)
    found = stages.tune_in_stages(TASK, 5, tmp_path / "trials.db", finalists=2)
    screen, record = found.record["screen"], found.record
    assert (screen["seeds"], record["seeds"]) == (stages.SCREEN_SEEDS, 5)
    assert len(screen["trials"]) == 5
    ranked = sorted(screen["trials"], key=lambda trial: trial["value"])
    assert [trial["number"] for trial in record["trials"]] == [trial["number"] for trial in ranked[:2]]
    best = min(record["trials"], key=lambda trial: trial["value"])
    assert record["best"]["number"] == best["number"]
    assert found.preset["policy_lr"] == best["params"]["policy_lr"]
    screened = {trial["number"]: trial["value"] for trial in screen["trials"]}
    assert all(trial["value"] != screened[trial["number"]] for trial in record["trials"]), "other seeds, other regret"


def test_what_leaves_nothing_to_do_in_a_stage_is_refused(tmp_path):
    for finalists, seeds in ((0, 5), (2, 3)):
        small = task("topk", seeds=seeds, horizon=5)
        with pytest.raises(SettingsError, match=f"more than 3 seeds, got {finalists} and {seeds}"):
            stages.tune_in_stages(small, 4, tmp_path / "trials.db", finalists)
    assert [stages.usual_finalists(model) for model in ("gaussian_linear", "flow", "diffusion")] == [0, 10, 10]
