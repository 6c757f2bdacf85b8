"""Slices of Parquet files that tasks read by themselves, as those of the data source do, without a shuffle.

A DataFrame's own tasks get whole partitions. So this is for DataFrames that are columns of files and no more, where the
order of the files would cost a shuffle of all events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type

from cerflow import limits
from cerflow.engine.evaluate.ranges import limits as limits_of
from cerflow.errors import CerflowError
from cerflow.spark.frames.events import CORRUPT
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import arrow_schema, spark_schema
from cerflow.spark.placing.statistics import files_as_read
from cerflow.spark.source.options import Options
from cerflow.spark.source.planned import Planned, plan_files
from cerflow.spark.source.task import matches_of


@dataclass(frozen=True)
class FilesByTasks:
    """A function for tasks that get numbers of slices: the matches in these. ``work`` and ``slices`` are packed."""

    work: bytes
    slices: tuple[bytes, ...]
    reason: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of one slice after the other."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from matches_of(self.work, self.slices[number])


def files_by_tasks(df: DataFrame, plan: JobPlan, *, skip: bool) -> FilesByTasks | None:
    """The slices of a DataFrame as the user gave it; None if its tasks cannot read the files, or it is not cut."""
    schema = plan.schema
    # Only tasks of a DataFrame know a time that is reached and predicates, and skip values that 64 bits cannot hold.
    if schema.time is None or plan.until is not None or plan.predicates is not None or (skip and limits_of(schema)):
        return None
    # Rows that a reader could not read are left out before the plan is made.
    files = None if CORRUPT in df.columns else files_as_read(df, schema, (*plan.needed, schema.type))
    if files is None:
        return None
    options = Options(
        query=plan.text,
        language=plan.language,
        paths=(),
        type=schema.type,
        time=schema.time,
        time_unit=schema.time_unit,
        sequence=plan.sequence,
        stream=schema.stream,
        positions=plan.positions,
        skip=skip,
        slice_rows=limits.SOURCE_SLICE_ROWS,
        cores=df.sparkSession.sparkContext.defaultParallelism,
        counts=plan.counts,
        flat=plan.flat,
        max_matches=plan.max_matches,
    )
    try:
        planned = plan_files(options, files, arrow_schema(df))
    except CerflowError:
        # A shuffle may still do it; if not, that error is the one to report.
        return None
    several = len(planned.tasks) > 1 and all(task.share is None for task in planned.tasks)
    if not several or planned.again > limits.SPARK_OVERLAP or not _read_alike(planned, df, schema.time):
        return None
    if planned.schema.simpleString() != spark_schema(plan.result).simpleString():
        return None
    work, slices = planned.packed()
    return FilesByTasks(work, tuple(slices), planned.explanation)


def _read_alike(planned: Planned, df: DataFrame, time: str) -> bool:
    """Whether Arrow reads the columns of all files as Spark does."""
    if not planned.alike:
        return False
    for name in planned.work.scan.columns.names:
        if name not in planned.stored.names:
            return False
        data_type = planned.stored.field(name).type
        # Statistics show that times of the time column are not so old that calendars differ.
        if pa.types.is_nested(data_type) or (name != time and pa.types.is_temporal(data_type)):
            return False
        try:
            found = from_arrow_type(data_type, prefer_timestamp_ntz=True)
        except PySparkException:
            return False
        if found.simpleString() != df.schema[name].dataType.simpleString():
            return False
    return True
