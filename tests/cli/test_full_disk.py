"""A full disk: one line, exit code 1, the old file as it was, no parts, and the next run goes on.

The disk is full by a limit on the size of files, which the operating system reports in the same way.
"""

import contextlib
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from regretless import oracles
from regretless.cli.main import app
from regretless.errors import RegretlessError
from regretless.live.learner import Learner

LIMITED = """
import resource, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
from regretless_command import main
main()
"""
STUDY = """
name = "small"
[defaults]
benchmark = "topk"
policies = "greedy"
[[panels]]
title = "one cell"
cells = [{label = "topk"}]
"""
SMALL = ["--seeds", "2", "--horizon", "20"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder that all of these tests share, and with it the compiled programs."""
    folder = tmp_path_factory.mktemp("disk")
    (folder / "small.toml").write_text(STUDY)
    return folder


@contextlib.contextmanager
def files_of_at_most(size):
    """A limit on what this process writes; 0: none."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size or limits[0], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def regretless(place, size, *words):
    """The command with files of at most ``size`` bytes (0: of any size): exit code, standard output, standard error."""
    with contextlib.chdir(place), files_of_at_most(size):
        result = CliRunner().invoke(app, words, env={"REGRETLESS_CACHE": str(place / "cache")})
    return result.exit_code, result.stdout, result.stderr


def in_a_process(place, size, *words):
    """The same in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(size), *words],
        cwd=place,
        env={**os.environ, "REGRETLESS_CACHE": str(place / "cache"), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(place, size, *words, kept, command=regretless):
    """One line about the file that does not fit, and not a byte of ``kept`` is another."""
    before = contents(kept) if kept.exists() else {}
    code, shown, said = command(place, size, *words)
    assert (code, "mean ± s.e." in shown) == (1, words[0] == "run"), said  # what was computed is shown all the same
    lines = [line for line in said.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, said
    assert "Traceback" not in said
    assert "Warning" not in said
    after = contents(kept) if kept.exists() else {}
    assert {path: after.get(path) for path in before} == before
    assert not list(place.rglob("*.part"))
    return lines[0], set(after) - set(before)


def test_run_keeps_what_was_written_before(place):
    words, out = ["run", "topk", "--policy", "greedy", *SMALL, "--out", "out"], place / "out"
    line, more = refused(place, 3000, *words, kept=out, command=in_a_process)
    assert ".npz: File too large; nothing was written" in line
    assert not more
    assert regretless(place, 0, *words)[0] == 0
    line, more = refused(place, 3000, *words, kept=out)
    assert ".npz: File too large; the old file is unchanged" in line
    assert not more


def test_reproduce_stops_at_the_first_arm_and_continues_later(place):
    words, store = ["reproduce", "small.toml", *SMALL, "--store", "store"], place / "store"
    line, more = refused(place, 3000, *words, kept=store)
    assert "File too large; nothing was written" in line
    assert {path.parts[0] for path in more} == {"campaigns"}
    code, said, _ = regretless(place, 0, *words)
    assert (code, "1 arms, 1 of them computed now" in said) == (0, True)
    code, said, _ = regretless(place, 3000, *words)
    assert (code, "1 arms, 0 of them computed now" in said) == (0, True), "what is there is not written again"


def test_workers_of_reproduce_do_not_add_to_it(place):
    line, _ = refused(
        place, 3000, "reproduce", "small.toml", *SMALL, "--store", "workers", "--jobs", "2", kept=place / "workers"
    )
    assert "File too large" in line


def test_report_leaves_the_old_page(place):
    assert regretless(place, 0, "reproduce", "small.toml", *SMALL, "--store", "store")[0] == 0
    words, page = ["report", "--store", "store", "--out", "page"], place / "page"
    line, more = refused(place, 100_000, *words, kept=page)
    assert "report.html: File too large; nothing was written" in line
    assert not more
    assert regretless(place, 0, *words)[0] == 0
    line, _ = refused(place, 100_000, *words, kept=page)
    assert "report.html: File too large; the old file is unchanged" in line


def test_tune_loses_no_trial_and_no_preset(place):
    words = ["tune", "topk", "--policy", "greedy", *SMALL, "--store", "tuning", "--out", "best.json", "--block", "4"]
    kept = place / "tuning"
    line, _ = refused(place, 1000, *words, "--trials", "2", kept=kept / "none", command=in_a_process)
    assert "cannot use the storage" in line
    assert regretless(place, 0, *words, "--trials", "2")[0] == 0
    best = (place / "best.json").read_bytes()
    size = (kept / "tuning" / "trials.db").stat().st_size
    line, _ = refused(place, size, *words, "--trials", "12", kept=kept / "none", command=in_a_process)
    assert "cannot use the storage" in line
    assert line.endswith("finished trials are kept")
    assert (place / "best.json").read_bytes() == best
    refused(place, 100, *words, "--trials", "2", kept=kept, command=in_a_process)
    code, said, _ = regretless(place, 0, *words, "--trials", "12")
    assert (code, said.startswith("12 trials")) == (0, True)


def test_a_learner_goes_on_from_its_last_checkpoint(tmp_path):
    oracle, path = oracles.top_k(4, 2), tmp_path / "learner.db"
    learner = Learner(oracle, context=3, policy="linear_thompson")
    learner.learn(learner.decide(np.ones(3)).id, total=1.0)
    learner.save(path)
    before = path.read_bytes()
    choice = learner.decide(np.zeros(3))
    with (
        files_of_at_most(5000),
        pytest.raises(
            RegretlessError, match=r"learner\.db: (File too large|disk I/O error); the old file is unchanged"
        ),
    ):
        learner.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["learner.db"]
    assert Learner.open(path, oracle, read_only=True).health().decisions == 1
    learner.learn(choice.id, total=2.0)
    learner.save(path)
    assert Learner.open(path, oracle, read_only=True).health().learned == 2
