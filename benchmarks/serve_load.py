"""Print what a service costs: ``python benchmarks/serve_load.py [--learners 1] [--clients 4] [--pairs 4000]``.

A service in a process of its own (top-k, d = 30) is asked for decisions, and given their costs, by clients on this
machine, each a process that asks one learner after the other. Printed are pairs of decide and feedback per second,
median and 99th percentile of each call, processor time of the service per call next to the same calls on a learner in
this process, failures, and the service's memory during the run. ``--rate`` limits the pairs per second of all clients
together, to measure a service that is half busy.
"""

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import regretless as rg
from regretless.client import Client

ITEMS, CHOSEN, FEATURES = 30, 5, 6
TABLE = """
[service]
max_waiting = 1000
"""
LEARNER = """
[learners.l{i}]
store = "l{i}.db"
policy = "{policy}"
[learners.l{i}.problem]
oracle = "top_k"
arguments = {{ dim = 30, k = 5 }}
context = 6
"""


def play(url: str, number: int, learners: int, pairs: int, rate: float, results: Any) -> None:
    """Make pairs of decide and feedback; send their times and the number of failures."""
    client, rng = Client(url, timeout=120.0), np.random.default_rng(number)
    costs, times, failures = np.arange(1.0, ITEMS + 1.0), [], 0
    due = time.monotonic()
    for i in range(pairs):
        learner = client.learner(f"l{(number + i) % learners}")
        context = rng.normal(size=FEATURES).tolist()
        if rate:
            due += 1.0 / rate
            time.sleep(max(due - time.monotonic(), 0.0))
        try:
            first = time.perf_counter()
            choice = learner.decide(context)
            second = time.perf_counter()
            learner.learn(choice.id, total=float(costs @ choice.w))
            times.append((second - first, time.perf_counter() - second))
        except rg.RegretlessError as error:
            failures += 1
            print(error, file=sys.stderr)
    results.put((times, failures))


def start(folder: Path, learners: int, policy: str) -> tuple[subprocess.Popen[str], str]:
    """Return the process of the service and its address."""
    text = TABLE + "".join(LEARNER.format(i=i, policy=policy) for i in range(learners))
    (folder / "load.toml").write_text(text)
    command = [sys.executable, "-m", "regretless", "serve", "load.toml", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if match := re.search(r"ready: (http\S+)", line):
            return process, match[1]
    raise SystemExit("the service did not start")


def usage(process: int) -> tuple[float, float]:
    """Return processor seconds and resident MiB of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def in_process(policy: str, pairs: int, folder: Path) -> tuple[list[tuple[float, float]], float]:
    """Return the times of the same calls on a learner of this process, and processor seconds per pair."""
    learner = rg.Learner(rg.oracles.top_k(ITEMS, CHOSEN), context=FEATURES, policy=policy, store=folder / "own.db")
    rng, costs, times = np.random.default_rng(0), np.arange(1.0, ITEMS + 1.0), []
    for i in range(pairs + 50):
        if i == 50:
            began = time.process_time()
        first = time.perf_counter()
        choice = learner.decide(rng.normal(size=FEATURES))
        second = time.perf_counter()
        learner.learn(choice.id, total=float(costs @ choice.w))
        times.append((second - first, time.perf_counter() - second))
    return times[50:], (time.process_time() - began) / pairs


def quantiles(times: list[tuple[float, float]]) -> dict[str, list[float]]:
    """Return median and 99th percentile in milliseconds."""
    table = np.array(times) * 1000.0
    return {name: np.quantile(table[:, i], (0.5, 0.99)).round(2).tolist() for i, name in enumerate(("decide", "learn"))}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("learners", 1), ("clients", 4), ("pairs", 4000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.0, help="pairs per second of all clients together; 0: no limit")
    parser.add_argument("--policy", default="linear_thompson")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        process, url = start(folder, given.learners, given.policy)
        client = Client(url, timeout=600.0, patience=600.0)
        for i in range(given.learners):  # after the programs are compiled
            learner = client.learner(f"l{i}")
            for _ in range(2):
                learner.learn(learner.decide([0.0] * FEATURES).id, total=1.0)
        results: Any = context.Queue()
        each = given.pairs // given.clients
        arguments = [(url, n, given.learners, each, given.rate / given.clients, results) for n in range(given.clients)]
        players = [context.Process(target=play, args=part) for part in arguments]
        before, memory = usage(process.pid), []
        began = time.monotonic()
        for player in players:
            player.start()
        while any(player.is_alive() for player in players) and results.qsize() < given.clients:
            memory.append(round(usage(process.pid)[1]))
            time.sleep(1.0)
        parts = [results.get() for _ in players]
        elapsed = time.monotonic() - began
        for player in players:
            player.join()
        after = usage(process.pid)
        process.terminate()
        process.wait(60)
        times = [pair for part, _ in parts for pair in part]
        own, own_seconds = in_process(given.policy, min(given.pairs, 1000), folder)
    seconds = (after[0] - before[0]) / max(len(times), 1)
    shown = memory[:: max(len(memory) // 8, 1)]
    report = {
        "pairs": len(times),
        "failed": sum(failures for _, failures in parts),
        "pairs per second": round(len(times) / elapsed, 1),
        "service, ms (median, 99 %)": quantiles(times),
        "in process, ms (median, 99 %)": quantiles(own),
        "processor ms per call: service": round(500.0 * seconds, 2),
        "processor ms per call: in process": round(500.0 * own_seconds, 2),
        "memory of the service, MiB": shown,
        "load average": os.getloadavg()[0],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
