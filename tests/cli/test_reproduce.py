"""``regretless reproduce``, ``status`` and ``report`` as a person meets them; what is computed is invented."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import invented
from regretless.cli.main import app
from regretless.studies import compute as computing
from regretless.studies.cells import TheoryCell
from regretless.studies.engines import ahead
from regretless.studies.experiment import Experiment
from regretless.studies.store import Store

runner = CliRunner()
TUNE = ["tune", "topk", "--policy", "greedy", "--trials", "1", "--seeds", "1", "--horizon", "5"]


@pytest.fixture(autouse=True)
def player(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(computing, "compute", invented.invent)
    monkeypatch.setattr(ahead, "CORES_PER_CELL", 10**6)  # what is invented needs no programs
    monkeypatch.chdir(tmp_path)


def invoke(*words):
    result = runner.invoke(app, list(words))
    return result, " ".join(result.stdout.replace("│", " ").split())


def test_reproduce_then_status_then_report(tmp_path):
    result, words = invoke("reproduce", "main", "theory", "--quick")
    assert result.exit_code == 0, result.output
    assert "0 failed; next: regretless report" in words
    assert "about" in result.stderr, "the time left is told from the beginning"
    assert "score_unbiased" in words, "the claims of the theory are printed"
    assert "verdicts are left to" in " ".join(words.split())
    assert "does not hold" not in words, "a short run judges nothing"

    again, words = invoke("reproduce", "main", "theory", "--quick", "--format", "json")
    outcome = json.loads(again.stdout)
    assert (outcome["computed"], outcome["failed"]) == (0, {})
    assert outcome["theory"]["claims"]

    store = Store(tmp_path / "results")
    first = next(entry for entry in store.entries() if entry.record["cell"]["kind"] == "simulation")
    first.path.unlink()
    result, words = invoke("status")
    assert "resume with: regretless" in words
    told = json.loads(invoke("status", "--format", "json")[0].stdout)
    assert told["campaigns"][0]["missing"] == 1
    assert told["campaigns"][0]["done"] == told["campaigns"][0]["cells"] - 1

    result, words = invoke("report")
    assert result.exit_code == 0, result.output
    assert "1 cells not computed yet: open report/report.html" in words
    assert (tmp_path / "report" / "report.html").stat().st_size > 1_000_000
    assert (tmp_path / "report" / "figures" / "theory.pdf").exists()


def test_brackets_in_names_and_paths_are_printed_as_they_are(tmp_path, monkeypatch):
    """In progress, failures and commands; a terminal would take them for markup."""
    (tmp_path / "own.toml").write_text(
        'name = "mine"\n[[panels]]\n[[panels.cells]]\nbenchmark = "topk"\nhorizon = 20\n'
        'arms = [{label = "[/b] :smile:", policy = "greedy"}]\n'
    )
    monkeypatch.setattr(sys, "argv", ["regretless", "reproduce", "own.toml", "--store", "o[/b]x"])

    def broken(cell, progress):
        progress("running", 1, 2)
        raise RuntimeError("no [/such] luck")

    monkeypatch.setattr(computing, "compute", broken)
    result, _ = invoke("reproduce", "own.toml", "--store", "o[/b]x")
    assert result.exit_code == 1, result.output
    said = " ".join(result.stderr.split())
    assert "failed: topk, bandit: [/b] :smile:: RuntimeError: no [/such] luck" in said
    assert "1 failed; next: regretless report --store 'o[/b]x'" in " ".join(result.stdout.split())
    result, words = invoke("status", "--store", "o[/b]x")
    assert result.exit_code == 0, result.output
    assert "failed: topk, bandit: [/b] :smile:: RuntimeError: no [/such] luck" in words
    assert "resume with: regretless reproduce own.toml --store 'o[/b]x'" in words


def test_failures_are_told_and_give_exit_code_1(monkeypatch):
    def broken(cell, progress):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(computing, "compute", broken)
    result, _ = invoke("reproduce", "theory", "--quick")
    assert result.exit_code == 1
    assert "failed: convergence theorems, short: RuntimeError: no such luck" in " ".join(result.stderr.split())
    result, words = invoke("status")
    assert "RuntimeError: no such luck" in words


def test_old_results_are_listed_and_removed(tmp_path):
    invoke("reproduce", "theory", "--quick")
    store = Store(tmp_path / "results")
    stale = invented.invent(TheoryCell())
    stale.record["code"] = stale.record["code_used"] = "0.0.1+other"
    store.put("ab" * 32, stale)
    assert "0.0.1+other" in invoke("status", "--old")[1]
    assert "removed" in invoke("status", "--remove-old")[1]
    assert len(list(store.entries())) == 1


def test_a_worker_ends_with_the_process_that_started_it(tmp_path):
    """Its standard input is closed at once, as it is when the parent is killed; the campaign would take minutes."""
    Store(tmp_path / "store").create()
    cell = Experiment(benchmark="topk", policies="greedy", horizon=2_000_000)
    task = json.dumps({"keys": ["ab" * 32], "cells": [cell.model_dump(mode="json")], "imports": []}) + "\n"
    words = [sys.executable, "-m", "regretless.cli.worker", "cpu", "1", str(tmp_path / "store")]
    done = subprocess.run(words, input=task, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert not Store(tmp_path / "store").running("ab" * 32)


@pytest.mark.parametrize("verb", ["reproduce", "status", "report", "tune"])
def test_help_teaches(verb):
    result, words = invoke(verb, "--help")
    assert result.exit_code == 0
    assert "Usage" in words
    assert "--store" in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "theroy"], "unknown study 'theroy'; did you mean 'theory'?"),
        (["reproduce", "main", "--seeds", "1000000000"], "expected at most 1,000,000 replications, got 1,000,000,000"),
        (["reproduce", "main", "--seeds", "1" + "0" * 23], "expected at most 1,000,000 replications"),
        (["reproduce", "main", "--horizon", "1" + "0" * 12], "less than or equal to 100000000"),
        (["reproduce", "main", "--first-seed", "4294967290"], "whole numbers from 0 to 4,294,967,295"),
        (["reproduce", "--engine", "rya"], "unknown engine 'rya'; did you mean 'ray'?"),
        (["reproduce", "--address", "here:1"], "--address is for --engine ray"),
        (["reproduce", "main", "--store", "/proc/nothing"], "cannot write to the store /proc/nothing"),
        (["reproduce", "theory", "--format", "xml"], "'xml' is not one of"),
        (["status", "--store", "nowhere"], "no store at nowhere: 'regretless reproduce --store nowhere' makes one"),
        (["report", "--store", "nowhere"], "run 'regretless reproduce' first"),
        (["report", "--out", "/proc/nothing"], "no results to report in results"),
        (["tune", "topkk"], "unknown benchmark 'topkk'; did you mean 'topk'?"),
        (["tune", "topk", "--first-seed", "10"], "overlap the reported runs"),
        (["tune", "topk", "--seeds", "1" + "0" * 23], "expected at most 1,000,000 replications"),
        (["tune", "topk", "--policy", "greedy", "--set", "forgetting=0.1"], "has no effect on greedy"),
        ([*TUNE, "--out", "/proc/nothing/preset.json"], "cannot write to /proc/nothing"),
        ([*TUNE, "--out", "."], "cannot write .: it is a folder, expected the name of a file"),
        ([*TUNE, "--out", "x" * 300], "File name too long"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_a_clear_word(words, message):
    result = runner.invoke(app, words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())
