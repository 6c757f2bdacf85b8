"""Buckets of keys: events on their way to them, those that wait in them, and the recognisers of the others.

The events of one bucket are sent as one blob, so that few rows are shuffled. Their instants are their times in whole
microseconds since 1970. Spark's watermark begins at zero and never falls below. So events give it their instants moved
by 146,000 years: zero is then before all of them.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext

from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import BadRecordError, SnapshotError
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import DAY, MICROSECONDS
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.matches.matches import Matches
from cerflow.spark.frames.tasks import Recognition, as_larger_tables, recognizers_of, shown_values

#: No instant is before this: 365 cycles of 400 years before 1970, so Spark's reports show the right month and day.
BEGINNING = -365 * 146_097 * DAY
_LENGTH = struct.Struct("<q")
#: The least integer stands for null.
_INTEGERS = (-(2**63) + 1, 2**63 - 1)


def watermark_at(milliseconds: int) -> int:
    """The instant of Spark's watermark, before which no event is expected; `BEGINNING` before the first event."""
    return milliseconds * 1000 + BEGINNING


def spark_timer(milliseconds: int) -> int:
    """The time of Spark's clock this many milliseconds after 1970."""
    return milliseconds - BEGINNING // 1000


def shown_instant(instant: int) -> str:
    """An instant as people read it."""
    return f"{str(np.datetime64(instant, 'us')).rstrip('0').rstrip('.')}Z"


def clock_value(schema: Schema, watermark: int) -> int | float | pa.Scalar:
    """The least value of the time column that an event at the watermark (microseconds) or after it may have."""
    assert schema.time is not None
    data_type = schema.columns.field(schema.time).type
    if schema.kind(schema.time) is ValueKind.FLOAT:
        return math.nextafter(float(watermark / schema.microseconds), -math.inf)
    if pa.types.is_date(data_type):
        return pa.scalar(-(-watermark // DAY), pa.date32()).cast(data_type)
    unit = schema.microseconds if schema.kind(schema.time) is ValueKind.INTEGER else MICROSECONDS[data_type.unit]
    least, greatest = _INTEGERS
    if pa.types.is_integer(data_type):
        information = np.iinfo(data_type.to_pandas_dtype())
        least, greatest = max(int(information.min), least), int(information.max)
    return pa.scalar(min(max(math.ceil(watermark / unit), least), greatest), data_type)


def instant_of(schema: Schema, time: pa.Scalar) -> int:
    """A value of the time column in whole microseconds, rounded down."""
    assert schema.time is not None
    if schema.kind(schema.time) in (ValueKind.INTEGER, ValueKind.FLOAT):
        return math.floor(Fraction(time.as_py()) * schema.microseconds)
    microseconds: int = time.cast(pa.timestamp("us"), safe=False).value
    return microseconds


#: The columns that travel with those of the events: bucket, why an event cannot be used, its time, and, if it cannot
#: be used and more is known than its values, that as text.
BUCKET, REASON, INSTANT, RECORD = "bucket", "reason", "instant", "record"
#: The rows that travel. ``task`` and ``number`` tell in which order the events stood in the input; ``bad`` marks dead
#: letters; ``latest`` is the latest instant (microseconds) of the events of all buckets that the task has seen.
PACKED = pa.schema(
    [
        (BUCKET, pa.int32()),
        ("task", pa.int32()),
        ("number", pa.int64()),
        ("blob", pa.binary()),
        ("bad", pa.bool_()),
        ("latest", pa.int64()),
    ]
)


def watermark_behind(latest: int, delay: int) -> int:
    """The watermark (microseconds) after an event at an instant; the delay is in milliseconds, as in Spark."""
    return (latest // 1000 - delay) * 1000


def packed_rows(rows: pa.RecordBatch) -> bytes:
    """Rows as bytes, without their schema."""
    blob: bytes = rows.serialize().to_pybytes()
    return blob


def unpacked_rows(blobs: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The rows of several blobs."""
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(blob), schema) for blob in blobs], schema)


def letters_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of dead letters: the columns of events without the instant, and at last record and reason."""
    return pa.schema([*list(schema)[:-1], pa.field(RECORD, pa.string()), pa.field(REASON, pa.string())])


def packed_by_bucket(schema: pa.Schema, tell: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packs rows that begin with the columns bucket, reason, instant and record, for `mapInArrow`, into few blobs.

    ``schema`` is that of a blob: the columns of events, and at last the instant in microseconds.
    Events with a reason make it raise `BadRecordError`, or with ``tell`` travel as dead letters (see `letters_schema`).
    """
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    names = [BUCKET, REASON, *schema.names[-1:], RECORD, *schema.names[:-1]]
    latest = BEGINNING
    for number, table in enumerate(as_larger_tables(batches, names)):
        found = []
        reasons = table.column(1)
        if reasons.null_count < len(reasons):
            bad, table = table.filter(pc.is_valid(reasons)), table.filter(pc.is_null(reasons))
            if not tell:
                _refuse(bad)
            letters = _one_batch([*bad.columns[4:], bad.column(3), bad.column(1)], letters_schema(schema))
            found.append((0, packed_rows(letters), True))
        if table.num_rows:
            rows = _one_batch([*table.columns[4:], table.column(2)], schema)
            latest = max(latest, pc.max(rows.column(INSTANT)).as_py())
            parts = _by_bucket(rows, table.column(0).to_numpy())
            found += [(bucket, packed_rows(part), False) for bucket, part in parts]
        columns = zip(*((bucket, task, number, blob, bad, latest) for bucket, blob, bad in found))
        yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, PACKED)], schema=PACKED)


def _refuse(bad: pa.Table) -> None:
    reason, record = (bad.column(k)[0].as_py() for k in (1, 3))
    # A column of the events may be called as one before them.
    values = {name: bad.column(k)[0] for k, name in enumerate(bad.column_names) if k > 3}
    raise BadRecordError(shown_values(values if record is None else json.loads(record)), reason)


def _one_batch(columns: Sequence[pa.ChunkedArray], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [one_array(column).cast(field.type) for column, field in zip(columns, schema)]
    return pa.record_batch(arrays, schema=schema)


def _by_bucket(rows: pa.RecordBatch, buckets: NDArray[np.int32]) -> Iterator[tuple[int, pa.RecordBatch]]:
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    cuts = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    rows = rows.take(pa.array(order))
    for begin, end in pairwise(cuts.tolist()):
        yield int(ordered[begin]), rows.slice(begin, end - begin)


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
