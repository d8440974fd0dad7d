"""Runs that are interrupted at random moments print one line, end with exit code 130 and leave no partial file.

A third of the runs is interrupted in the first two seconds, a third while files are written (the child slows the
atomic writer down and reports when it starts), a third at any moment in between.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from soak.sizes import size

SPY = """
import os, sys, time
from regretless import files
real = files._into_place
def slowly(part, target):
    open(os.environ["REGRETLESS_SPY"], "a").write(f"{target}\\n")
    time.sleep(0.15)
    real(part, target)
files._into_place = slowly
from regretless_command import main
main()
"""
RUN = ["run", "topk", "--policy", "greedy", "--seeds", "2", "--horizon", "20", "--out", "out"]
STORE = ["reproduce", "semi_bandit", "--quick", "--seeds", "1", "--horizon", "5", "--store", "store"]
JOBS = [*STORE, "--jobs", "2"]
LAST_MOMENT = 6.0


class Finding(NamedTuple):
    """A run that did not end as expected."""

    problem: str
    command: list[str]
    after: float
    output: str


def interrupted(rng: random.Random, kind: int, folder: Path, cache: Path) -> Finding | None:
    """Interrupt one run; return a finding if it does not end as expected."""
    command = rng.choice([RUN, RUN, STORE, JOBS])
    spy = folder.parent / f"{folder.name}.spy"
    environment = {**os.environ, "REGRETLESS_CACHE": str(cache), "REGRETLESS_SPY": str(spy)}
    start = [sys.executable, "-c", SPY if kind == 1 else "from regretless_command import main; main()", *command]
    began = time.monotonic()
    process = subprocess.Popen(
        start,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    if kind == 1:
        wanted = rng.randrange(1, 4)
        while process.poll() is None and (not spy.exists() or spy.read_text().count("\n") < wanted):
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.2))
    else:
        time.sleep(rng.uniform(0.15, 2.0) if kind == 0 else rng.uniform(2.0, LAST_MOMENT))
    after = time.monotonic() - began
    finished = process.poll() is not None
    if not finished:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    try:
        output, _ = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Finding("did not end", command, after, output)
    code = process.returncode
    lines = [line for line in output.splitlines() if line.startswith("stopped")]
    for problem, wrong in (
        ("traceback", "Traceback" in output),
        ("warning", "Warning" in output),
        (f"exit code {code}", not finished and code not in (0, 130)),
        ("not one line", code == 130 and len(lines) != 1),
        ("partial file", any(".part" in path.name for path in folder.rglob("*"))),
        ("unreadable file", not all(map(_complete, folder.rglob("*")))),
        ("wrong message", "nothing" in "".join(lines) and any(path.is_file() for path in folder.rglob("*"))),
    ):
        if wrong:
            return Finding(problem, command, after, output)
    return None


def _complete(path: Path) -> bool:
    """Return whether a file is complete."""
    if not path.is_file():
        return True
    content = path.read_bytes()
    if path.suffix == ".parquet":
        return content[-4:] == b"PAR1"
    if path.suffix == ".png":
        return content[-8:-4] == b"IEND"
    if path.suffix == ".json":
        try:
            json.loads(content)
        except ValueError:
            return False
    return True


def test_interrupted_runs_leave_no_partial_file(tmp_path):
    runs, rng = size("interrupts", 2), random.Random(size("seed", 3))
    findings = []
    for number in range(runs):
        folder = tmp_path / f"{number:04d}"
        folder.mkdir()
        finding = interrupted(rng, number % 3, folder, tmp_path / "cache")
        if finding is not None:
            findings.append(
                f"{finding.problem} after {finding.after:.2f} s: {' '.join(finding.command)}\n"
                f"    {finding.output[-400:]}"
            )
    assert not findings, "\n".join(findings)
