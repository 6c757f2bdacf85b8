"""The events of one bucket of keys: kept until the watermark has passed them, then recognised in order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.errors import SnapshotError
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.matches.matches import Matches
from cerflow.spark.frames.tasks import Recognition, recognizers_of
from cerflow.spark.streaming.instants import clock_value, instant_of
from cerflow.spark.streaming.packing import INSTANT, packed_rows, unpacked_rows

_LENGTH = struct.Struct("<q")


@dataclass(frozen=True)
class StreamWork:
    """The work on each bucket: what is recognised, and by which columns events are ordered.

    ``schema`` is that of packed rows, which ends with the instant: the event's time in whole microseconds. With
    ``deadlines`` the watermark shows the recogniser that deadlines pass.
    """

    recognition: Recognition
    sequence: str | None
    schema: pa.Schema
    deadlines: bool = False


class Bucket:
    """The events that wait for the watermark, and the recogniser of those before it.

    Events are recognised in the order of time, then of the sequence, then as they came, whatever the calls in which
    they came.
    """

    def __init__(self, work: StreamWork, snapshot: bytes | None = None) -> None:
        self._work = work
        recognized = None
        waiting = work.schema.empty_table()
        if snapshot is not None:
            recognized, waiting = _parts(snapshot, work.schema)
        self.recognizer = recognizers_of(work.recognition)(recognized)
        if work.deadlines:
            self.recognizer.run_clock()
        self._waiting = waiting

    @property
    def waiting(self) -> int:
        """The number of events that wait."""
        return int(self._waiting.num_rows)

    def add(self, blobs: Sequence[bytes], watermark: int) -> tuple[pa.RecordBatch | None, pa.Table]:
        """Take packed events that are not before the watermark (microseconds).

        Returns the events taken (None if there are none), and the others, which are late.
        """
        rows = unpacked_rows(blobs, self._work.schema)
        late = pc.less(rows.column(INSTANT), watermark)
        taken = rows.filter(pc.invert(late))
        if not taken.num_rows:
            return None, rows
        self._waiting = pa.concat_tables([self._waiting, taken])
        (batch,) = taken.combine_chunks().to_batches()
        return batch, rows.filter(late)

    def release(self, watermark: int) -> tuple[list[Matches], int]:
        """Recognise the events before the watermark; returns the matches that they detect, and the number of events."""
        schema = self._work.recognition.schema
        due = pc.less(self._waiting.column(INSTANT), watermark)
        rows = self._waiting.filter(due)
        if rows.num_rows:
            self._waiting = self._waiting.filter(pc.invert(due)).combine_chunks()
            rows = sort_by_time(rows, schema.time, self._work.sequence)
        matches = [self.recognizer.push(rows.select(schema.columns.names))]
        if self._work.deadlines:
            matches.append(self.recognizer.advance(clock_value(schema, watermark)))
        return matches, rows.num_rows

    @property
    def timer(self) -> int | None:
        """The watermark (milliseconds) from which on there is something to release or a deadline has passed."""
        first: int | None = pc.min(self._waiting.column(INSTANT)).as_py()
        instants = [] if first is None else [first]
        deadline = self.recognizer.next_deadline if self._work.deadlines else None
        if deadline is not None:
            instants.append(instant_of(self._work.recognition.schema, deadline))
        return min(instants) // 1000 + 1 if instants else None

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes."""
        recognized = self.recognizer.snapshot()
        batches = self._waiting.combine_chunks().to_batches()
        waiting = packed_rows(batches[0]) if batches else b""
        return b"".join([_LENGTH.pack(len(recognized)), recognized, waiting])


def _parts(snapshot: bytes, schema: pa.Schema) -> tuple[bytes, pa.Table]:
    if len(snapshot) < _LENGTH.size:
        raise SnapshotError(f"the state of a bucket is damaged: it has {len(snapshot)} bytes")
    end = _LENGTH.size + _LENGTH.unpack_from(snapshot)[0]
    if not _LENGTH.size <= end <= len(snapshot):
        raise SnapshotError(f"the state of a bucket is damaged: its {len(snapshot)} bytes do not hold {end}")
    waiting = [snapshot[end:]] if end < len(snapshot) else []
    return snapshot[_LENGTH.size : end], unpacked_rows(waiting, schema)
