"""Results on disk: whole or absent, checked, claimed by the living only."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import invented
from regretless.array_files import canonical
from regretless.errors import DamagedError, RegretlessError, SettingsError
from regretless.studies.cells import TheoryCell
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.store import Store

KEY, OTHER = "ab" * 32, "cd" * 32
CELL = Experiment(
    benchmark="topk", arms=(Arm(label="a", policy="greedy"), Arm(label="b", policy="dfhpg")), seeds=3, horizon=40
)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    store.create()
    return store


def test_a_result_comes_back_bit_by_bit(store):
    result = invented.invent(CELL)
    result.traces["b"].diagnostics["only_b"] = np.arange(12, dtype=np.float32).reshape(3, 4)
    result.traces["a"].regret[1, 5:] = np.nan
    store.put(KEY, result)
    again = store.load(KEY)
    assert again.digest() == result.digest()
    assert {**again.record, "arms": 0, "digest": 0} == {
        **result.record,
        "arms": 0,
        "digest": 0,
        "key": KEY,
        "cell": again.record["cell"],
    }
    for label, trace in result.traces.items():
        np.testing.assert_array_equal(again.traces[label].regret, trace.regret)
        assert again.traces[label].seeds == trace.seeds
        assert set(again.traces[label].diagnostics) == set(trace.diagnostics)
    assert again.traces["b"].diagnostics["only_b"].dtype == np.float32
    assert store.record(KEY)["arms"]["b"]["mean"] == pytest.approx(result.traces["b"].mean())


def test_a_document_without_traces_can_be_stored(store):
    store.put(KEY, invented.invent(TheoryCell()))
    assert store.load(KEY).record["document"]["claims"][0]["verdict"] == "holds"
    assert store.load(KEY).traces == {}


@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_a_cut_off_file_is_damaged_and_counts_as_absent(store, keep):
    store.put(KEY, invented.invent(CELL))
    path = store.path(KEY)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) if isinstance(keep, float) else keep])
    assert not store.has(KEY)
    assert not store.sound(KEY)
    with pytest.raises(DamagedError):
        store.load(KEY)
    assert [entry.record for entry in store.entries()] == [None]


def test_flipped_numbers_are_damage_even_where_the_record_is_sound(store):
    store.put(KEY, invented.invent(CELL))
    path = store.path(KEY)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(bytes(content))
    assert store.has(KEY)
    assert not store.sound(KEY)


def test_a_record_that_was_changed_is_damage(store):
    store.put(KEY, invented.invent(CELL))
    table = pq.read_table(store.path(KEY))
    words = table.schema.metadata[b"regretless"].decode().replace("12.5", "99.5")
    pq.write_table(table.replace_schema_metadata({"regretless": words}), store.path(KEY))
    assert "99.5" in pq.read_schema(store.path(KEY)).metadata[b"regretless"].decode()
    assert not store.has(KEY)


def test_a_result_under_another_key_is_refused(store):
    """Top-k's file copied over pricing's must not be shown as pricing's."""
    store.put(KEY, invented.invent(CELL))
    store.put(OTHER, invented.invent(CELL.changed(benchmark="pricing")))
    content = store.path(KEY).read_bytes()
    store.path(OTHER).write_bytes(content)
    assert store.record(OTHER) is None
    assert not store.sound(OTHER)
    with pytest.raises(DamagedError, match=f"another result's file: expected the key {OTHER}, got {KEY}"):
        store.load(OTHER)
    with pytest.raises(DamagedError, match="another result's file"):
        store.put_file("ef" * 32, content)
    assert not store.path("ef" * 32).exists()
    with pytest.raises(SettingsError, match=f"expected a result without a key or with {OTHER}"):
        store.put(OTHER, store.load(KEY))
    assert [(entry.key, entry.damaged) for entry in store.entries()] == [(KEY, False), (OTHER, True)]
    assert store.load(KEY).record["key"] == KEY


def test_a_result_may_come_as_a_file_and_go_back_as_one(store):
    store.put(KEY, invented.invent(CELL))
    content = store.path(KEY).read_bytes()
    store.put_file(KEY, content)
    assert store.path(KEY).read_bytes() == content
    store.put(KEY, store.load(KEY))
    assert store.path(KEY).read_bytes() == content


def test_nothing_but_the_result_is_left_behind(store):
    store.path(KEY).parent.mkdir()
    (store.path(KEY).parent / f".{KEY}.parquet.99999-00000000.part").write_text(
        "half a file, by a writer that was killed"
    )
    store.put(KEY, invented.invent(CELL))
    assert [path.name for path in store.path(KEY).parent.iterdir()] == [f"{KEY}.parquet"]


