"""examples/plugin installed as its users would: checked, listed, run, tuned, studied and reported, without
touching regretless.

It is installed into a folder of its own, which PYTHONPATH names: entry points are found there, and the environment of
the tests stays as it is. No network is needed.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regretless

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
SOURCE = Path(regretless.__file__).parent
SMALL = ("--seeds", "2", "--horizon", "30")
PARTS = {
    "surrogates": {"half_spo"},
    "policies": {"averages", "replay", "mixture"},
    "models": {"gaussian_intercept"},
    "oracles": {"one_of_each"},
    "benchmarks": {"weather"},
    "feedback": {"pair_sums"},
}
LIST = """
import json, sys
from regretless.cli.list import list_entries
print(json.dumps({family: dict(list_entries(family)) for family in sys.argv[1:]}))
"""
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from regretless.cli.main import app
done = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[1])]
assert all(result.exit_code == 0 for result in done), [result.output for result in done]
print(json.dumps([result.stdout for result in done]))
"""
KEYS = """
import json, sys
from pathlib import Path
from regretless.experiments import Experiment
from regretless.experiments.runner import resolve
folder = Path(sys.argv[1])
cells = {
    "averages": Experiment("weather", "averages"),
    "member": Experiment("weather", "mixture", settings={"first": "averages"}),
    "other": Experiment("topk", "greedy"),
    "surrogate": Experiment("topk", "dfhpg", settings={"surrogate": "half_spo"}),
    "feedback": Experiment("topk", "greedy", feedback="pair_sums"),
}
addresses = lambda: {name: resolve(cell)[0].address for name, cell in cells.items()}
known = [addresses()]
for file, old, new in json.loads(sys.argv[2]):
    text = (folder / file).read_text()
    assert old in text, (file, old)
    (folder / file).write_text(text.replace(old, new))
    known.append(addresses())
print(json.dumps(known))
"""


def files():
    """Every file of regretless with its size and the time of its last change."""
    found = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


class Garden:
    """The package in a folder of its own, and processes that see it."""

    def __init__(self, place: Path):
        self.place, self.folder, self.work = place, place / "installed", place / "work"
        self.work.mkdir()
        source = shutil.copytree(PLUGIN, place / "source", ignore=shutil.ignore_patterns("__pycache__"))
        pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-index", "--no-deps"]
        self.python([*pip, "--no-build-isolation", "--no-compile", "--target", self.folder, source])

    def python(self, words, **more):
        path = os.pathsep.join(map(str, (self.folder, SOURCE.parent)))
        about = {"PYTHONPATH": path, "REGRETLESS_CACHE": str(self.place / "cache"), "JAX_PLATFORMS": "cpu", **more}
        command = [sys.executable, *map(str, words)]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=300, cwd=self.work, env={**os.environ, **about}
        )
        assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
        return run.stdout

    def regretless(self, *words):
        return self.python(["-m", "regretless", *words])

    def one_after_another(self, *commands):
        """What these commands print, all of them in one process: its start is the slowest part of a short one."""
        return json.loads(self.python(["-c", COMMANDS, json.dumps(commands)]))


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    before = files()
    yield Garden(tmp_path_factory.mktemp("garden"))
    assert files() == before, "a file of regretless was changed"


def test_the_tests_of_the_package_pass(garden):
    output = garden.python(["-m", "pytest", "-q", "-p", "no:cacheprovider", garden.place / "source" / "tests"])
    assert "passed" in output


def test_every_part_is_listed_with_its_package(garden):
    listed = json.loads(garden.python(["-c", LIST, *PARTS]))
    offered = {
        family: {name for name, words in rows.items() if words.endswith("[regretless-garden]")}
        for family, rows in listed.items()
    }
    assert offered == PARTS
    assert all(len(words) > len(" [regretless-garden]") for rows in listed.values() for words in rows.values())


def test_the_benchmark_is_run_with_every_policy_and_reported(garden):
    output = json.loads(garden.regretless("run", "weather", *SMALL, "--out", "weather", "--format", "json"))
    assert PARTS["policies"] < {row["policy"] for row in output["results"]}
    assert all(row["diverged"] == 0 for row in output["results"])
    assert all(settings["scaling"] for settings in output["settings"].values())  # nothing is tuned, so all are scaled
    garden.regretless("report", "--store", "weather", "--out", "page")
    page = (garden.work / "page" / "report.html").read_text()
    assert all(name in page for name in PARTS["policies"])


def test_surrogate_model_and_feedback_are_used_on_a_benchmark_of_ours(garden):
    changes = ["--set", "surrogate=half_spo", "--set", "surrogate.reach=0.5", "--model", "gaussian_intercept"]
    policies = ["--policy", "dfhpg", "--policy", "replay", "--feedback", "pair_sums"]
    output = json.loads(garden.regretless("run", "topk", *policies, *changes, *SMALL, "--format", "json"))
    assert output["settings"]["dfhpg"]["surrogate.reach"] == 0.5
    assert output["settings"]["replay"]["model"] == "gaussian_intercept"
    assert all(row["diverged"] == 0 for row in output["results"])


def test_tuning_searches_what_the_policy_declares(garden):
    words = ["--policy", "averages", "--trials", "4", "--set", "benchmark.beds=4", "--format", "json"]
    output = json.loads(garden.regretless("tune", "weather", *words, *SMALL))
    tried = [trial["params"]["curiosity"] for trial in output["trials"]]
    assert len(tried) == 4
    assert all(0.01 <= curiosity <= 10 for curiosity in tried)
    preset = json.loads((garden.work / "weather_averages.json").read_text())
    assert preset == {"curiosity": output["best"]["params"]["curiosity"], "scaling": True}


def test_studies_are_computed_once_and_reported_by_name(garden):
    for name in ("curiosity.toml", "company.py"):
        shutil.copy(PLUGIN / "studies" / name, garden.work)
    words = ["reproduce", "curiosity.toml", "company.py", *SMALL, "--store", "studies", "--format", "json"]
    first = json.loads(garden.regretless(*words))
    assert (first["computed"], first["failed"]) == (first["arms"], {})
    again, _ = garden.one_after_another(words, ["report", "--store", "studies", "--out", "studies_page"])
    assert json.loads(again)["computed"] == 0
    page = (garden.work / "studies_page" / "report.html").read_text()
    for words in (
        "How curious a gardener should be",
        "Five beds, with replay added",
        "Is company good?",
        "80% replay",
    ):
        assert words in page


def test_results_are_computed_again_only_when_their_source_changes(garden):
    copy = garden.place / "changed"
    shutil.copytree(garden.folder, copy)
    package = copy / "regretless_garden"
    changes = [
        ("averages.py", "state.cost + step", "state.cost - step"),
        ("surrogates.py", "return solutions[0] - solutions[1]", "return solutions[1] - solutions[0]"),
        ("feedback.py", "// 2\n        member", "// 1\n        member"),
    ]
    path = os.pathsep.join(map(str, (copy, SOURCE.parent)))
    keys = json.loads(garden.python(["-c", KEYS, package, json.dumps(changes)], PYTHONPATH=path))
    changed = [{name for name in now if now[name] != was[name]} for was, now in itertools.pairwise(keys)]
    assert changed == [set(keys[0]) - {"other"}] * len(changes), "every arm with a part of the package, and no other"
