"""The stateful part of a streaming query, which Spark calls for each bucket of a micro-batch.

A store of Spark keeps the state of a bucket: a snapshot, and a log of events since. Each micro-batch appends its events
to the log. When the log outgrows the snapshot, a new snapshot takes the place of both. A process keeps buckets in
memory, too. A nonce, a hash of all entries so far, tells whether they are what the store holds: if a micro-batch is
repeated, or another process took the last one, they are not. A bucket that only lacks the last entries of the log takes
these.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming import stateful_processor as spark

from cerflow.base import limits
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, SnapshotError, dotted
from cerflow.engine.matches.matches import Matches
from cerflow.spark.frames.tasks import shown_row
from cerflow.spark.streaming import buckets as b

#: The column with the identifiers of matches.
IDENTIFIER = "match_id"
#: The kinds of rows that come out.
MATCHES, LETTERS, COUNTS = "matches", "letters", "counts"
CAME = ("events", "late", "bad", "released", "matches")
REMEMBERED = ("waiting", "configurations", "nodes", "keys", "state_bytes")
COUNTED = (*CAME, *REMEMBERED, "held")
#: A row is a blob of matches or of dead letters, or, at last for each call, counts: the events that came, those of them
#: that were late or cannot be used, those that the watermark passed, the matches found; then the events that wait,
#: configurations, nodes of the match graph, keys and bytes that are remembered, and whether the bucket was in memory.
RESULT = f"{b.BUCKET} int, kind string, blob binary, {', '.join(f'{name} bigint' for name in COUNTED)}"
_ROW = Row(b.BUCKET, "kind", "blob", *COUNTED)
_NOTHING = (None,) * len(COUNTED)

#: The version of what is kept in the store.
_FORMAT = 1
_REMEDY = "continue with the cerflow that wrote it, or start with a new checkpoint"
#: The cost of an entry of the log besides its bytes.
_ENTRY_BYTES = 100


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
_HEAD = T.StructType()
for _name, _kind in zip(StateHead._fields, (T.IntegerType, T.StringType, T.BinaryType, *[T.LongType] * 4), strict=True):
    _HEAD.add(_name, _kind())
_CHUNK, _BLOB = (T.StructType().add(name, T.BinaryType()) for name in ("chunk", "blob"))

#: No event is before this watermark: those of a log were not late when they came.
_ALL = -(2**63)
#: The buckets of this process and the heads of their states, by query and number, those used last at the end.
_held: OrderedDict[tuple[str, int], tuple[StateHead, b.Bucket]] = OrderedDict()


@dataclass(frozen=True)
class ProcessorOptions:
    """The treatment of late events, and the form of the output.

    ``letters`` says that late events come out, ``ids`` that matches have an identifier in a last column.
    ``state_limit`` bounds the events, configurations and nodes that one bucket remembers.
    """

    refuse_late: bool = False
    letters: bool = False
    ids: bool = False
    state_limit: int | None = None


class Step(NamedTuple):
    """The result of a micro-batch: matches, late events, and the counts in `RESULT` but of matches and bad events."""

    matches: list[Matches]
    late: pa.Table
    counts: Mapping[str, int]


class BucketProcessor(spark.StatefulProcessor):
    """Recognises in buckets; ``query`` is the fingerprint that tells whether a checkpoint is one of this query.

    ``delay`` is that of the watermark, in milliseconds.
    """

    def __init__(self, work: b.StreamWork, query: str, options: ProcessorOptions, delay: int) -> None:
        self._work = work
        self._query = query
        self._options = options
        self._delay = delay

    def init(self, handle: spark.StatefulProcessorHandle) -> None:
        """Name the state; called once for a task. The handle is then that of one bucket at a time."""
        self._handle = handle
        self._head = handle.getValueState("head", _HEAD)
        self._snapshot = handle.getListState("snapshot", _CHUNK)
        self._log = handle.getListState("log", _BLOB)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: spark.TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Take the packed events of a bucket, and release those before the watermark that follows from them."""
        # Shuffles bring rows in any order.
        packed = sorted(rows, key=lambda row: (row["task"], row["number"]))
        blobs, letters = ([bytes(row["blob"]) for row in packed if row["bad"] is bad] for bad in (False, True))
        complete = b.watermark_behind(max(row["latest"] for row in packed), self._delay)
        watermark = _microseconds(timerValues)
        return self._rows(key[0], self.process(key[0], blobs, watermark, complete), watermark, letters)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: spark.TimerValues,  # noqa: N803
        expiredTimerInfo: spark.ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Release the events that the watermark has passed since."""
        watermark = _microseconds(timerValues)
        return self._rows(key[0], self.process(key[0], [], watermark, watermark, expired=True), watermark, [])

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
            self._handle.deleteTimer(b.spark_timer(before))
        if timer != before and timer is not None:
            self._handle.registerTimer(b.spark_timer(timer))
        nonce, snapshot, log = self._kept(bucket, head, added)
        head = StateHead(_FORMAT, self._query, nonce, snapshot, log, complete, timer)
        self._head.update(tuple(head))
        _held[self._query, number] = (head, bucket)
        if len(_held) > limits.STREAM_BUCKETS_HELD:
            _held.popitem(last=False)
        live = bucket.recognizer.live
        counts = {
            "events": late.num_rows + (0 if added is None else added.num_rows),
            "late": late.num_rows,
            "released": released,
            "waiting": bucket.waiting,
            "configurations": live["configurations"],
            "nodes": live["nodes"],
            "keys": live["partitions"],
            "state_bytes": snapshot + log,
            "held": int(held),
        }
        return Step(matches, late, counts)

    def _recalled(self, number: int, head: StateHead | None) -> tuple[b.Bucket, bool]:
        """The bucket as the store has it, and whether it was in memory."""
        # It is put back when its change is in the store: otherwise it cannot be used.
        before, bucket = _held.pop((self._query, number), (None, None))
        if head is None:
            return b.Bucket(self._work), False
        if head.format != _FORMAT:
            raise SnapshotError(
                f"the state in the checkpoint has version {head.format}, this version of cerflow reads version "
                f"{_FORMAT}: {_REMEDY}"
            )
        if head.query != self._query:
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

    def _kept(self, bucket: b.Bucket, head: StateHead | None, added: pa.RecordBatch | None) -> tuple[bytes, int, int]:
        """Write to the store that events were added to a bucket; gives nonce and the sizes of its snapshot and log."""
        nonce, snapshot, log = (os.urandom(16), 0, 0) if head is None else (head.nonce, head.snapshot, head.log)
        if added is None:
            return nonce, snapshot, log
        blob = b.packed_rows(added)
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

    def _restored(self, head: StateHead) -> b.Bucket:
        try:
            return b.Bucket(self._work, b"".join(_blobs(self._snapshot)) if head.snapshot else None)
        except SnapshotError as error:
            raise SnapshotError(f"cannot read the state in the checkpoint ({error}): {_REMEDY}") from error

    def _rows(self, number: int, step: Step, watermark: int, letters: Sequence[bytes]) -> Iterator[Row]:
        """The rows that come out for a bucket; ``letters`` are packed events that cannot be used."""
        recognition, options, late, counts = self._work.recognition, self._options, step.late, {**step.counts}
        lateness = dotted(
            f"late: its '{recognition.schema.time}' is before the watermark, {b.shown_instant(watermark)}"
        )
        if late.num_rows and options.refuse_late:
            shown = shown_row(late, recognition.schema.columns.names)
            raise InputError(
                f"the event {shown} is {lateness}; a longer delay= waits for it, late='drop' leaves it out"
            )
        waiting, configurations, nodes = (counts[name] for name in ("waiting", "configurations", "nodes"))
        limit = options.state_limit
        if limit is not None and waiting + configurations + nodes > limit:
            raise InputError(
                f"bucket {number} remembers {waiting:,} events that wait for the watermark, {configurations:,} "
                f"configurations and {nodes:,} nodes of the match graph, more than state_limit={limit:,}: "
                "a shorter window or delay needs less, more buckets divide it, and a higher limit allows it"
            )
        counts |= {"bad": 0, "matches": 0}
        seen = Counter[str]()
        for matches in step.matches:
            for batch in matches.to_batches(limits.RESULT_ROWS, flat=recognition.flat, counts=recognition.counts):
                if batch.num_rows:
                    counts["matches"] += batch.num_rows
                    batch = with_identifiers(batch, self._query, seen) if options.ids else batch
                    yield _ROW(number, MATCHES, b.packed_rows(batch), *_NOTHING)
        schema = b.letters_schema(self._work.schema)
        for blob in letters:
            counts["bad"] += b.unpacked_rows([blob], schema).num_rows
            yield _ROW(number, LETTERS, blob, *_NOTHING)
        if options.letters and late.num_rows:
            last = [pa.nulls(late.num_rows, pa.string()), pa.array([lateness] * late.num_rows)]
            rows = pa.record_batch([*map(one_array, late.columns[:-1]), *last], schema=schema)
            yield _ROW(number, LETTERS, b.packed_rows(rows), *_NOTHING)
        counts["events"] += counts["bad"]
        yield _ROW(number, COUNTS, None, *(counts[name] for name in COUNTED))


def with_identifiers(batch: pa.RecordBatch, query: str, seen: Counter[str]) -> pa.RecordBatch:
    """Matches with an identifier each: a hash of query and match, the same whenever they are found again.

    ``seen`` counts the hashes of one micro-batch: matches that are equal in all columns are numbered.
    """
    identifiers = []
    for row in batch.to_pylist():
        text = json.dumps([query, list(row.values())], default=str, ensure_ascii=False)
        found = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        identifiers.append(f"{found}-{seen[found]}")
        seen[found] += 1
    return batch.append_column(IDENTIFIER, pa.array(identifiers, pa.string()))


def _microseconds(times: spark.TimerValues) -> int:
    return b.watermark_at(int(times.getCurrentWatermarkInMs()))


def _blobs(state: spark.ListState) -> list[bytes]:
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
