"""Lets the tasks of Spark read Parquet files themselves, which is many times faster than rows of Spark.

The data source does this if its result is sure to be the same: for one stream of plain files with the same columns,
of the types that the query expects, whose footers show that no event is bad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerflow.api.programs.program import Program
from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.base.errors import InputError, UnsupportedQueryError
from cerflow.base.schema import ValueKind
from cerflow.cli.commands.request import Inputs, Request
from cerflow.files.sources import InputFormat, Source, partition_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cerflow.spark.source.planned import Planned


def parquet_in_tasks(spark: SparkSession, request: Request, inputs: Inputs) -> Planned | None:
    """How the tasks read the input of a request themselves; None if Spark has to read it."""
    query, columns = request.query, inputs.columns
    if isinstance(query, Program) or columns.forget is not None:
        # The readers know no definitions, and they leave out events, while with a timeout every event keeps its key.
        return None
    if inputs.named or not all(_is_plain(one) and one.time_unit in (None, columns.time_unit) for one in inputs.inputs):
        return None
    from cerflow.spark.source.planned import plan_query

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
