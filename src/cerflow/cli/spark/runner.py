"""``cerflow run --runner spark``: Spark reads and moves the events, and `cerflow.spark` recognises in its tasks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.cli.commands.checking import queries_in, warn_of_types
from cerflow.cli.commands.request import Inputs, Policy, Request
from cerflow.cli.output.progress import PhaseTimer, Progress, compile_kernels
from cerflow.cli.output.reporting import RunSummary, warn
from cerflow.cli.output.writing import open_sink
from cerflow.cli.spark.session import spark_session
from cerflow.engine.evaluate.measures import typed_time
from cerflow.engine.matches.row_limit import Bound
from cerflow.files.sources import STANDARD_INPUT, Source, source_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cerflow.cli.spark.parquet import InTasks
    from cerflow.cli.spark.reading import SparkEvents


def run_on_spark(
    request: Request, show: Progress, watch: PhaseTimer, *, master: str | None, settings: Sequence[tuple[str, str]]
) -> RunSummary:
    """Run a request in a Spark session; ``show`` displays the progress.

    Raises InputError (also if Spark itself fails, with its message) and the errors of the query.
    """
    query = request.query
    if (master or "local").startswith("local"):
        # Compile here, where a message says so, and not in the tasks.
        compile_kernels(watch)
    show("starting Spark")
    with _in_files(request.inputs) as inputs, spark_session(master, settings) as spark:
        # These need PySpark, which the session has checked.
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from cerflow.cli.spark.parquet import parquet_in_tasks
        from cerflow.cli.spark.reading import read_frame
        from cerflow.spark.failures import as_cerflow_error

        watch.done("starting")
        try:
            if request.directory is not None and request.directory.ignored(spark):
                return RunSummary(0, 0, 0, watch.phases, ignored=True)
            show("reading")
            found = parquet_in_tasks(spark, request, inputs)
            if found is not None:
                # There are no bad records; the file of dead letters must say so.
                request.bad_records.write()
                valid = found.planned.rows
                query.warn_of_times(found.planned.events, found.planned.times)
                show(found.planned.explanation)
            else:
                events = read_frame(spark, inputs)
                for remark in events.remarks:
                    warn(remark)
                valid = _refuse(events, query, request)
                result = _matched(request, inputs, events)
                show("recognising")
            watch.done("reading")
            written = _write(request, result if found is None else found, show, watch)
        except (PySparkException, Py4JJavaError) as error:
            # PySpark has no exception of its own for some errors, for example of readers of files.
            raise as_cerflow_error(error) from error
        return RunSummary(valid, written, request.bad_records.count, watch.phases)


@contextmanager
def _in_files(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs, with standard input copied to a file, since tasks read only files."""
    with TemporaryDirectory(prefix="cerflow-") as directory:
        found: list[Input[Source]] = []
        for one in inputs.inputs:
            source = one.events
            if source.path == STANDARD_INPUT:
                copy = Path(directory) / f"{len(found)}.{source.format.value}"
                with copy.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                source = replace(source, path=str(copy), files=(copy,), name=source_name(source))
            found.append(replace(one, events=source))
        yield replace(inputs, inputs=tuple(found))


def _refuse(events: SparkEvents, query: Query | Program, request: Request) -> int:
    """Take out the rows that cannot be used, and write them; returns the number of the other rows."""
    bad_records = request.bad_records
    types = sorted({name for each in queries_in(query) for name in each.types_named()})
    # Each type costs an expression of Spark, so very many are not looked for.
    looked_for = types if len(types) <= limits.TYPES_LOOKED_FOR and not events.schema.untyped else []
    counts = events.counts(looked_for)
    query.warn_of_times(events.schema, counts.times)
    if looked_for:
        warn_of_types(query, counts.types)
    refused = counts.refused
    if refused and bad_records.policy is Policy.FAIL:
        bad_records.refuse(events.refused().orderBy("row").limit(1).toArrow())
    elif refused and bad_records.policy is Policy.DEAD_LETTER:
        from cerflow.spark.frames.output import arrow_batches

        for batch in arrow_batches(events.refused().orderBy("row")):
            bad_records.refuse(pa.Table.from_batches([batch]))
    else:
        bad_records.count = refused
    # Write them before the matches: then matches that exist always have complete dead letters.
    bad_records.write()
    return counts.valid


def _matched(request: Request, inputs: Inputs, events: SparkEvents) -> DataFrame:
    from cerflow.spark import match

    further: dict[str, Any] = {} if events.stream is None else {"stream": events.stream}
    return match(
        request.query,
        events.everything if request.bad_records.policy is Policy.FAIL else events.valid,
        forget=inputs.columns.forget,
        positions=request.options.positions,
        on_bad_record="fail",
        **request.form,
        max_matches=request.max_matches,
        until=typed_time(request.until, events.schema.columns, events.schema.time),
        **inputs.columns.roles,
        **further,
    )


def _write(request: Request, result: DataFrame | InTasks, show: Progress, watch: PhaseTimer) -> int:
    from cerflow.cli.spark.parquet import InTasks
    from cerflow.spark.frames.output import arrow_batches
    from cerflow.spark.frames.schemas import arrow_schema

    if request.directory is not None:
        frame = result.frame() if isinstance(result, InTasks) else result
        rows = request.directory.write(frame, request.output_format)
        # The same tasks recognise and write.
        watch.done("recognising")
        return rows
    if isinstance(result, InTasks):
        schema, batches = result.batches()
    else:
        schema, batches = arrow_schema(result), arrow_batches(result)
    # Each task stops at the greatest number of matches; their sum is checked as the matches arrive.
    written = Bound(request.max_matches)
    with open_sink(request.output.output, request.output_format, schema) as sink:
        for batch in batches:
            watch.done("recognising")
            written.add(batch.num_rows)
            sink.write(batch)
            watch.done("writing")
            show(f"{written.known:,} matches")
        watch.done("recognising")
    watch.done("writing")
    return written.known
