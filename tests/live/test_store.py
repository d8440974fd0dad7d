"""The store of a learner: written before a call returns, read while it runs, owned by one writer, never torn."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import regretless as rg
from live import learners
from live.learners import DIM, FEATURES, ORACLE, build, digest, make, play
from regretless.errors import FeedbackError, SettingsError, StoreError, WriteError
from regretless.live.learner import SNAPSHOT_INTERVAL
from regretless.live.store import RecordStore

X = np.ones(FEATURES)
FOREMAN = [1.0, 0.0, 0.0, 1.0]


def reopened(path, **options):
    return rg.Learner.open(path, ORACLE, read_only=True, **options)


def kinds(path):
    store = RecordStore.open_reader(path)
    first = store.first_snapshot()
    found = [record.kind for record in store.records(first.number, first.chain)]
    store.close()
    return found


def test_every_call_is_stored_before_it_returns_and_replayed_exactly(tmp_path):
    path = tmp_path / "plant.db"
    learner = make(store=path, limit=6)
    play(learner, 12)
    learner.update(forgetting=0.02)
    learner.learn_from(rg.History(np.ones((3, FEATURES)), np.eye(DIM)[:3], costs=np.ones((3, DIM))))
    learner.decide_batch(np.ones((3, FEATURES)))
    digests = []
    for _ in range(5):
        learner.learn(learner.decide(X).id, costs=np.ones(DIM))
        assert digest(reopened(path), tmp_path) == digest(learner, tmp_path), "readable while it runs"
        digests.append((learner.state.number, digest(learner, tmp_path)))
    assert set(kinds(path)) == {"decide", "record", "feedback", "piece", "settings", "history"}
    for number, expected in digests:
        assert digest(reopened(path, until=number), tmp_path) == expected
    learner.save()
    assert digest(reopened(path), tmp_path) == digest(learner, tmp_path), "from the snapshot on"
    assert digest(reopened(path, until=digests[1][0]), tmp_path) == digests[1][1], "from the first snapshot on"
    learner.close()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("plant")] == ["plant.db"]
    again = rg.Learner.open(path, ORACLE)
    assert digest(again, tmp_path) == digest(learner, tmp_path)
    assert again.decide(X).id == learner.state.made + 1
    again.close()
    with pytest.raises(StoreError, match="was closed: nothing can be written any more"):
        again.decide(X)
    with pytest.raises(StoreError, match="expected at least 999 records"):
        reopened(path, until=999)
    with pytest.raises(SettingsError, match="expected read_only=True with until="):
        rg.Learner.open(path, ORACLE, until=2)
    with pytest.raises(StoreError, match=r"there is a learner in .*plant.db already: continue it with Learner.open"):
        make(store=path)


def test_a_copy_is_self_contained_and_may_be_continued(tmp_path):
    learner = make()
    play(learner, 9)
    learner.save(tmp_path / "copy.db")
    with rg.Learner.open(tmp_path / "copy.db", ORACLE) as copy:
        for each in (learner, copy):
            play(each, 4, seed=1)
        assert digest(copy, tmp_path) == digest(learner, tmp_path)
    assert digest(reopened(tmp_path / "copy.db"), tmp_path) == digest(learner, tmp_path)
    with pytest.raises(StoreError, match="expected until to be at least"):
        reopened(tmp_path / "copy.db", until=1)
    assert len(rg.History.from_store(tmp_path / "copy.db")) == 4, "the decisions after it was written"


def test_snapshots_are_written_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr("regretless.live.learner.SNAPSHOT_INTERVAL", 7)
    path = tmp_path / "plant.db"
    learner = make(store=path)
    play(learner, 30)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        numbers = [number for (number,) in connection.execute("SELECT number FROM snapshots ORDER BY number")]
    assert numbers[0] == 0, "the first one is kept"
    assert len(numbers) == 3
    assert learner.state.number - numbers[-1] < 7
    assert digest(reopened(path), tmp_path) == digest(learner, tmp_path)
    assert SNAPSHOT_INTERVAL >= 100


# ---------------------------------------------------------------------- keys


@pytest.mark.parametrize("stored", [False, True])
def test_a_key_gives_the_same_choice_again(tmp_path, stored):
    learner = build(store=tmp_path / "plant.db" if stored else None, limit=3)
    first = learner.decide(X, key="order-1")
    again = learner.decide(X, key="order-1")
    assert (again.id, again.key, again.explored) == (first.id, "order-1", True)
    assert np.array_equal(again.cost_sample, first.cost_sample)
    assert learner.state.made == 1
    for other in (
        lambda: learner.decide(0 * X, key="order-1"),
        lambda: learner.decide(X, explore=False, key="order-1"),
    ):
        with pytest.raises(
            SettingsError, match="key: 'order-1' belongs to decision 1, which was made in another context"
        ):
            other()
    batch = learner.decide_batch(np.stack([X, 2 * X]), keys=["order-1", "order-2"])
    assert [choice.id for choice in batch] == [1, 2]
    person = learner.record(X, FOREMAN, key="by hand")
    assert learner.record(X, FOREMAN, key="by hand").id == person.id
    with pytest.raises(SettingsError, match="belongs to another decision"):
        learner.record(X, [0.0, 1.0, 1.0, 0.0], key="by hand")
    assert learner.learn("order-2", total=3.0).id == 2
    assert not learner.learn("order-2", total=3.0).new
    assert learner.decide(2 * X, key="order-2").id == 2, "also after it was learned"
    assert learner.explain("order-2").residual is not None
    with pytest.raises(FeedbackError, match="no decision was made with the key 'order-9'"):
        learner.learn("order-9", total=1.0)
    for bad in ("", 3, "x" * 501, "a\nb"):
        with pytest.raises(SettingsError, match="key: expected a printable text"):
            learner.decide(X, key=bad)
    with pytest.raises(SettingsError, match="keys: expected different keys"):
        learner.decide_batch(np.stack([X, X]), keys=["a", "a"])


def test_keys_survive_a_restart_a_copy_and_being_forgotten(tmp_path):
    path = tmp_path / "plant.db"
    learner = build(store=path, limit=3, incumbent=FOREMAN, mode="shadow")
    first = learner.decide(X, key="order-1")
    assert first.proposed is not None
    learner.save(tmp_path / "copy.db")
    learner.close()
    for file in (path, tmp_path / "copy.db"):
        again = rg.Learner.open(file, ORACLE)
        choice = again.decide(X, key="order-1")
        assert (choice.id, choice.by, choice.explored) == (1, "incumbent", False)
        assert np.array_equal(choice.proposed, first.proposed)
        again.close()
    learner = rg.Learner.open(path, ORACLE)
    for t in range(8):
        learner.decide(t * X)
    choice = learner.decide(X, key="order-1")
    assert (choice.id, choice.by) == (1, "incumbent"), "read from the store"
    assert np.array_equal(choice.proposed, first.proposed)
    with pytest.raises(FeedbackError, match="decision 1 has expired"):
        learner.learn("order-1", total=1.0)
    with pytest.raises(SettingsError, match="belongs to decision 1"):
        learner.decide(2 * X, key="order-1")


# ----------------------------------------------------------------- incumbents


def test_restarting_with_the_same_incumbent_works_for_every_kind(tmp_path):
    follow = lambda context: FOREMAN  # noqa: E731
    for name, incumbent in (("fixed", FOREMAN), ("array", np.array(FOREMAN)), ("function", follow)):
        path = tmp_path / f"{name}.db"
        build(store=path, incumbent=incumbent, budget=0.2).close()
        learner = rg.Learner.open(path, ORACLE, rollout=rg.Rollout(incumbent, budget=0.2))
        assert learner.decide(X).by == "incumbent"
        learner.close()
    with pytest.raises(
        StoreError, match=r"stored with the incumbent \[1.0, 0.0, 0.0, 1.0\], got \[0.0, 1.0, 1.0, 0.0\]"
    ):
        reopened(tmp_path / "fixed.db", rollout=rg.Rollout([0.0, 1.0, 1.0, 0.0], 0.2))
    with pytest.raises(StoreError, match="a function as its incumbent: give it as rollout="):
        reopened(tmp_path / "function.db")
    assert reopened(tmp_path / "fixed.db").decide(X).by == "incumbent", "fixed numbers are in the store"
    with pytest.warns(UserWarning, match="budget 0.2 and mode 'act' stay those of the store"):
        reopened(tmp_path / "fixed.db", rollout=rg.Rollout(FOREMAN))
    changed = rg.Learner.open(tmp_path / "fixed.db", ORACLE, settings={"budget": 0.1, "mode": "shadow"})
    assert changed.decide(X).proposed is not None
    changed.close()
    assert reopened(tmp_path / "fixed.db").decide(X).proposed is not None, "settings stay"
    build(store=tmp_path / "none.db").close()
    with pytest.raises(StoreError, match="stored without an incumbent"):
        reopened(tmp_path / "none.db", rollout=rg.Rollout(FOREMAN))


# ------------------------------------------------------------------ ownership


def test_a_second_writer_is_refused_or_takes_over_and_fences_the_first(tmp_path):
    path = tmp_path / "plant.db"
    first = build(store=path)
    first.decide(X)
    with pytest.raises(StoreError, match=r"is being written by another learner \(process \d+ on .*\); close that one"):
        rg.Learner.open(path, ORACLE)
    assert first.decide(X).id == 2, "the refused one changed nothing"
    second = rg.Learner.open(path, ORACLE, take_over=True)
    assert second.waiting == [1, 2]
    before = digest(first, tmp_path)
    with pytest.raises(
        StoreError, match="another learner has taken it over; this one is stopped and nothing was changed"
    ):
        first.decide(X)
    assert digest(first, tmp_path) == before
    first.close()
    assert second.decide(X).id == 3
    with pytest.raises(StoreError, match="is being written by another learner"):
        rg.Learner.open(path, ORACLE)
    second.close()
    third = rg.Learner.open(path, ORACLE)
    assert third.decide(X).id == 4


@pytest.mark.parametrize("damage", ["removed", "replaced", "truncated", "wal", "wal emptied", "wal cut"])
def test_a_file_that_is_removed_replaced_or_truncated_is_noticed(tmp_path, damage):
    path = tmp_path / "plant.db"
    learner = build(store=path)
    learner.decide(X)
    before = digest(learner, tmp_path)
    if damage == "removed":
        path.unlink()
    elif damage == "replaced":
        build().save(tmp_path / "other.db")
        os.replace(tmp_path / "other.db", path)
    elif damage == "truncated":
        os.truncate(path, 100)
    elif damage == "wal":
        Path(f"{path}-wal").unlink()
    else:
        os.truncate(f"{path}-wal", 0 if damage == "wal emptied" else os.path.getsize(f"{path}-wal") - 4096)
    with pytest.raises(StoreError, match=r"was (removed|replaced or truncated) .*nothing was changed"):
        learner.decide(X)
    assert digest(learner, tmp_path) == before
    learner.save(tmp_path / "rescued.db")
    assert reopened(tmp_path / "rescued.db").waiting == [1]


def test_another_program_may_move_the_write_ahead_file_into_the_database(tmp_path):
    path = tmp_path / "plant.db"
    learner = build(store=path)
    learner.decide(X)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert os.path.getsize(f"{path}-wal") == 0
    assert [learner.decide(X).id, learner.decide(X).id] == [2, 3]
    learner.close()
    assert reopened(path).waiting == [1, 2, 3]


def test_a_place_that_cannot_be_a_store_is_refused(tmp_path):
    device = tmp_path / "device"
    device.symlink_to("/dev/null")
    for path in (tmp_path, device):
        with pytest.raises(StoreError, match="expected a file, got a folder, device or pipe"):
            build(store=path)
    assert not Path("/dev/null-journal").exists()
    build(store=tmp_path / "plant.db").close()
    (tmp_path / "plant.db-owner").symlink_to("/dev/null")
    with pytest.raises(StoreError, match=r"cannot open .*plant.db: Invalid argument"):
        rg.Learner.open(tmp_path / "plant.db", ORACLE)
    learner = build()
    with pytest.raises(WriteError, match="File name too long"):
        learner.save(tmp_path / ("x" * 300))
    for path in ("plant\0.db", 5, b"plant.db"):
        with pytest.raises(SettingsError, match="expected the path of a file, got"):
            learner.save(path)
    for until in ("3", 2.5, -1, 10**400):
        with pytest.raises(SettingsError, match="until: expected an integer from 0 to"):
            reopened(tmp_path / "plant.db", until=until)
        with pytest.raises(SettingsError, match="until: expected an integer from 0 to"):
            rg.History.from_store(tmp_path / "plant.db", until=until)


def test_a_store_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("regretless.live.store.LOCK_TIMEOUT", 0.05)
    path = tmp_path / "plant.db"
    learner = make(store=path)
    choice = learner.decide(X)
    before, number = digest(learner, tmp_path), learner.state.number
    calls = (
        lambda: learner.decide(X),
        lambda: learner.learn(choice.id, costs=np.ones(DIM)),
        lambda: learner.learn(choice.id, components={int(np.argmax(choice.w)): 1.0}, final=False),
        lambda: learner.record(X, np.eye(DIM)[0]),
        lambda: learner.update(forgetting=0.02),
        lambda: learner.learn_from(rg.History(np.ones((1, FEATURES)), np.eye(DIM)[:1], costs=np.ones((1, DIM)))),
    )
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for call in calls:
        with pytest.raises(StoreError, match="database is locked; nothing was changed"):
            call()
    blocker.rollback()
    blocker.close()
    assert (digest(learner, tmp_path), learner.state.number) == (before, number)
    for call in calls:
        if call is not calls[2]:
            call()
    assert digest(reopened(path), tmp_path) == digest(learner, tmp_path)


# --------------------------------------------------------------------- damage


def test_damage_says_which_records_are_good_and_these_are_kept(tmp_path):
    path = tmp_path / "plant.db"
    learner = make(store=path)
    play(learner, 20)
    learner.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM snapshots WHERE number > 0")
        connection.execute(
            "UPDATE records SET data = replace(data, '\"id\":', '\"id\": ') WHERE kind = 'feedback' AND number > 9"
        )
    with pytest.raises(StoreError, match=r"plant.db is damaged at record (\d+) \(its checksum is wrong\)") as caught:
        reopened(path)
    good = int(str(caught.value).split("the records up to ")[1].split()[0])
    assert good >= 9
    assert f"until={good}, read_only=True" in str(caught.value)
    with pytest.raises(StoreError, match="damaged at record"):
        rg.History.from_store(path)
    reopened(path, until=good).save(tmp_path / "rescued.db")
    assert rg.Learner.open(tmp_path / "rescued.db", ORACLE).state.number == good
    assert len(rg.History.from_store(path, until=good)) > 3
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM records WHERE number = 4")
    with pytest.raises(StoreError, match=r"damaged at record 4 \(record 4 is missing\)"):
        reopened(path)


def test_a_lost_tail_is_noticed(tmp_path):
    path = tmp_path / "plant.db"
    learner = make(store=path)
    play(learner, 6)
    folder = tmp_path / "crashed"
    folder.mkdir()
    for file in tmp_path.glob("plant.db*"):
        shutil.copy(file, folder)
    wal = folder / "plant.db-wal"
    wal.write_bytes(wal.read_bytes()[: -3 * 4096])
    with pytest.warns(UserWarning, match=r"the records \d+ to \d+ are lost, .* the records up to \d+ are good"):
        again = rg.Learner.open(folder / "plant.db", ORACLE)
    assert 0 < again.state.number < learner.state.number
    again.decide(X)
    again.close()
    assert reopened(folder / "plant.db").state.number == again.state.number


# ----------------------------------------------------------------- interrupts


class Interrupter:
    """Raise KeyboardInterrupt in the main thread at a random moment of a block, as Ctrl-C does."""

    def __init__(self, rng, longest):
        self.rng, self.longest, self.hits = rng, longest, 0

    def attempt(self, call):
        """Run the call with an interrupt on its way; return whether it was interrupted."""
        try:
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-6, self.longest))
            call()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            self.hits += 1
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False


@pytest.fixture
def interrupts():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupt_learner(folder, wanted, seed):
    """Interrupt decide, learn, save and snapshots until ``wanted`` interrupts; return what differed from the store."""
    rng, problems = random.Random(seed), []
    noise = np.random.default_rng(seed)
    path = folder / "plant.db"
    learner = make(store=path, limit=40)
    play(learner, 12)  # compiled before interrupts begin
    learner.save(folder / "copy.db")
    interrupter = Interrupter(rng, 1.2e-3)
    checked = 0
    while interrupter.hits < wanted:
        kind = rng.randrange(10)
        waiting = [id for id in learner.waiting if id not in learner.state.pieces]
        x, costs = noise.normal(size=FEATURES), noise.normal(size=DIM)
        if kind < 4 or not waiting:
            call = partial(learner.decide, x, key=f"order-{rng.getrandbits(60)}" if kind < 2 else None)
        elif kind < 8:
            call = partial(learner.learn, rng.choice(waiting), costs=costs)
        elif kind < 9:
            call = partial(learner.save, folder / "copy.db")
        else:
            call = learner.save
        hit = interrupter.attempt(call)
        if hit and interrupter.hits >= checked + max(1, wanted // 40):
            checked = interrupter.hits
            if digest(learner, folder) != digest(reopened(path), folder):
                problems.append(f"after {checked} interrupts the learner differs from its store")
    if digest(learner, folder) != digest(reopened(path), folder):
        problems.append("at the end the learner differs from its store")
    ids = [int(id) for record in records_of(path) for id in record.arrays.get("decision.id", ())]
    if ids != list(range(1, len(ids) + 1)):
        problems.append("an id was issued twice or left out")
    return problems


def records_of(path):
    store = RecordStore.open_reader(path)
    first = store.first_snapshot()
    found = list(store.records(first.number, first.chain))
    store.close()
    return found


def test_after_interrupts_a_learner_equals_its_store(tmp_path, interrupts):
    assert not interrupt_learner(tmp_path, 60, seed=0)


def test_an_interrupt_between_the_commit_and_its_publication_counts(tmp_path, monkeypatch):
    path = tmp_path / "plant.db"
    learner = build(store=path)
    publish = rg.Learner._publish

    def interrupted(self, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(rg.Learner, "_publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.decide(X, key="order-1")
    monkeypatch.setattr(rg.Learner, "_publish", publish)
    assert learner.waiting == [1], "it is in the store, so it counts"
    assert learner.decide(X, key="order-1").id == 1
    assert digest(reopened(path), tmp_path) == digest(learner, tmp_path)
    monkeypatch.setattr(RecordStore, "append", lambda *arguments: interrupted(*arguments[:2]))
    with pytest.raises(KeyboardInterrupt):
        learner.decide(2 * X)
    monkeypatch.undo()
    assert learner.waiting == [1], "it is not in the store"
    assert learner.decide(3 * X).id == 2


# ------------------------------------------------------------------- restarts

WRITER = """
import sys, time, numpy as np, regretless as rg
path, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
oracle = rg.oracles.top_k(4, 2)
while True:
    try:
        learner = rg.Learner.open(path, oracle, take_over=len(sys.argv) > 4)
        break
    except rg.errors.StoreError as error:
        if "being written" not in str(error):
            raise
        time.sleep(0.002)
