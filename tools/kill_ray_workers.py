"""Runs a campaign on a Ray cluster of two nodes, kills the workers of one node now and then, and compares the results.

    python tools/kill_ray_workers.py --kills 4 -- --quick

Everything after ``--`` goes to ``regretless reproduce``. Both nodes are on this machine, with one core each. The results are
compared with those of an undisturbed run on the same cluster. Exit code 1 if a cell failed or a single bit differs.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kill_campaign import digests
from ray.cluster_utils import Cluster


def main() -> int:
    """Runs both campaigns; 0 if both stores hold the same numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between kills, on average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("words", nargs="*", help="arguments of regretless reproduce")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    raylet = doomed.all_processes["raylet"][0].process.pid
    try:
        with tempfile.TemporaryDirectory() as place:
            disturbed, calm = Path(place) / "disturbed", Path(place) / "calm"
            began, killed = time.monotonic(), 0
            process = start(options.words, disturbed, cluster.address)
            for _ in range(options.kills):
                time.sleep(rng.uniform(0.5, 1.5) * options.every)
                struck = kill_workers(raylet) if process.poll() is None else 0
                killed += struck
                print(
                    f"{time.monotonic() - began:.0f} s: {struck} workers killed, {len(digests(disturbed))} cells stored"
                )
            failed = process.wait()
            print(f"disturbed: {len(digests(disturbed))} cells in {time.monotonic() - began:.0f} s, exit code {failed}")
            began = time.monotonic()
            failed = start(options.words, calm, cluster.address).wait() or failed
            expected = digests(calm)
            print(f"undisturbed: {len(expected)} cells in {time.monotonic() - began:.0f} s, exit code {failed}")
            if failed or not killed or digests(disturbed) != expected:
                print("not identical, or nobody was killed")
                return 1
    finally:
        cluster.shutdown()
    print(f"{killed} workers killed: the results are identical")
    return 0


def start(words: list[str], store: Path, address: str) -> "subprocess.Popen[bytes]":
    """The command under test."""
    command = [sys.executable, "-m", "regretless", "reproduce", *words, "--store", str(store)]
    return subprocess.Popen([*command, "--engine", "ray", "--address", address], stderr=subprocess.DEVNULL)


def kill_workers(raylet: int) -> int:
    """Kills every worker process of a node that computes; returns how many."""
    struck = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if parent == raylet and name.startswith(b"ray::_compute"):
            os.kill(int(folder.name), signal.SIGKILL)
            struck += 1
    return struck


if __name__ == "__main__":
    sys.exit(main())
