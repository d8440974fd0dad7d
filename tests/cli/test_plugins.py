"""Parts from a file in the working directory, by ``--import``: listed, run, tuned, in studies, and recognised."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regretless
from own_parts import MINE, PYTHON_STUDY, SPY, STUDY
from regretless import benchmarks, policies, surrogates
from regretless.cli.main import app
from regretless.experiments import ResultStore

runner = CliRunner()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(tmp_path, monkeypatch, cache):
    """A working directory with the file; what it registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRETLESS_CACHE", str(cache))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for registry in (policies.REGISTRY, benchmarks.REGISTRY, surrogates.REGISTRY):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))
    assert "mine" not in sys.modules, "another test left a module of this name behind"
    for name, text in (("mine.py", MINE), ("own.toml", STUDY), ("sizes.py", PYTHON_STUDY), ("json.py", SPY)):
        (tmp_path / name).write_text(text)
    yield tmp_path
    assert not (tmp_path / "executed").exists(), "a file here stood in for a module of the program's"
    for name in ("mine", "sizes"):
        sys.modules.pop(name, None)


def invoke(*words, code=0):
    result = runner.invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def json_output(*words):
    return json.loads(invoke(*words, "--format", "json").stdout)


def test_parts_are_listed_run_and_reported(folder):
    for kind, name in (
        ("policies", "steady"),
        ("surrogates", "half_spo"),
        ("benchmarks", "drizzle"),
        ("settings", "lean"),
    ):
        assert name in {each["name"] for each in json_output("list", kind, "--import", "mine")}
    words = ["run", "drizzle", "--import", "mine", "--seeds", "2", "--horizon", "20", "--out", "o[/b]x"]
    result = invoke(
        *words, "--policy", "steady", "--policy", "dfhpg_0", "--set", "surrogate=half_spo", "--set", "lean=2"
    )
    assert "there is no tuned preset" in " ".join(result.stderr.split())
    assert "next: regretless report --store 'o[/b]x'" in " ".join(result.stdout.split())
    found = json.loads((folder / "o[/b]x" / "result.json").read_text())
    assert found["settings"]["steady"] == {"lean": 2.0, "scaling": True}
    assert found["settings"]["dfhpg_0"]["surrogate"] == "half_spo"
    assert found["results"][0]["mean"] == pytest.approx(0.0, abs=1e-4), "the first ones are the cheapest"
    invoke(*words, "--policy", "steady", "--set", "benchmark.items=8")
    assert len(list(ResultStore(folder / "o[/b]x").entries())) == 3
    result = invoke("report", "--store", "o[/b]x", "--out", "r[red]x")
    assert "2 studies: open r[red]x/report.html" in " ".join(result.stdout.split())
    page = (folder / "r[red]x" / "report.html").read_text()
    assert "drizzle, bandit, benchmark.items 8" in page
    assert "half_spo" in page
    assert "paper" not in page.split("</style>")[1].split("<section")[0], "a page of your own"


def test_parts_are_tuned_in_their_own_space(folder):
    words = [
        "tune",
        "drizzle",
        "--policy",
        "steady",
        "--import",
        "mine",
        "--trials",
        "4",
        "--seeds",
        "1",
        "--horizon",
        "10",
    ]
    free = json_output(*words, "--out", "preset.json")
    assert len(free["trials"]) == 4
    assert all(0.1 <= trial["params"]["lean"] <= 10.0 for trial in free["trials"])
    assert json.loads((folder / "preset.json").read_text()) == {"lean": free["best"]["params"]["lean"], "scaling": True}
    run = ["run", "drizzle", "--policy", "steady", "--import", "mine", "--seeds", "1", "--horizon", "10"]
    chosen = json_output(*run, "--preset", "preset.json")
    assert chosen["settings"]["steady"]["lean"] == free["best"]["params"]["lean"]
    held = json_output(*words, "--set", "benchmark.items=4", "--out", "other.json")
    assert held["settings"] == {"benchmark.items": "4"}
    assert [trial["params"] for trial in held["trials"]] == [trial["params"] for trial in free["trials"]]
    result = invoke(*words, "--set", "lean=2", code=2)
    assert "policy 'steady' has no setting that is not fixed: there is nothing to search" in " ".join(
        result.stderr.split()
    )


