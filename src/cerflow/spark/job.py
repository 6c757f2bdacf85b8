"""Whole jobs: a batch job writes matches and bad records to files or tables and counts both, a stream as they come."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal, Unpack

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType

from cerflow.api.programs.program import Program, without_definitions
from cerflow.api.query import Query
from cerflow.base.errors import ArgumentError, BadRecordError, InputError, UnsupportedQueryError, one_of
from cerflow.base.schema import Schema
from cerflow.language.parser import duration_in_microseconds
from cerflow.language.printer import show
from cerflow.spark.batch import completed, match, plan_of, refuse_bounds, refused
from cerflow.spark.failures import own_errors_raised
from cerflow.spark.frames import output as writing
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.output import OutputMode
from cerflow.spark.frames.plan import PlanArguments, showing_arguments
from cerflow.spark.frames.schemas import arrow_schema, refuse_untransferable
from cerflow.spark.frames.tasks import shown_row
from cerflow.spark.streaming import matching
from cerflow.spark.streaming.checkpoint import Checkpoint, check_unchanged
from cerflow.spark.streaming.processor import ProcessorOptions
from cerflow.spark.streaming.running import FILES, RunningStream, Sink, StreamOutput


@dataclass(frozen=True)
class RunResult:
    """The result of a job.

    ``events`` is the number of valid events, ``bad_records`` the number of other events, ``reasons`` their number for
    each reason; None and empty if they were not counted. ``matches`` is the number of rows that this job wrote.
    ``written`` is False if the output existed and ``mode="ignore"``; then nothing was read. ``seconds`` is the time
    that the job took.
    """

    matches: int
    events: int | None
    bad_records: int | None
    reasons: Mapping[str, int]
    seconds: float
    written: bool = True


@showing_arguments
@own_errors_raised()
def run(
    query: Query | Program | str,
    df: DataFrame,
    output: str,
    *,
    format: str = "parquet",
    mode: OutputMode = "error",
    partition_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    on_bad_record: Literal["fail", "skip", "dead-letter"] = "fail",
    dead_letter: str | None = None,
    dead_letter_mode: OutputMode | None = None,
    count_events: bool = True,
    **arguments: Unpack[PlanArguments],
) -> RunResult:
    """Write the matches of a query in a batch DataFrame to a directory or table; returns counts.

    The query and all ``arguments`` that are not named here are those of `match`. ``output`` is a directory on any file
    system that Spark knows, ``format`` any of Spark's (in ``"csv"`` lists are JSON text), ``options`` are those of its
    writer, and ``partition_by`` are columns of the result: partition keys or computed columns. With ``mode``
    ``"error"`` the output must not exist; ``"overwrite"`` replaces it when writing begins; ``"append"`` adds to it;
    ``"ignore"`` does nothing if it exists. ``"overwrite-partitions"`` replaces those partitions that the job writes to,
    at its very end. With ``format="iceberg"`` an ``output`` without a slash is the name of a table, which is created if
    it does not exist; all modes then take effect at the very end.

    ``on_bad_record`` says what happens to events without a type or a time: ``"fail"`` raises a `BadRecordError` that
    shows one, ``"skip"`` leaves them out, ``"dead-letter"`` writes them to the directory ``dead_letter``, in the same
    format with a column ``reason``. These are written before the matches: where there are matches, the dead letters
    belonging to them are complete. ``dead_letter_mode`` is ``mode`` unless given (``"append"`` for
    ``"overwrite-partitions"``).

    Events are counted by reading the columns for type and time once more before (for dead letters, by the job that
    writes these); ``count_events=False`` saves that, and a bad record is then found while matching. Matches are
    counted while they are written. All counts are exact, also if tasks fail and are repeated.

    Raises what `match` raises, `InputError` for an existing output (``mode="error"``) or missing columns, and
    `ValueError` for arguments that exclude each other; all before any job. Errors of cerflow in tasks, such as
    `PredicateError`, are raised as what they are. Errors of Spark pass through.
    """
    started = clock.perf_counter()
    writing.check_output(mode, partition_by, output, format)
    letters = _letters_mode(mode, dead_letter_mode, on_bad_record, dead_letter, output)
    spark = df.sparkSession
    there = writing.exists(spark, output, format)
    if there and mode == "ignore":
        return RunResult(0, None, None, {}, clock.perf_counter() - started, written=False)
    kept = dead_letter is not None and letters in ("error", "ignore") and writing.exists(spark, dead_letter, format)
    for path, how, found in ((output, mode, there), (dead_letter, letters, kept)):
        if found and how == "error":
            raise InputError(f"'{path}' already exists; choose another mode or remove it")
    df, arguments = completed(df, query, **arguments)
    result = match(query, df, on_bad_record="fail" if on_bad_record == "fail" else "skip", **arguments)
    writing.check_partition_columns(result, partition_by)
    if mode == "overwrite-partitions":
        writing.check_partitions_of_table(spark, output, format, partition_by)
    compiled, time, stream = without_definitions(query), arguments.get("time"), arguments.get("stream")
    schema = Schema(arrow_schema(df), str(arguments["type"]), time, stream, arguments.get("time_unit"))
    events = EventColumns(compiled.plan(schema).schema, df.schema)
    counts: Mapping[str, int] = {}
    if dead_letter is not None and not kept:
        seen = Observation()
        # The counts are right, as no shuffle follows in the same job.
        read = events.renamed(df).observe(seen, *_counted(events)).toDF(*df.columns)
        writing.write_frame(refused(read, events), dead_letter, format=format, mode=letters, options=options)
        counts = writing.observed(seen, dead_letter)
    elif count_events:
        (row,) = events.renamed(df).agg(*_counted(events)).collect()
        counts = row.asDict()
    reasons = {text: counts[f"bad{k}"] for k, text in enumerate(events.reasons()) if counts.get(f"bad{k}")}
    bad = sum(reasons.values())
    if bad and on_bad_record == "fail":
        first = refused(df, events).limit(1).toArrow()
        *values, reason = first.column_names
        raise BadRecordError(shown_row(first, values), first.column(reason)[0].as_py())
    compiled.warn_of_doubts(events.schema, (counts.get("least"), counts.get("greatest")))
    matches = writing.write_frame(result, output, format=format, mode=mode, partition_by=partition_by, options=options)
    valid, invalid = (counts["all"] - bad, bad) if counts else (None, None)
    return RunResult(matches, valid, invalid, reasons, clock.perf_counter() - started)


def _letters_mode(
    mode: OutputMode, given: OutputMode | None, on_bad_record: str, dead_letter: str | None, output: str
) -> OutputMode:
    """How the dead letters are written; raises ValueError for arguments that do not go together."""
    one_of(on_bad_record, "on_bad_record", "fail", "skip", "dead-letter")
    if (dead_letter is not None) != (on_bad_record == "dead-letter"):
        raise ArgumentError("on_bad_record='dead-letter' and a path dead_letter go together")
    if dead_letter is not None:
        paths = [f"{path.rstrip('/')}/" for path in (dead_letter, output)]
        if paths[0].startswith(paths[1]) or paths[1].startswith(paths[0]):
            # Overwriting one would remove the other.
            raise ArgumentError("matches and dead letters need a directory each, neither within the other")
    if given is not None:
        writing.check_output(given, ())
        return given
    # Those of other partitions, written by other jobs, must not be lost.
    return "append" if mode == "overwrite-partitions" else mode


def _counted(events: EventColumns) -> list[Column]:
    """The counts of all events, and of those that cannot be used, by reason; and the times, if these are numbers."""
    schema, reason = events.schema, events.reason()
    found = [F.count_if(reason == F.lit(text)).alias(f"bad{k}") for k, text in enumerate(events.reasons())]
    if schema.time is not None and schema.counts_time:
        time = F.when(events.valid(), F.col(events.plain(schema.time)).cast(DoubleType()))
        found += [F.min(time).alias("least"), F.max(time).alias("greatest")]
    return [F.count(F.lit(1)).alias("all"), *found]


@partial(showing_arguments, without=("max_matches", "until"))
def stream(
    query: Query | Program | str,
    df: DataFrame,
    output: str | Sink | None = None,
    *,
    checkpoint: str,
    delay: timedelta | str,
    format: str = "parquet",
    options: Mapping[str, str] | None = None,
    trigger: str | None = None,
    available_now: bool = False,
    buckets: int = 16,
    on_bad_record: Literal["fail", "skip", "dead-letter"] = "fail",
    late: Literal["drop", "fail", "dead-letter"] = "drop",
    dead_letter: str | None = None,
    match_ids: bool = False,
    idle_timeout: timedelta | str | None = None,
    state_limit: int | None = None,
    ahead: timedelta | str | None = matching.AHEAD,
    **arguments: Unpack[PlanArguments],
) -> RunningStream:
    """Start a query on a streaming DataFrame that writes its matches; see `match` for the other arguments.

    Each micro-batch N writes into ``output/batch=N``, and replaces what a failed attempt left there: readers of these
    folders see every match once. ``format`` is ``"parquet"``, ``"json"``, ``"csv"`` or ``"orc"``; ``options`` are those
    of Spark's writer. With ``format="kafka"`` there is no ``output``, and ``options`` name ``kafka.bootstrap.servers``
    and ``topic``; matches are JSON, and their keys are identifiers by which consumers recognise repeated messages.
    ``match_ids`` adds a column ``match_id`` with these identifiers elsewhere. ``output`` may also be a function of a
    DataFrame of matches and the number of its micro-batch, which is called again with both after a failure.

    ``checkpoint`` is a directory that is kept: a query that is started again with it continues where it ended, also
    after a crash. It is for one query; if query, columns or buckets change, an `InputError` shows the difference.
    ``trigger`` is the time between micro-batches (``"1 second"``; None: as soon as possible). With ``available_now``
    the query ends when it has read the events that exist; events that wait for later ones stay in the checkpoint.

    Bad records and late events may go to the directory ``dead_letter``, with all columns and a ``reason``. If no event
    comes for ``idle_timeout``, the watermark moves beyond all waiting events, and then follows the clock if the query
    waits for deadlines. ``state_limit`` is a number of waiting events, configurations and nodes of the match graph
    together: a bucket that holds more makes the query fail, before memory runs out. ``ahead`` bounds how far a time
    may be ahead of the clock, see `match`.

    Raises what `match` raises, and `ValueError` for arguments that exclude each other, before anything starts.
    """
    if available_now and trigger is not None:
        raise ArgumentError("trigger is the time between micro-batches of a continuous stream; available_now ends it")
    output_ = _checked_output(output, format, options, dead_letter, on_bad_record, late)
    refuse_bounds(arguments)
    df, arguments = completed(df, query, **arguments)
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise InputError("stream needs a streaming DataFrame, of spark.readStream; cerflow.spark.run takes others")
    if not hasattr(df.sparkSession, "_jvm"):
        raise UnsupportedQueryError(
            "stream keeps files in the checkpoint, which Spark Connect cannot access",
            hint="Give the DataFrame of cerflow.spark.match to writeStream yourself.",
        )
    plan = plan_of(query, df, "fail" if on_bad_record == "fail" else "skip", **arguments)
    if dead_letter is not None:
        refuse_untransferable(df, arrow_schema(df), df.columns)
    ids = match_ids or format == "kafka"
    processor = ProcessorOptions(late == "fail", late == "dead-letter", ids, state_limit)
    prepared = matching.prepare_stream(
        plan, df, processor, delay=delay, buckets=buckets, bad=on_bad_record, ahead=ahead
    )
    kept = Checkpoint(df.sparkSession, checkpoint)
    kept.check_readable()
    check_unchanged(kept, _description(prepared))
    idle = duration_in_microseconds(idle_timeout)
    pause = None if idle is None else timedelta(microseconds=idle)
    return RunningStream(prepared, df, output_, kept, trigger=trigger, available_now=available_now, idle_timeout=pause)


def _checked_output(
    output: str | Sink | None,
    format: str,
    options: Mapping[str, str] | None,
    dead_letter: str | None,
    on_bad_record: str,
    late: str,
) -> StreamOutput:
    """Where results go; raises `ValueError` for arguments that do not go together."""
    if format not in (*FILES, "kafka"):
        raise ArgumentError(
            f"format must be one of {', '.join(FILES)} and kafka, not {format!r}; for others output may be a function"
        )
    if (format == "kafka") != (output is None):
        raise ArgumentError("output is a directory or a function; with format='kafka' leave it out")
    if format == "kafka":
        for name in ("kafka.bootstrap.servers", "topic"):
            if name not in (options or {}):
                raise ArgumentError(f"format='kafka' needs options with '{name}'")
    one_of(on_bad_record, "on_bad_record", "fail", "skip", "dead-letter")
    one_of(late, "late", "drop", "fail", "dead-letter")
    if (dead_letter is not None) != ("dead-letter" in (on_bad_record, late)):
        raise ArgumentError("a path dead_letter goes together with on_bad_record='dead-letter' or late='dead-letter'")
    return StreamOutput(output, format, dict(options or {}), dead_letter)


def _description(prepared: matching.PreparedStream) -> dict[str, Any]:
    """The facts that must stay the same as long as a checkpoint is used."""
    recognition = prepared.work.recognition
    schema = recognition.schema
    return {
        "query": show(prepared.plan.query.tree),
        "columns": [f"{field.name}: {field.type}" for field in list(prepared.work.schema)[:-1]],
        "type": schema.type,
        "time": schema.time,
        "time unit": schema.time_unit,
        "stream": schema.stream,
        "sequence": prepared.work.sequence,
        "forget": schema.forget,
        "positions": recognition.positions,
        "buckets": prepared.buckets,
    }
