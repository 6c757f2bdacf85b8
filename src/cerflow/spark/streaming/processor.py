"""The stateful part of a streaming query: what Spark calls for each bucket of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from cerflow import limits
from cerflow.errors import InputError
from cerflow.spark.frames.tasks import Recognition, readable_value
from cerflow.spark.streaming.bucket import StreamWork
from cerflow.spark.streaming.packing import BUCKET, packed_rows
from cerflow.spark.streaming.remembering import StateHead, process

__all__ = ["COUNTED", "COUNTS", "LATE", "MATCHES", "RESULT", "BucketProcessor"]

#: The kinds of rows that come out.
MATCHES, LATE, COUNTS = "matches", "late", "counts"
COUNTED = ("events", "late", "released", "matches", "waiting", "configurations", "nodes", "keys", "state_bytes", "held")
#: A row is a blob of matches or of late events, or, at last for each call, counts: the events that came, the late ones
#: of them, those that the watermark passed, the matches found; the events that wait, configurations, nodes of the match
#: graph, keys and bytes that are remembered, and whether the bucket was in memory.
RESULT = f"{BUCKET} int, kind string, blob binary, {', '.join(f'{name} bigint' for name in COUNTED)}"
_ROW = Row(BUCKET, "kind", "blob", *COUNTED)
_NOTHING = (None,) * len(COUNTED)


class _SparkStore:
    """The state that Spark keeps for one bucket at a time; a `BucketStore`."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        fields = "format int, query string, nonce binary, snapshot bigint, log bigint, watermark bigint, timer bigint"
        self._handle = handle
        self._head = handle.getValueState("head", fields)
        self._chunks = handle.getListState("snapshot", "chunk binary")
        self._log = handle.getListState("log", "blob binary")

    def head(self) -> StateHead | None:
        found = self._head.get()
        return None if found is None else StateHead._make(found)

    def set_head(self, head: StateHead) -> None:
        self._head.update(tuple(head))

    def chunks(self) -> Iterable[bytes]:
        return (bytes(row[0]) for row in self._chunks.get())

    def log(self) -> Iterable[bytes]:
        return (bytes(row[0]) for row in self._log.get())

    def append(self, blob: bytes) -> None:
        self._log.appendValue((blob,))

    def replace(self, chunks: list[bytes]) -> None:
        # One call for each chunk: a call is a message, and Spark bounds its size.
        self._chunks.clear()
        for chunk in chunks:
            self._chunks.appendValue((chunk,))
        self._log.clear()

    def set_timer(self, before: int | None, timer: int | None) -> None:
        if before is not None:
            self._handle.deleteTimer(before)
        if timer is not None:
            self._handle.registerTimer(timer)


class BucketProcessor(StatefulProcessor):
    """Recognises in buckets; ``query`` is the fingerprint that tells whether a checkpoint is one of this query."""

    def __init__(self, work: StreamWork, query: str, *, refuse_late: bool) -> None:
        self._work = work
        self._query = query
        self._refuse_late = refuse_late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; called once for a task."""
        self._store = _SparkStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Take the packed events of a bucket, and release those before the watermark."""
        # Shuffles bring rows in any order.
        packed = sorted(rows, key=lambda row: (row["task"], row["number"]))
        return self._process(key[0], [bytes(row["blob"]) for row in packed], timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Release the events that the watermark has passed since."""
        return self._process(key[0], [], timerValues, expired=True)

    def _process(self, number: int, blobs: list[bytes], times: TimerValues, *, expired: bool = False) -> Iterator[Row]:
        recognition = self._work.recognition
        watermark = times.getCurrentWatermarkInMs() * 1000
        step = process(self._work, self._query, number, self._store, blobs, watermark, expired=expired)
        if step.late.num_rows and self._refuse_late:
            raise InputError(_about_late(step.late, recognition, watermark))
        count = 0
        for batch in step.matches.to_batches(limits.RESULT_ROWS, flat=recognition.flat, counts=recognition.counts):
            if batch.num_rows:
                count += batch.num_rows
                yield _ROW(number, MATCHES, packed_rows(batch), *_NOTHING)
        for batch in step.late.combine_chunks().to_batches():
            yield _ROW(number, LATE, packed_rows(batch), *_NOTHING)
        live = step.bucket.recognizer.live
        remembered = (step.bucket.waiting, live["configurations"], live["nodes"], live["partitions"], step.state_bytes)
        counts = (step.events, step.late.num_rows, step.released, count, *remembered, int(step.held))
        yield _ROW(number, COUNTS, None, *counts)


def _about_late(late: pa.Table, recognition: Recognition, watermark: int) -> str:
    event = late.select(recognition.columns.names).slice(0, 1).to_pylist()[0]
    shown = ", ".join(f"{name}: {readable_value(value)}" for name, value in event.items())
    return (
        f"the event {{{shown}}} is late: its '{recognition.time}' is before the watermark, "
        f"{np.datetime64(watermark, 'us')}Z; a longer delay= waits for it, late='drop' leaves it out"
    )
