"""Tuning: draws by number, trials that survive their worker, any sampler of Optuna, one program per combination."""

import numpy as np
import pytest

from regretless import Experiment, run, tune
from regretless.errors import SettingsError
from regretless.experiments import tuning, tuning_spaces, validation_experiment
from regretless.experiments.tuning import draw, make_programs, program_width

SMALL = {"policy_lr": ("log", 1e-3, 0.2), "surrogate": ("choice", "nid", "mse_spo_plus")}


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.setattr(tuning_spaces, "search_space", lambda *arguments: SMALL)
    return validation_experiment("topk", seeds=2, horizon=12)


def test_an_interrupted_search_continues_and_names_the_same_best(experiment, tmp_path):
    whole = tune(experiment, 5, storage=tmp_path / "whole.db", block=5)
    tune(experiment, 2, storage=tmp_path / "parts.db")
    parts = tune(experiment, 5, storage=tmp_path / "parts.db")
    assert parts.record["trials"] == whole.record["trials"]
    assert parts.preset == whole.preset
    best = min(whole.record["trials"], key=lambda trial: trial["value"])
    assert whole.record["best"] == best
    seeds = range(100_000, 100_002)
    results = run(Experiment("topk", "dfhpg", preset=whole.preset, seeds=seeds, horizon=12))
    assert results["dfhpg"].mean() == pytest.approx(best["value"], rel=1e-6)


def test_another_sampler_and_a_journal(experiment, tmp_path):
    result = tune(experiment, 3, sampler="tpe", storage=tmp_path / "trials.log")
    assert len(result.record["trials"]) == 3
    assert "best of 3 trials" in repr(result)


def test_the_best_of_all_trials_is_named_whoever_computed_them(experiment, tmp_path, monkeypatch):
    """Another worker holds two of four trials when this one has finished its own; one of those is the best."""
    monkeypatch.setattr(tuning, "PATIENCE_SECONDS", 0.0)
    search = tuning._Search(experiment, 0)
    other = tuning._Trials(tmp_path / "t.db", search.name, SMALL, tuning.make_sampler("random", 0))
    held = other.claim(4, 2)

    def wait(what, done, total):
        if what == "waiting for other workers":
            for number in held:
                other.tell(number, 0.5 + number, 0)

    record = tune(experiment, 4, storage=tmp_path / "t.db", progress=wait).record
    assert len(record["trials"]) == 4
    assert record["best"]["number"] == min(held)


def test_finalists_are_the_best_of_the_screen(monkeypatch):
    monkeypatch.setattr(tuning_spaces, "search_space", lambda *arguments: SMALL)
    result = tune(validation_experiment("topk", seeds=5, horizon=12), 4, finalists=2)
    screen = result.record["screen"]
    ranked = sorted(screen["trials"], key=lambda trial: trial["value"])
    assert [trial["number"] for trial in result.record["trials"]] == [trial["number"] for trial in ranked[:2]]
    assert (screen["seeds"], result.record["seeds"]) == (3, 5)


def test_draws_depend_on_seed_number_and_name_only():
    rates = np.array([draw(1, number, "policy_lr", SMALL["policy_lr"]) for number in range(50)])
    assert rates.min() >= 1e-3
    assert rates.max() <= 0.2
    assert len(set(rates)) == 50
    assert draw(1, 3, "policy_lr", SMALL["policy_lr"]) == rates[3] != draw(2, 3, "policy_lr", SMALL["policy_lr"])


def test_programs_are_filled_to_one_width(experiment):
    search = tuning._Search(experiment, 0)
    candidates = {i: search.build({"surrogate": name}) for i, name in enumerate(["nid"] * 7 + ["mse_spo_plus"])}
    programs = list(make_programs(candidates, {}))
    assert programs == [[[0, 1, 2, 3], [7]], [[4, 5, 6, 4]]]
    assert all(-(-count // program_width(count)) == -(-count // tuning.MAX_WIDTH) for count in range(1, 60))


def test_seeds_of_reported_runs_are_refused():
    for first in (0, 25, 995, 1029):
        with pytest.raises(SettingsError, match="overlap the reported runs"):
            tune(validation_experiment("topk", first_seed=first), 1)
    with pytest.raises(SettingsError, match="expected an experiment with one policy, by name"):
        tune(Experiment("topk", ["greedy", "dfhpg"], seeds=range(100_000, 100_002)), 1)


@pytest.mark.parametrize("values", [("log", 1), ("logg", 1, 2), ("log", 0, 1), ("uniform", 2, 1), ("choice",), 3])
def test_a_range_that_cannot_be_searched_is_refused(values):
    with pytest.raises(SettingsError, match=r"search_space of 'rate': expected \('log', low, high\)"):
        tuning_spaces._check_range("rate", values)


def test_a_storage_that_cannot_be_used_is_refused(experiment, tmp_path):
    (tmp_path / "t.db").write_text("not a database, but long enough to look like the beginning of one to a program")
    with pytest.raises(SettingsError, match="cannot use the storage"):
        tune(experiment, 1, storage=tmp_path / "t.db")