def test_the_next_campaign_sweeps_what_killed_writers_left(store):
    """Also of results that nobody will write again, because the code has changed since."""
    store.path(KEY).parent.mkdir()
    left = [store.path(KEY).parent, store.failures, store.plans]
    for folder in left:
        (folder / ".something.99999-00000000.part").write_text("half a file")
    store.create()
    assert [list(folder.iterdir()) for folder in left] == [[], [], []]


def test_a_failed_write_leaves_the_old_result(store, monkeypatch):
    store.put(KEY, invented.invent(CELL))
    before = store.path(KEY).read_bytes()
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(RegretlessError, match="No space left on device; the old file is unchanged"):
        store.put(KEY, invented.invent(CELL))
    assert store.path(KEY).read_bytes() == before
    assert len(list(store.path(KEY).parent.iterdir())) == 1


def test_one_claim_at_a_time(store):
    with store.claim(KEY) as first:
        assert first.acquire()
        assert store.running(KEY)
        assert not store.claim(KEY).acquire()
    assert not store.running(KEY)
    assert list(store.claims.iterdir()) == []
    with store.claim(KEY) as second:
        assert second.acquire()


def test_the_dead_hold_no_claim(store):
    program = (
        "import sys, time; from pathlib import Path; from regretless.studies.store import Store\n"
        f"claim = Store(Path(sys.argv[1])).claim({KEY!r}); print(claim.acquire(), flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(store.folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline().strip() == "True"
            assert store.running(KEY)
            assert not store.claim(KEY).acquire()
        finally:
            process.kill()
    for _ in range(100):
        if not store.running(KEY):
            break
        time.sleep(0.02)
    with store.claim(KEY) as claim:
        assert claim.acquire()


def test_failures_are_remembered_until_success(store):
    store.fail(KEY, "a cell", "Traceback\nValueError: no")
    first = store.failure(KEY)
    assert first.error.endswith("no")
    store.fail(KEY, "a cell", "Traceback\nValueError: no")
    assert store.failure(KEY) != first, "another try"
    store.put(KEY, invented.invent(CELL))
    assert store.failure(KEY) is None


def test_old_results_are_listed_and_removed(store):
    store.put(KEY, invented.invent(CELL))
    other = invented.invent(CELL)
    other.record["code_used"] = "0.0.1+abc"
    store.put(OTHER, other)
    store.put("ef" * 32, invented.invent(CELL))
    store.path("ef" * 32).write_bytes(b"PAR1")
    old = store.old()
    assert {entry.key[:2] for entry in old} == {"cd", "ef"}
    assert [entry.problem.split(":")[0] for entry in old] == ["", "damaged, or no result"]
    for entry in old:
        store.remove(entry)
    assert [entry.key for entry in store.entries()] == [KEY]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_what_cannot_be_read_at_the_moment_is_not_damaged(store, monkeypatch, code):
    """An intact result must not be removed as old, nor computed and replaced, because the disk is away."""
    store.put(KEY, invented.invent(CELL))
    original = Path.open

    def refusing(path, *arguments, **options):
        if path == store.path(KEY):
            raise OSError(code, os.strerror(code))
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    assert store.old() == []
    (entry,) = store.entries()
    assert (entry.record, entry.damaged, entry.problem) == (None, False, f"cannot be read: {os.strerror(code)}")
    assert store.record(KEY) is None
    with pytest.raises(
        RegretlessError, match=f"cannot read .*{KEY}.parquet: {os.strerror(code)}; it was left as it is"
    ):
        store.sound(KEY)
    monkeypatch.undo()
    assert store.sound(KEY)


@pytest.mark.parametrize("roots", [["plug_in_of_somebody_else"], None, "regretless.draws"])
def test_a_result_of_code_that_is_not_here_is_not_old(store, roots):
    result = invented.invent(CELL)
    result.record.update(code_used="0.0.1+abc", roots=roots)
    store.put(KEY, result)
    assert store.old() == []


def test_results_in_the_format_of_version_0_1_are_old(store):
    """The record of an old file is sound, but says nothing about its key; it is told apart from damage."""
    store.put(KEY, invented.invent(CELL))
    table = pq.read_table(store.path(KEY))
    inner = json.loads(table.schema.metadata[b"regretless"])
    del inner["sha256"], inner["record"]["key"]
    inner["format"] = 1
    words = json.dumps({"sha256": hashlib.sha256(canonical(inner)).hexdigest(), **inner})
    pq.write_table(table.replace_schema_metadata({"regretless": words}), store.path(KEY))
    assert [entry.problem for entry in store.old()] == ["written in format 1, this version reads format 2"]


def test_a_place_that_cannot_be_written_is_refused():
    with pytest.raises(SettingsError, match="cannot write to the store /proc/nothing"):
        Store(Path("/proc/nothing")).create()
