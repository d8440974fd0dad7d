"""How many files of the library a command enters: a reader of the code has to open no more."""

import json
import os
import subprocess
import sys

import pytest

MOST_FILES = 45
PROGRAM = """
import inspect, json, sys, threading
from pathlib import Path
entered = set()

def note(frame, event, argument):
    code = frame.f_code  # importing is not entering: modules, classes, and packages that look up a name
    if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "__getattr__":
        entered.add(frame.f_code.co_filename)

sys.setprofile(note)
threading.setprofile(note)
from regretless.cli.main import app
try:
    app(json.loads(sys.argv[1]), prog_name="regretless")
except SystemExit as left:
    assert not left.code, left.code
finally:
    sys.setprofile(None)
import regretless
root = Path(regretless.__file__).parent
print(json.dumps(sorted(str(Path(name).relative_to(root)) for name in entered if name.startswith(str(root)))))
"""
STUDY = """
name = "one"
[[panels]]
[[panels.cells]]
benchmark = "topk"
policies = ["dfhpg"]
seeds = 2
horizon = 20
"""


@pytest.mark.parametrize(
    "words",
    [
        ["run", "topk", "--policy", "dfhpg", "--seeds", "2", "--horizon", "20", "--out", "out"],
        ["reproduce", "one.toml"],
    ],
    ids=["run", "one cell of a study"],
)
def test_a_command_enters_few_files(words, tmp_path):
    (tmp_path / "one.toml").write_text(STUDY)
    settings = {"JAX_PLATFORMS": "cpu", "REGRETLESS_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-P", "-c", PROGRAM, json.dumps(words)]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    files = json.loads(done.stdout.splitlines()[-1])
    assert "experiments/runner.py" in files
    assert len(files) <= MOST_FILES, files
