"""Array files: damage, forgery and promises of too much are refused before memory is taken; nothing is unpickled."""

import hashlib
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
        archive.writestr("manifest.json", "{}" + " " * 10**6)
    with pytest.raises(DamagedError, match=r"manifest\.json is compressed"):
        read_arrays(tmp_path / "bomb.npz")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_arrays(tmp_path / "pickle.npz", {"a": np.array([object()], dtype=object)}, {})
    assert not (tmp_path / "pickle.npz").exists()


def tamper(path, change):
    """Change the manifest of a file, with a checksum that matches."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest, members)
    members["manifest.json"] = json.dumps(manifest).encode()
    members["manifest.sha256"] = hashlib.sha256(members["manifest.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def promise_too_much(manifest, members):
    entry = manifest["arrays"]["mean"]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    members[entry["file"]] = header.getvalue()
    entry.update(shape=[10**13], sha256=hashlib.sha256(header.getvalue()).hexdigest())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (promise_too_much, "'mean' cannot be read: it differs from the manifest"),
        (
            lambda manifest, members: manifest["arrays"].update(more=manifest["arrays"]["mean"]),
            "its arrays share files",
        ),
        (lambda manifest, members: manifest.update(format="other"), "expected the format 'regretless arrays'"),
        (lambda manifest, members: manifest.update(version=99), "got 'regretless arrays' 99"),
        (lambda manifest, members: manifest.update(arrays=3), "cannot be understood"),
        (lambda manifest, members: manifest.pop("record"), "cannot be understood"),
        (lambda manifest, members: manifest["arrays"].update(a=3), "cannot be understood"),
        (
            lambda manifest, members: manifest["arrays"]["mean"].update(file="../x"),
            r"expected a member \.\./x, got none",
        ),
    ],
)
def test_forged_files_are_refused_before_memory_is_taken(saved, change, message):
    tamper(saved, change)
    with pytest.raises(DamagedError, match=message):
        read_arrays(saved)


@pytest.mark.parametrize(
    "text",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 16",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ('a', 16), }\n",
        b"{'descr': 'O', 'fortran_order': False, 'shape': (1, 16), }\n",
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1, 16), }\n",
        b"{'descr': '<f8', 'fortran_order': 3, 'shape': (1, 16), }\n",
        b"\xff\xfe\x00",
        b'"""',
        b"[" * 5000,
        b"",
    ],
    ids=range(9),
)
def test_headers_that_no_array_has(saved, text):
    def change(manifest, members):
        entry = manifest["arrays"]["mean"]
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x00" * 128
        members[entry["file"]] = data
        entry["sha256"] = hashlib.sha256(data).hexdigest()

    tamper(saved, change)
    with pytest.raises(DamagedError, match="'mean' cannot be read"):
        read_arrays(saved)


@pytest.mark.parametrize("data", [b"\xff\xfe{}", b"[" * 100_000, b"null", b"3", b'"text"', b"{}"], ids=range(6))
def test_manifests_that_are_not_written_by_this_program(saved, data):
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("manifest.json", data)
        archive.writestr("manifest.sha256", hashlib.sha256(data).hexdigest())
    with pytest.raises(DamagedError):
        read_arrays(saved)


def test_members_that_promise_more_than_the_file_has(saved):
    data = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("mean.npy")
    size, large = info.file_size.to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")
    entry = data.index(size + size, data.index(b"PK\x01\x02"))
    saved.write_bytes(data[:entry] + large + large + data[entry + 8 :])
    with pytest.raises(DamagedError, match="its members promise more than"):
        read_arrays(saved)
