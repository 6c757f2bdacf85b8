"""Lets the tasks of Spark read Parquet files themselves, which is many times faster than rows of Spark.

The data source does this if its result is sure to be the same: for one stream of plain files with the same columns,
of the types that the query expects, whose footers show that no event is bad.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cerflow.api.programs.program import Program
from cerflow.api.query import as_query_text
from cerflow.api.stream_inputs import Input
from cerflow.base.errors import InputError, UnsupportedQueryError
from cerflow.base.schema import ValueKind
from cerflow.cli.commands.request import Inputs, Request
from cerflow.files.sources import InputFormat, Source, partition_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cerflow.spark.source.planned import Planned

#: Roles for which the data source has another name.
_OPTIONS = {"time_unit": "timeUnit"}


@dataclass(frozen=True)
class InTasks:
    """The plan by which tasks read the files, made of ``options`` of the data source."""

    spark: SparkSession
    options: Mapping[str, str]
    planned: Planned

    def frame(self) -> DataFrame:
        """The matches as a DataFrame."""
        from cerflow.spark import register

        register(self.spark)
        return self.spark.read.format("cerflow").options(**self.options).load()

    def batches(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The matches as they are, without the seconds that Spark takes to plan, and to make rows of them."""
        from cerflow.spark.frames.output import batches_of_tasks
        from cerflow.spark.frames.schemas import arrow_schema_of

        schema = arrow_schema_of(self.planned.schema, self.spark)
        found = batches_of_tasks(self.spark, *self.planned.packed())
        return schema, (batch.cast(schema) for batch in found)


def parquet_in_tasks(spark: SparkSession, request: Request, inputs: Inputs) -> InTasks | None:
    """How the tasks read the input of a request themselves; None if Spark has to read it."""
    query, columns = request.query, inputs.columns
    if isinstance(query, Program) or columns.forget is not None:
        # The readers know no definitions, and they leave out events, while with a timeout every event keeps its key.
        return None
    if inputs.named or not all(_is_plain(one) and one.time_unit in (None, columns.time_unit) for one in inputs.inputs):
        return None
    from cerflow.spark.source.planned import plan_read

    options = {
        "query": as_query_text(query),
        "language": query.language,
        "positions": str(request.options.positions),
        "flat": str(request.output.flat),
        "cores": str(spark.sparkContext.defaultParallelism),
        "counts": request.options.counts,
        "paths": json.dumps([str(file.absolute()) for one in inputs.inputs for file in one.events.files]),
        **{_OPTIONS.get(role, role): str(given) for role, given in columns.roles.items()},
    }
    if request.options.max_matches is not None:
        options["maxMatches"] = str(request.options.max_matches)
    if request.until is not None:
        options["until"] = request.until
    try:
        planned = plan_read(options)
    except (InputError, UnsupportedQueryError):
        # Another reader may still be able to read it; if not, that error is the one to report.
        return None
    # Whether the query takes a column of text for numbers.
    numbers = columns.usage.numbers | columns.usage.ordered
    converted = any(planned.events.kind(n) is ValueKind.STRING for n in numbers if planned.events.has(n))
    return InTasks(spark, options, planned) if planned.certain and planned.alike and not converted else None


def _is_plain(one: Input[Source]) -> bool:
    """Whether an input is Parquet files without roles and names of their own, and without partition directories."""
    source = one.events
    return (
        source.format is InputFormat.PARQUET
        and bool(source.files)
        and not (one.type or one.time or one.sequence or one.constant_type or one.rename)
        and not any(partition_values(source, file) for file in source.files)
    )
