"""``cerflow stream`` reads files that come into a directory, or Kafka, and writes a line for each micro-batch."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from inspect import signature
from pathlib import Path

import typer
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StringType, StructField, StructType

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.base.errors import InputError, counted
from cerflow.cli.options import SparkOptions
from cerflow.cli.output.reporting import PhaseTimer, compile_kernels, note
from cerflow.cli.spark.session import spark_session
from cerflow.cli.stream_command import StreamOptions, shown_status, shown_watermark
from cerflow.files.raw_rows import delimiter_named
from cerflow.files.sources import SUFFIXES
from cerflow.logic.analysis.columns import usage_of
from cerflow.spark.frames.events import CORRUPT, record_as_json
from cerflow.spark.frames.schemas import columns_as_text, in_backticks
from cerflow.spark.job import stream
from cerflow.spark.streaming.checkpoint import Checkpoint, StreamStatus
from cerflow.spark.streaming.csv_lines import lines_by_name
from cerflow.spark.streaming.running import RunningStream

_KAFKA = re.compile(r"kafka://([^/]+)/(.+)")
#: Orders events of equal time by partition and offset.
_KAFKA_SEQUENCE = "kafka_sequence"
_STATUS_SECONDS = 0.2


def run_stream(query: Query | Program, options: StreamOptions, watch: PhaseTimer, on: SparkOptions) -> None:
    """Run a stream until it has read all events (``available_now``) or is interrupted, and report on it.

    Raises InputError (also if Spark itself fails, with its message) and the errors of the query.
    """
    if (on.master or "local").startswith("local"):
        compile_kernels(watch)
    with spark_session(on.master, on.conf or ()) as spark:
        running = _started(query, options, spark)
        with _end_asked_for() as asked:
            follow(running, until=asked.is_set)
        if asked.is_set():
            note("ending the stream")
            # Failures that this causes are not news.
            spark.sparkContext.setLogLevel("OFF")
        waiting = running.stop(flush=options.flush)
        if running.status is not None:
            note(shown_status(asdict(running.status)))
        if waiting:
            note(
                f"{waiting:,} events wait for later ones: the next run continues with them, and --flush at the last "
                "run recognises them"
            )
        if running.status is not None and options.output != "-":
            totals = running.status.totals
            note(
                f"{counted(totals['events'], 'event')}, {counted(totals['matches'], 'match', 'matches')} since the "
                f"checkpoint began; the matches are in {options.output}"
            )


@contextmanager
def _end_asked_for() -> Iterator[threading.Event]:
    """Whether a signal asks for the end. An exception amid a call of Java would leave Spark unable to end orderly."""
    asked = threading.Event()
    numbers = [signal.SIGINT, signal.SIGTERM] if threading.current_thread() is threading.main_thread() else []
    before = [signal.signal(number, lambda *_: asked.set()) for number in numbers]
    try:
        yield asked
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def _started(query: Query | Program, options: StreamOptions, spark: SparkSession) -> RunningStream:
    frame, sequence = _input(query, options, spark, Checkpoint(spark, str(options.checkpoint)))
    # Options are called as the arguments.
    given = vars(options) | {"sequence": options.sequence or sequence}
    arguments = {name: value for name, value in given.items() if name in signature(stream).parameters}
    topic = _KAFKA.fullmatch(options.output)
    if topic is not None:
        arguments |= {
            "output": None,
            "format": "kafka",
            "options": {"kafka.bootstrap.servers": topic[1], "topic": topic[2]},
        }
    elif options.output == "-":
        arguments["output"] = _print
    else:
        arguments["format"] = options.output_format
    return stream(query, frame, **arguments)


def _print(matches: DataFrame, batch: int) -> None:
    for row in matches.select(record_as_json([F.col("*")])).collect():
        typer.echo(row[0])


def _input(
    query: Query | Program, options: StreamOptions, spark: SparkSession, kept: Checkpoint
) -> tuple[DataFrame, str | None]:
    """The events, and the column of the input's own that orders events of equal time, if it has one."""
    known = kept.read("input.json")
    columns = options.columns or (None if known is None else known["columns"])
    topic = _KAFKA.fullmatch(str(options.input))
    if topic is None:
        frame, columns = _files(query, options, spark, columns)
    elif columns is None:
        raise InputError("give the columns of the messages, as in --columns 'type string, time timestamp, v int'")
    else:
        frame = _events_in(_messages(spark, topic[1], topic[2]), columns, whole=options.dead_letter is not None)
    if known is None:
        kept.write("input.json", {"columns": columns})
    return frame, None if topic is None else _KAFKA_SEQUENCE


