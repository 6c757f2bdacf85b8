"""The plan of a streaming query: events under a watermark, in buckets of keys, through the stateful part."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from itertools import count
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType

from cerflow.api.query import Query
from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.base import errors
from cerflow.base.nested import is_nested
from cerflow.base.schema import HIDDEN_TYPES, ValueKind
from cerflow.base.units import DAY
from cerflow.engine.recognize.columns_needed import separable_by_key
from cerflow.language.parser import duration_in_microseconds
from cerflow.language.printer import show
from cerflow.logic.analysis.columns import columns_by_type
from cerflow.logic.conditions.connectives import TRUE
from cerflow.spark.frames.events import CORRUPT, MALFORMED, EventColumns, pushdown, record_as_json
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import spark_schema
from cerflow.spark.placing.survey import spark_plan
from cerflow.spark.streaming import buckets as b
from cerflow.spark.streaming.processor import COUNTED, COUNTS, MATCHES, RESULT, BucketProcessor, ProcessorOptions

LatePolicy = Literal["drop", "fail"]
BadPolicy = Literal["fail", "skip", "dead-letter"]
#: Marks rows that a clock gave; the column by which Spark moves the watermark.
_TICK, _SPARK_TIME = "tick", "moved"
#: The name of the metrics of a query in Spark's progress reports. Results of `match` that Spark's user may combine in
#: one query have a number after it from the second on, since Spark takes each name once.
OBSERVED = "cerflow"
_results = count(1)
#: What the name of the counts of events without a value, by column, has after it.
LACKING = "_lacking"
#: The same for the number of bad records that are left out before the buckets, which would count them.
SKIPPED = "_skipped"
#: How far the time of an event may be ahead of the clock, if nothing else is said.
AHEAD = "1 day"
#: The only state store with timers.
PROVIDER = (
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)
#: A micro-batch writes the changes of the state, not files of RocksDB, which takes less time.
CHANGELOG = ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")


def match_stream(
    plan: JobPlan,
    df: DataFrame,
    *,
    delay: timedelta | str | None,
    buckets: int,
    late: LatePolicy,
    bad: BadPolicy,
    ahead: timedelta | str | None,
) -> DataFrame:
    """The matches of a plan in a streaming DataFrame, as `cerflow.spark.match` describes them."""
    errors.one_of(late, "late", "drop", "fail")
    name, provider = PROVIDER
    if df.sparkSession.conf.get(name, None) != provider:
        raise errors.InputError(f"streams need Spark's RocksDB state store: spark.conf.set('{name}', '{provider}')")
    options = ProcessorOptions(refuse_late=late == "fail")
    prepared = prepare_stream(plan, df, options, delay=delay, buckets=buckets, bad=bad, ahead=ahead)
    number = next(_results)
    observed = OBSERVED if number == 1 else f"{OBSERVED}_{number}"
    return unpacked(prepared.rows(df, observed=observed), MATCHES, plan.result)


@dataclass(frozen=True)
class PreparedStream:
    """A plan for a streaming DataFrame.

    ``bad`` says how to treat events that cannot be used. Times more than ``ahead`` (in words, and microseconds) after
    the start of the micro-batch are among them. ``delay`` is in milliseconds.
    """

    plan: JobPlan
    work: b.StreamWork
    buckets: int
    options: ProcessorOptions
    delay: int
    bad: BadPolicy
    ahead: tuple[str, int] | None

    def rows(self, df: DataFrame, clock: DataFrame | None = None, *, observed: str = OBSERVED) -> DataFrame:
        """Matches, dead letters and counts, as the stateful part gives them; Spark reports the counts as ``observed``.

        ``clock`` has a column of instants (microseconds), which move the watermark as events would.
        """
        plan, work = self.plan, self.work
        events = EventColumns(plan.schema, df.schema)
        corrupt = CORRUPT in df.columns
        plain = df.toDF(*[CORRUPT if name == CORRUPT else events.plain(name) for name in df.columns])
        frame = plain.withColumn(b.INSTANT, _instant(events)).withColumn(
            b.REASON, reason(events, self.ahead, corrupt=corrupt)
        )
        frame = lacking_observed(frame, events, expected_columns(plan), observed + LACKING)
        if self.bad == "skip":
            frame = frame.observe(observed + SKIPPED, F.count(b.REASON).alias("bad"))
        # Others must not move the watermark.
        valid = F.when(F.col(b.REASON).isNull(), F.col(b.INSTANT))
        frame = frame.withColumn(b.INSTANT, valid).withColumn(_TICK, F.lit(False))
        if clock is not None:
            ticks = clock.select(F.col("instant").alias(b.INSTANT), F.lit(True).alias(_TICK))
            frame = frame.unionByName(ticks, allowMissingColumns=True)
        frame = frame.withColumn(_SPARK_TIME, F.timestamp_micros(F.col(b.INSTANT) - F.lit(b.BEGINNING)))
        frame = frame.withWatermark(_SPARK_TIME, f"{self.delay} milliseconds")
        frame = _sendable(frame, plan, events, skip=self.bad == "skip")
        keys = events.keys(plan)
        bucket = F.pmod(F.xxhash64(*keys), F.lit(self.buckets)).cast(IntegerType()) if self.buckets > 1 else F.lit(0)
        named = [name for name in df.columns if name not in (plan.sequence, *HIDDEN_TYPES) and not is_nested(name)]
        letters = self.bad == "dead-letter"
        record = F.lit(None).cast(StringType())
        if corrupt:
            # A bad record as text: all columns as JSON, or, of what becomes a dead letter, what Spark could not read.
            shown = record_as_json([F.col(CORRUPT if n == CORRUPT else events.plain(n)).alias(n) for n in named])
            record = F.when(F.col(b.REASON).isNotNull(), F.col(CORRUPT) if letters else shown)
        columns = [events.plain(name) for name in work.schema.names[:-1]]
        sent = frame.select(bucket.alias(b.BUCKET), b.REASON, b.INSTANT, record.alias(b.RECORD), *columns)
        blobs = sent.mapInArrow(partial(b.packed_by_bucket, work.schema, letters), spark_schema(b.PACKED))
        rows = blobs.groupBy(b.BUCKET).transformWithState(
            BucketProcessor(work, _fingerprint(plan, work, self.buckets), self.options, self.delay),
            outputStructType=RESULT,
            outputMode="append",
            timeMode="eventTime",
        )
        # Sums over the buckets with events in the micro-batch.
        counts = F.count_if(F.col("kind") == COUNTS).alias("buckets")
        return rows.observe(observed, counts, *(F.sum(name).alias(name) for name in COUNTED))


def prepare_stream(
    plan: JobPlan,
    df: DataFrame,
    options: ProcessorOptions,
    *,
    delay: timedelta | str | None,
    buckets: int,
    bad: BadPolicy,
    ahead: timedelta | str | None,
) -> PreparedStream:
    """Check and decide all that needs no job; whole events travel if they may become dead letters.

    Raises `InputError`, `ValueError` and `UnsupportedQueryError`.
    """
    check_spark()
    if plan.schema.time is None:
        raise errors.InputError(
            "a streaming DataFrame needs a time column, by which events wait for others: give time="
        )
    refuse_watermark(df)
    work = stream_work(plan, whole=options.letters or bad == "dead-letter")
    bound = duration_in_microseconds(ahead)
    latest = None if bound is None else (str(ahead), bound)
    return PreparedStream(plan, work, number_of_buckets(plan, buckets), options, _milliseconds(delay), bad, latest)


def unpacked(rows: DataFrame, kind: str, schema: pa.Schema) -> DataFrame:
    """The rows in the blobs of a kind."""
    found = rows.filter(F.col("kind") == kind).select("blob")
    return found.mapInArrow(partial(_rows_of_blobs, schema), spark_schema(schema))


def _rows_of_blobs(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0):
            yield from b.unpacked_rows([blob.as_py()], schema).to_batches()


def number_of_buckets(plan: JobPlan, buckets: int) -> int:
    """One bucket if one task has to see the whole stream, which is said as a warning."""
    errors.at_least_one(buckets, "buckets")
    query = plan.query
    # Keys may need each other only to know that deadlines pass, which the watermark shows here.
    clocked = separable_by_key(query.tree, plan.schema, clocked=True) if isinstance(query, Query) else bool(plan.keys)
    if not plan.positions and (plan.by_key or clocked):
        return buckets
    if plan.positions:
        why = "positions count all events"
    elif plan.keys:
        why = "its keys meet in CONSUME BY ANY, or Spark compares them differently"
    else:
        why = "it has no PARTITION BY, or none that all statements of a program have"
    errors.warn(f"one task at a time recognises the whole stream: {why}")
    return 1


def stream_work(plan: JobPlan, *, whole: bool = False) -> b.StreamWork:
    """The work of a plan on each of its buckets, to which ``whole`` events travel or the columns needed."""
    schema = plan.schema
    sequence = () if plan.sequence is None else [plan.sequence]
    names = dict.fromkeys((*plan.needed, *sequence, *(schema.attributes if whole else ())))
    packed = pa.schema([*map(schema.columns.field, names), pa.field(b.INSTANT, pa.int64())])
    return b.StreamWork(plan.recognition(), plan.sequence, packed, waits_for_time(plan.query.tree))


def _fingerprint(plan: JobPlan, work: b.StreamWork, buckets: int) -> str:
    """A hash of the facts that a checkpoint and the query must have in common: tells whether it is one of the query."""
    r, s = work.recognition, work.recognition.schema
    roles = (s.type, s.time, s.stream, s.time_unit, s.forget, r.positions, work.sequence, buckets)
    facts = repr((show(plan.query.tree), r.language, *roles))
    return hashlib.blake2b(facts.encode() + work.schema.serialize().to_pybytes(), digest_size=16).hexdigest()


def _milliseconds(delay: timedelta | str | None) -> int:
    if delay is None:
        raise errors.ArgumentError(
            "a streaming DataFrame needs delay=, how long an event may come after later ones, such as '10 seconds' "
            "or timedelta(0) if events come in order"
        )
    number, _, unit = delay.strip().partition(" ") if isinstance(delay, str) else (str(delay), "", "second")
    nothing = number in ("0", str(timedelta(0)))
    microseconds = duration_in_microseconds(f"1 {unit}" if nothing else delay)
    assert microseconds is not None
    return 0 if nothing else math.ceil(microseconds / 1000)


def _instant(events: EventColumns) -> Column:
    """The instant of each event, rounded down; null if it is more than 146,000 years from 1970."""
    schema = events.schema
    assert schema.time is not None
    column = F.col(events.plain(schema.time))
    data_type = schema.columns.field(schema.time).type
    ratio = schema.microseconds
    match schema.kind(schema.time):
        case ValueKind.INTEGER:
            count, unit = column.cast(LongType()), F.lit(ratio.denominator)
            down = F.when(count % unit < 0, 1).otherwise(0)
            return _product(F.call_function("div", count, unit) - down, ratio.numerator)
        case ValueKind.FLOAT:
            number = column.cast(DoubleType()) * F.lit(float(ratio))
            return F.when(number.between(b.BEGINNING, -b.BEGINNING), F.floor(number))
    if pa.types.is_date(data_type):
        return _product(F.unix_date(column), DAY)
    # Times without a zone are read as UTC: in that of the session some might be the same, or none.
    return _product(events.conditions.microseconds(schema.time), 1)


def _product(count: Column, factor: int) -> Column:
    """Integers times a number, null beyond the instants, where the product might have more than 64 bits."""
    most = -b.BEGINNING // factor
    return F.when(count.between(-most, most), count.cast(LongType()) * F.lit(factor))


def _sendable(frame: DataFrame, plan: JobPlan, events: EventColumns, *, skip: bool) -> DataFrame:
    """The events that the tasks need, and bad records if these must be told."""
    # Rows of the clock are not events.
    event = ~F.col(_TICK)
    valid = F.col(b.REASON).isNull()
    sent = valid & event
    if not plan.positions:
        pushed, _ = pushdown(plan.relevance.condition, events)
        if plan.keys:
            sent = sent & events.has_keys(plan)
        if pushed != TRUE:
            sent = sent & events.conditions.proposition(pushed)
    if not skip:
        sent = sent | (event & ~valid)
    # No event is so old. As the condition reads the time, Spark evaluates it after the watermark: any event moves it.
    return frame.filter(sent | (F.col(_SPARK_TIME) < F.timestamp_micros(F.lit(0))))


def refuse_watermark(df: DataFrame) -> None:
    """Raise `UnsupportedQueryError` if the DataFrame has a watermark: a query can have one alone, that of the delay."""
    if re.search(r"^\W*EventTimeWatermark\b", spark_plan(df, "extended"), re.MULTILINE):
        raise errors.UnsupportedQueryError(
            "the streaming DataFrame has a watermark of its own, and events that wait for that one would be lost",
            hint="Leave withWatermark out: delay= sets the watermark. What needs it (dropDuplicatesWithinWatermark, "
            "windows) belongs in an earlier query, which writes to a table or topic that this one reads.",
        )


def check_spark() -> None:
    """Raise `UnsupportedQueryError` if this PySpark cannot keep the state of a stream."""
    if not hasattr(GroupedData, "transformWithState"):
        raise errors.UnsupportedQueryError(
            "PySpark 4.1 is the first that can match streaming DataFrames in Python", hint="pip install 'pyspark>=4.1'"
        )
    if find_spec("google.protobuf") is None:
        raise errors.UnsupportedQueryError("Spark needs protobuf for streams", hint="pip install 'cerflow[spark]'")


def reason(events: EventColumns, ahead: tuple[str, int] | None, *, corrupt: bool) -> Column:
    """Why an event cannot be used, null if it can.

    ``ahead`` is a bound in words and microseconds; ``corrupt`` says that the reader tells what it could not read.
    """
    assert events.schema.time is not None
    time = errors.dotted(events.schema.time)
    reasons: list[Column] = []
    if corrupt:
        reasons.append(F.when(F.col(CORRUPT).isNotNull(), F.lit(MALFORMED)))
    text = f"no timestamp can hold the time in '{time}'"
    reasons += [events.reason(), F.when(F.col(b.INSTANT).isNull(), F.lit(text))]
    if ahead is not None:
        # In a stream this is the start of the micro-batch, which the checkpoint keeps.
        latest = F.unix_micros(F.current_timestamp()) + F.lit(ahead[1])
        text = (
            f"its '{time}' is more than {ahead[0]} ahead of the clock (if that is right, allow more with ahead; "
            "numbers may count another time_unit)"
        )
        reasons.append(F.when(F.col(b.INSTANT) > latest, F.lit(text)))
    return F.coalesce(*reasons)


def expected_columns(plan: JobPlan) -> Mapping[str, Set[str] | None]:
    """The columns of the input that a query expects to have values, of events of which types."""
    schema = plan.schema
    roles = {schema.type, schema.time, schema.stream}
    found: dict[str, Set[str] | None] = {}
    for name, types in columns_by_type(plan.query.tree).items():
        column = schema.column(name) if schema.has(name) else None
        if column is not None and column not in roles:
            found[column] = types
    return found


def lacking_observed(
    frame: DataFrame, events: EventColumns, expected: Mapping[str, Set[str] | None], name: str
) -> DataFrame:
    """The frame, for which Spark reports the numbers of valid events without a value in each of these columns."""
    counts = []
    for column, types in expected.items():
        lacking = F.col(events.plain(column)).isNull() & F.col(b.REASON).isNull()
        if types is not None:
            lacking &= F.col(events.plain(events.schema.type)).isin(*sorted(types))
        counts.append(F.count_if(lacking).alias(errors.dotted(column)))
    return frame.observe(name, *counts) if counts else frame
