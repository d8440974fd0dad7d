"""Kills a learner that writes a log at random moments, damages logs, and checks what can be read of them.

Every call that returned must be in the log; the learner that a log gives must be, by the hash of its file, the one
that a checkpoint of the same moment holds, from the start as well as from another checkpoint on. Then bits are turned
over and tails torn off: noticed, the good part kept. The process that is killed runs this file as a script.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np

from regretless import oracles
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.live.log import Reader, places

sys.path.insert(0, str(Path(__file__).parents[1]))
from soak.sizes import size

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)
EVERY = 25
"""Calls between two checkpoints."""

SEGMENT = 20_000
"""Bytes of one file, few, so that kills also meet the moment when the next one is begun."""


def hash_of(learner: Learner, place: Path) -> str:
    """A hash of the learner's checkpoint."""
    learner.save(place)
    return hashlib.sha256(place.read_bytes()).hexdigest()


def keep_programs(folder: Path) -> None:
    """Lets learners that are started again find their compiled programs beside ``folder``."""
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder.parent / "programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def opened(folder: Path) -> Learner:
    """The learner of the log in this folder, a new one if there is no log yet."""
    log = folder / "plant.log"
    if places(log) and any(True for _ in Reader(log)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Learner.replay(log, ORACLE, append=True, log_size=SEGMENT)
    return Learner(ORACLE, context_dim=FEATURES, feedback="semi_bandit", policy="linear_thompson", scaling=False, max_age=30,
                   max_age_seconds=3600.0, log=log, log_size=SEGMENT)  # fmt: skip


def play(folder: Path, seed: int) -> None:
    """Calls of every kind without end; says on standard output which record each left, after it returned."""
    keep_programs(folder)
    learner, rng, calls = opened(folder), np.random.default_rng(seed), 0
    while True:
        one_call(learner, rng)
        position = learner._books.position
        os.write(1, f"{position.records} {position.checksum}\n".encode())
        calls += 1
        if calls % EVERY == 0:
            learner.save(folder / f"{position.records}.rgl")


def one_call(learner: Learner, rng: np.random.Generator) -> None:
    """A call that leaves one record."""
    x, costs = rng.normal(size=FEATURES), 2.0 + rng.normal(size=DIM)
    kind, waiting = rng.integers(8), learner.waiting
    if kind < 3 or not waiting:
        learner.decide(x if kind else np.stack([x, -x]))
    elif kind == 3:
        learner.record(x, np.eye(DIM)[:2].sum(axis=0))
    elif kind == 4 and rng.integers(10) == 0:
        learner.learn_from(History(rng.normal(size=(5, FEATURES)), np.eye(DIM)[rng.integers(DIM, size=5)],
                                   costs=rng.normal(size=(5, DIM))))  # fmt: skip
    elif kind == 5 and rng.integers(10) == 0:
        learner.update(posterior_scale=float(rng.uniform(0.05, 0.2)))
    else:
        id = int(rng.choice(waiting))
        chosen = np.flatnonzero(learner._books.pending.get(id).w)
        told = {int(i): costs[i] for i in chosen[: rng.integers(1, len(chosen) + 1)]}
        if id not in learner._books.pending.pieces:
            learner.learn(id, components=told, final=bool(rng.integers(2)))
        else:
            rest = np.flatnonzero(np.isnan(learner._books.pending.pieces[id]))
            learner.learn(id, components={int(i): costs[i] for i in rest})


def killed(folder: Path, seed: int, rng: random.Random) -> list[str]:
    """Starts a process that plays, kills it at a random moment, and returns what it said."""
    command = [sys.executable, __file__, str(folder), str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(rng.choice([1, 5, 50, 100]))]
    if not said[-1]:
        raise RuntimeError(f"the learner died by itself with exit code {process.wait()}")
    time.sleep(rng.uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    return [line.strip() for line in said if line.endswith("\n")]


def check(folder: Path, said: list[str]) -> list[str]:
    """What is wrong with the log that a killed learner left."""
    log, found = folder / "plant.log", []
    reader = Reader(log)
    records = {f"{position.records} {position.checksum}" for position, _ in reader}
    missing = [line for line in said if line not in records]
    if missing:
        found.append(f"a call that returned is not in the log: record {missing[0]}")
    if reader.problem is not None and not reader.torn:
        found.append(f"damaged: {reader.problem}")
    scratch = folder / "scratch.rgl"
    saved = sorted((path for path in folder.glob("[0-9]*.rgl")), key=lambda path: int(path.stem))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = hash_of(Learner.replay(log, ORACLE), scratch)
        for path in saved[-2:]:
            again = hash_of(Learner.replay(log, ORACLE, until=int(path.stem)), scratch)
            if again != hashlib.sha256(path.read_bytes()).hexdigest():
                found.append(f"replay up to record {path.stem} is not the checkpoint")
            if hash_of(Learner.replay(log, ORACLE, checkpoint=path), scratch) != whole:
                found.append(f"replay from the checkpoint at record {path.stem} on is another learner")
    return found


def damaged(folder: Path, count: int, rng: random.Random) -> list[str]:
    """What goes unnoticed when bits are turned over and tails torn off, one at a time."""
    log, found = folder / "plant.log", []
    files = [log if place == 0 else log.with_name(f"{log.name}.{place}") for place in places(log)]
    whole = [(position, record.kind, repr(record.data)) for position, record in Reader(log)]
    for number in range(count):
        tear = number % 3 == 0
        file = files[-1] if tear else rng.choice(files)
        data = file.read_bytes()
        place = rng.randrange(len(data))
        changed = (
            data[:place] if tear else data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        )
        file.write_bytes(changed)
        reader = Reader(log)
        good = [(position, record.kind, repr(record.data)) for position, record in reader]
        at_an_end = tear and reader.problem is None and len(good) < len(whole)  # between two records: nothing is torn
        if good != whole[: len(good)]:
            found.append(f"{file.name}, byte {place}: other records than were written")
        elif reader.problem is None and not at_an_end:
            found.append(f"{file.name}, byte {place}: not noticed")
        elif tear and reader.problem is not None and not reader.torn:
            found.append(f"{file.name}, byte {place}: a torn tail was called damage")
        file.write_bytes(data)
    return found


def test_killed_learners_lose_nothing_and_damage_is_noticed(tmp_path):
    kills, seed = size("kills", 3), size("seed", 3)
    rng, findings = random.Random(seed), []
    folder = tmp_path
    for number in range(kills):
        if number % 10 == 0:  # a new log for ten kills
            folder = tmp_path / f"{number}"
            folder.mkdir()
        output = killed(folder, seed + number, rng)
        findings += [f"kill {number + 1}: {problem}" for problem in check(folder, output)]
    findings += damaged(folder, size("damage", 15), rng)
    assert not findings, "\n".join(findings)


if __name__ == "__main__":
    play(Path(sys.argv[1]), int(sys.argv[2]))
