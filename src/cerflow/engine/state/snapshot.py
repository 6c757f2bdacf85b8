"""Snapshots as bytes: named arrays and a description, with a version and a checksum, never code.

A snapshot begins with a line of text that holds its version. A checksum of all that follows comes next, then an index
in JSON: the kind of the snapshot, and for each section its name, type, shape and length. The sections follow one after
the other, compressed by LZ4 where that makes them smaller. Before compression the bytes of numbers are regrouped (all
first bytes, all second ones, …), because corresponding bytes are similar.

The checksum detects accidents, not forgeries; `cerflow.engine.state.validation` checks the content of the arrays. LZ4
compresses by a factor of at most 255, so reading takes memory in proportion to the length of the snapshot.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import with_plain_columns
from cerflow.base.errors import SnapshotError

#: Snapshots of earlier versions were archives of NumPy.
VERSION = 6
RECOGNIZER, SET, PROGRAM = "recogniser", "set of queries", "program"

_BEGIN = b"cerflow snapshot "
_DIGEST = 16
_LENGTH = struct.Struct("<I")
_RATIO = 255
_CODEC = pa.Codec("lz4")
_TYPES: dict[str, type[np.generic]] = {"int32": np.int32, "int64": np.int64, "bytes": np.uint8}
#: Exceptions that reading damaged bytes may raise.
_DAMAGES = (
    *(ValueError, KeyError, TypeError, IndexError, AttributeError, OSError),
    *(struct.error, RecursionError, MemoryError, pa.ArrowException),
)


@dataclass
class Contents:
    """The contents of a snapshot: a ``description`` (JSON), ``arrays`` by name, ``events`` with their ``positions``."""

    description: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    events: pa.Table
    positions: Ints


def arrays_of_parts(parts: Iterable[bytes]) -> dict[str, NDArray[Any]]:
    """Snapshots as arrays of the snapshot that they are part of."""
    return {f"part {k}": np.frombuffer(part, np.uint8) for k, part in enumerate(parts)}


def part_in(whole: Contents, k: int, what: str) -> bytes:
    """The snapshot number ``k`` in another one; raises `SnapshotError`, which says ``what`` is missing."""
    if f"part {k}" not in whole.arrays:
        raise SnapshotError(f"the snapshot is damaged: it lacks {what}")
    return whole.arrays[f"part {k}"].tobytes()


def write_snapshot(kind: str, contents: Contents) -> bytes:
    """The bytes of a snapshot."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, contents.events.schema) as stream:
        stream.write_table(contents.events)
    sections: dict[str, NDArray[Any]] = {
        "description": np.frombuffer(json.dumps(contents.description).encode(), np.uint8),
        "events": np.frombuffer(sink.getvalue(), np.uint8),
        "positions": contents.positions,
        **{f"array {name}": array for name, array in contents.arrays.items()},
    }
    index, pieces = [], [*map(_packed, sections.values())]
    for (name, array), kept in zip(sections.items(), pieces):
        index.append([name, "bytes" if array.dtype == np.uint8 else array.dtype.name, list(array.shape), len(kept)])
    head = json.dumps({"kind": kind, "sections": index}).encode()
    body = b"".join([_LENGTH.pack(len(head)), head, *pieces])
    return b"".join([_BEGIN, b"%d\n" % VERSION, _checksum(body), body])


def read_snapshot(kind: str, data: bytes) -> Contents:
    """The contents of a snapshot of some kind.

    Raises `SnapshotError` if the bytes are not such a snapshot, are damaged, or have another version.
    """
    body = _body(kind, data)
    try:
        end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
        index = json.loads(bytes(body[_LENGTH.size : end]))
        if index["kind"] != kind:
            raise SnapshotError(f"this is the snapshot of a {index['kind']!s:.40}, not of a {kind}")
        sections: dict[str, NDArray[Any]] = {}
        for name, type_name, shape, length in index["sections"]:
            sections[name] = _unpacked(body[end : end + length], _TYPES[type_name], shape)
            end += length
        description = json.loads(sections.pop("description").tobytes())
        if end != len(body) or not isinstance(description, dict):
            raise SnapshotError("its index does not fit its length")
        positions = sections.pop("positions")
        # Earlier versions kept columns of more types.
        events = with_plain_columns(decoded(pa.py_buffer(sections.pop("events"))))
        arrays = {name.removeprefix("array "): array for name, array in sections.items()}
    except SnapshotError:
        raise
    except _DAMAGES as error:
        raise SnapshotError(f"the snapshot is damaged: {type(error).__name__}: {error}") from error
    return Contents(description, arrays, events, positions)


