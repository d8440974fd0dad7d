"""One record of a log as bytes and back: a JSON header and plain arrays, framed with lengths and checksums. No pickle.

A frame is a head of fixed size and a payload. The head holds a mark, the payload's length, the record's number, the checksum of
the record before it, the checksum of the payload and one of the head itself. A record's checksum is continued from the one
before it, so that a record that was left out, doubled or moved is noticed as well as one whose bits have changed.
"""

import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import LogError

MARK = b"rgl\x01"
HEAD = struct.Struct("<4sIQII")
HEAD_SIZE = HEAD.size + 4
LENGTH = struct.Struct("<I")
LONGEST = 2**32 - 1
"""Bytes of one payload."""


class Position(NamedTuple):
    """A place in a log: how many records there are up to it, and the checksum of the last of them."""

    records: int
    checksum: int


BEGINNING = Position(0, 0)


class Record(NamedTuple):
    """One entry of a log: what happened, plain data about it, and arrays by name."""

    kind: str
    data: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Head(NamedTuple):
    """What stands before a payload."""

    length: int
    number: int
    before: int
    checksum: int

    @property
    def position(self) -> Position:
        """The place in the log behind this record."""
        return Position(self.number, self.checksum)


def encode(kind: str, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A record's payload."""
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    listing = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    header = json.dumps({"kind": kind, "data": dict(data), "arrays": listing}, separators=(",", ":")).encode()
    return b"".join([LENGTH.pack(len(header)), header, *(array.tobytes() for array in plain.values())])


def decode(payload: bytes) -> Record:
    """The record whose payload this is; raises LogError if it is none."""
    try:
        (size,) = LENGTH.unpack_from(payload)
        header = json.loads(payload[LENGTH.size : LENGTH.size + size])
        place, arrays = LENGTH.size + size, {}
        for name, dtype, shape in header["arrays"]:
            kind = np.dtype(dtype)
            if kind.kind not in "biuf" or not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError(f"array {name!r} of type {dtype} and shape {shape}")
            count = math.prod(shape)
            arrays[name] = np.frombuffer(payload, kind, count, place).reshape(shape)
            place += count * kind.itemsize
        if place != len(payload) or not isinstance(header["kind"], str) or not isinstance(header["data"], dict):
            raise ValueError("it is longer than it says")
        return Record(header["kind"], header["data"], arrays)
    except Exception as error:  # what passes the checksum can still be anything
        raise LogError(f"the record cannot be understood: {error}") from None


def framed(payload: bytes, after: Position) -> tuple[bytes, Position]:
    """The frame of a record that follows ``after``, and the place behind it."""
    if len(payload) > LONGEST:
        raise LogError(f"expected a record of at most {LONGEST} bytes, got {len(payload)}; give the history in parts")
    number, checksum = after.records + 1, zlib.crc32(payload, after.checksum)
    head = HEAD.pack(MARK, len(payload), number, after.checksum, checksum)
    return b"".join([head, LENGTH.pack(zlib.crc32(head)), payload]), Position(number, checksum)


def head_of(data: bytes) -> Head | None:
    """The head that ``data`` begins with, None if these bytes are none or were changed."""
    fields, (checksum,) = data[: HEAD.size], LENGTH.unpack_from(data, HEAD.size)
    if zlib.crc32(fields) != checksum:
        return None
    mark, *rest = HEAD.unpack(fields)
    return Head(*rest) if mark == MARK else None


def fits(head: Head, payload: bytes) -> bool:
    """Whether the payload is the one that the head was written for."""
    return zlib.crc32(payload, head.before) == head.checksum
