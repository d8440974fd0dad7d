"""The example plant as a process: used by several clients that repeat their requests, killed, and started again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import regretless as rg
from regretless.client import Client
from regretless.live.store import read_rounds
from regretless_command import main
from soak.sizes import size

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"
CLIENTS, KILLS = size("service_clients", 4), size("service_kills", 2)
PAIRS = 20 * KILLS


def start(folder, port=0, words=("serve", "plant.toml")):
    """Return a process that serves the example, or what else is asked for, and its address."""
    command = [sys.executable, "-m", "regretless", *words, "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if match := re.search(r"ready: (http\S+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, match[1]
    raise AssertionError("".join(lines))


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(EXAMPLE, tmp_path / "service"))


def test_every_acknowledged_call_survives_kills(folder):
    process, url = start(folder)
    port = int(url.rpartition(":")[2])
    progress, acknowledged, failures = threading.Semaphore(0), [{} for _ in range(CLIENTS)], []

    def work(number):
        learner = Client(url, timeout=10.0, patience=120.0).learner("north")
        rng = np.random.default_rng(number)
        try:
            for i in range(PAIRS):
                key = f"{number}-{i}"
                context = {"temperature": float(rng.normal()), "orders": float(rng.normal())}
                choice = learner.decide(context, key=key)
                total = float(np.arange(1.0, 17.0) @ choice.w)
                learner.learn(key, total=total)
                acknowledged[number][key] = (choice.id, choice.w.tolist(), total, list(context.values()))
                progress.release()
        except BaseException as error:
            failures.append(error)
            progress.release(PAIRS)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for kill in range(KILLS):
        for _ in range(CLIENTS * PAIRS // (KILLS + 1)):
            progress.acquire()
        time.sleep(0.003 * (kill % 7))  # at another moment of a call
        process.kill()
        process.wait()
        process, _ = start(folder, port)
    for thread in threads:
        thread.join(120.0)
    assert failures == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(30.0) == 0

    calls = {key: call for part in acknowledged for key, call in part.items()}
    assert len(calls) == CLIENTS * PAIRS
    rounds = read_rounds(folder / "north.db")
    assert len(rounds["decisions"]) == len(calls), "no decision twice, and none without a caller"
    for id, w, total, context in calls.values():
        assert rounds["decisions"][id - 1].tolist() == w
        assert rounds["totals"][id - 1] == total
        assert sorted(rounds["contexts"][id - 1].tolist()) == sorted(context)

    sys.path.insert(0, str(folder))
    try:
        from plant import foreman, problem
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("plant", None)
    whole = rg.Learner.open(folder / "north.db", problem, rollout=rg.Rollout(foreman), read_only=True)
    assert (whole.state.made, whole.waiting) == (len(calls), [])


def test_the_example_client_runs_and_a_restart_continues(folder):
    process, url = start(folder)
    command = [sys.executable, "client.py", url, "60"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert "incumbent" in done.stdout or "too early" in done.stdout or "prediction errors" in done.stdout
    learner = Client(url).learner("north")
    learner.pause()
    before = learner.explain("day-3")
    process.kill()
    process.wait()
    process, url = start(folder)
    learner = Client(url).learner("north")
    assert json.dumps(learner.explain("day-3").as_dict()) == json.dumps(before.as_dict())
    assert learner.decide({"temperature": 1.0, "orders": 2.0}).by == "incumbent"
    watcher, page = start(folder, words=("watch", "north.db"))
    with urllib.request.urlopen(f"{page}/v1/learners/learner/page", timeout=30) as answer:
        shown = json.load(answer)
    assert (shown["decision"]["id"], shown["state"]["sentence"]) == (61, "paused: the incumbent decides")
    for running in (watcher, process):
        running.terminate()
        assert running.wait(30.0) == 0


def test_a_configuration_is_checked_and_tokens_are_made(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["regretless", "serve", str(folder / "plant.toml"), "--check"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert "1 learners, 0 templates, no errors" in capsys.readouterr().out
    (folder / "plant.toml").write_text((folder / "plant.toml").read_text().replace("plant:foreman", "plant:forman"))
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "forman" in capsys.readouterr().err
    assert not (folder / "north.db").exists(), "a check opens no store"
