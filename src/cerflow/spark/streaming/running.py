"""Running streaming queries: matches to files, Kafka or a function, dead letters, statistics, and an orderly end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from cerflow.api.stream_inputs import free_name
from cerflow.base.errors import warn
from cerflow.base.nested import is_nested
from cerflow.base.schema import HIDDEN_TYPES
from cerflow.spark.failures import own_errors_raised
from cerflow.spark.frames.events import CORRUPT, record_as_json
from cerflow.spark.frames.output import exists, write_frame
from cerflow.spark.streaming.buckets import BEGINNING, BUCKET, REASON, letters_schema, shown_instant
from cerflow.spark.streaming.checkpoint import METRICS, STATUS, TIMES, Checkpoint, StreamStatus, prometheus_text
from cerflow.spark.streaming.matching import CHANGELOG, LACKING, OBSERVED, PROVIDER, SKIPPED, PreparedStream, unpacked
from cerflow.spark.streaming.processor import CAME, COUNTED, COUNTS, IDENTIFIER, LETTERS, MATCHES, REMEMBERED

#: The formats of files that matches can be written in.
FILES = ("parquet", "json", "csv", "orc")
_PARTITIONS = "spark.sql.shuffle.partitions"
#: Is given the matches of a micro-batch and its number; called again with the same number after a failure.
Sink = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class StreamOutput:
    """Where results go: a directory (or None, for Kafka) or a function, and a directory for dead letters."""

    target: str | Sink | None
    format: str
    options: Mapping[str, str]
    dead_letter: str | None


class _BatchWriter:
    """Writes the results of a micro-batch; they replace all that an earlier attempt wrote under the same number."""

    def __init__(self, stream: PreparedStream, output: StreamOutput, checkpoint: Checkpoint, *, corrupt: bool) -> None:
        self._stream, self._output, self._checkpoint, self._corrupt = stream, output, checkpoint, corrupt
        self.ended = threading.Event()
        #: The watermark of a flush; None once later events have been late, which is told once.
        self.flushed: int | None = None
        self._warned = set[str]()
        found = checkpoint.read(STATUS)
        if found is None and checkpoint.batches("commits"):
            warn(f"there is no {STATUS} in the checkpoint '{checkpoint.path}': counts start again with this start")
        self._buckets: dict[str, dict[str, int]] = {} if found is None else found.pop("buckets")
        self.status = None if found is None else StreamStatus(**found)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch; Spark calls this."""
        try:
            self._write(frame, batch)
        except Exception:
            if not self.ended.is_set():
                raise
            # By this text Spark sees that the end broke it off; the whole error would make its test overflow the stack.
            raise RuntimeError(
                "py4j.protocol.Py4JJavaError: An error occurred while calling the end: java.lang.InterruptedException"
            ) from None

    def _write(self, frame: DataFrame, batch: int) -> None:
        # Read several times, but recognised once.
        rows = frame.persist()
        try:
            counted = rows.filter(F.col("kind") == COUNTS).select(BUCKET, *COUNTED).collect()
            counts = [row.asDict() for row in counted]
            last = {name: sum(count[name] for count in counts) for name in CAME}
            schema = letters_schema(self._stream.work.schema)
            if self._output.dead_letter is not None:
                *names, _, _ = schema.names
                letters = unpacked(rows, LETTERS, schema).toDF(
                    *names, free_name(CORRUPT, names), free_name(REASON, names)
                )
                letters = letters if self._corrupt else letters.drop(letters.columns[-2])
                letters = letters.drop(*HIDDEN_TYPES, *filter(is_nested, letters.columns))
                format = self._output.format if self._output.format in FILES else "parquet"
                _write(letters, self._output.dead_letter, batch, format, {}, last["late"] + last["bad"])
            result = self._stream.plan.result
            if self._stream.options.ids:
                result = result.append(pa.field(IDENTIFIER, pa.string()))
            matches = unpacked(rows, MATCHES, result)
            match self._output.target:
                case None:
                    sent = matches.select(F.col(IDENTIFIER).alias("key"), record_as_json([F.col("*")]).alias("value"))
                    if last["matches"]:
                        sent.write.format("kafka").options(**self._output.options).save()
                case str() as path:
                    _write(matches, path, batch, self._output.format, self._output.options, last["matches"])
                case sink:
                    sink(matches, batch)
            skipped = self._observed(OBSERVED + SKIPPED).get("bad", 0)
            last |= {name: last[name] + skipped for name in ("events", "bad")}
            self._tell(batch, counts, last, self._observed(OBSERVED + LACKING))
        finally:
            rows.unpersist()

    def _tell(self, batch: int, counts: list[dict[str, int]], last: dict[str, int], missing: Mapping[str, int]) -> None:
        self._warn(batch, last, missing)
        before = self.status
        self._buckets |= {str(count[BUCKET]): {name: count[name] for name in REMEMBERED} for count in counts}
        totals = dict.fromkeys(CAME, 0) if before is None else dict(before.totals)
        lacking = Counter({} if before is None else before.lacking)
        if before is None or before.batch < batch:
            # A micro-batch that is repeated after a failure is counted already.
            totals = {name: totals[name] + last[name] for name in CAME}
            lacking.update(missing)
        remembered = {name: sum(found[name] for found in self._buckets.values()) for name in REMEMBERED}
        watermark = self._checkpoint.watermark()
        shown = None if watermark == BEGINNING else shown_instant(watermark)
        if last["late"] and watermark == self.flushed:
            self.flushed = None
            warn(
                f"{last['late']:,} events are late: this stream was flushed up to {shown}, so no earlier ones were "
                "expected; do not flush at the end of a run that others follow"
            )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        reached = {"buckets": len(counts), "held": sum(count["held"] for count in counts)}
        status = StreamStatus(batch, now, shown, totals, {**last, **reached}, remembered, dict(lacking))
        self.status = status
        self._checkpoint.write(STATUS, {**asdict(status), "buckets": self._buckets})
        self._checkpoint.write_text(METRICS, prometheus_text(status, self._checkpoint.path))

    def _warn(self, batch: int, last: Mapping[str, int], missing: Mapping[str, int]) -> None:
        """Say what may lose matches: once for each column without values, and each time that most events are late."""
        for name in missing.keys() - self._warned:
            self._warned.add(name)
            warn(
                f"batch {batch}: {missing[name]:,} of the events have no '{name}', which the query reads of them, so "
                "conditions on it do not hold: does a file lack the column? (status.json counts them; said once)"
            )
        if 2 * last["late"] > last["events"]:
            warn(
                f"batch {batch}: {last['late']:,} of {last['events']:,} events are late, so no match has them: either "
                "an event came with a time far ahead; the delay is too short; files do not come in the order of their "
                "modification times, by which Spark reads them (after a copy, for example); or an earlier run was "
                "flushed"
            )

    def _observed(self, name: str) -> dict[str, int]:
        """The metrics of the micro-batch that Spark has just computed in this thread, without zeros."""
        spark = self._checkpoint.spark
        query: Any = spark.streams.get(str(spark.sparkContext.getLocalProperty("sql.streaming.queryId")))
        found = query._jsq.streamingQuery().lastExecution().observedMetrics().get(name)
        if found.isEmpty():
            return {}
        row = found.get()
        counts = {field: int(row.getAs(field)) for field in row.schema().fieldNames()}
        return {field: count for field, count in counts.items() if count}


