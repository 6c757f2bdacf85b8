"""``cerflow run --runner spark``: Spark reads the events and moves them, `cerflow.spark` recognises in its tasks."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cerflow.cli.bad_records import BadRecords, Policy
from cerflow.cli.reporting import Outcome
from cerflow.cli.request import Request
from cerflow.cli.sources import STANDARD_INPUT, Source, stem
from cerflow.cli.spark_session import spark_session
from cerflow.cli.writing import open_sink
from cerflow.errors import InputError

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
    with _in_files(request.sources) as sources, spark_session(master, settings) as spark:
        # These need PySpark, which the session has just made sure of.
        from pyspark.errors import PySparkException

        from cerflow.cli.spark_reading import read_frame

        started = time.perf_counter()
        try:
            show("reading")
            events = read_frame(spark, sources, request.columns, named=request.named)
            _refuse(events, request.bad_records)
            written = _recognise(request, events, show)
            total = (events.everything if request.bad_records.policy is Policy.FAIL else events.usable).count()
        except PySparkException as error:
            raise InputError(_sentence(error)) from error
        request.bad_records.write()
        return Outcome(total, written, request.bad_records.count, time.perf_counter() - started)


@contextmanager
def _in_files(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """The sources, with what comes from standard input in a file that Spark can read."""
    with ExitStack() as files:
        found = []
        for source in sources:
            if source.path == STANDARD_INPUT:
                file = files.enter_context(NamedTemporaryFile(suffix=f".{source.format.value}"))
                shutil.copyfileobj(sys.stdin.buffer, file)
                file.flush()
                source = replace(source, path=file.name, files=(Path(file.name),), name=source.name or stem(source))
            found.append(source)
        yield found


def _refuse(events: SparkEvents, bad_records: BadRecords) -> None:
    """Hand over the rows that cannot be used; a run that fails at the first looks only where there can be one."""
    if bad_records.policy is Policy.FAIL:
        if events.doubtful and events.refused_count():
            bad_records.refuse(events.refused().orderBy("row").limit(1).toArrow())
    elif bad_records.policy is Policy.SKIP:
        bad_records.count = events.refused_count()
    else:
        for batch in arrow_batches(events.refused().orderBy("row")):
            bad_records.refuse(pa.Table.from_batches([batch]))


def _recognise(request: Request, events: SparkEvents, show: Callable[[str], None]) -> int:
    from cerflow.spark import match

    columns = request.columns
    further: dict[str, Any] = {} if events.stream is None else {"stream": events.stream}
    result = match(
        request.query,
        events.everything if request.bad_records.policy is Policy.FAIL else events.usable,
        type=columns.type,
        time=columns.time,
        sequence=columns.sequence,
        positions=request.positions,
        on_bad_record="fail",
        **further,
    )
    from pyspark.sql.pandas.types import to_arrow_schema

    written = 0
    show("recognising")
    with open_sink(request.output, request.output_format, to_arrow_schema(result.schema)) as sink:
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


def _sentence(error: Exception) -> str:
    """What an error of Spark says, in one line; an error of cerflow in a task speaks for itself."""
    text = str(error)
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"Spark failed: {lines[0] if lines else type(error).__name__}"
