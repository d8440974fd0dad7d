"""examples/python: parts of other libraries as the documentation shows them, simulated, live and in a study."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless as rg
from regretless import models, policies, testing

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "python"
FILES = ["numpy_policy", "torch_network", "sklearn_forest"]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"^`examples/python/(\S+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.M | re.S))
MAX_LINES = 30


@pytest.fixture
def load(monkeypatch):
    """Import a file of the folder; its parts are registered while the test runs."""
    for registry in (policies.REGISTRY, models.REGISTRY):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))

    def load(name):
        pytest.importorskip(name.partition("_")[0])
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return getattr(module, "policy", None) or module.NumPyLinear()

    return load


@pytest.mark.parametrize("path", sorted(path.name for path in FOLDER.iterdir() if path.is_file()))
def test_file_is_shown_as_it_is(path):
    text = (FOLDER / path).read_text(encoding="utf-8")
    assert SHOWN.get(path) == text
    assert sum(bool(line.strip()) for line in text.splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", FILES)
def test_keeps_the_contract(name, load):
    problem = rg.Problem(rg.oracles.top_k(4, 2), context=3)
    testing.check_policy(load(name), problem)


@pytest.mark.parametrize("name", FILES)
def test_learns_something_in_a_simulation(name, load):
    world = rg.benchmarks.parse("world_topk", {"rounds": 400, "items": 8, "k": 2})
    result = rg.simulate(load(name), world, seeds=2, horizon=400)
    assert result.diverged == 0
    first, last = np.split(result.regret.mean(axis=0), 2)
    assert last.sum() < first.sum()


@pytest.mark.parametrize("name", FILES)
def test_lives_in_a_store(name, load, tmp_path):
    problem, spec = rg.Problem(rg.oracles.top_k(4, 2), context=3), load(name)
    learner, plain = rg.Learner(problem, policy=spec, store=tmp_path / "a.db"), rg.Learner(problem, policy=spec)
    rng = np.random.default_rng(0)
    for t in range(9):
        context, total = rng.normal(size=3), float(rng.normal() + 2)
        choices = [each.decide(context) for each in (learner, plain)]
        assert np.array_equal(*(choice.w for choice in choices))
        for each, choice in zip((learner, plain), choices, strict=True):
            each.learn(choice.id, total=total)
        if t == 5:
            learner.close()
            learner = rg.Learner.open(tmp_path / "a.db", problem, policy=spec)
    shown = [each.decide(np.ones(3), explore=False).w for each in (learner, plain)]
    assert np.array_equal(*shown)


@pytest.mark.slow
def test_the_study_runs(tmp_path):
    """In a process of its own, by name, with the files imported from the working directory."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(FOLDER)])}
    command = [sys.executable, "-m", "regretless", "reproduce", str(FOLDER / "study.toml"), "--store", str(tmp_path)]
    options = ["--seeds", "1", "--horizon", "20", "--format", "json"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, env=environment, cwd=FOLDER, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["failed"] == {}
