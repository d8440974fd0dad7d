"""Odd surroundings and input: one message and an exit code, never a traceback, a hang or a broken result."""

import json
import os
import subprocess
import sys

import pytest

SMALL = ["run", "topk", "--policy", "greedy", "--seeds", "1", "--horizon", "5"]
NOISY = """
import ctypes, os, subprocess
print("hello from a plug-in")
ctypes.CDLL(None).printf(b"hello from C")
subprocess.run(["echo", "hello from a process"])
import regretless as rg

class Loud(rg.policies.Greedy):
    def build(self, problem):
        print("building")
        return super().build(problem)

rg.policies.register("loud", Loud)
"""
BROKEN = """
class Stop(BaseException):
    pass

raise Stop("not today")
"""
BROKEN_LATER = """
import regretless as rg

class Stop(BaseException):
    pass

class Stopping(rg.policies.Greedy):
    def build(self, problem):
        raise Stop("not today")

rg.policies.register("stopping", Stopping)
"""


def regretless(folder, *words, timeout=120, **environment):
    """Return exit code, standard output and standard error of the command in a folder."""
    settings = {"JAX_PLATFORMS": "cpu", "REGRETLESS_CACHE": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "regretless", *words],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.decode("utf-8", "replace"), " ".join(done.stderr.decode().split())


def test_a_folder_that_is_not_utf_8(tmp_path):
    code, shown, errors = regretless(tmp_path, *SMALL, "--out", b"out\xff")
    assert code == 0, errors
    assert "written to out" in shown
    assert regretless(tmp_path, "status", "--store", b"out\xff")[0] == 0


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_deeply_nested_study(tmp_path, depth):
    """Deep tables by dotted names, and deeper ones by brackets than the parser follows."""
    text = 'name = "deep"\n[defaults]\nbenchmark = "topk"\n'
    deep = f"settings.{'.'.join('a' * min(depth, 2000))} = 1\n" if depth < 1000 else f"x = {'[' * depth}{']' * depth}\n"
    (tmp_path / "deep.toml").write_text(text + deep + "[[panels]]\n[[panels.cells]]\n")
    code, _, errors = regretless(tmp_path, "reproduce", "deep.toml")
    assert code == 2
    assert "error: " in errors


def test_plug_ins_that_raise_anything(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    code, _, errors = regretless(tmp_path, *SMALL, "--import", "broken")
    assert (code, "cannot import 'broken': it failed with Stop: not today" in errors) == (2, True)
    (tmp_path / "later.py").write_text(BROKEN_LATER)
    code, _, errors = regretless(tmp_path, "run", "topk", "--policy", "stopping", "--import", "later")
    assert (code, "Stop: not today; REGRETLESS_TRACEBACK=1 shows where" in errors) == (1, True)


def test_a_platform_that_is_not_there(tmp_path):
    code, _, errors = regretless(tmp_path, *SMALL, JAX_PLATFORMS="tpu")
    assert (code, "JAX_PLATFORMS=tpu: JAX finds no such device here" in errors) == (2, True)


def test_without_compilation(tmp_path):
    code, _, errors = regretless(tmp_path, *SMALL, JAX_DISABLE_JIT="1")
    assert (code, "JAX_DISABLE_JIT is set" in errors) == (2, True)


def test_what_a_plug_in_prints_is_not_part_of_the_result(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)
    words = ["run", "topk", "--policy", "loud", "--import", "noisy", "--seeds", "1", "--horizon", "5"]
    code, shown, errors = regretless(tmp_path, *words, "--format", "json")
    assert code == 0, errors
    assert json.loads(shown)["results"][0]["policy"] == "loud"
    for source in ("a plug-in", "C", "a process"):
        assert f"hello from {source}" in errors
    assert "building" in errors


def test_a_billion_trials_say_at_once_what_is_done(tmp_path):
    command = [sys.executable, "-P", "-m", "regretless", "tune", "topk", "--policy", "greedy", "--trials", str(10**9)]
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "REGRETLESS_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(
        [*command, "--seeds", "1", "--horizon", "5"], cwd=tmp_path, env=settings, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stderr.readline()
        finally:
            process.kill()
    assert "tuning greedy on topk: drawing trials, 0 %" in line


@pytest.mark.parametrize(
    "words",
    [
        ["run", "topk", "--preset", "/dev/zero"],
        ["run", "--contexts", "/dev/zero", "--costs", "/dev/zero", "--oracle", "top_k"],
        ["reproduce", "zero.toml"],
    ],
)
def test_a_device_is_not_read(tmp_path, words):
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    code, _, errors = regretless(tmp_path, *words, timeout=60)
    assert code == 2
    assert "error: " in errors
