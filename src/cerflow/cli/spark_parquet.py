"""Parquet files that the tasks of Spark may read themselves, which is many times faster than rows of Spark.

That is left to the data source where it gives what the ordinary way gives: one stream of plain files with the same
columns, of the types that the query takes them for, and none of whose events can be bad, as their footers say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cerflow.cli.request import Inputs, Request
from cerflow.cli.sources import InputFormat, Source, partition_values
from cerflow.errors import InputError, UnsupportedQueryError
from cerflow.query import query_text
from cerflow.schema import Kind
from cerflow.stream_inputs import Input

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cerflow.spark.source.planned import Planned

__all__ = ["InTasks", "parquet_in_tasks"]


@dataclass(frozen=True)
class InTasks:
    """The matches as a DataFrame, the number of events, and how they are read, in words."""

    matches: DataFrame
    events: int
    explanation: str


def parquet_in_tasks(spark: SparkSession, request: Request, inputs: Inputs) -> InTasks | None:
    """The matches of a request whose input the tasks read themselves; None where Spark has to read it."""
    if inputs.named or not all(map(_plain, inputs.inputs)):
        return None
    from cerflow.spark import register

    try:
        options = _options(request, inputs, spark.sparkContext.defaultParallelism)
        planned = _planned(options)
    except (InputError, UnsupportedQueryError):
        # Spark may still read it; if not, that way says what is wrong in its own words.
        return None
    if not (planned.certain and planned.alike and _typed(planned, inputs)):
        return None
    register(spark)
    frame = spark.read.format("cerflow").options(**options).load()
    return InTasks(frame, planned.rows, planned.explanation)


def _planned(options: dict[str, str]) -> Planned:
    from cerflow.spark.source.planned import plan_read

    return plan_read(options)


def _options(request: Request, inputs: Inputs, cores: int) -> dict[str, str]:
    files = [str(file.absolute()) for one in inputs.inputs for file in one.events.files]
    return {
        "query": query_text(request.query),
        "language": request.query.language,
        "positions": str(request.positions),
        "cores": str(cores),
        "paths": json.dumps(files),
        **{name: str(column) for name, column in inputs.columns.roles.items()},
    }


def _plain(one: Input[Source]) -> bool:
    """Whether an input is Parquet files of which nothing further was said, not even by the names of directories."""
    source = one.events
    return (
        source.format is InputFormat.PARQUET
        and bool(source.files)
        and not (one.type or one.time or one.sequence or one.constant_type or one.rename)
        and not any(partition_values(source, file) for file in source.files)
    )


def _typed(planned: Planned, inputs: Inputs) -> bool:
    """Whether no column is text that the query takes for a number."""
    numbers = inputs.columns.usage.numbers | inputs.columns.usage.ordered
    return not any(planned.events.kind(n) is Kind.STRING for n in numbers if n in planned.events.attributes)
