"""Tuning: draws by number, trials that survive their worker, any sampler of Optuna, one program per combination."""

import threading

import optuna
import pytest

from regretless import Experiment, Problem, oracles, policies, run, tune
from regretless.errors import SettingsError
from regretless.experiments import TuningProtocol, tuning, validation_experiment
from regretless.experiments.tuning import make_distribution, make_programs, program_width

SMALL = {"policy_lr": ("log", 1e-3, 0.2), "surrogate": ("choice", "nid", "mse_spo_plus")}


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.setattr(tuning, "find_tuning", lambda *names: TuningProtocol(space=SMALL))
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
    """Another worker holds two of four trials when this one has finished its own."""
    monkeypatch.setattr(tuning, "PATIENCE_SECONDS", 0.01)
    claimed, waiting = threading.Event(), threading.Event()
    records = {}

    def hold(what, done, total):
        if what != "drawing trials" and not claimed.is_set():
            claimed.set()
            assert waiting.wait(60)

    def work():
        records["other"] = tune(experiment, 4, storage=tmp_path / "t.db", block=2, progress=hold).record

    other = threading.Thread(target=work)
    other.start()
    assert claimed.wait(60)
    report = lambda what, done, total: waiting.set() if what == "waiting for other workers" else None  # noqa: E731
    record = tune(experiment, 4, storage=tmp_path / "t.db", block=2, progress=report).record
    other.join()
    assert len(record["trials"]) == 4
    assert records["other"]["trials"] == record["trials"]


def test_trials_of_a_worker_that_ended_are_taken_over(experiment, tmp_path):
    class StopError(Exception):
        pass

    def fail(what, done, total):
        if what != "drawing trials":
            raise StopError

    for storage in (tmp_path / "t.db", optuna.storages.InMemoryStorage()):
        with pytest.raises(StopError):
            tune(experiment, 3, storage=storage, progress=fail)
        assert [trial["number"] for trial in tune(experiment, 3, storage=storage).record["trials"]] == [0, 1, 2]


def test_finalists_are_the_best_of_the_screen(experiment):
    result = tune(experiment.replace(seeds=range(100_000, 100_005)), 4, finalists=2)
    screen = result.record["screen"]
    ranked = sorted(screen["trials"], key=lambda trial: trial["value"])
    assert [trial["number"] for trial in result.record["trials"]] == [trial["number"] for trial in ranked[:2]]
    assert (screen["seeds"], result.record["seeds"]) == (3, 5)


def test_draws_depend_on_seed_number_and_name_only(experiment):
    one, again, other = (
        tune(experiment, count, seed=seed).record["trials"] for count, seed in ((3, 1), (2, 1), (2, 2))
    )
    assert [trial["params"] for trial in one[:2]] == [trial["params"] for trial in again]
    assert [trial["params"] for trial in again] != [trial["params"] for trial in other]
    assert all(1e-3 <= trial["params"]["policy_lr"] <= 0.2 for trial in one)


def test_programs_are_filled_to_one_width():
    problem = Problem(oracles.top_k(5, 2), 3)
    specs = [policies.parse("dfhpg", {"surrogate": name}) for name in ["nid"] * 7 + ["mse_spo_plus"]]
    candidates = {i: spec.build(problem) for i, spec in enumerate(specs)}
    programs = list(make_programs(candidates, {}))
    assert programs == [[[0, 1, 2, 3], [7]], [[4, 5, 6, 4]]]
    assert all(-(-count // program_width(count)) == -(-count // tuning.MAX_WIDTH) for count in range(1, 60))


def test_seeds_of_reported_runs_are_refused():
    for first in (0, 25, 995, 1029):
        with pytest.raises(SettingsError, match="overlap the reported runs"):
            tune(validation_experiment("topk", first_seed=first), 1)
    with pytest.raises(SettingsError, match="expected an experiment with one policy, by name"):
        tune(Experiment("topk", ["greedy", "dfhpg"], seeds=range(100_000, 100_002)), 1)
    with pytest.raises(SettingsError, match="expected an experiment with one policy, by name"):
        tune("topk", 1)


@pytest.mark.parametrize(
    "values", [("log", 1), ("logg", 1, 2), ("log", 0, 1), ("log", "a", 1), ("uniform", 2, 1), ("choice",), 3]
)
def test_a_range_that_cannot_be_searched_is_refused(values):
    with pytest.raises(SettingsError, match=r"search_space of 'rate': expected \('log', low, high\)"):
        make_distribution("rate", values)


def test_a_storage_that_cannot_be_used_is_refused(experiment, tmp_path):
    (tmp_path / "t.db").write_text("not a database, but long enough to look like the beginning of one to a program")
    with pytest.raises(SettingsError, match="cannot use the storage"):
        tune(experiment, 1, storage=tmp_path / "t.db")
