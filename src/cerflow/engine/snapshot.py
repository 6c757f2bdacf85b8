"""Snapshots: the state of a recogniser as bytes, without code in them.

The format is NumPy's archive of plain arrays (`npz`, never pickled) with one array of JSON that describes the rest:
the format's version, the query, the columns, what the numbers of strings, label sets and signatures mean. Any machine
can restore it for the same query and columns.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine.layout import State
from cerflow.errors import SnapshotError

__all__ = ["read", "write"]

VERSION = 3
_MAGIC = "cerflow recognizer"


def write(description: dict[str, Any], state: State, events: pa.Table, positions: NDArray[np.int64]) -> bytes:
    """The bytes of a snapshot; ``description`` is kept as JSON."""
    header = {"format": _MAGIC, "version": VERSION, **description}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as stream:
        stream.write_table(events)
    arrays: dict[str, NDArray[Any]] = {f"state_{name}": array for name, array in state._asdict().items()}
    arrays["events"] = np.frombuffer(sink.getvalue(), np.uint8)
    arrays["positions"] = positions
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def read(data: bytes) -> tuple[dict[str, Any], State, pa.Table, NDArray[np.int64]]:
    """The contents of a snapshot. Raises `SnapshotError` if the bytes are none or of another version."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            if header.get("format") != _MAGIC:
                raise SnapshotError("these bytes are not a snapshot of a recogniser")
            if header.get("version") != VERSION:
                raise SnapshotError(
                    f"the snapshot has version {header.get('version')}, this cerflow reads version {VERSION}"
                )
            state = State(*(archive[f"state_{name}"] for name in State._fields))
            events = pa.ipc.open_stream(archive["events"].tobytes()).read_all()
            positions = archive["positions"]
    except SnapshotError:
        raise
    except Exception as error:
        # Damaged bytes make NumPy and zipfile raise whatever they stumble over.
        raise SnapshotError(f"these bytes are not a snapshot of a recogniser: {error}") from error
    return header, state, events, positions