def _write(frame: DataFrame, path: str, batch: int, format: str, options: Mapping[str, str], count: int) -> None:
    folder = f"{path.rstrip('/')}/batch={batch}"
    # An attempt that failed may have left something.
    if count or exists(frame.sparkSession, folder):
        write_frame(frame, folder, format=format, mode="overwrite", options=options)


class RunningStream:
    """A running streaming query; made by `cerflow.spark.stream`.

    ``query`` is Spark's own handle.
    """

    def __init__(
        self,
        stream: PreparedStream,
        df: DataFrame,
        output: StreamOutput,
        checkpoint: Checkpoint,
        *,
        trigger: str | None,
        available_now: bool,
        idle_timeout: timedelta | None,
    ) -> None:
        self._stream, self._df, self._checkpoint = stream, df, checkpoint
        self._writer = _BatchWriter(stream, output, checkpoint, corrupt=CORRUPT in df.columns)
        self._times = {"delay": 0, "flushed": None} | (checkpoint.read(TIMES) or {})
        self._note_times(max(stream.delay, self._times["delay"]), self._times["flushed"])
        self.query = self._begin(available_now=available_now, trigger=trigger)
        if idle_timeout is not None:
            threading.Thread(target=self._watch, args=[idle_timeout.total_seconds()], daemon=True).start()

    def __repr__(self) -> str:
        return f"<RunningStream {self._checkpoint.path} {'active' if self.query.isActive else 'ended'}>"

    def _begin(self, *, available_now: bool = False, trigger: str | None = None) -> StreamingQuery:
        rows = self._stream.rows(self._df, self._checkpoint.clock)
        writer = rows.writeStream.foreachBatch(self._writer).option("checkpointLocation", self._checkpoint.path)
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        with _settings(self._df.sparkSession, self._stream.buckets):
            return writer.start()

    @property
    def status(self) -> StreamStatus | None:
        """The progress of the query; None before its first micro-batch."""
        return self._writer.status

    def await_termination(self, seconds: float | None = None) -> bool:
        """Wait until the query ends, at most this many seconds; says whether it has ended.

        If it has failed, raises the error of cerflow that made it fail, such as `BadRecordError`, else Spark's
        `StreamingQueryException`.
        """
        with own_errors_raised():
            if seconds is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]

    def stop(self, *, flush: bool = False) -> int:
        """End the query. Its state is in the checkpoint, so a later query can continue.

        With ``flush`` all events that the source has by now are read, and then the watermark moves beyond them, so that
        all are recognised. Events that come later with an earlier time are late, so flush only at the end of the last
        run, or when all earlier events are there. Deadlines after the last event stay open.

        Returns the number of events that still wait: after a flush those that came in the meantime.
        """
        self._writer.ended.set()
        self.query.stop()
        if flush:
            self._writer.ended.clear()
            with own_errors_raised():
                self._begin(available_now=True).awaitTermination()
            instant = self._beyond_all()
            self._note_times(self._times["delay"], instant - self._stream.delay * 1000)
            self._checkpoint.tick(instant)
            with own_errors_raised():
                self._begin(available_now=True).awaitTermination()
        return 0 if self.status is None else self.status.remembered["waiting"]

    def _beyond_all(self) -> int:
        """An instant (microseconds) that moves the watermark beyond all events so far."""
        # The watermark is at most the longest delay before the latest event, rounded down to milliseconds.
        longest: int = self._times["delay"]
        return self._checkpoint.watermark() + (longest + self._stream.delay + 2) * 1000

    def _note_times(self, delay: int, flushed: int | None) -> None:
        times = {"delay": delay, "flushed": flushed}
        if times != self._times:
            self._checkpoint.write(TIMES, times)
        self._times, self._writer.flushed = times, flushed

    def _watch(self, seconds: float) -> None:
        """Let time go on whenever no events have come for so long: beyond all events, then, if deadlines matter, on."""
        seen: int | None = None
        silence: tuple[int, float] | None = None
        while not self._writer.ended.wait(seconds) and self.query.isActive:
            latest = max((report.batchId for report in self.query.recentProgress if _read(report)), default=seen)
            # A long micro-batch is not a lack of events.
            if latest != seen or self.query.status["isDataAvailable"]:
                seen, silence = latest, silence if latest == seen else None
            elif silence is not None and self._stream.work.deadlines:
                self._checkpoint.tick(silence[0] + int(1e6 * (monotonic() - silence[1])))
            elif silence is None and self._checkpoint.watermark() > BEGINNING:
                silence = (self._beyond_all(), monotonic())
                self._checkpoint.tick(silence[0])


def _read(report: Any) -> bool:
    """Whether a micro-batch read events, not only the clock."""
    return any(source.numInputRows for source in report.sources if "/cerflow/clock" not in source.description)


@contextmanager
def _settings(spark: SparkSession, buckets: int) -> Iterator[None]:
    """With the settings that streams need; a query keeps those that it starts with."""
    settings = dict([PROVIDER])
    name, value = CHANGELOG
    if spark.conf.get(name, None) is None:
        settings[name] = value
    # Each partition costs a task and a store, whether it has a bucket or not.
    if int(spark.conf.get(_PARTITIONS) or 0) > buckets:
        settings[_PARTITIONS] = str(buckets)
    # A second query with the same checkpoint would stop the first one.
    settings["spark.sql.streaming.stopActiveRunOnRestart"] = "false"
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)