def _body(kind: str, data: bytes) -> memoryview:
    """The bytes that the checksum covers; raises `SnapshotError` if it is wrong."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"a snapshot is bytes, not {type(data).__name__}")
    whole = memoryview(data).cast("B")
    begin = bytes(whole[: len(_BEGIN) + 20])
    if not begin.startswith(_BEGIN):
        if begin.startswith(b"PK") and b"header.npy" in bytes(whole):
            raise SnapshotError(
                f"the snapshot has version 5 or an earlier one, this version of cerflow reads version {VERSION}: "
                "restore it with the version that took it, or process the events again"
            )
        raise SnapshotError(f"these bytes are not a snapshot of a {kind}: they do not begin like one")
    version = begin[len(_BEGIN) :].partition(b"\n")[0]
    if version != b"%d" % VERSION:
        if not version.isdigit():
            raise SnapshotError("the snapshot is damaged: its first line holds no version")
        raise SnapshotError(
            f"the snapshot has version {version.decode()}, this version of cerflow reads version {VERSION}"
        )
    start = len(_BEGIN) + len(version) + 1
    body = whole[start + _DIGEST :]
    if _checksum(body) != whole[start : start + _DIGEST]:
        raise SnapshotError(f"the snapshot is damaged: the checksum of its {len(whole)} bytes is wrong")
    return body


def _checksum(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _packed(array: NDArray[Any]) -> bytes:
    plain = np.ascontiguousarray(array)
    width = plain.dtype.itemsize
    raw = np.ascontiguousarray(plain.reshape(-1).view(np.uint8).reshape(-1, width).T).tobytes()
    smaller: bytes = _CODEC.compress(raw, asbytes=True) if raw else b""
    return smaller if len(smaller) < len(raw) else raw


def _unpacked(kept: memoryview, dtype: type[np.generic], shape: list[int]) -> NDArray[Any]:
    if not all(type(length) is int and 0 <= length < 2**40 for length in shape) or not 1 <= len(shape) <= 2:
        raise SnapshotError(f"the snapshot is damaged: there is no array of shape {shape!s:.60}")
    width = np.dtype(dtype).itemsize
    size = prod(shape) * width
    if size > _RATIO * len(kept):
        raise SnapshotError(f"the snapshot is damaged: {len(kept)} bytes cannot hold an array of {size} bytes")
    raw: Any = kept if len(kept) == size else _CODEC.decompress(kept, size)
    columns = np.frombuffer(raw, np.uint8).reshape(width, -1) if size else np.zeros((width, 0), np.uint8)
    return np.ascontiguousarray(columns.T).view(dtype).reshape(shape)


def decoded(data: pa.Buffer) -> pa.Table:
    """The events in Arrow's stream format. Compressed buffers are refused, since their real size is not bounded."""
    for message in pa.ipc.MessageReader.open_stream(data):
        if _is_compressed(message.metadata.to_pybytes()):
            raise SnapshotError("the snapshot is damaged: its events are compressed twice")
    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)
    return table


def _is_compressed(metadata: bytes) -> bool:
    """Whether the batch in an Arrow message says that its buffers are compressed (a table of Flatbuffers)."""

    def field(table: int, number: int) -> int:
        """The offset of a field of a table, 0 if it is missing."""
        layout = table - struct.unpack_from("<i", metadata, table)[0]
        if 4 + 2 * number >= struct.unpack_from("<H", metadata, layout)[0]:
            return 0
        offset: int = struct.unpack_from("<H", metadata, layout + 4 + 2 * number)[0]
        return table + offset if offset else 0

    def follow(at: int) -> int:
        return at + int(struct.unpack_from("<I", metadata, at)[0])

    message = follow(0)
    kind = metadata[field(message, 1)]
    batch = follow(field(message, 2))
    if kind == 2:  # a dictionary, which holds a batch
        batch = follow(field(batch, 1))
    return kind in (2, 3) and field(batch, 3) != 0
