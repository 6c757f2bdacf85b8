"""Pieces of a DataFrame, found without a job in the statistics of its Parquet files.

This takes a look at Spark's plan, for which Spark has no public interface. Wherever anything is unknown there, or the
statistics do not tell enough, the answer is None, and a survey counts instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame

from cerflow import limits
from cerflow.engine.layout import NULL
from cerflow.files.row_groups import lies_in
from cerflow.schema import Schema
from cerflow.slices.keys import extremes_of
from cerflow.slices.pieces import Pieces
from cerflow.spark.frames.axis import Axis
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.placing.survey import PartitionSurvey
from cerflow.spark.source.files import DataFile, each
from cerflow.values.array_types import Ints

#: Before 1900, in microseconds, Spark may read times of old files by another calendar.
_CALENDAR = int(np.datetime64("1900-01-02", "us").astype(np.int64))
#: The part of a local file that a partition reads: its path and size, and the range of bytes.
_Part = tuple[str, int, int, int]


def pieces_of_files(frame: DataFrame, time: Column, data_type: pa.DataType, axis: Axis) -> PartitionSurvey | None:
    """The row groups of each partition with the range of their times, as if no rows of the files were left out.

    ``time`` is a column of the DataFrame, ``data_type`` its Arrow type. None unless the DataFrame only filters and
    computes columns of files, so that each reading gives the same partitions.
    """
    if not (pa.types.is_timestamp(data_type) or pa.types.is_signed_integer(data_type) or pa.types.is_date32(data_type)):
        return None
    try:
        (leaf,) = _elements(frame._jdf.queryExecution().analyzed().collectLeaves())
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return None
        execution = frame.select(time)._jdf.queryExecution()
        name = _stored_name(execution.optimizedPlan())
        partitions = None if name is None else _partitions(execution.executedPlan())
    except Exception:
        # Spark Connect has no plan to look at, and other versions may have another one.
        return None
    if name is None or partitions is None:
        return None
    parts = [(partition, part) for partition, files in enumerate(partitions) for part in files]
    try:
        footers = each(_footer, [part for _, part in parts])
    except (OSError, pa.ArrowInvalid):
        return None
    rows: list[tuple[int, int, int, int, int]] = []
    for place, ((partition, part), footer) in enumerate(zip(parts, footers, strict=True)):
        for group in _groups(footer, part):
            bounds = _bounds(group, name, data_type)
            if bounds is None or group.num_rows > limits.SPARK_HELD_ROWS:
                return None
            if group.total_byte_size > limits.SOURCE_WAITING_BYTES:
                return None
            rows.append((partition, place, group.num_rows, *bounds))
    if not rows:
        return None
    number, file, count, low, high = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    least, greatest = (axis.keys(_times(bounds, data_type)) for bounds in (low, high))
    if not pa.types.is_integer(data_type) and least.min() < _CALENDAR:
        return None
    pieces = Pieces(number, least, greatest, count, np.full(len(count), NULL))
    return PartitionSurvey(pieces, complete=True, files=file, by_file=True, counted=False)


def files_as_read(df: DataFrame, schema: Schema, needed: Iterable[str]) -> list[DataFile] | None:
    """The files of a DataFrame that is columns of local Parquet files and no more, as its partitions read them.

    None if it is another one, or statistics do not show the times of all events, or ``needed`` columns are names of
    directories.
    """
    assert schema.time is not None
    events, axis = EventColumns(schema), Axis(schema)
    if pieces_of_files(events.renamed(df), events.leading(), schema.columns.field(schema.time).type, axis) is None:
        return None
    try:
        execution = df._jdf.queryExecution()
        given = _named_in_directories(execution.analyzed())
        partitions = None if given is None else _partitions(execution.executedPlan())
    except Exception:
        return None
    if given is None or partitions is None or not given.isdisjoint(map(str.casefold, needed)):
        return None
    found = []
    for path, size, start, stop in (part for files in partitions for part in files):
        state = os.stat(path)
        if state.st_size != size:
            return None
        found.append(DataFile("", path, size, state.st_mtime_ns, part=(start, stop)))
    return found


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
    return {str(name).casefold() for name in plan.relation().partitionSchema().fieldNames()}


def _stored_name(plan: Any) -> str | None:
    """The name in the files of the only column of a plan, if rows come from there as they are or not at all."""
    wanted = plan.output().apply(0).exprId().id()
    while True:
        kind = plan.getClass().getSimpleName()
        if kind == "Project":
            (found,) = (some for some in _elements(plan.projectList()) if some.exprId().id() == wanted)
            if found.getClass().getSimpleName() == "Alias":
                found = found.child()
            if found.getClass().getSimpleName() != "AttributeReference":
                return None
            wanted = found.exprId().id()
        elif kind == "LogicalRelation":
            relation = plan.relation()
            if (
                relation.fileFormat().getClass().getSimpleName() != "ParquetFileFormat"
                or relation.bucketSpec().isDefined()
            ):
                return None
            (name,) = (str(some.name()) for some in _elements(plan.output()) if some.exprId().id() == wanted)
            return None if name in list(relation.partitionSchema().fieldNames()) else name
        elif kind != "Filter":
            return None
        plan = plan.child()


def _partitions(plan: Any) -> list[list[_Part]] | None:
    """The files of each partition of a physical plan with one scan; None if there are too many, or some far away."""
    (scan,) = _elements(plan.collectLeaves())
    (read,) = _elements(scan.inputRDDs())
    found: list[list[_Part]] = []
    left = limits.SPARK_FOOTERS
    for partition in read.partitions():
        files = partition.files()
        left -= len(files)
        if left < 0:
            return None
        found.append([])
        for file in files:
            where = urlsplit(file.filePath().urlEncoded())
            if where.scheme != "file" or where.netloc:
                return None
            start = int(file.start())
            found[-1].append((url2pathname(where.path), int(file.fileSize()), start, start + int(file.length())))
    return found


def _elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(k) for k in range(sequence.size()))


def _footer(part: _Part) -> pq.FileMetaData:
    path, size, _, _ = part
    if os.path.getsize(path) != size:
        raise OSError(f"'{path}' has changed")
    return pq.read_metadata(path)


def _groups(footer: pq.FileMetaData, part: _Part) -> Iterator[pq.RowGroupMetaData]:
    """The row groups that Spark reads with this part of a file."""
    _, size, start, stop = part
    for group in (footer.row_group(index) for index in range(footer.num_row_groups)):
        if group.num_rows and ((start == 0 and stop >= size) or lies_in(group, (start, stop))):
            yield group


def _bounds(group: pq.RowGroupMetaData, name: str, data_type: pa.DataType) -> tuple[int, int] | None:
    """The least and greatest time of a row group, as `extremes_of` gives them; None if some event may have no time."""
    for k in range(group.num_columns):
        column = group.column(k)
        if column.path_in_schema == name:
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return None
            if not _stored_alike(statistics, data_type):
                return None
            found = extremes_of(statistics, data_type)
            return None if found is None else (int(found[0]), int(found[1]))
    return None


def _stored_alike(statistics: Any, data_type: pa.DataType) -> bool:
    """Whether values are stored as what Spark takes them for: it may have been told another type."""
    logical, text = statistics.logical_type.type, statistics.logical_type.to_json()
    if pa.types.is_timestamp(data_type):
        return logical == "TIMESTAMP" and "nano" not in text
    if pa.types.is_date32(data_type):
        return bool(logical == "DATE")
    plain = logical == "NONE" or (logical == "INT" and '"isSigned":true' in text)
    return plain and statistics.physical_type in ("INT32", "INT64")


def _times(found: Ints, data_type: pa.DataType) -> pa.Array:
    """What `extremes_of` gives as times."""
    if pa.types.is_date32(data_type):
        return pa.array(found, pa.timestamp("ms")).cast(data_type)
    return pa.array(found).cast(data_type)
