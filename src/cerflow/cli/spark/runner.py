"""``cerflow run --runner spark``: Spark reads and moves the events, and `cerflow.spark` recognises in its tasks.

The tasks read Parquet files themselves, many times faster than rows of Spark, if the result is sure to be the same: for
one stream of plain files with the same columns, of the types that the query expects, whose footers show no bad event.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.base.errors import InputError, UnsupportedQueryError
from cerflow.base.schema import ValueKind
from cerflow.cli.commands.checking import warn_of_types
from cerflow.cli.commands.request import Inputs, Request
from cerflow.cli.options import OutputOptions, SparkOptions
from cerflow.cli.output.reporting import PhaseTimer, Progress, RunSummary, compile_kernels, warn
from cerflow.cli.output.writing import OutputFormat
from cerflow.cli.spark.reading import SparkEvents, read_frame
from cerflow.cli.spark.session import spark_session
from cerflow.engine.evaluate.measures import typed_time
from cerflow.engine.matches.counting import Bound
from cerflow.files.sources import STANDARD_INPUT, InputFormat, Source, partition_values, source_name
from cerflow.spark.batch import match
from cerflow.spark.frames.output import arrow_batches, exists, write_frame
from cerflow.spark.frames.schemas import arrow_schema_of
from cerflow.spark.source.planned import Planned, plan_query


def run_on_spark(request: Request, show: Progress, watch: PhaseTimer, options: SparkOptions) -> RunSummary:
    """Run a request in a Spark session; ``show`` displays the progress.

    Raises InputError (also if Spark itself fails, with its message) and the errors of the query.
    """
    query = request.query
    if (options.master or "local").startswith("local"):
        # Compile here, where a message says so, and not in the tasks.
        compile_kernels(watch)
    show("starting Spark")
    with _in_files(request.inputs) as inputs, spark_session(options.master, options.conf or ()) as spark:
        watch.done("starting")
        if request.output.directory and _is_left_alone(spark, request.output):
            return RunSummary(0, 0, 0, watch.phases, ignored=True)
        show("reading")
        found = parquet_in_tasks(spark, request, inputs)
        if found is not None:
            # There are no bad records; the file of dead letters must say so.
            request.bad_records.write()
            valid = found.rows
            query.warn_of_doubts(found.events, found.times)
            show(found.explanation)
        else:
            events = read_frame(spark, inputs)
            for remark in events.remarks:
                warn(remark)
            valid = _refuse(events, query, request)
            result = match(
                query,
                events.events,
                positions=request.options.positions,
                max_matches=request.options.max_matches,
                until=typed_time(request.until, events.schema.columns, events.schema.time),
                sequence=inputs.columns.sequence,
                **request.form,
                **inputs.columns.of_events(events.schema.stream),
            )
            show("recognising")
        watch.done("reading")
        written = _write(request, spark, result if found is None else found, show, watch)
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
    types = sorted({name for each in query.queries.values() for name in each.types_named()})
    # Each type costs an expression of Spark, so very many are not looked for.
    looked_for = types if len(types) <= limits.TYPES_LOOKED_FOR and not events.schema.untyped else []
    times, occurring = events.times_and_types(looked_for)
    query.warn_of_doubts(events.schema, times)
    if looked_for:
        warn_of_types(query, occurring)
    refused = events.refused
    if refused is not None and bad_records.fails:
        bad_records.refuse(refused.orderBy("row").limit(1).toArrow())
    elif refused is not None and bad_records.path is None:
        bad_records.count = refused.count()
    elif refused is not None:
        for batch in arrow_batches(refused.orderBy("row")):
            bad_records.refuse(pa.Table.from_batches([batch]))
    # Write them before the matches: then matches that exist always have complete dead letters.
    bad_records.write()
    return events.rows - bad_records.count


def _write(
    request: Request, spark: SparkSession, result: DataFrame | Planned, show: Progress, watch: PhaseTimer
) -> int:
    output = request.output
    if output.directory:
        rows = write_frame(
            result.frame(spark) if isinstance(result, Planned) else result,
            _address(output.output),
            format="json" if request.output_format is OutputFormat.JSONL else request.output_format.value,
            mode=output.output_mode or "error",
            partition_by=output.partition_by or (),
            options={"header": "true"} if request.output_format is OutputFormat.CSV else None,
        )
        # The same tasks recognise and write.
        watch.done("recognising")
        return rows
    schema = arrow_schema_of(result.schema, spark)
    batches: Iterator[pa.RecordBatch]
    if isinstance(result, Planned):
        batches = (batch.cast(schema) for batch in result.batches(spark))
    else:
        batches = arrow_batches(result)
    return request.write(
        _bounded(batches, request.options.max_matches), schema, watch, lambda *told: show(f"{told[-1]:,} matches")
    )


def _bounded(batches: Iterable[pa.RecordBatch], most: int | None) -> Iterator[pa.RecordBatch]:
    """Each task stops at the greatest number of matches; here their sum is checked as the matches arrive."""
    bound = Bound(most)
    for batch in batches:
        bound.add(batch.num_rows)
        yield batch


def _is_left_alone(spark: SparkSession, output: OutputOptions) -> bool:
    """Whether the mode says to leave an existing output alone; raises InputError if it must not exist."""
    if output.output_mode not in ("ignore", "error", None) or not exists(spark, _address(output.output)):
        return False
    if output.output_mode != "ignore":
        raise InputError(f"'{output.output}' already exists; choose another --output-mode or remove it")
    return True


def _address(path: str) -> str:
    """A path without an address lies on this machine, as for inputs; other file systems have addresses."""
    return path if "://" in path else f"file://{Path(path).absolute()}"


def parquet_in_tasks(spark: SparkSession, request: Request, inputs: Inputs) -> Planned | None:
    """How the tasks read the input of a request themselves; None if Spark has to read it."""
    query, columns = request.query, inputs.columns
    if isinstance(query, Program) or columns.forget is not None:
        # The readers know no definitions, and they leave out events, while with a timeout every event keeps its key.
        return None
    if inputs.named or not all(_is_plain(one) and one.time_unit in (None, columns.time_unit) for one in inputs.inputs):
        return None
    try:
        planned = plan_query(
            query,
            [str(file.absolute()) for one in inputs.inputs for file in one.events.files],
            until=request.until,
            skip=False,
            slice_rows=limits.SOURCE_SLICE_ROWS,
            cores=spark.sparkContext.defaultParallelism,
            positions=request.options.positions,
            max_matches=request.options.max_matches,
            **request.form,
            **columns.roles,
        )
    except (InputError, UnsupportedQueryError):
        # Another reader may still be able to read it; if not, that error is the one to report.
        return None
    # Whether the query takes a column of text for numbers.
    numbers = columns.usage.numbers | columns.usage.ordered
    converted = any(planned.events.kind(n) is ValueKind.STRING for n in numbers if planned.events.has(n))
    return planned if planned.certain and planned.alike and not converted else None


def _is_plain(one: Input[Source]) -> bool:
    """Whether an input is Parquet files without roles and names of their own, and without partition directories."""
    source = one.events
    return (
        source.format is InputFormat.PARQUET
        and bool(source.files)
        and not (one.type or one.time or one.sequence or one.constant_type or one.rename)
        and not any(partition_values(source, file) for file in source.files)
    )
