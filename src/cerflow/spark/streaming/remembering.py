"""The work on one bucket in one micro-batch, with a state that a store keeps: a snapshot, and a log of events since.

The events of a bucket of keys are kept until the watermark has passed them, and then recognised in order.
Each micro-batch appends its events to the log. When the log outgrows the snapshot, a new snapshot takes the place of
both. A process keeps buckets in memory, too. A nonce, a hash of all entries so far, tells whether they are what the
store holds: if a micro-batch is repeated, or another process took the last one, they are not. A bucket that only lacks
the last entries of the log takes these.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import ListState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from cerflow.base import limits
from cerflow.base.errors import SnapshotError
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.matches.matches import Matches
from cerflow.spark.frames.tasks import Recognition, recognizers_of
from cerflow.spark.streaming.packing import INSTANT, clock_value, instant_of, packed_rows, spark_timer, unpacked_rows

#: The version of what is kept in the store.
_FORMAT = 1
_REMEDY = "continue with the cerflow that wrote it, or start with a new checkpoint"
#: The cost of an entry of the log besides its bytes.
_ENTRY_BYTES = 100
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
        recognized, self._waiting = (
            (None, work.schema.empty_table()) if snapshot is None else _parts(snapshot, work.schema)
        )
        self.recognizer = recognizers_of(work.recognition)(recognized)
        if work.deadlines:
            self.recognizer.run_clock()

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


class StateHead(NamedTuple):
    """Facts about a bucket in a store: sizes in bytes, the watermark in microseconds, the timer in milliseconds.

    Events before the watermark were recognised. ``query`` is a fingerprint of the query and its columns. ``nonce`` is a
    hash of a random number and all entries of the log since, those that a snapshot replaced among them. Without a timer
    it is None.
    """

    format: int
    query: str
    nonce: bytes
    snapshot: int
    log: int
    watermark: int
    timer: int | None


#: The types of what Spark keeps. (Each text instead would be parsed twice for each task, by messages.)
_HEAD = StructType()
for _name, _kind in zip(StateHead._fields, (IntegerType, StringType, BinaryType, *[LongType] * 4), strict=True):
    _HEAD.add(_name, _kind())
_CHUNK, _BLOB = (StructType().add(name, BinaryType()) for name in ("chunk", "blob"))


class Step(NamedTuple):
    """The result of a micro-batch: matches, late events, the numbers of events that came and were released.

    ``state_bytes`` is the size of the state, and ``held`` says that the bucket was in memory, as it is or was.
    """

    matches: list[Matches]
    late: pa.Table
    events: int
    released: int
    bucket: Bucket
    state_bytes: int
    held: bool


#: No event is before this watermark: those of a log were not late when they came.
_ALL = -(2**63)
#: The buckets of this process and the heads of their states, by query and number, those used last at the end.
_held: OrderedDict[tuple[str, int], tuple[StateHead, Bucket]] = OrderedDict()


class KeptBuckets:
    """The buckets of a query, each with the state that Spark's ``handle`` keeps for it; ``query`` is the fingerprint.

    The handle is for one bucket at a time, and calls when the watermark passes its timer.
    """

    def __init__(self, work: StreamWork, query: str, handle: StatefulProcessorHandle) -> None:
        self.work, self.query = work, query
        self._handle = handle
        self._head = handle.getValueState("head", _HEAD)
        self._snapshot = handle.getListState("snapshot", _CHUNK)
        self._log = handle.getListState("log", _BLOB)

    def process(
        self, number: int, blobs: Sequence[bytes], watermark: int, complete: int, *, expired: bool = False
    ) -> Step:
        """Take packed events into a bucket, recognise those before ``complete`` (microseconds), and keep the rest.

        Events before the watermark are late. ``complete`` is the next watermark as far as it is known by now: no later
        event is before it. ``expired`` says that the timer has gone off. Raises `SnapshotError` if the store holds the
        state of another query or version.
        """
        found = self._head.get()
        head = None if found is None else StateHead._make(found)
        bucket, held = self._recalled(number, head)
        if head is not None:
            # Where a stream has watermarks of its own, Spark's may be behind.
            watermark = max(watermark, head.watermark)
        complete = max(watermark, complete)
        added, late = bucket.add(blobs, watermark)
        matches, released = bucket.release(complete)
        timer = bucket.timer
        before = None if head is None or expired else head.timer
        if timer != before and before is not None:
            self._handle.deleteTimer(spark_timer(before))
        if timer != before and timer is not None:
            self._handle.registerTimer(spark_timer(timer))
        nonce, snapshot, log = self._kept(bucket, head, added)
        head = StateHead(_FORMAT, self.query, nonce, snapshot, log, complete, timer)
        self._head.update(tuple(head))
        _held[self.query, number] = (head, bucket)
        if len(_held) > limits.STREAM_BUCKETS_HELD:
            _held.popitem(last=False)
        events = late.num_rows + (0 if added is None else added.num_rows)
        return Step(matches, late, events, released, bucket, snapshot + log, held)

    def _recalled(self, number: int, head: StateHead | None) -> tuple[Bucket, bool]:
        """The bucket as the store has it, and whether it was in memory."""
        # It is put back when its change is in the store: otherwise it cannot be used.
        before, bucket = _held.pop((self.query, number), (None, None))
        if head is None:
            return Bucket(self.work), False
        if head.format != _FORMAT:
            raise SnapshotError(
                f"the state in the checkpoint has version {head.format}, this version of cerflow reads version "
                f"{_FORMAT}: {_REMEDY}"
            )
        if head.query != self.query:
            raise SnapshotError(
                "the state in the checkpoint is of another query or other columns: a changed query needs a new "
                "checkpoint"
            )
        if before is not None and before.watermark > head.watermark:
            # That micro-batch failed.
            before = None
        same = before is not None and before.nonce == head.nonce
        log = _blobs(self._log) if head.log and not same else []
        lacking = None if before is None else _lacking(before, head, log)
        if before is None or bucket is None or lacking is None:
            before, lacking, bucket = None, log, self._restored(head)
        if lacking:
            bucket.add(lacking, _ALL)
        if before is None or lacking or before.watermark < head.watermark:
            # These detections were reported when the events came.
            bucket.release(head.watermark)
        return bucket, before is not None

    def _kept(self, bucket: Bucket, head: StateHead | None, added: pa.RecordBatch | None) -> tuple[bytes, int, int]:
        """Write to the store that events were added to a bucket; gives nonce and the sizes of its snapshot and log."""
        nonce, snapshot, log = (os.urandom(16), 0, 0) if head is None else (head.nonce, head.snapshot, head.log)
        if added is None:
            return nonce, snapshot, log
        blob = packed_rows(added)
        nonce = _next_nonce(nonce, blob)
        log += len(blob) + _ENTRY_BYTES
        if log <= max(limits.STREAM_LOG_RATIO * snapshot, limits.STREAM_LOG_BYTES):
            self._log.appendValue((blob,))
            return nonce, snapshot, log
        data = bucket.snapshot()
        self._snapshot.clear()
        # One call for each chunk: a call is a message, and Spark bounds its size.
        for at in range(0, len(data), limits.STREAM_CHUNK_BYTES):
            self._snapshot.appendValue((data[at : at + limits.STREAM_CHUNK_BYTES],))
        self._log.clear()
        return nonce, len(data), 0

    def _restored(self, head: StateHead) -> Bucket:
        try:
            return Bucket(self.work, b"".join(_blobs(self._snapshot)) if head.snapshot else None)
        except SnapshotError as error:
            raise SnapshotError(f"cannot read the state in the checkpoint ({error}): {_REMEDY}") from error


def _blobs(state: ListState) -> list[bytes]:
    return [bytes(row[0]) for row in state.get()]


def _lacking(before: StateHead, head: StateHead, log: list[bytes]) -> list[bytes] | None:
    """The entries of a log that came after an earlier head; None if it cannot be used.

    It may be that of a micro-batch that failed, or a snapshot took the place of the entries.
    """
    size, first = head.log, len(log)
    while first and size > before.log:
        first -= 1
        size -= len(log[first]) + _ENTRY_BYTES
    nonce = before.nonce
    for entry in log[first:]:
        nonce = _next_nonce(nonce, entry)
    return log[first:] if nonce == head.nonce else None


def _next_nonce(nonce: bytes, entry: bytes) -> bytes:
    return hashlib.blake2b(entry, digest_size=16, key=nonce).digest()
