"""First contact: answers without waiting, a page of commands, and a doctor that knows what to do."""

import importlib
import json
import os
import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

from regretless import __version__
from regretless.cli import doctor
from regretless.cli.main import app

WITHOUT_JAX = """
import sys
import importlib.metadata as metadata
metadata.entry_points = lambda **given: metadata.EntryPoints()  # no plug-ins, which may import JAX
sys.modules.update(jax=None, numpy=None)  # importing either is an error from here on
from regretless.cli.main import app
for words in WORDS:
    try:
        app(words, prog_name="regretless")
    except SystemExit as left:
        print("CODE", left.code)
"""
ORDINARY = """
import sys
import jax, equinox, pydantic
before = set(sys.modules)
import regretless
assert callable(regretless.Learner)
print(*sorted(set(sys.modules) - before))
import regretless.simulation.programs
assert callable(regretless.simulate)
assert not any(name.startswith("regretless.experiments") for name in sys.modules)
from regretless import *
print(len({name.partition(".")[2] for name in sys.modules if name.startswith("regretless.")}))
problem = benchmarks.parse("topk").build().problem(feedback="bandit")
for name in ("greedy", "thompson", "dfhpg", "dfhpg_1"):
    policies.parse(name).build(problem).init(jax.random.key(0))
print(*sorted(set(sys.modules) - before))
"""
ELSEWHERE = (
    *(
        "highspy",
        "matplotlib",
        "optuna",
        "pandas",
        "plotly",
        "pooch",
        "pyarrow",
        "pyepo",
        "ray",
        "rich",
        "scipy",
        "typer",
    ),
    *("regretless.benchmarks.energy", "regretless.benchmarks.worlds", "regretless.cli", "regretless.models.diffusion"),
    *(
        "regretless.models.flow",
        "regretless.policies.adaptive",
        "regretless.experiments.report",
    ),
    *("regretless.surrogates.perturbation", "regretless.surrogates.pool"),
)
"""What only some sessions need."""
NOT_LIVE = (
    *("regretless.benchmarks", "regretless.live.evaluation", "regretless.models.gaussian", "regretless.oracles.dag"),
    *("regretless.policies.dfhpg", "regretless.policies.regression", "regretless.simulation", "regretless.experiments"),
)
"""What a live learner does without."""


def python(program: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **more}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)


def test_help_and_typos_are_answered_without_jax():
    words = [["--help"], ["run", "--help"], ["rnu"], ["run", "--sedes", "3"], []]
    done = python(WITHOUT_JAX.replace("WORDS", repr(words)))
    assert [line for line in done.stdout.splitlines() if "CODE" in line] == [f"CODE {n}" for n in (0, 0, 2, 2, 0)]
    assert "Did you mean 'run'?" in done.stderr
    assert "--seeds" in done.stderr


def test_an_ordinary_session_loads_only_what_it_uses():
    done = python(ORDINARY)
    assert done.returncode == 0, done.stderr
    learner, count, loaded = done.stdout.splitlines()
    assert int(count) <= 125
    for names, absent in ((learner, (*ELSEWHERE, *NOT_LIVE)), (loaded, ELSEWHERE)):
        assert [part for part in absent if any(f"{name}.".startswith(f"{part}.") for name in names.split())] == []


def test_the_version_is_printed():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"regretless {__version__}\n")


def test_without_words_the_command_shows_where_to_start():
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    for verb in ("run topk", "list policies", "arena --quick", "reproduce --quick", "doctor"):
        assert f"regretless {verb}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def findings(check):
    return [(finding.message, finding.is_problem) for finding in check]


def test_doctor_finds_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "file"))
    ((message, is_problem),) = findings(doctor.cache())
    assert is_problem
    assert "cannot write to" in message
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path))
    assert findings(doctor.cache()) == []


def test_doctor_finds_data_that_are_missing_or_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_DATA", str(tmp_path))
    ((message, is_problem),) = findings(doctor.energy_files())
    assert is_problem
    assert "no energy data" in message
    (tmp_path / "prices2013.dat").write_text("1 2 3")
    problems = findings(doctor.energy_files())
    assert len(problems) == 4
    assert "the file was altered" in problems[0][0]
    assert all("data fetch energy" in message and is_problem for message, is_problem in problems)


def test_doctor_finds_a_solver_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    ((message, is_problem),) = findings(doctor.solver())
    assert is_problem
    assert "pip install --force-reinstall highspy" in message


def test_doctor_finds_a_solver_whose_optima_are_wrong(monkeypatch):
    highspy = pytest.importorskip("highspy")
    importlib.import_module("regretless.oracles.highs")
    monkeypatch.setattr(highspy, "Highs", lambda: types.SimpleNamespace(version=lambda: "1.14.2"))
    ((message, is_problem),) = findings(doctor.solver())
    assert is_problem
    assert "got version 1.14.2" in message


@pytest.mark.parametrize(("there", "text"), [((), "shows none"), (("/dev/null",), "a GPU is there (/dev/null)")])
def test_doctor_finds_a_gpu_that_is_asked_for_and_not_usable(monkeypatch, there, text):
    monkeypatch.setattr(doctor, "CARDS", there)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    ((message, is_problem),) = findings(doctor.card("gpu", ["cpu"]))
    assert is_problem
    assert text in message
    assert findings(doctor.card("gpu", ["gpu"])) == []
    assert all(not is_problem for _, is_problem in findings(doctor.card("auto", ["cpu"])))


def test_doctor_ends_with_exit_code_1_and_every_problem(monkeypatch):
    monkeypatch.setattr("regretless.cli.doctor.try_out", list)
    for check in ("energy_files", "solver", "card"):
        monkeypatch.setattr(doctor, check, lambda *about: [])
    monkeypatch.setattr(doctor, "cache", lambda: [doctor.Finding("no room: make some")])
    result = CliRunner().invoke(app, ["doctor", "--format", "json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == ["no room: make some"]
