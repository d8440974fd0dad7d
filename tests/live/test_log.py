"""A log on disk: added to at its end only, whole after every failure, and honest about what is damaged."""

import errno
import os

import numpy as np
import pytest

from regretless.errors import LogError
from regretless.live.log import Reader, Writer

SIZE = 300  # two records


def written(path, count, size=SIZE):
    writer = Writer(path, size, sync=False)
    for i in range(count):
        writer.append("note", {"i": i}, {"x": np.full(4, float(i))})
    writer.close()


def read(path):
    reader = Reader(path)
    return [record.data["i"] for _, record in reader], reader


def test_records_come_back_in_order_through_all_files(tmp_path):
    written(tmp_path / "log", 9)
    names = sorted(os.listdir(tmp_path))
    assert names == ["log", "log.1", "log.2", "log.3", "log.4"]
    assert all((tmp_path / name).stat().st_size <= SIZE for name in names)
    found, reader = read(tmp_path / "log")
    assert found == list(range(9))
    assert reader.problem is None
    writer = Writer(tmp_path / "log", SIZE, sync=True, reader=reader)
    with pytest.raises(LogError, match="is being written by another learner"):
        Writer(tmp_path / "log", SIZE, sync=False, reader=reader)
    writer.append("note", {"i": 9}, {})
    writer.close()
    assert read(tmp_path / "log")[0] == list(range(10))
    with pytest.raises(LogError, match="was closed"):
        writer.append("note", {"i": 10}, {})
    (tmp_path / "log").unlink()
    assert read(tmp_path / "log")[0] == list(range(2, 10)), "the oldest file may be removed"
    (tmp_path / "log.2").unlink()
    with pytest.raises(LogError, match=r"expected the file log\.2"):
        Reader(tmp_path / "log")
    with pytest.raises(LogError, match="no such file"):
        Reader(tmp_path / "none")


def test_a_torn_tail_is_cut_off_and_the_rest_kept(tmp_path):
    path = tmp_path / "log"
    written(path, 3, 10**6)
    whole = path.read_bytes()
    third = Reader(path)
    ends = [third.offset for _ in third]
    for length in {*range(ends[1] + 1, len(whole), 7), len(whole) - 1}:
        path.write_bytes(whole[:length])
        found, reader = read(path)
        assert found == [0, 1]
        assert reader.torn
        assert f"torn off by a crash at byte {ends[1]}" in reader.problem
        assert "the records up to 2 are good" in reader.problem
    path.write_bytes(whole[: ends[1]] + bytes(500))
    found, reader = read(path)
    assert (found, reader.torn) == ([0, 1], True), "a file system may lengthen a file before it fills it"
    writer = Writer(path, 10**6, sync=False, reader=reader)
    writer.append("note", {"i": 7}, {})
    assert read(path)[0] == [0, 1, 7]
    assert read(path)[1].problem is None


def test_damage_is_told_with_its_place(tmp_path):
    path = tmp_path / "log"
    written(path, 5)
    names = ["log", "log.1", "log.2"]
    for name, damage in [(name, place) for name in names for place in range(0, 121, 13)]:
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[:damage] + bytes([data[damage] ^ 4]) + data[damage + 1 :])
        found, reader = read(path)
        (tmp_path / name).write_bytes(data)
        good = 2 * names.index(name)
        assert found == list(range(good))
        assert not reader.torn
        assert f"{name}: the log is damaged at byte" in reader.problem
        with pytest.raises(LogError, match="the log is damaged"):
            reader.require_sound()
    one, other = path.read_bytes(), (tmp_path / "log.1").read_bytes()
    path.write_bytes(other)
    (tmp_path / "log.1").write_bytes(one)
    assert "expected record 5, got 1" in read(path)[1].problem, "exchanged files"
    path.write_bytes(one[:-3])
    assert not read(path)[1].torn, "a tail can be torn off the last file only"


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "log"
    writer = Writer(path, 10**6, sync=False)
    writer.append("note", {"i": 0}, {})
    before, real = path.read_bytes(), os.pwrite

    def full(file, data, place):
        if len(data) < 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2], place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(LogError, match="No space left on device; nothing was changed"):
            writer.append("note", {"i": 1}, {"x": np.ones(30)})
        assert path.read_bytes() == before
        patched.setattr(os, "ftruncate", lambda file, size: full(file, b"", 0))
        with pytest.raises(LogError):
            writer.append("note", {"i": 1}, {"x": np.ones(30)})
    writer.append("note", {"i": 2}, {})
    assert read(path)[0] == [0, 2]
    with pytest.raises(LogError, match="cannot write log"):
        Writer(tmp_path / "no" / "log", 10**6, sync=False)
