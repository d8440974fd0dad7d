"""Records as bytes: what is written is read, and no changed bit or missing byte goes unnoticed."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from regretless.errors import LogError
from regretless.live import framing
from regretless.live.framing import BEGINNING, HEAD_SIZE

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
arrays = st.dictionaries(
    st.text(max_size=8),
    st.tuples(st.sampled_from(["<f8", "<i4", "|b1", "<f4", "<u8"]), st.lists(st.integers(0, 4), max_size=3)),
    max_size=4,
).map(lambda forms: {name: np.ones(shape, dtype) for name, (dtype, shape) in forms.items()})


@given(data=st.dictionaries(st.text(max_size=8), plain, max_size=4), arrays=arrays, kind=st.text(max_size=6))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_record_comes_back_as_it_was(data, arrays, kind):
    payload = framing.encode(kind, data, arrays)
    frame, position = framing.framed(payload, BEGINNING)
    head = framing.head_of(frame)
    assert head.position == position
    assert framing.fits(head, frame[HEAD_SIZE:])
    found = framing.decode(frame[HEAD_SIZE:])
    assert (found.kind, found.data) == (kind, data)
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found.arrays[name], array)


@given(bit=st.integers(0, 10**6), extra=st.integers(1, 31))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_up_to_32_bits_in_a_row_cannot_change_unnoticed(bit, extra):
    frame, _ = framing.framed(framing.encode("feedback", {"id": 3}, {"values": np.arange(5.0)}), BEGINNING)
    number = int.from_bytes(frame, "little")
    size = 8 * len(frame)
    mask = (1 << (bit % size)) | (1 << min(bit % size + extra, size - 1))
    changed = (number ^ mask).to_bytes(len(frame), "little")
    head = framing.head_of(changed)
    assert head is None or not framing.fits(head, changed[HEAD_SIZE : HEAD_SIZE + head.length])


@given(junk=st.binary(max_size=60))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_payload_that_is_none_is_refused(junk):
    with pytest.raises(LogError, match="cannot be understood"):
        framing.decode(junk)
