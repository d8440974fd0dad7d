"""Results on disk: complete or absent, checked, and claimed by living processes only."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from regretless.errors import DamagedError, RegretlessError, SettingsError
from regretless.experiments import ResultStore
from regretless.results import Result

ADDRESS, OTHER = "ab" * 32, "cd" * 32
RNG = np.random.default_rng(0)


def invented(label="greedy", scale=1.0):
    regret = scale * RNG.random((3, 40))
    return Result(label, regret, seeds=(0, 1, 2), config={"policy": label}, diagnostics={"alpha": regret[:, 9::10]})


@pytest.fixture
def store(tmp_path):
    made = ResultStore(tmp_path / "store")
    made.create()
    return made


def put(store, address=ADDRESS, result=None, **more):
    result = invented() if result is None else result
    store.put(address, result, "an arm", **more)
    return result


def test_a_result_is_read_bit_by_bit(store):
    result = put(store)
    stored = store.load(ADDRESS)
    assert stored.digest() == result.digest()
    assert stored.extra["name"] == "an arm"
    assert store.record(ADDRESS)["summary"]["mean"] == pytest.approx(result.mean())


@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_a_cut_off_file_is_damaged_and_counts_as_absent(store, keep):
    put(store)
    path = store.path(ADDRESS)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) if isinstance(keep, float) else keep])
    assert not store.has(ADDRESS)
    assert not store.is_sound(ADDRESS)
    with pytest.raises(DamagedError):
        store.load(ADDRESS)
    assert [(entry.record, entry.damaged) for entry in store.entries()] == [(None, True)]


def test_changed_numbers_are_damage_even_where_the_record_is_sound(store):
    put(store)
    path = store.path(ADDRESS)
    content = bytearray(path.read_bytes())
    content[300] ^= 0xFF
    path.write_bytes(bytes(content))
    assert store.has(ADDRESS)
    assert not store.is_sound(ADDRESS)


def test_a_result_under_another_address_is_refused(store):
    put(store)
    put(store, OTHER, invented(scale=2.0))
    content = store.path(ADDRESS).read_bytes()
    store.path(OTHER).write_bytes(content)
    assert store.record(OTHER) is None
    with pytest.raises(DamagedError, match=f"another result: expected the address {OTHER}, got {ADDRESS}"):
        store.load(OTHER)
    with pytest.raises(SettingsError, match=f"expected a result without an address or with {OTHER}"):
        store.put(OTHER, store.load(ADDRESS), "an arm")


def test_the_next_campaign_removes_what_killed_writers_left(store):
    store.path(ADDRESS).parent.mkdir()
    folders = [store.path(ADDRESS).parent, store.failures, store.campaigns]
    for folder in folders:
        (folder / ".something.99999-00000000.part").write_text("half a file")
    store.create()
    assert [list(folder.iterdir()) for folder in folders] == [[], [], []]


def test_a_failed_write_leaves_the_old_result(store, monkeypatch):
    put(store)
    before = store.path(ADDRESS).read_bytes()
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(RegretlessError, match="No space left on device"):
        put(store)
    assert store.path(ADDRESS).read_bytes() == before
    assert len(list(store.path(ADDRESS).parent.iterdir())) == 1


def test_one_claim_at_a_time_which_says_how_far_the_work_is(store):
    with store.claim(ADDRESS) as first:
        assert first.try_acquire()
        first.report("running", 3, 10)
        assert store.running(ADDRESS)["what"] == "running"
        assert not store.claim(ADDRESS).try_acquire()
    assert store.running(ADDRESS) is None
    assert list(store.claims.iterdir()) == []


def test_the_dead_hold_no_claim(store):
    program = (
        "import sys, time; from regretless.experiments import ResultStore\n"
        f"claim = ResultStore(sys.argv[1]).claim({ADDRESS!r}); print(claim.try_acquire(), flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(store.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().strip() == "True"
            assert store.running(ADDRESS) is not None
        finally:
            process.kill()
    for _ in range(100):
        if store.running(ADDRESS) is None:
            break
        time.sleep(0.02)
    with store.claim(ADDRESS) as claim:
        assert claim.try_acquire()


def test_failures_are_remembered_until_success(store):
    store.fail(ADDRESS, "an arm", "Traceback\nValueError: no")
    first = store.failure(ADDRESS)
    assert first.last_line == "ValueError: no"
    store.fail(ADDRESS, "an arm", "Traceback\nValueError: no")
    assert store.failure(ADDRESS) != first, "another try"
    put(store)
    assert store.failure(ADDRESS) is None


@pytest.mark.parametrize("text", ["", "[1]", '{"name": 1}', '{"id": "\\ud800"}', "[" * 100_000, '{"studies": 3}'])
def test_files_that_cannot_be_understood_count_as_absent(store, text):
    (store.failures / f"{ADDRESS}.json").write_text(text)
    (store.campaigns / "0.json").write_text(text)
    assert store.failure(ADDRESS) is None
    assert store.read_campaigns() == []


def test_outdated_results_are_those_of_other_code_that_is_here(store):
    put(store, code={"regretless": "0.0.1+abc"})
    put(store, OTHER)
    put(store, "ef" * 32, code={"a_plug_in_that_is_not_here": "abc"})
    put(store, "0a" * 32)
    store.path("0a" * 32).write_bytes(b"PK")
    assert {entry.address[:2] for entry in store.outdated()} == {"ab", "0a"}
    for entry in store.outdated():
        store.remove(entry)
    assert {entry.address[:2] for entry in store.entries()} == {"cd", "ef"}


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_what_cannot_be_read_at_the_moment_is_not_damaged(store, monkeypatch, code):
    """An intact result must not be removed or replaced because the disk is away."""
    put(store)
    original = Path.open

    def refusing(path, *arguments, **options):
        if path == store.path(ADDRESS):
            raise OSError(code, os.strerror(code))
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    assert store.outdated() == []
    (entry,) = store.entries()
    assert (entry.record, entry.damaged, entry.problem) == (None, False, f"cannot be read: {os.strerror(code)}")
    with pytest.raises(RegretlessError, match=r"it was left as it is"):
        store.is_sound(ADDRESS)
    monkeypatch.undo()
    assert store.is_sound(ADDRESS)


def test_a_place_that_cannot_be_written_is_refused():
    with pytest.raises(SettingsError, match="cannot write to the store /proc/nothing"):
        ResultStore("/proc/nothing").create()