print("open", flush=True)
rng = np.random.default_rng(seed)
try:
    for t in range(rounds):
        choice = learner.decide(rng.normal(size=3))
        print("id", choice.id, flush=True)
        learner.learn(choice.id, total=float(choice.w.sum() + rng.normal()))
        print("learned", choice.id, flush=True)
except rg.errors.StoreError as error:
    assert "taken it over" in str(error), error
    print("fenced", flush=True)
learner.close()
"""


def rolling_restarts(folder, restarts, rounds, seed):
    """Start a process while the one before it still writes, again and again; return what was lost or issued twice."""
    path = folder / "plant.db"
    build(store=path).close()
    environment = {**os.environ, "REGRETLESS_CACHE": str(folder / "programs")}
    rng = random.Random(seed)
    processes, outputs = [], []
    for number in range(restarts):
        take_over = ["take over"] if number and rng.random() < 0.7 else []
        command = [
            sys.executable,
            "-c",
            WRITER.replace("rg.errors", "regretless.errors").replace(
                "import sys", "import regretless.errors, regretless, sys", 1
            ),
            str(path),
            str(rounds),
            str(number),
            *take_over,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        if lines[0].strip() == "open":
            lines += [process.stdout.readline() for _ in range(rng.randrange(2, 2 * rounds))]
        outputs.append(lines)
    problems = []
    for process, lines in zip(processes, outputs, strict=True):
        rest, error = process.communicate(timeout=120)
        lines += rest.splitlines()
        if process.returncode:
            problems.append(error[-500:])
    issued = [int(line.split()[1]) for lines in outputs for line in lines if line.startswith("id ")]
    learned = {int(line.split()[1]) for lines in outputs for line in lines if line.startswith("learned ")}
    records = records_of(path)
    stored = [int(id) for record in records for id in record.arrays.get("decision.id", ())]
    stored_learned = {record.data["id"] for record in records if record.kind == "feedback"}
    if len(set(issued)) < len(issued) or len(set(stored)) < len(stored):
        problems.append("an id was issued twice")
    if not set(issued) <= set(stored):
        problems.append(f"decisions were lost: {sorted(set(issued) - set(stored))[:5]}")
    if not learned <= stored_learned:
        problems.append(f"feedback was lost: {sorted(learned - stored_learned)[:5]}")
    return problems


def test_rolling_restarts_lose_nothing(tmp_path):
    assert not rolling_restarts(tmp_path, 3, 12, seed=0)


def test_a_killed_learner_is_opened_again(tmp_path):
    path = tmp_path / "plant.db"
    build(store=path).close()
    program = WRITER.replace("rg.errors", "regretless.errors").replace(
        "import sys", "import regretless.errors, regretless, sys", 1
    )
    environment = {**os.environ, "REGRETLESS_CACHE": str(tmp_path / "programs")}
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path), "100000", "0"], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(60)]
    time.sleep(0.01)
    process.kill()
    lines += process.stdout.readlines()
    process.wait()
    last = max(int(line.split()[1]) for line in lines if line.startswith("id ") and line.endswith("\n"))
    learner = rg.Learner.open(path, ORACLE)
    assert learner.state.made >= last
    assert learner.decide(X).id == learner.state.made
    assert learners.digest(learner, tmp_path) == digest(reopened(path), tmp_path)
