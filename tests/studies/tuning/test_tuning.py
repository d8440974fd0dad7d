"""Tuning: draws by number, trials that survive their worker, one compilation per combination of static choices."""

import json
import os
import subprocess
import sys
from collections import OrderedDict

import jax
import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from regretless.errors import SettingsError
from regretless.report import tuning_section
from regretless.report.tunings import Tuning
from regretless.simulation import programs
from regretless.simulation.programs import Replicas
from regretless.studies.experiment import Experiment
from regretless.studies.outcome import run
from regretless.studies.speed import tuning as tuning_speed
from regretless.studies.tuning import search as tuning
from regretless.studies.tuning import spaces
from regretless.studies.tuning.search import batches, filled, task, tune
from regretless.studies.tuning.trials import Trials, drawn

SMALL = {
    "policy_lr": FloatDistribution(1e-3, 0.2, log=True),
    "surrogate": CategoricalDistribution(("nid", "mse_spo_plus")),
    "alpha": CategoricalDistribution(spaces.ALPHA_PAIRS),
}
TASK = task("topk", seeds=2, horizon=12)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(spaces, "space", lambda policy, benchmark, model, fixed: SMALL)


def test_one_compilation_per_combination_and_a_resumed_run_is_the_same(small, tmp_path, monkeypatch):
    compiled = []
    original = Replicas._compile

    def counted(self, fn, arrays, static):
        compiled.append(fn.__name__)
        return original(self, fn, arrays, static)

    monkeypatch.setattr(Replicas, "_compile", counted)
    monkeypatch.setattr(programs, "_cache", OrderedDict())
    whole = tune(TASK, 7, tmp_path / "whole.db", block=2)
    assert compiled.count("_play") == whole.record["programs"] == whole.record["combinations"] == 2

    claims = iter([Trials.claim, Trials.claim])
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Trials, "claim", lambda *words: next(claims)(*words))
        with pytest.raises(StopIteration):
            tune(TASK, 7, tmp_path / "parts.db", block=2)
    assert len(Trials(tmp_path / "parts.db", TASK.name, SMALL, TASK.seed).finished()) == 4
    second = tune(TASK, 7, tmp_path / "parts.db", block=2)
    assert compiled.count("_play") == 2, "every later run uses the programs of the first"
    assert second.record["trials"] == whole.record["trials"]
    assert second.preset == whole.preset
    best = min(whole.record["trials"], key=lambda trial: trial["value"])
    assert whole.record["best"]["number"] == best["number"]

    seeds = range(100_000, 100_002)
    chosen = Experiment(benchmark="topk", policies=("dfhpg",), preset=whole.preset, seeds=seeds, horizon=12)
    outcome = run(chosen)
    assert outcome.traces["dfhpg"].mean() == pytest.approx(best["value"], rel=1e-6)


def test_the_best_of_all_trials_is_named_whoever_computed_them(small, tmp_path, monkeypatch):
    """Another worker holds two of six trials when this one has finished its own; one of those is the best."""
    monkeypatch.setattr(tuning, "PATIENCE", 0.0)
    other = Trials(tmp_path / "t.db", TASK.name, SMALL, TASK.seed)
    held = other.claim(6, 2)

    def wait(what, done, total):
        if what == "waiting for other workers":
            for number in held:
                other.tell(number, 0.5 + number, 0)

    found = tune(TASK, 6, tmp_path / "t.db", wait, block=2).record
    assert len(found["trials"]) == 6
    assert (found["best"]["number"], found["best"]["value"]) == (min(held), 0.5 + min(held))


def test_a_tuning_and_runs_one_by_one_agree(small):
    together, alone = tuning_speed.compare(TASK, 5)
    assert together["programs"] == alone["programs"] == together["combinations"] == 2
    assert together["best"] == alone["best"]
    assert alone["ratio"] == pytest.approx(alone["seconds"] / together["seconds"], abs=0.01)


def test_programs_are_filled_to_one_width():
    place = tuning.setup(TASK)
    made = [{"alpha": "0.1/0.05", "surrogate": name} for name in ["nid"] * 6 + ["dbb"]]
    built = {number: tuning.built(TASK, values, place) for number, values in enumerate(made)}
    sizes = {jax.tree.structure(built[0]): 4, jax.tree.structure(built[6]): 2}
    calls = list(batches(built, sizes))
    assert calls == [[[0, 1, 2, 3], [6]], [[4, 5]]]
    assert [number for _, number in filled([6], built, sizes)] == [6, 6]
    first, second = (dict(filled(numbers, built, sizes)) for numbers in ([0, 1, 2, 3], [4, 5]))
    assert list(first) == list(second), "the same names, so that the same program serves both"
    assert not set(first) & set(dict(filled([6], built, sizes)))


