"""Result files: the same bits come back, or the damage is told."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import invented
from regretless.array_files import canonical
from regretless.errors import DamagedError
from regretless.studies.cell_files import read_record, read_result, write_result
from regretless.studies.experiment import Experiment

CELL = Experiment(benchmark="topk", policies={"a": "greedy", "b": "dfhpg"}, seeds=3, horizon=40)


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


def test_the_record_is_read_from_the_end_of_the_file(tmp_path):
    """Numbers that are damaged do not hide the record, and a large file costs as little as a small one."""
    result = invented.invent(CELL).with_key("ab" * 32)
    write_result(result, tmp_path / "file")
    record = read_record(tmp_path / "file")
    content = bytearray((tmp_path / "file").read_bytes())
    content[4:400] = bytes(396)
    (tmp_path / "file").write_bytes(bytes(content))
    assert read_record(tmp_path / "file", "ab" * 32) == record
    with pytest.raises(DamagedError):
        read_result(tmp_path / "file")


def test_a_result_with_decisions_in_one_arm_only(tmp_path):
    result = invented.invent(CELL)
    decisions = (result.traces["a"].regret[..., None] > [[0.0, 1e3, 1e9]]).astype("float32")
    result.traces["a"] = dataclasses.replace(result.traces["a"], decisions=decisions)
    write_result(result, tmp_path / "file")
    again = read_result(tmp_path / "file")
    assert again.traces["b"].decisions is None
    assert (again.traces["a"].decisions == decisions).all()
    assert again.digest() == result.digest()
    decisions[0, 0, 0] += 1.0
    assert again.digest() != result.digest(), "decisions are covered by the checksum"
