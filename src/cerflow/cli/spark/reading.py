"""Reads input files into one DataFrame of valid events; bad rows are kept with the reason.

The tasks read files without types of their own (CSV, JSON), one file or piece of a large file each, with the same code
as in-process (`cerflow.files.input_plans`). Spark reads Parquet and ORC; the code for in-process reading converts their
texts to numbers or times where necessary.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  (the name under which everybody knows it)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from cerflow.api.stream_inputs import Input, free_name, refuse_partly_typed
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.files import input_plans
from cerflow.files.blocks import cut_file, file_groups, has_quotes, read_blocks
from cerflow.files.column_types import Look, merged
from cerflow.files.encodings import Content, FilePiece, path_of
from cerflow.files.input_plans import ColumnRoles, FileSurvey, InputPlan
from cerflow.files.raw_rows import Block
from cerflow.files.reading import input_remarks, with_missing
from cerflow.files.sources import InputFormat, Source, partition_values, source_name
from cerflow.spark.frames.axis import ROW_BITS
from cerflow.spark.frames.output import literal_path
from cerflow.spark.frames.schemas import arrow_schema, column_of, spark_schema
from cerflow.spark.frames.streams import frame_in_common_unit, union_frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    # Tasks import this module, and need not have the libraries of the command line.
    from cerflow.cli.commands.request import Inputs

_ROW = "_cerflow_row"
_PACKED = "number bigint, payload binary"
_Batches = Iterator[pa.RecordBatch]
#: A file or a piece of it, with its survey.
_Piece = tuple[Content, FileSurvey]


@dataclass(frozen=True)
class _InputRows:
    """Rows of an input, named as errors call them.

    ``everything`` has a row for each row of the part; ``valid`` has only those that can be used. Both may be the same
    where leaving rows out costs nothing. ``refused`` takes the number of the rows before the part.
    """

    name: str
    stream: str
    everything: DataFrame
    valid: DataFrame
    rows: int
    refused_count: Callable[[], int]
    refused: Callable[[int], DataFrame]


@dataclass(frozen=True)
class RowCounts:
    """Facts about the rows that need no pass of their own: how many can be used, and how many cannot.

    If times are numbers, ``times`` are the least and the greatest, and ``types`` the requested event types that occur
    (as they are written, if only upper and lower case differ); else both are None.
    """

    valid: int
    refused: int
    times: tuple[float | None, float | None]
    types: frozenset[str] | None


@dataclass(frozen=True)
class SparkEvents:
    """The events of the inputs as DataFrames.

    ``everything`` has a row for each row of the input, with converted columns (rows that cannot be used may be
    missing); ``valid`` has only the rows that can be used. ``schema`` says which columns have a role. ``stream`` and
    ``remarks`` are as in `cerflow.files.reading.ReadEvents`.
    """

    everything: DataFrame
    valid: DataFrame
    stream: str | None
    schema: Schema
    remarks: tuple[str, ...]
    _parts: Sequence[_InputRows]

    def counts(self, types: Sequence[str]) -> RowCounts:
        """The counts of rows, and which of these event types occur."""
        refused = sum(part.refused_count() for part in self._parts)
        times: tuple[float | None, float | None] = (None, None)
        occurring: frozenset[str] | None = None
        if self.schema.time is not None and self.schema.kind(self.schema.time).numeric:
            time = column_of(self.valid, self.schema.time)
            own = column_of(self.valid, self.schema.type).cast("string")
            # Prefer the type as the query writes it to types that differ in upper and lower case.
            alike = [F.max(F.when(F.lower(own) == name.lower(), own)) for name in types]
            found = [F.coalesce(F.max(F.when(own == name, own)), some) for name, some in zip(types, alike)]
            (row,) = self.valid.agg(F.min(time), F.max(time), *found).collect()
            times = (row[0], row[1])
            occurring = frozenset(value for value in row[2:] if value is not None)
        return RowCounts(sum(part.rows for part in self._parts) - refused, refused, times, occurring)

    def refused(self) -> DataFrame:
        """The rows that cannot be used: ``row``, ``reason``, ``text``, and the attributes as text."""
        starts = accumulate((part.rows for part in self._parts), initial=0)
        return union_frames([(part.name, part.refused(start)) for part, start in zip(self._parts, starts)])


def read_frame(spark: SparkSession, read: Inputs) -> SparkEvents:
    """Read all inputs, in the order given; raises InputError as `cerflow.files.reading.read_inputs` does."""
    columns = read.columns
    parts: list[_InputRows] = []
    plans: list[InputPlan] = []
    empty = False
    several = len(read.inputs) > 1
    for one in read.inputs:
        if one.events.has_no_schema:
            found = _surveyed(spark, one, columns)
            surveys = [input_plans.survey_of_pieces([each for _, each in pieces_of_file]) for pieces_of_file in found]
            plans.append(InputPlan.of(one, columns, surveys, several))
            part = _in_tasks(spark, plans[-1], found, several or len(surveys) > 1)
            parts.append(_in_common_unit(part, one, columns))
            empty = empty or any(not each.columns for each in surveys)
            continue
        for files in file_groups(one.events, together=columns.time is not None):
            plan, part = _by_spark(spark, one, columns, files, several)
            plans.append(plan)
            parts.append(_in_common_unit(part, one, columns))
    input_plans.refuse_unknown_types(plans)
    refuse_partly_typed(((part.name, part.valid.columns) for part in parts), columns.type)
    stream = None
    if read.named:
        stream = free_name("stream", [c for part in parts for c in part.everything.columns])
    everything, valid = (
        _together([(part.name, part.stream, frame) for part, frame in frames], columns, stream, empty)
        for frames in ([(part, part.everything) for part in parts], [(part, part.valid) for part in parts])
    )
    schema = columns.schema(arrow_schema(everything), stream)
    said = input_remarks(plans, sum(part.rows for part in parts))
    return SparkEvents(everything, valid, stream, schema, said, parts)


def _in_common_unit(part: _InputRows, one: Input[Source], columns: ColumnRoles) -> _InputRows:
    if not part.valid.columns:
        return part
    everything, valid = (frame_in_common_unit(f, one.time_unit, columns.roles) for f in (part.everything, part.valid))
    return replace(part, everything=everything, valid=valid)


def _together(
    frames: Sequence[tuple[str, str, DataFrame]], columns: ColumnRoles, stream: str | None, empty: bool
) -> DataFrame:
    """The rows of all parts; columns without values get a type, too."""
    named = [(part, f.select("*", F.lit(name).alias(stream)) if stream else f) for part, name, f in frames]
    found = union_frames(named, last=stream)
    schema = arrow_schema(found)
    wanted = with_missing(schema, columns, empty)
    values = []
    for field in wanted:
        value = F.col(_quoted(field.name)) if field.name in schema.names else F.lit(None)
        nothing = field.name not in schema.names or schema.field(field.name).type != field.type
        values.append((value.cast(from_arrow_type(field.type)) if nothing else value).alias(field.name))
    return found.select(*values)


def _surveyed(spark: SparkSession, one: Input[Source], columns: ColumnRoles) -> list[list[_Piece]]:
    """The pieces of each file of an input, each surveyed by one task."""
    source = one.events
    contents = _cut(spark, source)
    as_text = input_plans.texts(one, columns)

    def look(batches: _Batches) -> _Batches:
        for number in _numbers(batches):
            content = contents[number]
            yield _packed(number, input_plans.survey_file(one, columns, content, read_blocks(source, content, as_text)))

    found = _collected(_tasks(spark, len(contents)).mapInArrow(look, _PACKED))
    return [list(of_file) for _, of_file in groupby(zip(contents, found), lambda each: path_of(each[0]))]


def _cut(spark: SparkSession, source: Source) -> list[Content]:
    """The files of a source, with large ones in pieces where possible."""
    contents = [piece for file in source.files for piece in cut_file(source, file)]
    doubtful = [content for content in contents if isinstance(content, FilePiece) and source.format is InputFormat.CSV]
    if not doubtful:
        return contents

    def search(batches: _Batches) -> _Batches:
        for number in _numbers(batches):
            yield _packed(number, has_quotes(doubtful[number]))

    found = _collected(_tasks(spark, len(doubtful)).mapInArrow(search, _PACKED))
    whole = {piece.path for piece, quotes in zip(doubtful, found) if quotes}
    return list(dict.fromkeys(path if (path := path_of(content)) in whole else content for content in contents))


def _in_tasks(spark: SparkSession, plan: InputPlan, found: Sequence[Sequence[_Piece]], several: bool) -> _InputRows:
    """Files without types, each piece read by one task."""
    source = plan.one.events
    files, name = source.files, source_name(source)
    # Each piece, its survey, the number of rows before its file, and the number before it in the file.
    todo: list[tuple[Content, str, int, int]] = []
    rows = 0
    for of_file in found:
        begin = rows
        for content, each in of_file:
            todo.append((content, each.name, begin, rows - begin))
            rows += each.rows
    assert plan.schema is not None
    # Spark's functions cannot return columns without a type.
    schema = pa.schema([field for field in plan.schema if not pa.types.is_null(field.type)])

    def use(batches: _Batches) -> _Batches:
        for number in _numbers(batches):
            for block in read_blocks(source, todo[number][0], plan.as_text):
                yield from _batches(plan.part(block, 0, None).table.select(schema.names))

    def refuse(batches: _Batches, offset: int = 0) -> _Batches:
        for number in _numbers(batches):
            content, file, begin, before = todo[number]
            for block in read_blocks(source, content, plan.as_text):
                part = plan.part(block.behind(before), offset + begin, file if several else None)
                yield from _batches(part.refused)

    def refused(offset: int) -> DataFrame:
        tasks = _tasks(spark, len(todo) if not plan.clean else 0)
        return tasks.mapInArrow(lambda batches: refuse(batches, offset), spark_schema(plan.refused))

    if schema.names:
        valid = _tasks(spark, len(todo)).mapInArrow(use, spark_schema(schema))
    else:
        valid = spark.range(0).select()
    values = [(F.col(_quoted(f.name)) if f.name in schema.names else F.lit(None)).alias(f.name) for f in plan.schema]
    valid = valid.select(*values)
    part = str(files[0]) if len(files) > 1 else name
    return _InputRows(part, name, valid, valid, rows, lambda: 0 if plan.clean else refused(0).count(), refused)


def _by_spark(
    spark: SparkSession, one: Input[Source], columns: ColumnRoles, files: Sequence[Path], several: bool
) -> tuple[InputPlan, _InputRows]:
    """Files with types, which Spark reads."""
    source = one.events
    # Not as_uri(), which escapes characters that Spark does not unescape.
    uris = [literal_path(f"file://{file.absolute()}") for file in files]
    reader = spark.read
    partitions = list(partition_values(source, files[0]))
    if partitions and source.root is not None:
        reader = reader.option("basePath", f"file://{source.root.absolute()}")
    frame = reader.format(source.format.value).load(uris)
    # Values in names of directories are text, whatever type the session infers.
    frame = frame.withColumns({name: F.col(_quoted(name)).cast("string") for name in partitions})
    schema = arrow_schema(frame)
    rows = frame.count()
    doubtful = [field.name for field in schema if input_plans.needs_look(one, columns, field)]
    looks = _looks(frame.select(*map(_quoted, doubtful)), one, columns, files[0]) if doubtful else {}
    name = str(files[0]) if len(source.files) > 1 else source_name(source)
    found = FileSurvey(str(files[0]), {column: looks.get(column, Look()) for column in schema.names}, rows, 0)
    plan = InputPlan.of(one, columns, [found], several)
    file = str(files[0]) if len(files) == 1 and (several or len(source.files) > 1) else None

    def use(batches: _Batches) -> _Batches:
        for batch in batches:
            yield from _batches(plan.part(_block(batch), 0, None).table)

    def refuse(batches: _Batches, offset: int = 0) -> _Batches:
        for batch in batches:
            yield from _batches(plan.part(_block(batch), offset, file).refused)

    def refused(offset: int) -> DataFrame:
        return _numbered(frame).mapInArrow(lambda batches: refuse(batches, offset), spark_schema(plan.refused))

    if plan.types:
        made = plan.part(_block(pa.RecordBatch.from_pylist([], schema)), 0, None).table.schema
        valid = frame.mapInArrow(use, spark_schema(made))
        bad = frame.mapInArrow(refuse, spark_schema(plan.refused))
        return plan, _InputRows(name, source_name(source), valid, valid, rows, bad.count, refused)
    everything, missing = _plain(frame, plan)
    bad = everything.filter(missing)
    return plan, _InputRows(
        name, source_name(source), everything, everything.filter(~missing), rows, bad.count, refused
    )


def _plain(frame: DataFrame, plan: InputPlan) -> tuple[DataFrame, Column]:
    """The frame with the columns that all inputs have, and the condition of rows without a type or time."""
    values = []
    for field in arrow_schema(frame):
        target = plan.target(field.name, field.type)
        value = F.col(_quoted(field.name))
        values.append((value if target is None else value.cast(from_arrow_type(target))).alias(plan.names[field.name]))
    if plan.one.constant_type is not None:
        values.append(F.lit(plan.one.constant_type).alias(plan.columns.type))
    named = frame.select(*values)
    missing = F.lit(False)
    for name in plan.columns.required:
        if name not in named.columns:
            continue  # events without types
        value = F.col(_quoted(name))
        missing |= value.isNull()
        if isinstance(named.schema[name].dataType, T.DoubleType | T.FloatType):
            missing |= F.isnan(value)
    return named, missing


def _looks(frame: DataFrame, one: Input[Source], columns: ColumnRoles, file: Path) -> dict[str, Look]:
    """The forms that the values of these columns have."""

    def look(batches: _Batches) -> _Batches:
        found = [input_plans.survey_file(one, columns, file, [_block(batch)]).columns for batch in batches]
        yield _packed(0, {name: merged(looks[name] for looks in found) for name in (found[0] if found else ())})

    parts = _collected(frame.mapInArrow(look, _PACKED))
    return {name: merged(p[name] for p in parts if name in p) for name in frame.columns}


def _block(batch: pa.RecordBatch) -> Block:
    """A batch of Spark as a block; its rows have the numbers of its number column, if it has one."""
    table = pa.Table.from_batches([batch])
    if _ROW not in table.column_names:
        return Block(table, np.arange(len(table)))
    return Block(table.drop_columns(_ROW), table.column(_ROW).to_numpy())


def _tasks(spark: SparkSession, count: int) -> DataFrame:
    """A frame that gives each of ``count`` tasks its number."""
    return spark.range(0, count, 1, numPartitions=max(count, 1))


def _numbers(batches: _Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _batches(table: pa.Table | None) -> _Batches:
    if table is not None:
        yield from table.combine_chunks().to_batches(max_chunksize=limits.OUTPUT_BATCH_ROWS)


def _packed(number: int, value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"number": [number], "payload": [pickle.dumps(value)]})


def _collected(frame: DataFrame) -> list[Any]:
    """The values that the tasks packed, in the order of their numbers."""
    rows = sorted(frame.collect(), key=lambda row: row["number"])
    return [pickle.loads(row["payload"]) for row in rows]


def _numbered(frame: DataFrame) -> DataFrame:
    """The frame with a column that numbers its rows from 0, in the order in which they were read."""
    counts = frame.groupBy(F.spark_partition_id().alias("part")).count().collect()
    offsets, total = {}, 0
    for part, count in sorted((r["part"], r["count"]) for r in counts):
        offsets[part], total = total, total + count
    identifier = F.monotonically_increasing_id()
    starts = F.create_map(*[F.lit(v) for pair in offsets.items() for v in pair]) if offsets else F.create_map()
    part = F.shiftright(identifier, ROW_BITS).cast("int")
    return frame.withColumn(_ROW, identifier.bitwiseAND(F.lit((1 << ROW_BITS) - 1)) + starts[part].cast("long"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
