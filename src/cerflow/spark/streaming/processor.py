"""The stateful part of a streaming query, which Spark calls for each bucket of a micro-batch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming import stateful_processor as spark

from cerflow.base import limits
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, dotted
from cerflow.spark.frames.tasks import Recognition, shown_row
from cerflow.spark.streaming import packing as p
from cerflow.spark.streaming.remembering import KeptBuckets, StreamWork

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
RESULT = f"{p.BUCKET} int, kind string, blob binary, {', '.join(f'{name} bigint' for name in COUNTED)}"
_ROW = Row(p.BUCKET, "kind", "blob", *COUNTED)
_NOTHING = (None,) * len(COUNTED)


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


class BucketProcessor(spark.StatefulProcessor):
    """Recognises in buckets; ``query`` is the fingerprint that tells whether a checkpoint is one of this query.

    ``delay`` is that of the watermark, in milliseconds.
    """

    def __init__(self, work: StreamWork, query: str, options: ProcessorOptions, delay: int) -> None:
        self._work = work
        self._query = query
        self._options = options
        self._delay = delay

    def init(self, handle: spark.StatefulProcessorHandle) -> None:
        """Name the state; called once for a task."""
        self._kept = KeptBuckets(self._work, self._query, handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: spark.TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Take the packed events of a bucket, and release those before the watermark that follows from them."""
        # Shuffles bring rows in any order.
        packed = sorted(rows, key=lambda row: (row["task"], row["number"]))
        blobs, letters = ([bytes(row["blob"]) for row in packed if row["bad"] is bad] for bad in (False, True))
        complete = p.watermark_behind(max(row["latest"] for row in packed), self._delay)
        return self._process(key[0], blobs, timerValues, complete, letters)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: spark.TimerValues,  # noqa: N803
        expiredTimerInfo: spark.ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Release the events that the watermark has passed since."""
        return self._process(key[0], [], timerValues, _microseconds(timerValues), expired=True)

    def _process(
        self,
        number: int,
        blobs: list[bytes],
        times: spark.TimerValues,
        complete: int,
        letters: Sequence[bytes] = (),
        *,
        expired: bool = False,
    ) -> Iterator[Row]:
        recognition, options = self._work.recognition, self._options
        watermark = _microseconds(times)
        step = self._kept.process(number, blobs, watermark, complete, expired=expired)
        if step.late.num_rows and options.refuse_late:
            shown = shown_row(step.late, recognition.schema.columns.names)
            raise InputError(
                f"the event {shown} is {_lateness(recognition, watermark)}; "
                "a longer delay= waits for it, late='drop' leaves it out"
            )
        live = step.bucket.recognizer.live
        waiting, limit = step.bucket.waiting, options.state_limit
        if limit is not None and waiting + live["configurations"] + live["nodes"] > limit:
            raise InputError(
                f"bucket {number} remembers {waiting:,} events that wait for the watermark, {live['configurations']:,} "
                f"configurations and {live['nodes']:,} nodes of the match graph, more than state_limit={limit:,}: "
                "a shorter window or delay needs less, more buckets divide it, and a higher limit allows it"
            )
        count, seen = 0, Counter[str]()
        for matches in step.matches:
            for batch in matches.to_batches(limits.RESULT_ROWS, flat=recognition.flat, counts=recognition.counts):
                if batch.num_rows:
                    count += batch.num_rows
                    batch = with_identifiers(batch, self._query, seen) if options.ids else batch
                    yield _ROW(number, MATCHES, p.packed_rows(batch), *_NOTHING)
        if options.letters and step.late.num_rows:
            reasons = pa.array([_lateness(recognition, watermark)] * step.late.num_rows)
            records = pa.nulls(step.late.num_rows, pa.string())
            arrays = [*map(one_array, step.late.columns[:-1]), records, reasons]
            late = pa.record_batch(arrays, schema=p.letters_schema(self._work.schema))
            letters = [*letters, p.packed_rows(late)]
        bad = 0
        for blob in letters:
            bad += pa.ipc.read_record_batch(pa.py_buffer(blob), p.letters_schema(self._work.schema)).num_rows
            yield _ROW(number, LETTERS, blob, *_NOTHING)
        bad -= step.late.num_rows if options.letters else 0
        came = (step.events + bad, step.late.num_rows, bad, step.released, count)
        remembered = (live["configurations"], live["nodes"], live["partitions"], step.state_bytes, int(step.held))
        yield _ROW(number, COUNTS, None, *came, waiting, *remembered)


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
    return p.watermark_at(int(times.getCurrentWatermarkInMs()))


def _lateness(recognition: Recognition, watermark: int) -> str:
    return dotted(f"late: its '{recognition.schema.time}' is before the watermark, {p.shown_instant(watermark)}")
