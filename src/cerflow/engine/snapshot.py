"""Snapshots: the state of a recogniser as bytes, without code in them.

The format is NumPy's archive of plain arrays (`npz`, never pickled) with one array of JSON that describes the rest:
the format's version, the query, the columns, what the numbers of strings, label sets and signatures mean. Any machine
can restore it for the same query and columns.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.layout import State
from cerflow.errors import SnapshotError

__all__ = ["pack", "read", "unpack", "write"]

VERSION = 5
_MAGIC = "cerflow recognizer"
_MAGIC_SET = "cerflow query set"
_MEANING = {_MAGIC: "a recogniser", _MAGIC_SET: "a set of queries"}


def write(description: dict[str, Any], state: State, events: pa.Table, positions: NDArray[np.int64]) -> bytes:
    """The bytes of a snapshot; ``description`` is kept as JSON."""
    arrays: dict[str, NDArray[Any]] = {f"state_{name}": array for name, array in state._asdict().items()}
    return _written({"format": _MAGIC, **description}, arrays, events, positions)


def read(data: bytes) -> tuple[dict[str, Any], State, pa.Table, NDArray[np.int64]]:
    """The contents of a snapshot. Raises `SnapshotError` if the bytes are none or of another version."""
    header, arrays, events, positions = _read(data, _MAGIC)
    return header, State(*(arrays[f"state_{name}"] for name in State._fields)), events, positions


def pack(parts: Mapping[str, bytes], counts: dict[str, Any], events: pa.Table, positions: NDArray[np.int64]) -> bytes:
    """One snapshot of those of several queries, by name, and of the events that they share."""
    arrays: dict[str, NDArray[Any]] = {f"part_{k}": np.frombuffer(p, np.uint8) for k, p in enumerate(parts.values())}
    return _written({"format": _MAGIC_SET, "names": list(parts), **counts}, arrays, events, positions)


def unpack(data: bytes) -> tuple[dict[str, bytes], dict[str, Any], pa.Table, NDArray[np.int64]]:
    """The contents of a snapshot of several queries. Raises `SnapshotError` if the bytes are none."""
    header, arrays, events, positions = _read(data, _MAGIC_SET)
    parts = {name: arrays[f"part_{k}"].tobytes() for k, name in enumerate(header["names"])}
    return parts, header, events, positions


def _written(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], events: pa.Table, positions: NDArray[np.int64]
) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as stream:
        stream.write_table(events)
    file = io.BytesIO()
    np.savez_compressed(
        file,
        allow_pickle=False,
        events=np.frombuffer(sink.getvalue(), np.uint8),
        positions=positions,
        header=np.frombuffer(json.dumps({"version": VERSION, **header}).encode(), np.uint8),
        **arrays,
    )
    return file.getvalue()


def _read(data: bytes, magic: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]], pa.Table, NDArray[np.int64]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            if header.get("format") != magic:
                raise SnapshotError(f"these bytes are not a snapshot of {_MEANING[magic]}")
            if header.get("version") != VERSION:
                raise SnapshotError(
                    f"the snapshot has version {header.get('version')}, this cerflow reads version {VERSION}"
                )
            arrays = {name: archive[name] for name in archive.files}
            events = pa.ipc.open_stream(arrays["events"].tobytes()).read_all()
    except SnapshotError:
        raise
    except Exception as error:
        # Damaged bytes make NumPy and zipfile raise whatever they stumble over.
        raise SnapshotError(f"these bytes are not a snapshot of {_MEANING[magic]}: {error}") from error
    return header, arrays, events, arrays["positions"]
