"""Kill, damage, interrupt and restart learners with a store, and check what can be read of them.

Every call that returned must be in the store; the learner that a store gives must be, by the hash of a copy, the one
that saved a copy at the same moment. Then bits are flipped and tails cut off: noticed or harmless, the good part kept.
The process that is killed runs this file as a script.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np

from regretless.errors import StoreError
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.live.store import RecordStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from live.learners import DIM, FEATURES, ORACLE, make
from live.test_store import interrupt_learner, interrupts, rolling_restarts
from soak.sizes import size

__all__ = ["interrupts"]  # a fixture

COPY_INTERVAL = 25
"""Calls between two copies."""


def hash_of(learner: Learner, place: Path) -> str:
    """Return a hash of a copy of the learner."""
    learner.save(place)
    return hashlib.sha256(place.read_bytes()).hexdigest()


def keep_programs(folder: Path) -> None:
    """Let learners that are started again find their compiled programs next to ``folder``."""
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(folder.parent / "programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def open_learner(folder: Path) -> Learner:
    """Return the learner of the store in this folder, a new one if there is none yet."""
    path = folder / "plant.db"
    if path.exists() and path.stat().st_size:
        return Learner.open(path, ORACLE)
    return make(max_age=30, max_age_seconds=3600.0, store=path)


def play(folder: Path, seed: int) -> None:
    """Make calls of every kind without end; print which record each left, after it returned."""
    keep_programs(folder)
    learner, rng, calls = open_learner(folder), np.random.default_rng(seed), 0
    while True:
        one_call(learner, rng)
        number = learner.state.number
        os.write(1, f"{number}\n".encode())
        calls += 1
        if calls % COPY_INTERVAL == 0:
            learner.save(folder / f"{number}.copy")
        if calls % 40 == 0:
            learner.save()


def one_call(learner: Learner, rng: np.random.Generator) -> None:
    """Make a call that leaves one record."""
    x, costs = rng.normal(size=FEATURES), 2.0 + rng.normal(size=DIM)
    kind, waiting = rng.integers(8), learner.waiting
    if kind == 0 or not waiting:
        learner.decide_batch(np.stack([x, -x]))
    elif kind < 3:
        learner.decide(x, key=f"order-{rng.integers(2**60)}" if kind == 1 else None)
    elif kind == 3:
        learner.record(x, np.eye(DIM)[:2].sum(axis=0))
    elif kind == 4 and rng.integers(10) == 0:
        decisions = np.eye(DIM)[rng.integers(DIM, size=5)]
        learner.learn_from(History(rng.normal(size=(5, FEATURES)), decisions, costs=rng.normal(size=(5, DIM))))
    elif kind == 5 and rng.integers(10) == 0:
        learner.update(posterior_scale=float(rng.uniform(0.05, 0.2)))
    else:
        id = int(rng.choice(waiting))
        chosen = np.flatnonzero(learner.state.find(id).w)
        components = {int(i): costs[i] for i in chosen[: rng.integers(1, len(chosen) + 1)]}
        if id not in learner.state.pieces:
            learner.learn(id, components=components, final=bool(rng.integers(2)))
        else:
            rest = np.flatnonzero(np.isnan(learner.state.pieces[id]))
            learner.learn(id, components={int(i): costs[i] for i in rest})


def kill(folder: Path, seed: int, rng: random.Random) -> list[int]:
    """Start a process that plays, kill it at a random moment, and return the records that it printed."""
    process = subprocess.Popen([sys.executable, __file__, str(folder), str(seed)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(rng.choice([1, 5, 50, 100]))]
    if not lines[-1]:
        raise RuntimeError(f"the learner ended with exit code {process.wait()}")
    time.sleep(rng.uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    return [int(line) for line in lines if line.endswith("\n")]


def read_records(path: Path) -> tuple[list[tuple[int, str, str]], str | None]:
    """Return the records that can be read, and why there are no more."""
    records: list[tuple[int, str, str]] = []
    try:
        store = RecordStore.open_reader(path)
    except StoreError as error:
        return records, str(error)
    try:
        first = store.first_snapshot()
        for record in store.records(first.number, first.chain):
            arrays = hashlib.sha256(b"".join(array.tobytes() for array in record.arrays.values())).hexdigest()
            records.append((record.number, record.kind, repr(record.data) + arrays))
    except (StoreError, TypeError) as error:
        return records, str(error)
    finally:
        store.close()
    return records, None


def check(folder: Path, printed: list[int]) -> list[str]:
    """Return what is wrong with the store that a killed learner left."""
    path, findings = folder / "plant.db", []
    records, problem = read_records(path)
    if problem is not None:
        findings.append(f"damaged: {problem}")
    if printed and printed[-1] > len(records):
        findings.append(f"a call that returned is not in the store: record {printed[-1]} of {len(records)}")
    scratch = folder / "scratch"
    whole = hash_of(Learner.open(path, ORACLE, read_only=True), scratch)
    copies = sorted((file for file in folder.glob("*.copy")), key=lambda file: int(file.stem))
    for file in copies[-2:]:
        replayed = hash_of(Learner.open(path, ORACLE, read_only=True, until=int(file.stem)), scratch)
        if replayed != hashlib.sha256(file.read_bytes()).hexdigest():
            findings.append(f"replay up to record {file.stem} is not the copy")
    writer = Learner.open(path, ORACLE)
    if hash_of(writer, scratch) != whole:
        findings.append("the writer is another learner than the reader")
    writer.close()
    return findings


def damage(folder: Path, count: int, rng: random.Random) -> list[str]:
    """Return what goes unnoticed when bits are flipped and tails cut off, one at a time."""
    path, findings = folder / "plant.db", []
    whole, _ = read_records(path)
    expected = hash_of(Learner.open(path, ORACLE, read_only=True), folder / "scratch")
    data = path.read_bytes()
    target = folder / "damaged.db"
    for number in range(count):
        place = rng.randrange(len(data))
        tear = number % 3 == 0
        flipped = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        target.write_bytes(data[:place] if tear else flipped)
        good, problem = read_records(target)
        if good != whole[: len(good)]:
            findings.append(f"byte {place}: other records than were written")
        elif problem is None and len(good) < len(whole):
            findings.append(f"byte {place}: {len(whole) - len(good)} records are missing without a word")
        try:
            learner = Learner.open(target, ORACLE, read_only=True)
        except StoreError:
            continue
        if hash_of(learner, folder / "scratch") != expected:
            findings.append(f"byte {place}: another learner")
    return findings


def damage_tail(folder: Path, printed: list[int], count: int, rng: random.Random) -> list[str]:
    """Return what goes unnoticed in the write-ahead file of a learner that was killed.

    It may have been killed after the last record was committed and before its call returned: no one knows of that one.
    """
    acknowledged = printed[-1] if printed else 0
    findings = []
    names = ["plant.db", "plant.db-wal", "plant.db-owner"]
    contents = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    if not contents.get("plant.db-wal"):
        return []
    whole, _ = read_records(folder / "plant.db")
    target = folder / "tail"
    for number in range(count):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        wal = contents["plant.db-wal"]
        place = rng.randrange(len(wal))
        flipped = wal[:place] + bytes([wal[place] ^ 1 << rng.randrange(8)]) + wal[place + 1 :]
        for name, content in {**contents, "plant.db-wal": wal[:place] if number % 3 == 0 else flipped}.items():
            (target / name).write_bytes(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                Learner.open(target / "plant.db", ORACLE).close()
            except StoreError:
                continue
        good, problem = read_records(target / "plant.db")
        lost = any("are lost" in str(warning.message) for warning in caught)
        if good != whole[: len(good)] or problem is not None:
            findings.append(f"write-ahead file, byte {place}: other records than were written")
        elif len(good) < acknowledged and not lost:
            findings.append(f"write-ahead file, byte {place}: {acknowledged - len(good)} records lost without a word")
    return findings


def test_killed_learners_lose_nothing_and_damage_is_noticed(tmp_path):
    kills, seed = size("kills", 3), size("seed", 3)
    rng, findings = random.Random(seed), []
    folder = tmp_path
    for number in range(kills):
        if number % 10 == 0:  # a new store for ten kills
            folder = tmp_path / f"{number}"
            folder.mkdir()
        printed = kill(folder, seed + number, rng)
        if number % 10 == 0:
            findings += damage_tail(folder, printed, max(3, size("damage", 15) // 10), rng)
        findings += [f"kill {number + 1}: {problem}" for problem in check(folder, printed)]
    findings += damage(folder, size("damage", 15), rng)
    assert not findings, "\n".join(findings)


def test_interrupted_learners_equal_their_stores(tmp_path, interrupts):
    assert not interrupt_learner(tmp_path, size("call_interrupts", 60), seed=size("seed", 3))


def test_rolling_restarts_under_load_lose_nothing(tmp_path):
    assert not rolling_restarts(tmp_path, size("restarts", 3), 40, seed=size("seed", 3))


if __name__ == "__main__":
    play(Path(sys.argv[1]), int(sys.argv[2]))
