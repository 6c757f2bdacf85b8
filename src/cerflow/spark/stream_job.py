"""The public function for streams: match a query in a streaming DataFrame, and write the matches as they are found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from pyspark.sql import DataFrame

from cerflow.api.programs.program import Program, without_definitions
from cerflow.api.query import Query
from cerflow.base.errors import ArgumentError, InputError, UnsupportedQueryError, one_of
from cerflow.base.units import TimeUnit
from cerflow.engine.results.report import CountForm
from cerflow.language.parser import duration_in_microseconds
from cerflow.language.printer import show
from cerflow.spark.batch import completed, plan_of
from cerflow.spark.frames.plan import PlanArguments
from cerflow.spark.frames.schemas import arrow_schema, refuse_untransferable
from cerflow.spark.streaming import matching
from cerflow.spark.streaming.checkpoint import Checkpoint, check_unchanged
from cerflow.spark.streaming.processor import ProcessorOptions
from cerflow.spark.streaming.running import FILES, RunningStream, Sink, StreamOutput


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
    type: str | None = "type",
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    forget: timedelta | str | None = None,
    positions: bool = False,
    counts: CountForm = "decimal",
    flat: bool = False,
    constant_type: str | None = None,
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
    arguments: PlanArguments = {
        "type": type,
        "time": time,
        "time_unit": time_unit,
        "sequence": sequence,
        "stream": stream,
        "forget": forget,
        "constant_type": constant_type,
        "positions": positions,
        "counts": counts,
        "flat": flat,
    }
    df, arguments = completed(df, query, **arguments)
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise InputError("stream needs a streaming DataFrame, of spark.readStream; cerflow.spark.run takes others")
    if not hasattr(df.sparkSession, "_jvm"):
        raise UnsupportedQueryError(
            "stream keeps files in the checkpoint, which Spark Connect cannot access",
            hint="Give the DataFrame of cerflow.spark.match to writeStream yourself.",
        )
    matching.check_spark()
    compiled = without_definitions(query)
    plan = plan_of(compiled, df, "fail" if on_bad_record == "fail" else "skip", **arguments)
    ids = match_ids or format == "kafka"
    letters = dead_letter is not None
    if letters:
        refuse_untransferable(df, arrow_schema(df), df.columns)
    processor = ProcessorOptions(late == "fail", late == "dead-letter", ids, state_limit)
    bad: matching.BadPolicy = "tell" if on_bad_record == "dead-letter" else on_bad_record
    prepared = matching.prepare_stream(plan, buckets, processor, delay, bad, ahead, whole=letters)
    matching.refuse_watermark(df)
    kept = Checkpoint(df.sparkSession, checkpoint)
    kept.check_readable()
    check_unchanged(kept, _description(compiled, prepared))
    idle = duration_in_microseconds(idle_timeout)
    return RunningStream(
        prepared,
        df,
        output_,
        kept,
        trigger=trigger,
        available_now=available_now,
        idle_timeout=None if idle is None else timedelta(microseconds=idle),
    )


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


def _description(query: Query | Program, prepared: matching.PreparedStream) -> dict[str, Any]:
    """The facts that must stay the same as long as a checkpoint is used."""
    recognition = prepared.work.recognition
    schema = recognition.schema
    return {
        "query": show(query.tree),
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
