"""Array files: damage and promises of too much are refused; nothing is unpickled."""

import io
import json
import zipfile

import numpy as np
import pytest

from regretless.array_files import read_arrays, read_record, write_arrays
from regretless.errors import DamagedError

MEAN = np.arange(16.0).reshape(1, 16)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "file.npz"
    write_arrays(path, {"mean": MEAN, "group/0['x']": np.array([1, 2])}, {"kind": "test", "number": 1.5})
    return path


def test_arrays_and_record_come_back(saved):
    arrays, record = read_arrays(saved)
    np.testing.assert_array_equal(arrays["mean"], MEAN)
    assert arrays["group/0['x']"].tolist() == [1, 2]
    assert record == read_record(saved) == {"kind": "test", "number": 1.5}
    with np.load(saved) as loaded:
        np.testing.assert_array_equal(loaded["mean"], MEAN)


def test_an_unreadable_file_is_not_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        read_record(tmp_path)


def test_never_unpacks_pickles_or_compressed_members(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("record.json", "{}" + " " * 10**6)
    with pytest.raises(DamagedError, match="a member is compressed"):
        read_arrays(tmp_path / "bomb.npz")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_arrays(tmp_path / "pickle.npz", {"a": np.array([object()], dtype=object)}, {})
    assert not (tmp_path / "pickle.npz").exists()


def rewrite(path, change):
    """Change the members of a file, with checksums that match."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members["record.json"])
    change(content, members)
    members["record.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def promise_too_much(content, members):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    members["mean.npy"] = header.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (promise_too_much, "damaged"),
        (lambda content, members: content.update(format="other"), "expected the format 'regretless arrays'"),
        (lambda content, members: content.update(version=99), "got 'regretless arrays' 99"),
        (lambda content, members: content.update(arrays=3), "damaged"),
        (lambda content, members: content.pop("record"), "damaged"),
        (lambda content, members: content["arrays"].append("more"), r"no item named 'more\.npy'"),
        (lambda content, members: members.pop("mean.npy"), r"no item named 'mean\.npy'"),
        (lambda content, members: members.update({"mean.npy": b"\x93NUMPY\x01\x00"}), "damaged"),
    ],
)
def test_files_that_are_not_written_by_this_program(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(DamagedError, match=message):
        read_arrays(saved)


@pytest.mark.parametrize("data", [b"\xff\xfe{}", b"[" * 100_000, b"null", b"3", b'"text"', b"{}"], ids=range(6))
def test_records_that_are_not_written_by_this_program(saved, data):
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("record.json", data)
    with pytest.raises(DamagedError):
        read_arrays(saved)


def test_members_that_promise_more_than_the_file_has(saved):
    data = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("mean.npy")
    size, large = info.file_size.to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")
    entry = data.index(size + size, data.index(b"PK\x01\x02"))
    saved.write_bytes(data[:entry] + large + large + data[entry + 8 :])
    with pytest.raises(DamagedError, match="damaged"):
        read_arrays(saved)
