"""Slices of Parquet files that tasks read by themselves, as those of the data source do, without rows of Spark.

This is for DataFrames that are columns of files and no more. It takes a look at Spark's plan, for which Spark has no
public interface: wherever anything is unknown there, a DataFrame's own tasks read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type

from cerflow.base import limits
from cerflow.base.errors import CerflowError
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import limits as limits_of
from cerflow.spark.frames.events import CORRUPT
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import spark_schema
from cerflow.spark.source.files import DataFile, metadata_of
from cerflow.spark.source.planned import Planned, plan_files

#: Before 1900, in microseconds, Spark may read times of old files by another calendar.
_CALENDAR = int(np.datetime64("1900-01-02", "us").astype(np.int64))


def files_by_tasks(df: DataFrame, plan: JobPlan, *, skip: bool) -> Planned | None:
    """A read of the files of a DataFrame as given; None if its tasks cannot read the files, or it is not cut."""
    schema = plan.schema
    # Only tasks of a DataFrame know a time that is reached and predicates, and skip values that 64 bits cannot hold.
    if (
        schema.time is None
        or plan.task.until is not None
        or plan.task.predicates is not None
        or (skip and limits_of(schema))
    ):
        return None
    # Rows that a reader could not read are left out before the plan is made.
    files = None if CORRUPT in df.columns else _files(df, {*plan.needed, schema.type})
    if not files:
        return None
    cores = df.sparkSession.sparkContext.defaultParallelism
    try:
        rows = sum({file.path: metadata_of(file).num_rows for file in files}.values())
        length = min(limits.SOURCE_SLICE_ROWS, max(limits.SPARK_SLICE_EVENTS, rows // cores))
        planned = plan_files(plan, files, skip=skip, slice_rows=length, cores=cores)
    except CerflowError:
        # Rows of Spark may still do it; if not, that error is the one to report.
        return None
    several = len(planned.tasks) > 1 and all(task.share is None for task in planned.tasks)
    if planned.rows < limits.SPARK_SMALL_EVENTS or not several or planned.again > limits.SPARK_OVERLAP:
        return None
    if not (planned.certain or skip) or not _read_alike(planned, df, schema.time):
        return None
    return planned if planned.schema.simpleString() == spark_schema(plan.result).simpleString() else None


def _read_alike(planned: Planned, df: DataFrame, time: str) -> bool:
    """Whether Arrow reads the columns of all files as Spark does, and each row group in one piece."""
    if not planned.alike:
        return False
    groups = {group.place: group for task in planned.tasks for group in task.slice.groups}.values()
    least = min((group.least for group in groups if group.least is not None), default=0)
    if any(group.least is None or group.rows > limits.SPARK_HELD_ROWS for group in groups):
        return False
    for name in planned.work.scan.columns.names:
        if name not in planned.stored.names:
            return False
        data_type = planned.stored.field(name).type
        if pa.types.is_nested(data_type):
            return False
        if pa.types.is_temporal(data_type):
            # Statistics show that times of the time column are not so old that calendars differ.
            unit = "ms" if pa.types.is_date32(data_type) else getattr(data_type, "unit", "ns")
            if name != time or unit == "ns" or least * MICROSECONDS[unit] < _CALENDAR:
                return False
        elif name == time and not pa.types.is_signed_integer(data_type):
            return False
        try:
            found = from_arrow_type(data_type, prefer_timestamp_ntz=True)
        except PySparkException:
            return False
        if found.simpleString() != df.schema[name].dataType.simpleString():
            return False
    return True


def _files(df: DataFrame, needed: set[str]) -> list[DataFile] | None:
    """The files of a DataFrame that is columns of local Parquet files and no more, as its partitions read them.

    None if it is another one, if there are too many files, or ``needed`` columns are names of directories.
    """
    try:
        execution = df._jdf.queryExecution()
        given = _named_in_directories(execution.analyzed())
        if given is None or not given.isdisjoint(map(str.casefold, needed)):
            return None
        return _read(execution.executedPlan())
    except Exception:
        # Spark Connect has no plan to look at, and other versions may have another one.
        return None


def _named_in_directories(plan: Any) -> set[str] | None:
    """The columns of a relation that are names of directories; None for a plan that computes or leaves out anything."""
    while plan.getClass().getSimpleName() in ("Project", "SubqueryAlias", "View"):
        if plan.getClass().getSimpleName() == "Project" and any(
            some.getClass().getSimpleName() != "AttributeReference" for some in _elements(plan.projectList())
        ):
            return None
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.fileFormat().getClass().getSimpleName() != "ParquetFileFormat" or relation.bucketSpec().isDefined():
        return None
    return {str(name).casefold() for name in relation.partitionSchema().fieldNames()}


def _read(plan: Any) -> list[DataFile] | None:
    """The parts of files that a physical plan with one scan reads; None if there are too many, or some far away."""
    (scan,) = _elements(plan.collectLeaves())
    (read,) = _elements(scan.inputRDDs())
    found: list[DataFile] = []
    for partition in read.partitions():
        files = partition.files()
        if len(found) + len(files) > limits.SPARK_FOOTERS:
            return None
        for file in files:
            where = urlsplit(file.filePath().urlEncoded())
            path, start = url2pathname(where.path), int(file.start())
            state = os.stat(path)
            if where.scheme != "file" or where.netloc or state.st_size != int(file.fileSize()):
                return None
            part = (start, start + int(file.length()))
            found.append(DataFile("", path, state.st_size, state.st_mtime_ns, part=part))
    return found


def _elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(k) for k in range(sequence.size()))
