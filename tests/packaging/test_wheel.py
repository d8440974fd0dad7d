"""The wheel of the library runs in an environment that has the core's dependencies and nothing else."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = (
    "pandas",
    "pyarrow",
    "matplotlib",
    "plotly",
    "optuna",
    "pooch",
    "jinja2",
    "joblib",
    "requests",
    "ray",
    "torch",
)

pytestmark = pytest.mark.slow

PROGRAM = f"""
import importlib.util
present = [name for name in {OPTIONAL} if importlib.util.find_spec(name)]
assert present == [], present

import numpy as np
import regretless as rg

learner = rg.Learner(rg.oracles.top_k(6, 2), context=3)
for x in np.random.default_rng(0).normal(size=(3, 3)):
    choice = learner.decide(x)
    learner.learn(choice.id, total=float(choice.w @ np.arange(6.0)))
print(learner.health())

print(rg.simulate(rg.policies.Greedy(), rg.benchmarks.TopK(), seeds=2, horizon=20))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of this working tree."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def core(built, tmp_path_factory):
    """The Python of an environment with the wheel and the core's pinned dependencies."""
    folder = tmp_path_factory.mktemp("core") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements" / "core.txt")], check=True)
    subprocess.run([*pip, "--no-index", str(built[0])], check=True)  # with its dependencies: nothing may be missing
    return python


def _environment():
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(command, folder):
    result = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_wheel_holds_the_library_only(built):
    names = zipfile.ZipFile(built[0]).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "regretless",
        "regretless_command.py",
    }
    assert built[0].stat().st_size < 1_000_000


def test_learner_and_simulate_need_the_core_only(core, tmp_path):
    run([core, "-c", PROGRAM], tmp_path)


def test_the_command_needs_the_core_only(core, tmp_path):
    table = run([core.parent / "regretless", "run", "topk", "--seeds", "2", "--horizon", "50"], tmp_path)
    assert "linear_thompson" in table
    run([core.parent / "regretless", "list", "policies"], tmp_path)
    run([core.parent / "regretless", "doctor"], tmp_path)


def test_commands_of_the_paper_name_its_package(core, tmp_path):
    command = [core.parent / "regretless", "reproduce", "main", "--quick"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=_environment())
    assert result.returncode not in (0, 70), result.stdout + result.stderr
    assert "regretless-dfhpg" in result.stdout + result.stderr
