"""Malformed commands end soon, with a message and an exit code other than 0, and leave no files behind.

Run as a script, this file loads the program once and forks for every command, in a new folder each time.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from regretless.cli.main import main  # noqa: E402
from soak.malformed import KINDS  # noqa: E402
from soak.sizes import size  # noqa: E402

SECONDS = 20.0
"""Time limit of a command on an idle machine; on a busy one it grows with the load."""


class Finding(NamedTuple):
    """A command that did not end as expected."""

    command: list[str]
    problem: str
    output: str


def attempt(command: list[str], folder: Path) -> Finding | None:
    """Run one command in a child process; return a finding if it does not end as expected."""
    output = folder.parent / f"{folder.name}.txt"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    child = os.fork()
    if child == 0:
        _run_child(command, folder, output)
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    status, deadline = None, time.monotonic() + SECONDS * busy
    while status is None and time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
        time.sleep(0.0 if done else 0.01)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    text = output.read_text(encoding="utf-8", errors="replace")
    output.unlink()
    for problem, wrong in (
        ("did not end", status is None),
        ("traceback", "Traceback" in text),
        ("exit code 0", status == 0),
        (f"ended by a signal ({status})", status is not None and os.WIFSIGNALED(status)),
        ("no output", not text.strip()),
        ("left a part of a file", any(".part" in path.name for path in folder.rglob("*"))),
        ("changed a file", any(not path.is_file() or path.read_bytes() != old for path, old in before.items())),
    ):
        if wrong:
            return Finding(command, problem, text)
    return None


def _run_child(command: list[str], folder: Path, output: Path) -> None:
    """Run the command in the child process."""
    os.setpgid(0, 0)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    sys.argv = ["regretless", *command]
    code = 70
    try:
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def fuzz(commands: int, seed: int) -> list[Finding]:
    """Return the findings among a number of random commands."""
    rng = random.Random(seed)
    findings = []
    with tempfile.TemporaryDirectory() as place:
        os.environ["REGRETLESS_CACHE"] = str(Path(place) / "cache")
        for number in range(commands):
            if number and number % 50 == 0:
                print(f"{number} of {commands} commands, {len(findings)} findings", file=sys.stderr, flush=True)
            folder = Path(place) / f"{number:05d}"
            folder.mkdir()
            kind = KINDS[number % len(KINDS)]
            finding = attempt(kind(rng, folder), folder)
            if finding is not None:
                findings.append(finding)
            shutil.rmtree(folder, ignore_errors=True)
    return findings


def report(findings: list[Finding], commands: int) -> int:
    """Print the findings; return 1 if there are any."""
    for finding in findings:
        print(
            f"{finding.problem}: regretless {' '.join(map(repr, finding.command))}\n    {finding.output.strip()[-400:]}"
        )
    print(f"{commands} malformed commands, {len(findings)} findings")
    return 1 if findings else 0


def test_malformed_commands_end_with_a_message():
    commands, seed = size("commands", 12), size("seed", 3)
    command = [sys.executable, __file__, str(commands), str(seed)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == f"{commands} malformed commands, 0 findings"


if __name__ == "__main__":
    number = int(sys.argv[1])
    sys.exit(report(fuzz(number, int(sys.argv[2])), number))