def test_widths_follow_from_the_draws_and_leave_few_places_empty(small):
    place = tuning.setup(TASK)
    names = [drawn(TASK.seed, number, "surrogate", SMALL["surrogate"]) for number in range(20)]
    sizes = tuning.widths(TASK, 20, 256, place)
    assert sorted(sizes.values()) == sorted(tuning.width(names.count(name)) for name in set(names))
    assert sizes["a structure that nobody drew"] == 1
    assert set(tuning.widths(TASK, 20, 1, place).values()) == {1}, "a worker that takes one at a time pads nothing"
    for count in range(1, 60):
        programs = -(-count // tuning.width(count))
        assert programs == -(-count // tuning.WIDEST)
        assert programs * tuning.width(count) - count < programs, "less than one place per program"


def test_trials_of_the_dead_are_taken_over_with_the_same_values(tmp_path):
    program = (
        "import sys, os; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_tuning import SMALL; from regretless.studies.tuning.trials import Trials\n"
        "print(sorted(Trials(Path(sys.argv[1]), 'x', SMALL, 5).claim(4, 3).items()), flush=True); os._exit(9)"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "t.db"), os.path.dirname(__file__)]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False).stdout
    mine = Trials(tmp_path / "t.db", "x", SMALL, 5).claim(4, 10)
    assert str(sorted(mine.items())[:3]) == said.strip()
    assert len(mine) == 4
    assert Trials(tmp_path / "t.db", "x", SMALL, 5).claim(4, 10) == {}, "what a living worker holds is left alone"


def test_a_search_that_failed_leaves_its_trials_to_the_next(small, tmp_path, monkeypatch):
    """In the same process, which lives on: the next search takes them instead of waiting for itself."""
    with monkeypatch.context() as broken:
        broken.setattr(tuning, "_evaluate", lambda *told: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tune(TASK, 2, tmp_path / "t.db")
    waited = []
    found = tune(TASK, 2, tmp_path / "t.db", lambda what, done, total: waited.append(what))
    assert len(found.record["trials"]) == 2
    assert "waiting for other workers" not in waited


def test_draws_depend_on_seed_and_number_only(tmp_path):
    first = Trials(tmp_path / "a.db", "x", SMALL, 1).claim(8, 8)
    again = Trials(tmp_path / "b.db", "y", dict(reversed(SMALL.items())), 1).claim(8, 8)
    other = Trials(tmp_path / "c.db", "x", SMALL, 2).claim(8, 8)
    assert {n: dict(sorted(v.items())) for n, v in first.items()} == {
        n: dict(sorted(v.items())) for n, v in again.items()
    }
    assert first != other
    rates = np.array([values["policy_lr"] for values in first.values()])
    assert rates.min() >= 1e-3
    assert rates.max() <= 0.2
    assert len(set(rates)) == 8


def test_seeds_of_reported_runs_are_refused():
    for first in (0, 25, 995, 1029):
        with pytest.raises(SettingsError, match="overlap the reported runs"):
            task("topk", first_seed=first)
    usual = task("topk").experiment
    assert (usual.seeds, usual.horizon) == (tuple(range(100_000, 100_010)), 2000)


def test_a_database_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "t.db").write_text("not a database, but long enough to be taken for one by nobody at all")
    with pytest.raises(SettingsError, match="cannot use the database"):
        Trials(tmp_path / "t.db", "x", SMALL, 0)


def test_the_report_shows_history_and_importance():
    trials = [{"number": n, "value": 10.0 - n if n != 3 else None, "params": {}} for n in range(6)]
    record = {
        "benchmark": "topk", "policy": "dfhpg", "model": "gaussian_linear", "trials": trials, "seeds": 10,
        "first_seed": 100_000, "feedback": "bandit",
        "best": {"number": 5, "value": 5.0}, "importances": {"surrogate": 0.7, "policy_lr": 0.3},
    }  # fmt: skip
    drawn = {}
    text = tuning_section.section(Tuning.model_validate(record), drawn)
    assert 'id="tuning-topk-gaussian_linear-bandit-history"' in text
    history = drawn["tuning-topk-gaussian_linear-bandit-history"]["data"]
    assert history[1]["y"] == [10.0, 9.0, 8.0, 6.0, 5.0]
    assert drawn["tuning-topk-gaussian_linear-bandit-importance"]["data"][0]["y"] == ["policy_lr", "surrogate"]
    json.dumps(drawn, allow_nan=False)
