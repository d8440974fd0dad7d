"""Results on disk: whole or absent, checked, claimed by the living only."""

import os
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import invented
from regretless.errors import DamagedError, SettingsError
from regretless.studies.archive import read_result, write_result
from regretless.studies.cells import Arm, Cell, TheoryCell
from regretless.studies.identity import address, canonical, code_version
from regretless.studies.store import Store

KEY = "ab" * 32
CELL = Cell(
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
    assert store.load(KEY).record["document"]["claims"][0]["holds"]
    assert store.load(KEY).traces == {}


@given(st.data())
def test_no_damage_goes_unnoticed(tmp_path_factory, data):
    """A byte changed anywhere is either told, or in a place that no number depends on."""
    path = tmp_path_factory.mktemp("damage") / "file.parquet"
    result = invented.invent(CELL)
    write_result(result, path)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        again = read_result(path)
    except DamagedError:
        return
    assert again.digest() == result.digest()
    assert canonical({key: again.record[key] for key in result.record}) == canonical(result.record)


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


def test_nothing_but_the_result_is_left_behind(store):
    store.path(KEY).parent.mkdir()
    (store.path(KEY).parent / f".{KEY}.99999").write_text("half a file, by a writer that was killed")
    store.put(KEY, invented.invent(CELL))
    assert [path.name for path in store.path(KEY).parent.iterdir()] == [f"{KEY}.parquet"]


def test_a_failed_write_leaves_the_old_result(store, monkeypatch):
    store.put(KEY, invented.invent(CELL))
    before = store.path(KEY).read_bytes()
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
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
    assert store.failure(KEY).error.endswith("no")
    store.put(KEY, invented.invent(CELL))
    assert store.failure(KEY) is None


def test_old_results_are_listed_and_removed(store):
    store.put(KEY, invented.invent(CELL))
    other = invented.invent(CELL)
    other.record["code"] = "0.0.1+abc"
    store.put("cd" * 32, other)
    store.put("ef" * 32, invented.invent(CELL))
    store.path("ef" * 32).write_bytes(b"PAR1")
    old = store.old(code_version())
    assert {entry.key[:2] for entry in old} == {"cd", "ef"}
    for entry in old:
        store.remove(entry)
    assert [entry.key for entry in store.entries()] == [KEY]


def test_a_place_that_cannot_be_written_is_refused():
    from pathlib import Path

    with pytest.raises(SettingsError, match="cannot write to the store /proc/nothing"):
        Store(Path("/proc/nothing")).create()


def test_addresses_depend_on_everything_that_matters():
    base = address(CELL.identity(), "1")
    assert base == address(Cell(**CELL.model_dump()).identity(), "1")
    changes = [
        {"seeds": 4},
        {"first_seed": 1},
        {"horizon": 41},
        {"degree": 4},
        {"feedback": "full"},
        {"arms": CELL.arms[:1]},
    ]
    others = [address(CELL.model_copy(update=change).identity(), "1") for change in changes]
    assert len({base, address(CELL.identity(), "2"), *others}) == len(changes) + 2
    assert base == address(CELL.model_copy(update={"degree": 8}).identity(), "1"), "8 is the default degree"


def test_a_preset_that_changes_moves_the_address(monkeypatch):
    from regretless.studies import cells

    before = address(CELL.identity(), "1")
    original = cells.settle

    def other(experiment):
        settled = original(experiment)
        return settled._replace(settings=settled.settings.updated(policy_lr=0.123))

    monkeypatch.setattr(cells, "settle", other)
    assert address(CELL.identity(), "1") != before
