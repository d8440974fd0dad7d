"""Kills a campaign at random moments, repeats its command each time, and compares the results with an undisturbed run.

    python tools/kill_campaign.py --kills 20 -- main --quick

Everything after ``--`` goes to ``regretless reproduce``. Exit code 1 if a single bit differs or a lock is left behind.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from regretless.studies.store import Store


def main() -> int:
    """Runs the comparison; 0 if both stores hold the same numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("words", nargs="+", help="arguments of regretless reproduce")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        calm, disturbed = Path(place) / "calm", Path(place) / "disturbed"
        began = time.monotonic()
        subprocess.run(command(options.words, calm), check=True)
        took = time.monotonic() - began
        expected = digests(calm)
        print(f"undisturbed: {len(expected)} cells in {took:.0f} s")
        kills = landed = 0
        while kills < options.kills:
            if complete(disturbed, expected):  # nothing left to disturb: begin anew, on an empty store
                check(disturbed, expected)
                disturbed = disturbed.with_name(f"{disturbed.name}x")
            process = subprocess.Popen(command(options.words, disturbed), stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.05, 0.8) * took)
            landed += process.poll() is None
            process.kill()
            process.wait()
            kills += 1
            print(f"kill {kills}: {len(digests(disturbed))} of {len(expected)} cells stored")
        subprocess.run(command(options.words, disturbed), check=True)
        check(disturbed, expected)
    print(f"{kills} kills, {landed} of them in the middle of the work: the results are identical")
    return 0


def command(words: list[str], store: Path) -> list[str]:
    """The command under test."""
    return [sys.executable, "-m", "regretless", "reproduce", *words, "--store", str(store)]


def digests(folder: Path) -> dict[str, str]:
    """A hash of the numbers of every stored result."""
    store = Store(folder)
    return {entry.key: store.load(entry.key).digest() for entry in store.entries()}


def complete(folder: Path, expected: dict[str, str]) -> bool:
    """Whether every cell is stored."""
    return set(digests(folder)) >= set(expected)


def check(folder: Path, expected: dict[str, str]) -> None:
    """Ends the program if the disturbed store differs from the undisturbed one."""
    found = digests(folder)
    different = sorted(key for key in expected if found.get(key) != expected[key])
    store = Store(folder)
    locked = [path.name for path in store.claims.iterdir() if store.running(path.name)]
    if different or locked:
        sys.exit(f"not identical: {different}; locks left: {locked}")


if __name__ == "__main__":
    sys.exit(main())
