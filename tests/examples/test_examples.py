"""The examples as people run them: in a process of their own."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import regretless as rg
from extra import required
from regretless import oracles
from regretless.live.learner import Learner

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Compiled programs, which an example that is started again does not compile again; keeping them costs time,
    too.
    """
    monkeypatch.setitem(ENVIRONMENT, "XLA_FLAGS", "")  # the tests' flags make programs slow
    monkeypatch.setitem(ENVIRONMENT, "JAX_COMPILATION_CACHE_DIR", str(tmp_path / "programs"))
    monkeypatch.setitem(ENVIRONMENT, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def command(name, *words):
    return [sys.executable, str(ROOT / "examples" / f"{name}.py"), *map(str, words)]


def output_of(name, *words):
    run = subprocess.run(command(name, *words), capture_output=True, text=True, timeout=300, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def differences(text):
    """Mean and margin of ``learned − other``, by the other's name."""
    found = re.findall(r"learned − ([\w ]+): ([+-][\d.]+) ± ([\d.]+)", text)
    return {name: (float(mean), float(margin)) for name, mean, margin in found}


@pytest.mark.parametrize(("name", "rounds"), [("recommender", 400), ("knapsack", 300)])
def test_learned_costs_less_than_random_and_fixed_decisions(name, rounds):
    text = output_of(name, rounds)
    other = differences(text)
    assert other.keys() == {"random", "best fixed", "clairvoyant"}
    for line in ("random", "best fixed"):
        mean, margin = other[line]
        assert mean + margin < 0, text


def test_pyepo_model():
    required("pyepo.EPO")
    text = output_of("pyepo_model", 300)
    for line in ("random", "best fixed"):
        mean, margin = differences(text)[line]
        assert mean + margin < 0, text


@pytest.mark.usefixtures("programs")
def test_routing_that_is_killed_ends_as_if_undisturbed(tmp_path):
    whole = output_of("routing", tmp_path / "whole", 200)
    mean, margin = differences(whole)["random"]
    assert mean + margin < 0, whole
    folder = tmp_path / "killed"
    with subprocess.Popen(command("routing", folder, 200), stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        deadline = time.monotonic() + 120
        journal = folder / "journal.jsonl"
        while not journal.exists() or journal.stat().st_size < 2000:  # some thirty trips
            assert time.monotonic() < deadline
            assert process.poll() is None, "it ended before there was anything to kill"
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    again = output_of("routing", folder, 200)
    assert re.match(r"resumed after trip \d+\n", again)
    assert again.split("\n", 1)[1] == whole
    assert (folder / "journal.jsonl").read_bytes() == (tmp_path / "whole" / "journal.jsonl").read_bytes()
    states = []
    for place in (tmp_path / "whole", folder):
        planner = oracles.external(lambda cost, streets: np.zeros(17), 17, takes_instance=True)
        learner = Learner.open(place / "courier.db", planner, read_only=True)
        states.append((learner.waiting, learner.explain("trip 200").mean.tolist()))
    assert states[0] == states[1]


def test_going_live_is_cheaper_than_the_foreman_and_can_be_rebuilt_from_its_store(tmp_path):
    text = output_of("going_live", tmp_path, 120)
    assert re.search(r"learner +inconclusive from this log", text), text
    assert float(re.search(r"116 live days: ([+-][\d.]+)%", text)[1]) < 5.0, text  # the budget, and 116 days of luck
    rollout = rg.Rollout(lambda context: np.eye(4).reshape(-1))
    with pytest.warns(UserWarning, match="budget 0.02 and mode 'act' stay those of the store"):
        again = Learner.open(tmp_path / "live.db", oracles.assignment(4), rollout=rollout, read_only=True)
    health = again.health()
    assert f"{health.decisions} decisions, {health.waiting} of them without feedback" in text
    assert health.details["guard_allowed"] > 0.0
