"""``reproduce``, ``status`` and ``report`` as a user sees them; results are invented."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from regretless.cli.main import app
from regretless.experiments import ResultStore, campaign
from regretless.registry import Registry
from regretless.results import Reference, Result

runner = CliRunner()
TUNE = ["tune", "topk", "--policy", "greedy", "--trials", "1", "--seeds", "1", "--horizon", "5"]
STUDY = """
name = "mine"
[defaults]
benchmark = "topk"
policies = ["greedy", "thompson"]
seeds = 3
horizon = 20
[[panels]]
sweep = {setting = "benchmark.k", values = [1, 2]}
"""


def invent(tasks, progress):
    """Return results that look like those of runs."""
    progress("running", 1, 1)
    lines = (Reference("random", 90.0, 1.0), Reference("best_fixed", 20.0, 1.0))
    return [
        Result(
            task.label,
            np.random.default_rng(len(task.label)).random((len(task.seeds), task.horizon)),
            seeds=task.seeds,
            config={"policy": task.label, "benchmark": {"name": "topk"}},
            references=lines,
            seconds={"compile": 1.0, "run": 1.0},
        )
        for task in tasks
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(campaign, "compute_batch", invent)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY)
    return tmp_path


def invoke(*words):
    result = runner.invoke(app, list(words))
    return result, " ".join(result.stdout.replace("│", " ").split())


def test_reproduce_then_status_then_report(folder):
    result, shown = invoke("reproduce", "mine.toml")
    assert result.exit_code == 0, result.output
    assert "4 arms, 4 of them computed now in 0 s, 0 failed; next: regretless report --store results" in shown
    again = json.loads(invoke("reproduce", "mine.toml", "--format", "json")[0].stdout)
    assert (again["arms"], again["computed"], again["failed"]) == (4, 0, {})

    next(iter(ResultStore(folder / "results").entries())).path.unlink()
    assert "resume with: regretless" in invoke("status")[1]
    state = json.loads(invoke("status", "--format", "json")[0].stdout)["campaigns"][0]
    assert (state["missing"], state["done"], state["arms"]) == (1, 3, 4)

    result, shown = invoke("report")
    assert result.exit_code == 0, result.output
    assert "1 study: open report/report.html" in shown
    assert (folder / "report" / "report.html").stat().st_size > 100_000


def test_brackets_in_names_and_paths_are_printed_as_they_are(folder, monkeypatch):
    """In progress, failures and commands; a terminal would take them for markup."""
    (folder / "own.toml").write_text(
        'name = "mine"\n[[panels]]\n[[panels.cells]]\nbenchmark = "topk"\nhorizon = 20\n'
        'arms = [{label = "[/b] :smile:", policy = "greedy"}]\n'
    )
    monkeypatch.setattr(sys, "argv", ["regretless", "reproduce", "own.toml", "--store", "o[/b]x"])

    def broken(tasks, progress):
        progress("running", 1, 2)
        raise RuntimeError("no [/such] luck")

    monkeypatch.setattr(campaign, "compute_batch", broken)
    result, shown = invoke("reproduce", "own.toml", "--store", "o[/b]x")
    assert result.exit_code == 1, result.output
    errors = " ".join(result.stderr.split())
    assert "failed: topk, bandit: [/b] :smile:: RuntimeError: no [/such] luck" in errors
    assert "1 failed; next: regretless report --store 'o[/b]x'" in shown
    result, shown = invoke("status", "--store", "o[/b]x")
    assert result.exit_code == 0, result.output
    assert "failed: topk, bandit: [/b] :smile:: RuntimeError: no [/such] luck" in shown
    assert "resume with: regretless reproduce own.toml --store 'o[/b]x'" in shown


def test_a_failure_of_one_arm_does_not_stop_the_others(monkeypatch):
    def partly_broken(tasks, progress):
        if any(task.label == "thompson" for task in tasks):
            raise RuntimeError("no such luck")
        return invent(tasks, progress)

    monkeypatch.setattr(campaign, "compute_batch", partly_broken)
    result, _ = invoke("reproduce", "mine.toml", "--format", "json")
    assert result.exit_code == 1
    outcome = json.loads(result.stdout)
    assert (outcome["arms"], outcome["computed"], len(outcome["failed"])) == (4, 2, 2)
    assert "RuntimeError: no such luck" in invoke("status")[1]


def test_old_results_are_listed_and_removed(folder):
    invoke("reproduce", "mine.toml")
    store = ResultStore(folder / "results")
    stale = Result("greedy", np.zeros((1, 5)), seeds=(0,))
    store.put("ab" * 32, stale, "stale", {"regretless": "0.0.1+other"})
    assert "0.0.1+other" in invoke("status", "--old")[1]
    assert "removed" in invoke("status", "--remove-old")[1]
    assert len(list(store.entries())) == 4


def test_without_the_papers_package_reproduce_says_what_to_install(monkeypatch):
    monkeypatch.setattr("regretless.cli.studies.STUDIES", Registry("study", "nothing", {}))
    result, _ = invoke("reproduce")
    assert result.exit_code == 2
    assert "pip install regretless-dfhpg" in " ".join(result.stderr.split())


@pytest.mark.parametrize("verb", ["reproduce", "status", "report", "tune"])
def test_help_has_no_types_of_flags(verb):
    result, shown = invoke(verb, "--help")
    assert result.exit_code == 0
    assert "Usage" in shown
    assert "--store" in shown
    assert "<bool>" not in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "theroy"], "unknown study 'theroy'; did you mean 'theory'?"),
        (["reproduce", "main", "--seeds", "1000000000"], "expected at most 1,000,000 replications, got 1,000,000,000"),
        (["reproduce", "main", "--seeds", "1" + "0" * 23], "expected at most 1,000,000 replications"),
        (["reproduce", "main", "--horizon", "1" + "0" * 12], "from 1 to 100,000,000"),
        (["reproduce", "main", "--first-seed", "4294967290"], "integers from 0 to 4,294,967,295"),
        (["reproduce", "--engine", "rya"], "'rya' is not one of 'local', 'ray'"),
        (
            ["reproduce", "--address", "here:1"],
            "address is for the engine 'ray' (--engine ray)",
        ),
        (["reproduce", "mine.toml", "--store", "/proc/nothing"], "cannot write to the store /proc/nothing"),
        (["reproduce", "mine.toml", "--format", "xml"], "'xml' is not one of"),
        (["status", "--store", "nowhere"], "no store at nowhere: 'regretless reproduce --store nowhere' makes one"),
        (["report", "--store", "nowhere"], "run 'regretless reproduce' first"),
        (["report", "--out", "/proc/nothing"], "no results to report in results"),
        (["tune", "topkk"], "unknown benchmark 'topkk'; did you mean 'topk'?"),
        (["tune", "topk", "--first-seed", "10"], "overlap the reported runs"),
        (["tune", "topk", "--seeds", "1" + "0" * 23], "expected at most 1,000,000 replications"),
        (["tune", "topk", "--policy", "greedy", "--set", "forgetting=0.1"], "has no effect on greedy"),
        (["tune", "topk", "--sampler", "tpee"], "expected a sampler of Optuna, or one of random, tpe, gp, qmc"),
        ([*TUNE, "--out", "/proc/nothing/preset.json"], "cannot write to /proc/nothing"),
        ([*TUNE, "--out", "."], "cannot write .: Is a directory; expected the name of a file"),
        ([*TUNE, "--out", "x" * 300], "File name too long"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_a_clear_message(words, message):
    result = runner.invoke(app, words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())
