"""Campaigns that are killed, or whose Ray workers are killed, at random moments give the results of an undisturbed
one.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regretless.experiments import ResultStore
from soak.sizes import size

STUDY = ["main", "--quick"]


def command(store: Path) -> list[str]:
    return [sys.executable, "-m", "regretless", "reproduce", *STUDY, "--store", str(store)]


def digests(folder: Path) -> dict[str, str]:
    """Return a hash of the numbers of every stored result."""
    store = ResultStore(folder)
    return {entry.address: store.load(entry.address).digest() for entry in store.entries()}


def check(folder: Path, expected: dict[str, str]) -> None:
    """Fail if the disturbed store differs from the undisturbed one, or holds a lock."""
    stored, store = digests(folder), ResultStore(folder)
    assert [key for key in expected if stored.get(key) != expected[key]] == []
    assert [path.name for path in store.claims.iterdir() if store.running(path.name)] == []


@pytest.mark.soak
def test_killed_campaigns_end_with_the_same_results(tmp_path):
    rng, calm, disturbed = random.Random(size("seed", 0)), tmp_path / "calm", tmp_path / "disturbed"
    began = time.monotonic()
    subprocess.run(command(calm), check=True)
    seconds, expected = time.monotonic() - began, digests(calm)
    for _ in range(size("campaign_kills", 3)):
        if set(digests(disturbed)) >= set(expected):  # complete: continue with an empty store
            check(disturbed, expected)
            disturbed = disturbed.with_name(f"{disturbed.name}x")
        process = subprocess.Popen(command(disturbed), stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.05, 0.8) * seconds)
        process.kill()
        process.wait()
    subprocess.run(command(disturbed), check=True)
    check(disturbed, expected)


@pytest.mark.soak
def test_a_ray_campaign_survives_killed_workers(tmp_path):
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    rng, disturbed, calm = random.Random(size("seed", 0)), tmp_path / "disturbed", tmp_path / "calm"
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    raylet = node.all_processes["raylet"][0].process.pid
    options, killed = ["--engine", "ray", "--address", cluster.address], 0
    try:
        process = subprocess.Popen([*command(disturbed), *options], stderr=subprocess.DEVNULL)
        for _ in range(size("ray_kills", 2)):
            time.sleep(rng.uniform(0.5, 1.5) * size("ray_seconds_between_kills", 20))
            killed += kill_workers(raylet) if process.poll() is None else 0
        assert process.wait() == 0
        subprocess.run([*command(calm), *options], check=True, stderr=subprocess.DEVNULL)
    finally:
        cluster.shutdown()
    assert killed, "no worker was killed"
    assert digests(disturbed) == digests(calm)


def kill_workers(raylet: int) -> int:
    """Kill every computing worker process of a node; return their number."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if parent == raylet and name.startswith(b"ray::_compute"):
            os.kill(int(folder.name), signal.SIGKILL)
            killed += 1
    return killed
