"""Events on their way to buckets: those of one bucket travel as one blob, so that few rows are shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from cerflow.errors import BadRecordError
from cerflow.spark.frames.tasks import as_larger_tables, readable_value

__all__ = ["BUCKET", "INSTANT", "PACKED", "REASON", "Packing", "packed_rows", "unpacked_rows"]

#: The columns that travel beside those of the events: bucket, why an event cannot be used, and its time.
BUCKET, REASON, INSTANT = "bucket", "reason", "instant"
#: The rows that travel. ``task`` and ``number`` tell in which order the events stood in the input.
PACKED = pa.schema([(BUCKET, pa.int32()), ("task", pa.int32()), ("number", pa.int64()), ("blob", pa.binary())])


def packed_rows(rows: pa.RecordBatch) -> bytes:
    """Rows as bytes, without their schema."""
    blob: bytes = rows.serialize().to_pybytes()
    return blob


def unpacked_rows(blobs: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The rows of several blobs."""
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(blob), schema) for blob in blobs], schema)


@dataclass(frozen=True)
class Packing:
    """Packs rows that begin with the columns bucket, reason and instant (a timestamp), for `mapInArrow`.

    ``columns`` is the serialised schema of a blob: the columns of events, and at last the instant in microseconds.
    Raises `BadRecordError` at the first row with a reason.
    """

    columns: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of blobs for many rows."""
        schema = pa.ipc.read_schema(pa.py_buffer(self.columns))
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        names = [BUCKET, REASON, *schema.names[-1:], *schema.names[:-1]]
        for number, table in enumerate(as_larger_tables(batches, names)):
            _refuse_bad(table)
            columns = [*table.columns[3:], table.column(2).cast(pa.int64())]
            rows = pa.table([c.cast(f.type) for c, f in zip(columns, schema)], schema=schema)
            buckets, blobs = [], []
            for bucket, part in _by_bucket(rows, table.column(0)):
                buckets.append(bucket)
                blobs.append(packed_rows(part))
            tasks, numbers = [task] * len(blobs), [number] * len(blobs)
            yield pa.record_batch([buckets, tasks, numbers, blobs], schema=PACKED)


def _refuse_bad(table: pa.Table) -> None:
    reasons = table.column(1)
    if reasons.null_count == len(reasons):
        return
    row = table.filter(pc.is_valid(reasons)).slice(0, 1).to_pylist()[0]
    _, reason, _, *values = row.items()
    shown = ", ".join(f"{name}: {readable_value(value)}" for name, value in values)
    raise BadRecordError(f"{{{shown}}}", reason[1])


def _by_bucket(rows: pa.Table, buckets: pa.ChunkedArray) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each bucket, in their order."""
    numbers = buckets.to_numpy()
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    cuts = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    (batch,) = rows.take(pa.array(order)).combine_chunks().to_batches() or [None]
    for begin, end in pairwise(cuts.tolist()):
        yield int(ordered[begin]), batch.slice(begin, end - begin)
