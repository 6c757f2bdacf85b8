"""A whole batch job: writes matches and bad records to files or tables, and counts both."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Unpack

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType

from cerflow.api.programs.program import Program, without_definitions
from cerflow.api.query import Query
from cerflow.base.errors import ArgumentError, BadRecordError, InputError, one_of
from cerflow.base.schema import Schema
from cerflow.spark.batch import bad_records, completed, match
from cerflow.spark.failures import own_errors_raised
from cerflow.spark.frames import output as writing
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.output import OutputMode
from cerflow.spark.frames.plan import PlanArguments
from cerflow.spark.frames.schemas import arrow_schema
from cerflow.spark.frames.tasks import shown_row


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
    compiled = without_definitions(query)
    type, time, stream = str(arguments["type"]), arguments.get("time"), arguments.get("stream")
    schema = Schema(arrow_schema(df), type, time, stream, arguments.get("time_unit"))
    events = EventColumns(compiled.plan(schema).schema)
    counts = _Counts()
    if dead_letter is not None and not kept:
        seen = Observation()
        # The counts are right, as no shuffle follows in the same job.
        read = events.renamed(df).observe(seen, *_counted(events)).toDF(*df.columns)
        bad = bad_records(read, type=type, time=time, stream=stream, query=compiled)
        writing.write_frame(bad, dead_letter, format=format, mode=letters, options=options)
        counts = _Counts.of(writing.observed(seen, dead_letter), events)
    elif count_events:
        (row,) = events.renamed(df).agg(*_counted(events)).collect()
        counts = _Counts.of(row.asDict(), events)
        if counts.bad and on_bad_record == "fail":
            _refuse(bad_records(df, type=type, time=time, stream=stream, query=compiled))
    compiled.warn_of_times(events.schema, counts.times)
    matches = writing.write_frame(result, output, format=format, mode=mode, partition_by=partition_by, options=options)
    return RunResult(matches, counts.valid, counts.bad, counts.reasons, clock.perf_counter() - started)


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


@dataclass(frozen=True)
class _Counts:
    """The numbers of events that can be used, and that cannot, also by reason; the least and the greatest time."""

    valid: int | None = None
    bad: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    times: tuple[float | None, float | None] = (None, None)

    @classmethod
    def of(cls, found: Mapping[str, int], events: EventColumns) -> _Counts:
        """The values of the columns `_counted`."""
        counts = {text: found[f"bad{k}"] for k, text in enumerate(events.reasons())}
        bad = sum(counts.values())
        reasons = {text: count for text, count in counts.items() if count}
        return cls(found["all"] - bad, bad, reasons, (found.get("least"), found.get("greatest")))


def _counted(events: EventColumns) -> list[Column]:
    """The counts of all events, and of those that cannot be used, by reason; and the times, if these are numbers."""
    schema, reason = events.schema, events.reason()
    found = [F.count_if(reason == F.lit(text)).alias(f"bad{k}") for k, text in enumerate(events.reasons())]
    if schema.time is not None and schema.counts_time:
        time = F.when(events.valid(), F.col(events.plain(schema.time)).cast(DoubleType()))
        found += [F.min(time).alias("least"), F.max(time).alias("greatest")]
    return [F.count(F.lit(1)).alias("all"), *found]


def _refuse(bad: DataFrame) -> None:
    row = bad.limit(1).toArrow()
    *values, reason = row.column_names
    raise BadRecordError(shown_row(row, values), row.column(reason)[0].as_py())