def _messages(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("kafka").options(**options).load()


def _events_in(messages: DataFrame, columns: str, *, whole: bool) -> DataFrame:
    """The events in messages of Kafka; with the ``whole`` text, which errors about a malformed one show without it."""
    text = F.col("value").cast("string")
    message = {
        **({"kafka_value": text} if whole else {}),
        "kafka_partition": F.col("partition"),
        "kafka_offset": F.col("offset"),
        _KAFKA_SEQUENCE: F.shiftleft(F.col("partition").cast("bigint"), 48) + F.col("offset"),
    }
    event = F.from_json(text, _with_corrupt(columns), {"columnNameOfCorruptRecord": CORRUPT}).alias("event")
    return messages.select(event, *(column.alias(name) for name, column in message.items())).select("event.*", *message)


def _files(
    query: Query | Program, given: StreamOptions, spark: SparkSession, columns: str | None
) -> tuple[DataFrame, str]:
    path = str(given.input)
    if path.startswith("kafka:"):
        raise InputError(f"'{path}' is not of the form kafka://HOST:PORT/TOPIC")
    format = _format_in(path) if given.input_format is None else given.input_format.value
    sign = delimiter_named(given.delimiter)
    options = {"header": "true", "inferSchema": "true", "sep": sign} if format == "csv" else {}
    if columns is None:
        schema = spark.read.format(format).options(**options).load(path).schema
        if format in ("json", "csv"):
            schema = _as_used(spark.read.format(format).options(**options), query, path, str(given.time), schema)
        # Keep the schema for the next start, which could infer another one.
        columns = columns_as_text(schema)
    if format == "csv" and _by_name(path):
        return _lines_by_name(spark, path, columns, sign), columns
    reader = spark.readStream.format(format).options(**options)
    if format in ("json", "csv"):
        # Spark must not turn a value of another type into null in silence, or pass over names of files.
        reader = reader.options(columnNameOfCorruptRecord=CORRUPT, enforceSchema="false")
        return reader.schema(_with_corrupt(columns)).load(path), columns
    return reader.schema(columns).load(path), columns


def _by_name(path: str) -> bool:
    """Whether the headers of files can be looked at: local ones, no values of which stand in names of directories."""
    folder = Path(path.removeprefix("file://"))
    return "://" not in str(folder) and not any("=" in part.name for part in folder.rglob("*/") if part.is_dir())


def _lines_by_name(spark: SparkSession, path: str, columns: str, sign: str) -> DataFrame:
    """The events in files of CSV, which may lack columns or have others, in any order."""
    read = spark.readStream.text(path).select("value", "_metadata.file_path", "_metadata.file_block_start")
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    lines = read.mapInArrow(partial(lines_by_name, schema.names, sign), "line string, text string")
    event = F.from_csv("line", _with_corrupt(columns), {"columnNameOfCorruptRecord": CORRUPT, "sep": sign})
    malformed = F.when(event[CORRUPT].isNotNull(), F.col("text"))
    return lines.select(event.withField(CORRUPT, malformed).alias("event")).select("event.*")


def _as_used(reader: DataFrameReader, query: Query | Program, path: str, time: str, schema: StructType) -> StructType:
    """The inferred columns, but of columns of text that the query uses as times or numbers, the type that most fit.

    Spark takes a column for text as soon as one value is nothing else.
    """
    usage = usage_of(query.tree)
    numbers: tuple[str, ...] = ("bigint", "double")
    candidates = dict.fromkeys(usage.numbers | usage.ordered, numbers)
    candidates[time] = (*numbers, "timestamp_ntz", "timestamp_ltz")
    fields = list(schema.fields)
    for place, field in enumerate(fields):
        if field.name not in candidates or field.dataType != StringType():
            continue
        counts = []
        found = [field, *(StructField(field.name, DataType.fromDDL(name)) for name in candidates[field.name])]
        for one in found:
            frame = reader.schema(StructType([*fields[:place], one, *fields[place + 1 :]])).load(path)
            ((count,),) = frame.select(F.count(in_backticks(field.name))).collect()
            counts.append(count)
        as_text, *typed = counts
        if max(typed) > (as_text // 2 if field.name in usage.ordered else 0):
            fields[place] = found[1 + typed.index(max(typed))]
    return StructType(fields)


def _with_corrupt(columns: str) -> str:
    return f"{columns}, {CORRUPT} string"


def _format_in(path: str) -> str:
    folder = Path(path)
    found = (
        {SUFFIXES[file.suffix] for file in folder.iterdir() if file.suffix in SUFFIXES} if folder.is_dir() else set()
    )
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "no files whose names show a format"
        raise InputError(f"there are {names} in '{path}'; name the format of the events with --input-format")
    return str(found.pop())


def follow(running: RunningStream, until: Callable[[], bool] = lambda: False) -> None:
    """Wait for the end of a stream, or a condition, and write a line for each micro-batch."""
    shown = -1 if running.status is None else running.status.batch
    ended = False
    while not ended:
        ended = running.await_termination(_STATUS_SECONDS) or until()
        status = running.status
        if status is not None and status.batch > shown:
            shown = status.batch
            note(_line(status))


def _line(status: StreamStatus) -> str:
    last, remembered = status.last, status.remembered
    parts = [f"{last['events']:,} events", f"{last['matches']:,} matches"]
    parts += [f"{last[name]:,} {name}" for name in ("late", "bad") if last[name]]
    # Events wait until the watermark has passed them, as earlier ones may still come.
    parts += [f"{remembered['waiting']:,} waiting for the watermark", shown_watermark(status.watermark)]
    return f"batch {status.batch}: {', '.join(parts)}"


def set_checkpoint_back(checkpoint: str, batch: int | None, ahead: float, on: SparkOptions) -> str:
    """Set a checkpoint back, see `Checkpoint.set_back`; returns what to do next. Raises InputError."""
    with spark_session(on.master, on.conf or ()) as spark:
        kept = Checkpoint(spark, checkpoint)
        kept.check_readable()
        first = kept.set_back(time.time_ns() // 1000 + int(ahead * 1e6), batch)
    return (
        f"'{checkpoint}' has been reset: the next start repeats micro-batch {first} and all later ones, with the "
        f"events that the source still has. First remove the folders batch={first} and later of the output and of the "
        "dead letters; other outputs get matches again. Counts start again."
    )
