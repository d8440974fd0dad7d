"""Rehearsals: what is simulated, that it is reproducible, and what is refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import regretless as rg
from regretless.cli.main import app
from regretless.errors import SettingsError
from regretless.live.history import History

DIM, FEATURES, COUNT = 4, 3, 160
ORACLE = rg.oracles.top_k(DIM, 2)
INCUMBENT = [1.0, 1.0, 0.0, 0.0]
LEVELS = np.array([3.0, 3.0, 1.0, 2.0])


def logged(sense="min", **changes):
    """Return a log in which the incumbent's decision is far from the best."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(COUNT, FEATURES)), np.zeros((COUNT, DIM))
    for row in w:
        row[[0, 1] if rng.random() < 0.5 else rng.choice(DIM, 2, replace=False)] = 1.0
    totals = w @ LEVELS + 0.3 * x[:, 0] + 0.4 * rng.normal(size=COUNT)
    return History(x, w, **{"totals": -totals if sense == "max" else totals, "sense": sense, **changes})


def rehearse(history=None, **options):
    options = {"incumbent": INCUMBENT, "policy": "linear_thompson", "rounds": 120, "runs": 2, "budget": 0.2, **options}
    return rg.rehearse(history or logged(), ORACLE, **options)


@pytest.fixture(scope="module")
def rehearsal():
    return rehearse()


def test_costs_are_those_of_the_history_and_a_good_learner_saves(rehearsal):
    incumbent, learner, guarded = rehearsal.costs.values()
    assert incumbent.shape == learner.shape == (2, 120)
    assert incumbent.mean() == pytest.approx(6.0, abs=0.3)
    assert 2.7 < learner[:, -30:].mean() < 4.5 < learner[:, :5].mean(), "the best costs 3; it still explores"
    assert np.all(rehearsal.excess("learner")[:, -1] < -100)
    assert 0.35 < rehearsal.noise < 0.7, "0.4, and what the regression did not know"
    assert not np.array_equal(learner[0], learner[1]), "runs differ"
    assert np.all((guarded == incumbent) | rehearsal.by_learner)
    assert 0.2 < rehearsal.by_learner.mean() < 1.0
    assert rehearsal.excess("guarded").max() <= 0.2 * incumbent.sum(axis=1).max()


def test_table_and_text_say_the_same_and_that_it_is_simulated(rehearsal):
    rows = {row["candidate"]: row for row in rehearsal.table()}
    assert list(rows) == ["incumbent", "learner", "guarded"]
    saved = -rehearsal.excess("guarded")[:, -1]
    assert rows["guarded"]["excess"] == pytest.approx(-saved.mean())
    assert 1 <= rows["learner"]["pays_from"] < 60
    text = str(rehearsal)
    assert text.startswith("Rehearsal, simulated: 2 runs of 120 rounds")
    assert f"saves {saved.mean():.0f} in total" in text or f"saves {saved.mean():.3g} in total" in text
    assert "budget of the guard: 0.2 of the incumbent's cost" in text
    assert json.loads(json.dumps(rehearsal.to_dict()))["simulation"] is True
    frame = rehearsal.to_pandas()
    assert frame.groupby("candidate")["cost"].mean()["learner"] == pytest.approx(rehearsal.costs["learner"].mean())
    assert [line.get_label() for line in rehearsal.plot().get_lines()][-1] != ""


def test_the_same_seed_gives_the_same_runs_and_progress_is_reported(rehearsal):
    calls = []
    again = rehearse(runs=1, progress=lambda *call: calls.append(call))
    assert np.array_equal(again.costs["guarded"][0], rehearsal.costs["guarded"][0])
    assert calls == [("rehearsing", 0, 1), ("rehearsing", 1, 1)]
    assert not np.array_equal(rehearse(runs=1, seed=1).costs["learner"][0], again.costs["learner"][0])


def test_rewards_stay_rewards_and_without_an_incumbent_the_log_is_the_reference():
    rewards = rehearse(logged("max"), incumbent=None, runs=1, rounds=60)
    assert list(rewards.costs) == ["incumbent", "learner"]
    assert rewards.costs["incumbent"].mean() < -4.0
    assert rewards.excess("learner")[0, -1] < 0, "less than the log costs"
    assert "no incumbent: compared with the logged decisions" in str(rewards)
    assert "gains" in str(rewards)


def test_single_costs_and_functions_of_the_context_are_used():
    history = logged()
    costs = np.where(history.decisions > 0, LEVELS, np.nan)
    shown = rehearse(
        History(history.contexts, history.decisions, costs=costs), incumbent=lambda x: INCUMBENT, runs=1, rounds=40
    )
    assert shown.costs["incumbent"].mean() == pytest.approx(6.0, abs=0.2)
    assert shown.costs["learner"][0, -10:].mean() < 4.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history": logged(totals=None)}, "at least 50 rounds with known totals, got 0"),
        ({"history": logged()[:40]}, "at least 50 rounds with known totals, got 40"),
        ({"history": [1]}, "expected a History"),
        ({"rounds": 0}, "rehearse: rounds: expected"),
        ({"incumbent": [1.0, 0.0, 0.0, 0.0]}, "incumbent"),
        ({"budget": 5.0}, "budget"),
    ],
)
def test_refuses(options, message):
    with pytest.raises(SettingsError, match=message):
        rehearse(**options)
    with pytest.raises(SettingsError, match="decisions of 3 numbers, got 4"):
        rg.rehearse(logged(), rg.oracles.top_k(3, 1))


def test_the_command_prints_a_table_and_saves_a_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "dock_plant.py").write_text(
        f"from regretless import oracles\noracle = oracles.top_k({DIM}, 2)\nforeman = {INCUMBENT}\n"
    )
    logged().to_pandas().to_csv("old.csv", index=False)
    words = ["rehearse", "old.csv", "--oracle", "dock_plant:oracle", "--incumbent", "dock_plant:foreman"]
    words += ["--policy", "linear_thompson", "--rounds", "30", "--runs", "1", "--out", "curves.png"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "Rehearsal, simulated: 1 run of 30 rounds" in result.stdout
    assert (tmp_path / "curves.png").stat().st_size > 5000
    missing = CliRunner().invoke(app, [*words[:4], "--incumbent", "dock_plant:absent"])
    assert missing.exit_code == 2
