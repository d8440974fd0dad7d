"""The tools that try to break the program, with few calls and fixed seeds; ``make soak`` runs them at length."""

import os
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run(tool, *options):
    """The last line that a tool prints; fails with all of its findings if there are any."""
    command = [sys.executable, TOOLS / f"{tool}.py", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[-1]


def test_learners_survive_random_calls_and_agree_with_the_model():
    line = run("fuzz_learner", "--calls", "176", "--episode", "44", "--seed", "3")
    assert line.startswith("176 calls of learners (")
    assert line.endswith("rejected), 0 findings")


def test_malformed_commands_end_with_a_message():
    assert run("fuzz_cli", "--commands", "12", "--seed", "3") == "12 malformed commands, 0 findings"


def test_two_interrupted_runs_leave_no_half_file():
    assert run("interrupt_runs", "--runs", "2", "--seed", "3") == "2 interrupted runs, 0 findings"
