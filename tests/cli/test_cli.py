"""The commands as a user sees them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regretless.cli import bench
from regretless.cli.list import KINDS
from regretless.cli.main import app
from regretless.experiments import Experiment
from regretless.experiments import runner as experiment_runner
from regretless.experiments.store import ResultStore

runner = CliRunner()
KNOWN = {
    "benchmarks": "topk",
    "policies": "dfhpg",
    "surrogates": "spo_plus",
    "models": "flow",
    "oracles": "top_k",
    "feedback": "semi_bandit",
    "worlds": "lin100",
    "settings": "surrogate.draws",
    "studies": "main",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))


def test_run_prints_one_json_object():
    result = runner.invoke(
        app, ["run", "topk", "--seeds", "2", "--horizon", "30", "--policy", "greedy", "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["results"][0]["policy"] == "greedy"


def test_run_prints_a_table_and_leaves_files(tmp_path):
    out = tmp_path / "new" / "folder"
    words = [
        "run",
        "topk",
        "--seeds",
        "3",
        "--horizon",
        "40",
        "--policy",
        "greedy",
        "--policy",
        "thompson",
        "--out",
        str(out),
    ]
    result = runner.invoke(app, words)
    assert result.exit_code == 0, result.output
    for word in ("greedy", "thompson", "best fixed", "clairvoyant", "median", "lowest mean regret"):
        assert word in result.stdout
    assert "published" not in result.stdout, "no column without a value"
    rows = [line.split("│")[1].strip() for line in result.stdout.splitlines() if line.startswith("│")]
    assert {"(random)", "(best fixed)", "(clairvoyant)"} < set(rows)
    assert rows[0] == "(clairvoyant)", "reference lines are in order with the policies"
    assert next(row for row in rows if not row.startswith("(")).startswith("▶ ")
    assert sum("▶" in row for row in rows) == 1
    store = ResultStore(out)
    stored = [store.load(entry.address) for entry in store.entries()]
    assert {result.label: result.regret.shape for result in stored} == {"greedy": (3, 40), "thompson": (3, 40)}
    assert json.loads((out / "result.json").read_text())["seeds"] == 3
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert len((out / "regret.png").read_bytes()) > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "tpk"], "unknown benchmark 'tpk'; did you mean 'topk'?"),
        (["run", "topk", "--policy", "gredy"], "unknown policy 'gredy'; did you mean 'greedy'?"),
        (["run", "topk", "--set", "alpha_max=0.1"], "unknown setting 'alpha_max'; did you mean 'alpha.max'?"),
        (["run", "topk", "--set", "alpha.max"], "expected --set NAME=VALUE, got 'alpha.max'"),
        (
            ["run", "topk", "--set", "forgetting=0.1", "--policy", "greedy"],
            "has no effect on greedy; adaptive and linear_thompson have it",
        ),
        (
            ["run", "topk", "--set", "surrogate=nope", "--policy", "greedy"],
            "'surrogate' has no effect on greedy; dfhpg",
        ),
        (["run", "topk", "--set", "k=3"], "unknown setting 'k'; did you mean 'benchmark.k'?"),
        (["run", "topk", "--import", "no_such_plug_in"], "--import: cannot import 'no_such_plug_in'"),
        (["run", "topk", "--first-seed", "4294967290"], "integers from 0 to 4,294,967,295"),
        (["run", "topk", "--seeds", "1" + "0" * 23], "expected at most 1,000,000 replications"),
        (["run", "topk", "--horizon", "1" + "0" * 12], "from 1 to 100,000,000"),
        (["run", "topk", "--delay", "1" + "0" * 14], "expected delay to be a whole number from 0 to 100,000,000"),
        (["run", "topk", "--degree", "1000"], "less than or equal to 100, got 1000"),
        (["run", "topk", "--set", "policy_lr=nan"], "Input should be a finite number"),
        (["run", "topk", "--preset", "missing.json"], "cannot read missing.json: No such file"),
        (["run", "topk", "--seeds", "0"], "should be greater than or equal to 1"),
        (["run", "topk", "--horizn", "9"], "No such option: --horizn"),
        (["run", "topk", "--device", "abacus"], "'abacus' is not one of"),
        (["run", "topk", "--out", "/proc/nothing"], "cannot write to /proc/nothing"),
        (
            ["run", "topk", "--model", "flow", "--policy", "greedy"],
            "expected a model of regretless.models, or the name of one",
        ),
        (["run", "topk", "--model", "flows"], "unknown model 'flows'; did you mean 'flow'?"),
        (["bench", "speed", "--model", "gaussian_n"], "unknown model 'gaussian_n'"),
        (
            ["run", "--contexts", "x.csv", "--costs", "c.csv", "--oracle", "nomodule:b"],
            "--oracle: cannot import 'nomodule'",
        ),
        (["list", "oracels"], "unknown list 'oracels'"),
        (["run", "energy", "--data-dir", "/proc"], "no energy data in /proc: expected prices2013.dat"),
        (["run", "topk", "--data-dir", "/proc"], "unknown setting 'data_dir' of benchmark 'topk'"),
        (["data", "fetch", "enrgy"], "unknown data 'enrgy'; did you mean 'energy'?"),
        (["data", "fetch", "energy", "--data-dir", "/proc/x"], "cannot write to /proc/x"),
        (["bench", "speed", "--benchmark", "topq"], "unknown benchmark 'topq'; did you mean 'topk'?"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_a_clear_word(words, message):
    result = runner.invoke(app, words)
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_lists_have_a_word_about_each_entry(kind):
    result = runner.invoke(app, ["list", kind, "--format", "json"])
    assert result.exit_code == 0
    entries = json.loads(result.stdout)
    assert entries
    assert all(entry["name"] and len(entry["summary"]) > 10 for entry in entries)
    assert len({entry["name"] for entry in entries}) == len(entries) or kind == "settings"
    assert KNOWN[kind] in {entry["name"] for entry in entries}
    assert runner.invoke(app, ["list", kind]).exit_code == 0


def test_the_list_of_policies_says_which_one_to_use():
    shown = runner.invoke(app, ["list", "policies"]).stdout
    assert "Which policy should I use?" in shown
    assert shown.endswith("Without a reason for another one: adaptive.\n")
    entries = json.loads(runner.invoke(app, ["list", "policies", "--format", "json"]).stdout)
    ours = [entry for entry in entries if "[" not in entry["summary"]]
    assert [entry["name"] for entry in ours if not entry["use_when"]] == []


def test_the_list_of_worlds_shows_groups_and_what_is_held_out():
    lines = runner.invoke(app, ["list", "worlds"]).stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    groups = [group for group, _, about in cells if group]
    assert len(groups) == len(set(groups)) > 10, "each group is named once"
    worlds = {world for _, world, _ in cells}
    assert {"clicks20", "clicks12 †", "wine †"} < worlds


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["run"],
        ["arena"],
        ["evaluate"],
        ["list"],
        ["bench", "speed"],
        ["bench", "learner"],
        ["data", "fetch"],
        ["doctor"],
    ],
)
def test_help_teaches(words):
    result = runner.invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    if words == ["run"]:
        assert "regretless run topk --set benchmark.k=3" in " ".join(result.stdout.split())
        assert "--import" in result.stdout
        assert "  # two policies\n  regretless run pricing --policy dfhpg --policy greedy\n" in result.stdout


def test_doctor_finds_nothing_wrong():
    result = runner.invoke(app, ["doctor", "--format", "json"])
    assert result.exit_code == 0, result.output
    findings = json.loads(result.stdout)
    assert findings["problems"] == []
    assert findings["devices"]


def test_bench_speed_measures_each_cell(monkeypatch):
    played = []

    def run(experiment, **options):
        """Its first rounds."""
        played.append(experiment)
        return original(experiment.replace(horizon=20), **options)

    original = experiment_runner.run
    monkeypatch.setattr(experiment_runner, "run", run)
    figures = bench.time_all(["topk"], 2)
    assert figures["cells"] == 6, "the published ones"
    assert [experiment.horizon for experiment in played] == [None], "all of their rounds"
    row = bench.time_experiment(Experiment("topk", "greedy", seeds=2, horizon=20))
    assert (row["benchmark"], row["policy"]) == ("topk", "greedy")
    assert row["microseconds"] > 0


def test_bench_learner_measures_decide_and_learn():
    words = ["bench", "learner", "--policy", "greedy", "--rounds", "10", "--format", "json"]
    rows = json.loads(runner.invoke(app, words).stdout)["rows"]
    assert [row["verb"] for row in rows] == ["decide", "learn", "decide 100"]
    assert all(0 < row["median"] <= row["p99"] for row in rows)
    assert [row["limit"] for row in rows[:2]] == [1000.0, 2000.0]
    assert rows[2]["limit"] == pytest.approx(5 * rows[0]["median"], rel=0.01)
    assert rows[2]["times"] > 0
    assert "µs per call" in runner.invoke(app, words[:-2]).stdout


def test_energy_without_data_is_synthetic_in_every_output(monkeypatch):
    monkeypatch.delenv("REGRETLESS_DATA", raising=False)
    words = ["run", "energy", "--seeds", "2", "--policy", "greedy"]
    result = runner.invoke(app, [*words, "--format", "json"])
    assert result.exit_code == 0, result.output
    output = json.loads(result.stdout)
    assert output["data"] == "synthetic"
    assert output["horizon"] == 395
    assert output["results"][0]["published_mean"] is None
    assert output["results"][0]["z"] is None
    assert {line["name"] for line in output["references"]} == {
        "random",
        "best_fixed",
        "market_forecast",
        "least_squares",
    }
    assert "playing on synthetic data" in " ".join(result.stderr.split())
    assert "synthetic data" in runner.invoke(app, words).stdout


def test_fetch_without_a_network_says_what_to_do(tmp_path):
    words = ["data", "fetch", "energy", "--data-dir", str(tmp_path), "--origin", "http://127.0.0.1:9/"]
    result = runner.invoke(app, words)
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert "the server cannot be reached" in said
    assert "copy prices2013.dat, load1.txt, load2.txt, load3.txt into a folder" in said


def test_bench_speed_measures_a_generative_model():
    words = ["bench", "speed", "--model", "flow", "--benchmark", "topk", "--seeds", "2", "--horizon", "10"]
    result = runner.invoke(app, [*words, "--format", "json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["cells"]
    assert (row["model"], row["policy"]) == ("flow", "dfhpg")
    assert row["microseconds"] > 0


def test_ctrl_c_stops_with_a_word_and_no_half_written_file(tmp_path):
    words = [sys.executable, "-m", "regretless", "run", "topk", "--horizon", "200000", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    ) as process:
        try:
            first = process.stderr.readline()  # the first line of progress: it is at work now
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert b"topk" in first
    assert process.returncode == 130
    assert b"stopped: every file that was written is complete" in said
    assert b"Traceback" not in said
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the signals of processes from /proc")
def test_worker_processes_leave_ctrl_c_to_the_process_that_started_them_and_end_with_it(tmp_path):
    words = ["reproduce", "semi_bandit", "--quick", "--seeds", "1", "--horizon", "5", "--jobs", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "regretless", *words, "--store", str(tmp_path / "store")], stderr=subprocess.DEVNULL
    ) as process:
        try:
            workers = _workers_of(process, 2)
        finally:
            process.kill()  # most often before a worker has a task
    assert all(blocked & 1 << signal.SIGINT - 1 for blocked in workers.values())
    for _ in range(3000):
        if not any(_is_worker(Path(f"/proc/{pid}")) for pid in workers):
            return
        time.sleep(0.01)
    pytest.fail(f"workers {list(workers)} did not end with the command")


def _workers_of(process, count):
    """Return the blocked signals, as bits, of a command's worker processes by their id, once there are so many."""
    while process.poll() is None:
        blocked = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                if int(status["PPid"]) == process.pid and _is_worker(folder):
                    blocked[int(folder.name)] = int(status["SigBlk"], 16)
        if len(blocked) >= count:
            return blocked
        time.sleep(0.01)
    pytest.fail("the command ended before it started its workers")


def _is_worker(folder):
    with contextlib.suppress(OSError):
        return b"popen_loky" in (folder / "cmdline").read_bytes()
    return False
