"""A streaming query without Spark: micro-batches, a watermark, state stores in memory, and accidents."""

import copy
from collections import Counter
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa

import cerflow
from cerflow.base import limits
from cerflow.spark.frames.plan import make_plan
from cerflow.spark.streaming import processor
from cerflow.spark.streaming.buckets import (
    BEGINNING,
    BUCKET,
    INSTANT,
    REASON,
    RECORD,
    packed_by_bucket,
    spark_timer,
    watermark_behind,
)
from cerflow.spark.streaming.matching import number_of_buckets, stream_work
from support.spark.results import bag

END = 2**50


class MemoryStore:
    """The state of one bucket, and Spark's handle for it."""

    def __init__(self):
        self.known, self.snapshot, self.blobs, self.timers = None, [], [], set()

    def getValueState(self, name, schema):
        return SimpleNamespace(get=lambda: self.known, update=self._set_head)

    def getListState(self, name, schema):
        blobs = {"snapshot": self.snapshot, "log": self.blobs}[name]
        append = lambda row: blobs.append(*row)  # noqa: E731
        return SimpleNamespace(get=lambda: iter([(blob,) for blob in blobs]), appendValue=append, clear=blobs.clear)

    def deleteTimer(self, time):
        self.timers.discard(time - spark_timer(0))

    def registerTimer(self, time):
        self.timers.add(time - spark_timer(0))

    def _set_head(self, values):
        self.known = processor.StateHead(*values)


class StreamingRun:
    """A query on micro-batches of rows with a time ``t`` in milliseconds and a sequence ``seq``.

    ``bucket_of`` gives the bucket of a row; rows are dicts with the columns of ``schema``.
    """

    def __init__(self, query, schema, bucket_of, delay):
        self.query = cerflow.parse(query) if isinstance(query, str) else query
        roles = {"type": "type", "time": "t", "sequence": "seq", "stream": None}
        self.plan = make_plan(self.query, schema, positions=False, **roles)
        self.work = stream_work(self.plan)
        self.bucket_of = bucket_of if number_of_buckets(self.plan, 3) > 1 else lambda row: 0
        self.schema, self.delay = schema, delay
        self.stores, self.latest, self.watermark = {}, BEGINNING // 1000, BEGINNING // 1000
        self.rows, self.late, self.counts = [], [], Counter()
        self._elsewhere = {}
        processor._held.clear()

    def batch(self, rows, pieces=1, rehearsed=False):
        """One micro-batch, whose rows reach the tasks in some pieces; ``rehearsed``: an attempt fails before."""
        if rehearsed:
            before = copy.deepcopy((self.stores, self.rows, self.late))
            self._batch(rows, pieces)
            self.stores, self.rows, self.late = before
        self._batch(rows, pieces)
        self.latest = max([self.latest, *(row["t"] for row in rows)])
        self.watermark = max(self.watermark, self.latest - self.delay)

    def _batch(self, rows, pieces):
        names = self.work.schema.names[:-1]
        table = pa.Table.from_pylist(rows, schema=self.schema)
        first = [
            pa.array([self.bucket_of(row) for row in rows], pa.int32()),
            pa.nulls(len(rows), pa.string()),
            pa.array([row["t"] * 1000 for row in rows], pa.int64()),
            pa.nulls(len(rows), pa.string()),
        ]
        given = pa.table([*first, *table.select(names).columns], [BUCKET, REASON, INSTANT, RECORD, *names])
        step = max(1, -(-len(rows) // pieces))
        with mock.patch.object(limits, "PUSH_ROWS", step):
            batches = given.to_batches(max_chunksize=step)
            packed = [
                row for batch in packed_by_bucket(self.work.schema, False, iter(batches)) for row in batch.to_pylist()
            ]
        for bucket in sorted({row[BUCKET] for row in packed}):
            ordered = sorted((row for row in packed if row[BUCKET] == bucket), key=lambda row: row["number"])
            complete = watermark_behind(max(row["latest"] for row in ordered), self.delay)
            self._process(bucket, [row["blob"] for row in ordered], complete, expired=False)
        for bucket, store in self.stores.items():
            for timer in sorted(store.timers):
                if timer <= self.watermark:
                    self._process(bucket, [], self.watermark * 1000, expired=True)
                    store.timers.discard(timer)

    def _process(self, bucket, blobs, complete, *, expired):
        store = self.stores.setdefault(bucket, MemoryStore())
        watermark = self.watermark * 1000
        stateful = processor.BucketProcessor(self.work, "q", processor.ProcessorOptions(), self.delay)
        stateful.init(store)
        step = stateful.process(bucket, blobs, watermark, complete, expired=expired)
        self.rows += [row for matches in step.matches for row in matches.to_arrow().to_pylist()]
        self.late += step.late.to_pylist()
        self.counts.update(events=step.counts["events"], held=step.counts["held"], steps=1)

    def end(self):
        """The watermark passes all events."""
        self.watermark = END
        self.batch([])

    def elsewhere(self):
        """The next micro-batch meets another process, which holds what it held when it was left, at first nothing."""
        here = processor._held.copy()
        processor._held.clear()
        processor._held.update(self._elsewhere)
        self._elsewhere = here


def assert_as_sorted(run, rows):
    """The matches of a run are those of `Query.match` on rows."""
    table = pa.Table.from_pylist(rows, schema=run.schema)
    expected = run.query.match(table, time="t", sequence="seq", positions=run.plan.positions).to_arrow()
    assert bag(pa.Table.from_pylist(run.rows, schema=expected.schema)) == bag(expected)
    return expected.num_rows