def test_studies_of_ones_own_are_computed_and_reported(folder):
    outcome = json_output("reproduce", "own.toml", "sizes.py")
    assert (outcome["arms"], outcome["computed"], outcome["failed"]) == (3, 3, {}), "one of the four is in both"
    again = json_output("reproduce", "own.toml", "sizes.py", "--jobs", "2")
    assert (again["arms"], again["computed"]) == (3, 0)
    invoke("report")
    page = (folder / "report" / "report.html").read_text()
    assert "Leaning [to] one side · Sizes" in page
    assert re.search(r'"text": ?"lean"', page), "the axis has its own name"


def test_workers_know_the_import_and_execute_nothing_else_from_here(folder):
    """The file json.py in this directory would leave a mark, and end the worker, if it were taken for the real one."""
    outcome = json_output("reproduce", "own.toml", "--jobs", "2", "--store", "store")
    assert (outcome["computed"], outcome["failed"]) == (2, {})
    assert not (folder / "executed").exists()


def test_a_changed_policy_is_computed_again_and_a_change_elsewhere_is_not(folder, cache):
    home = folder / "copy" / "regretless"
    shutil.copytree(Path(regretless.__file__).parent, home)
    environment = {**os.environ, "PYTHONPATH": str(home.parent), "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-P", "-m", "regretless", "reproduce", "own.toml", "--format", "json"]

    def computed():
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["computed"]

    def change(path, old, new):
        assert path.read_text().count(old) >= 1
        path.write_text(path.read_text().replace(old, new, 1))

    def regrets():
        store = ResultStore(folder / "results")
        return {entry.address: store.load(entry.address).mean() for entry in store.entries()}

    assert computed() == 2
    first = regrets()
    change(home / "live" / "health.py", '"""', '"""Words. ')
    assert computed() == 0
    change(folder / "mine.py", "+1.0 *", "-1.0 *")
    assert computed() == 2
    changed = {key: value for key, value in regrets().items() if key not in first}
    assert len(changed) == 2
    assert min(changed.values()) > max(first.values()) + 10, "the most expensive instead of the cheapest"


def test_two_processes_share_the_trials_and_name_the_same_best(folder, cache):
    words = [sys.executable, "-P", "-m", "regretless", "tune", "drizzle", "--policy", "steady", "--import", "mine"]
    words += ["--trials", "6", "--block", "1", "--seeds", "1", "--horizon", "10", "--format", "json"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    both = [
        subprocess.Popen([*words, "--out", f"{name}.json"], stdout=subprocess.PIPE, text=True, env=environment)
        for name in "ab"
    ]
    one, other = (json.loads(process.communicate(timeout=300)[0]) for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert len(one["trials"]) == len(other["trials"]) == 6
    assert one["best"] == other["best"]
    assert one["best"]["value"] == min(trial["value"] for trial in one["trials"])
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "drizzle"], "unknown benchmark 'drizzle'"),
        (["run", "topk", "--import", "mine", "--policy", "steady", "--set", "alpha.max=1"], "has no effect on steady"),
        (
            ["run", "topk", "--import", "mine", "--policy", "greedy", "--set", "lean=1"],
            "no effect on greedy; steady has it",
        ),
        (
            ["run", "topk", "--import", "mine", "--policy", "steady", "--set", "lean=0"],
            "'lean': Input should be greater",
        ),
        (["run", "drizzle", "--import", "mine", "--degree", "3"], "unknown setting 'degree' of benchmark 'drizzle'"),
        (["reproduce", "no.toml"], "no.toml: no such file: expected a study in TOML or Python"),
        (["reproduce", "broken.toml"], "broken.toml: expected a study in TOML, but"),
        (["reproduce", "odd.toml"], "odd.toml: unknown setting 'titel' of a study; did you mean 'title'?"),
        (["reproduce", "main.toml"], "main.toml: 'main' is a study that regretless-dfhpg defines: choose another name"),
        (["reproduce", "away.toml"], "away.toml: imports: cannot import 'away'"),
        (["reproduce", "idle.toml"], "setting 'alpha.max' has no effect on steady"),
    ],
)
def test_mistakes_end_with_exit_code_2_and_one_sentence(folder, words, message):
    for name, text in (
        ("broken", "name ="),
        ("odd", "titel = 1\n" + STUDY),
        ("main", STUDY.replace("leaning", "main")),
        ("away", STUDY.replace('"mine"', '"away"')),
        ("idle", STUDY.replace('"lean", values', '"alpha.max", values')),
    ):
        (folder / f"{name}.toml").write_text(text)
    said = " ".join(invoke(*words, code=2).stderr.split())
    assert message in said
    assert "Traceback" not in said
    assert not (folder / "results").exists(), "nothing was begun"
