"""``cerflow run --runner spark``: Spark reads the events and moves them, `cerflow.spark` recognises in its tasks."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cerflow.cli.bad_records import BadRecords, Policy
from cerflow.cli.mappings import label
from cerflow.cli.reporting import Outcome
from cerflow.cli.request import Inputs, Request
from cerflow.cli.sources import STANDARD_INPUT, Source
from cerflow.cli.spark_session import spark_session
from cerflow.cli.writing import open_sink
from cerflow.errors import InputError
from cerflow.stream_inputs import Input

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cerflow.cli.spark_reading import SparkEvents

__all__ = ["arrow_batches", "run_on_spark"]

_OWN_ERROR = re.compile(r"cerflow\.errors\.\w+: (.*)")


def run_on_spark(
    request: Request, show: Callable[[str], None], *, master: str | None, settings: Sequence[tuple[str, str]]
) -> Outcome:
    """Do what is asked in a Spark session; ``show`` is told what is being done.

    Raises InputError (also where Spark itself fails, with what it says) and the errors of the query.
    """
    show("starting Spark")
    with _in_files(request.inputs) as inputs, spark_session(master, settings) as spark:
        # These need PySpark, which the session has just made sure of.
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from cerflow.cli.spark_parquet import parquet_in_tasks
        from cerflow.cli.spark_reading import read_frame

        started = time.perf_counter()
        try:
            if request.directory is not None and request.directory.ignored(spark):
                return Outcome(0, 0, 0, time.perf_counter() - started, ignored=True)
            show("reading")
            found = parquet_in_tasks(spark, request, inputs)
            if found is not None:
                # There are no bad records, which is for the dead letters to say.
                request.bad_records.write()
                usable, result = found.events, found.matches
                show(found.explanation)
            else:
                events = read_frame(spark, inputs)
                usable = _refuse(events, request.bad_records)
                result = _matched(request, inputs, events)
                show("recognising")
            written = _write(request, result, show)
        except PySparkException as error:
            raise InputError(_sentence(str(error))) from error
        except Py4JJavaError as error:
            # What PySpark has no exception for, for example from the readers of files.
            raise InputError(_sentence(str(error.java_exception))) from error
        return Outcome(usable, written, request.bad_records.count, time.perf_counter() - started)


@contextmanager
def _in_files(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs, with what Spark cannot read as it is (standard input, LZ4 frames) in files that it can."""
    with TemporaryDirectory(prefix="cerflow-") as directory:
        found: list[Input[Source]] = []
        for one in inputs.inputs:
            source = one.events
            if source.path == STANDARD_INPUT:
                copy = Path(directory) / f"{len(found)}.{source.format.value}"
                with copy.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                source = replace(source, path=str(copy), files=(copy,), name=label(source))
            elif any(file.suffix.lower() == ".lz4" for file in source.files):
                source = _unpacked(source, Path(directory) / str(len(found)))
            found.append(replace(one, events=source))
        yield replace(inputs, inputs=tuple(found))


def _unpacked(source: Source, directory: Path) -> Source:
    """The source with its LZ4 files unpacked; Spark takes LZ4 for something else, and runs out of memory on it."""
    files = []
    for number, file in enumerate(source.files):
        below = file.parent.relative_to(source.root) if source.root is not None else Path()
        packed = file.suffix.lower() == ".lz4"
        # A file may lie there packed and as it is.
        copy = directory / below / f"{number}-{file.stem if packed else file.name}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        files.append(copy)
        if not packed:
            copy.symlink_to(file.absolute())
            continue
        try:
            with pa.input_stream(str(file), compression="lz4") as stream, copy.open("wb") as target:
                shutil.copyfileobj(stream, target)
        except OSError as error:
            raise InputError(f"cannot read {file} as {source.format.value}: {error}") from error
    return replace(source, files=tuple(files), name=label(source), root=source.root and directory)


def _refuse(events: SparkEvents, bad_records: BadRecords) -> int:
    """Hand over the rows that cannot be used, and write them; gives the number of the others."""
    usable, refused = events.counts()
    if refused and bad_records.policy is Policy.FAIL:
        bad_records.refuse(events.refused().orderBy("row").limit(1).toArrow())
    elif refused and bad_records.policy is Policy.DEAD_LETTER:
        for batch in arrow_batches(events.refused().orderBy("row")):
            bad_records.refuse(pa.Table.from_batches([batch]))
    else:
        bad_records.count = refused
    # Before the matches: where there are matches, the dead letters belonging to them are complete.
    bad_records.write()
    return usable


def _matched(request: Request, inputs: Inputs, events: SparkEvents) -> DataFrame:
    from cerflow.spark import match

    further: dict[str, Any] = {} if events.stream is None else {"stream": events.stream}
    return match(
        request.query,
        events.everything if request.bad_records.policy is Policy.FAIL else events.usable,
        positions=request.positions,
        on_bad_record="fail",
        **inputs.columns.roles,
        **further,
    )


def _write(request: Request, result: DataFrame, show: Callable[[str], None]) -> int:
    if request.directory is not None:
        return request.directory.write(result, request.output_format)
    from cerflow.spark.schemas import arrow_schema

    written = 0
    with open_sink(request.output, request.output_format, arrow_schema(result)) as sink:
        for batch in arrow_batches(result):
            sink.write(batch)
            written += batch.num_rows
            show(f"{written:,} matches")
    return written


def arrow_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame as Arrow batches, computed by all tasks at once, fetched one partition at a time.

    What waits to be fetched lies on the disks of the executors.
    """
    from pyspark import StorageLevel

    # Not persist(): what is persisted is planned without adapting the number of its partitions.
    packed = frame.mapInArrow(_pack, "payload binary").localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    for row in packed.toLocalIterator():
        with pa.ipc.open_stream(row["payload"]) as reader:
            yield from reader


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"payload": [sink.getvalue().to_pybytes()]})


def _sentence(text: str) -> str:
    """What an error of Spark says, in one line; an error of cerflow in a task speaks for itself."""
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"Spark failed: {lines[0] if lines else 'without a word'}"
