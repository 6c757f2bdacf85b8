"""Reads input files into one DataFrame of valid events; bad rows are kept with the reason.

The tasks read the files, one file or piece of a large file each, with the same code as in-process
(`cerflow.files.reading`): a job that looks at all of them decides how they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  (the name under which everybody knows it)

from cerflow.api.stream_inputs import Input, fitted_table
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.files.blocks import cut_file, has_quotes, read_blocks
from cerflow.files.input_plans import FileSurvey, SplitRows, survey, survey_of_pieces
from cerflow.files.raw_rows import FilePart
from cerflow.files.reading import InputsPlan
from cerflow.files.sources import InputFormat, Source
from cerflow.spark.frames.schemas import column_of, declared, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    # Tasks import this module, and need not have the libraries of the command line.
    from cerflow.cli.commands.request import Inputs

_Batches = Iterator[pa.RecordBatch]
#: A file or a piece of it, and the number of the input that it belongs to.
_Piece = tuple[int, FilePart]


@dataclass(frozen=True)
class SparkEvents:
    """The events of the inputs as a DataFrame of the rows that can be used.

    ``schema`` and ``remarks`` are as in `cerflow.files.reading.ReadEvents`.
    ``refused`` are the rows that cannot be used: ``row``, ``reason``, ``text``, and the attributes as text; None if it
    is known that there are none. ``rows`` is the number of all rows.
    """

    events: DataFrame
    refused: DataFrame | None
    rows: int
    schema: Schema
    remarks: tuple[str, ...]

    def times_and_types(self, types: Sequence[str]) -> tuple[tuple[float | None, float | None], frozenset[str] | None]:
        """The least and the greatest time, and which of these event types occur; nothing unless times are numbers.

        A type is as it is written if only upper and lower case differ.
        """
        if self.schema.time is None or not self.schema.kind(self.schema.time).numeric:
            return (None, None), None
        time = column_of(self.events, self.schema.time)
        own = column_of(self.events, self.schema.type).cast("string")
        # Prefer the type as the query writes it to types that differ in upper and lower case.
        alike = [F.max(F.when(F.lower(own) == name.lower(), own)) for name in types]
        found = [F.coalesce(F.max(F.when(own == name, own)), some) for name, some in zip(types, alike)]
        ((least, greatest, *occurring),) = self.events.agg(F.min(time), F.max(time), *found).collect()
        return (least, greatest), frozenset(value for value in occurring if value is not None)


def read_frame(spark: SparkSession, read: Inputs) -> SparkEvents:
    """Read all inputs, in the order given; raises InputError as `cerflow.files.reading.read_inputs` does."""
    columns = read.columns
    pieces = _pieces(spark, read.inputs)
    found = _each(spark, pieces, lambda piece: survey(read.inputs[piece[0]], columns, piece[1]))
    surveys: list[list[FileSurvey]] = [[] for _ in read.inputs]
    # Each piece with the number of its input, the number of rows before its file, and the number before it in the file.
    places: list[tuple[int, FilePart, int, int]] = []
    rows = 0
    for (number, _), of_file in groupby(zip(pieces, found), lambda one: (one[0][0], one[0][1].path)):
        begin, surveyed = rows, []
        for (_, content), each in of_file:
            places.append((number, content, begin, rows - begin))
            surveyed.append(each)
            rows += each.rows
        surveys[number].append(survey_of_pieces(surveyed))
    plan = InputsPlan.of(read.inputs, columns, surveys, read.named)
    struct, schema = declared(plan.schema)
    doubtful = [one for one in places if not plan.plans[one[0]].clean]
    refused = pa.unify_schemas([one.refused for one in plan.plans])

    def split(places: Sequence[tuple[int, FilePart, int, int]], batches: _Batches) -> Iterator[tuple[SplitRows, str]]:
        """The rows of the pieces whose numbers come, and the names of their files."""
        for place in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            number, content, begin, before = places[place]
            own = plan.plans[number]
            for block in read_blocks(own.one.events, content, own.as_text):
                yield plan.part(own, block.behind(before), begin, content.name), content.name

    def use(batches: _Batches) -> _Batches:
        for part, name in split(places, batches):
            yield from _batches(fitted_table(part.table, schema, name))

    def refuse(batches: _Batches) -> _Batches:
        for part, name in split(doubtful, batches):
            if part.refused is not None:
                yield from _batches(fitted_table(part.refused, refused, name))

    events = _tasks(spark, len(places)).mapInArrow(use, struct) if struct.names else spark.range(0).select()
    bad = _tasks(spark, len(doubtful)).mapInArrow(refuse, spark_schema(refused)) if doubtful else None
    return SparkEvents(events, bad, rows, columns.schema(schema, plan.roles.stream), plan.remarks)


def _pieces(spark: SparkSession, inputs: Sequence[Input[Source]]) -> list[_Piece]:
    """The files of all inputs, with large ones in pieces where possible."""
    cut = [
        (k, piece) for k, one in enumerate(inputs) for file in one.events.files for piece in cut_file(one.events, file)
    ]
    doubtful = [one for k, one in cut if one.end is not None and inputs[k].events.format is InputFormat.CSV]
    whole = {piece.path for piece, quotes in zip(doubtful, _each(spark, doubtful, has_quotes)) if quotes}
    return list(dict.fromkeys((k, FilePart(piece.path)) if piece.path in whole else (k, piece) for k, piece in cut))


def _each(spark: SparkSession, given: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """What a function makes of each value, by one task each."""
    return spark.sparkContext.parallelize(given, len(given)).map(work).collect() if given else []


def _tasks(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, numPartitions=max(count, 1))


def _batches(table: pa.Table) -> _Batches:
    yield from table.combine_chunks().to_batches(max_chunksize=limits.OUTPUT_BATCH_ROWS)
