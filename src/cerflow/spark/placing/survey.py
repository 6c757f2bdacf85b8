"""Surveys a DataFrame before it is matched: its size, the distribution of its rows, and their order.

A survey reads only the ordering column, in the JVM, and works with Spark Connect too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType

from cerflow import limits
from cerflow.engine.evaluate.measures import bounds, floats_of, measures
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.layout import NULL
from cerflow.language.formula import AttributeWindow
from cerflow.schema import ValueKind
from cerflow.slices.lookback import Bounds
from cerflow.slices.pieces import Pieces
from cerflow.spark.frames.axis import ROW_BITS, Axis
from cerflow.spark.frames.events import IDENTIFIER, EventColumns
from cerflow.values.array_types import Ints
from cerflow.values.arrow_columns import one_array

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
_SIZE = re.compile(r"sizeInBytes=([0-9.E+]+) (\w+)")
#: The leaves of physical plans that give the same rows in the same partitions whenever they are read. Not those of
#: local data: Spark computes columns over it as one partition when it plans, and divides it when it runs.
_FILES = re.compile(r"(?:FileScan|BatchScan) (?:parquet|orc|csv|json|text|avro)|Range \(")
_PRUNED = re.compile(r"PartitionFilters: \[[^\]]*\]")
_LEAF = re.compile(r"Scan\b|Relation\b|Range \(")


@dataclass(frozen=True)
class Estimate:
    """Spark's estimate of a DataFrame, for which nothing runs.

    ``size`` are bytes, None if it does not know; ``stays`` whether every reading of it gives the same partitions;
    ``pruned`` are the conditions by which whole files are left out.
    """

    size: int | None
    stays: bool
    pruned: tuple[str, ...] = ()


def estimate(frame: DataFrame) -> Estimate:
    """Spark's estimate, from its plan of a DataFrame; without a plan nothing is known."""
    text = _explained(frame)
    logical, _, physical = text.partition("== Physical Plan ==")
    found = _SIZE.search(logical)
    size = None if found is None else int(float(found[1]) * _UNITS.get(found[2], 1))
    leaves = [line for line in physical.splitlines() if _LEAF.search(line)]
    moved = "Exchange" in physical or "Bucketed: true" in physical
    stays = bool(leaves) and not moved and all(_FILES.search(line) for line in leaves)
    return Estimate(size, stays, tuple(_PRUNED.findall(physical)))


def is_small(frame: DataFrame) -> bool:
    """Whether Spark knows that a DataFrame is too small for jobs that find out more."""
    size = estimate(frame).size
    return size is not None and size < limits.SPARK_SMALL_BYTES


def _explained(frame: DataFrame) -> str:
    # Spark has no public function that gives the text instead of printing it. Without the text there are more jobs.
    try:
        connected = getattr(type(frame), "_explain_string", None)
        if connected is not None:
            return str(connected(frame, mode="cost"))
        explained = frame.sparkSession._jvm.PythonSQLUtils.explainString  # type: ignore[union-attr]
        return str(explained(frame._jdf.queryExecution(), "cost"))
    except Exception:
        return ""


@dataclass(frozen=True)
class PartitionSurvey:
    """The pieces of a DataFrame, in the order in which its partitions and their rows come.

    ``complete`` says that all rows have keys. ``files`` are numbers that tell apart the files of one partition
    if ``by_file``. Unless ``counted`` the pieces may have fewer rows, and keys in a smaller range.
    """

    pieces: Pieces
    complete: bool
    files: Ints
    by_file: bool
    counted: bool = True


def file_of_row(by_file: bool) -> Column:
    """A number for the file that a row was read from; parts of a file that are read apart have different ones.

    Without ``by_file`` all rows have the same.
    """
    return F.xxhash64(F.input_file_name(), F.input_file_block_start()) if by_file else F.lit(0).cast(LongType())


def survey_partitions(
    frame: DataFrame, events: EventColumns, axis: Axis, window: object, piece_bits: int, *, by_file: bool
) -> PartitionSurvey:
    """Count the rows of each piece of the partitions, and find the least and greatest key of each, in one job.

    A piece has ``2 ** piece_bits`` rows at most; those of a partition follow each other. With ``by_file`` none has rows
    of two files. A second job is needed if a file comes twice in a partition.
    """
    leading = events.leading()
    valid = F.when(events.valid(), leading)
    found = _aggregated(
        frame.withColumn(IDENTIFIER, F.monotonically_increasing_id()),
        [F.shiftright(F.col(IDENTIFIER), piece_bits), file_of_row(by_file)],
        valid,
        [F.min(IDENTIFIER).alias("first")],
        events,
        window,
    ).sort_by("first")
    first, count, files = (found.column(name).to_numpy() for name in ("first", "count", "key1"))
    part = first >> ROW_BITS
    if by_file and not _together(part, first, count, files):
        return survey_partitions(frame, events, axis, window, piece_bits, by_file=False)
    return _survey(found, part, files, by_file, events, axis, window)


def _together(part: Ints, first: Ints, count: Ints, files: Ints) -> bool:
    """Whether the rows of each piece stand together, and those of each file in a partition, too."""
    same_part = part[1:] == part[:-1]
    if not (first[1:] == first[:-1] + count[:-1])[same_part].all():
        return False
    begun = np.append(True, ~same_part | (files[1:] != files[:-1]))
    return len(np.unique(np.stack([part, files]), axis=1).T) == int(begun.sum())


def survey_parts(frame: DataFrame, part: Column, events: EventColumns, axis: Axis, window: object) -> PartitionSurvey:
    """The same for parts of a stream that are numbered otherwise, in their order; some may be missing."""
    leading = events.leading()
    found = _aggregated(frame, [part], leading, [], events, window).sort_by("key0")
    number = found.column("key0").to_numpy()
    return _survey(found, number, np.zeros(len(number), np.int64), False, events, axis, window)


def _aggregated(
    frame: DataFrame,
    keys: Sequence[Column],
    leading: Column,
    more: Sequence[Column],
    events: EventColumns,
    window: object,
) -> pa.Table:
    """Facts about the rows with the same keys, which are called ``key0`` and so on; ``more`` are aggregates."""
    aggregates = [
        *more,
        F.count(F.lit(1)).alias("count"),
        F.count(leading).alias("valid"),
        F.min(leading).alias("low"),
        F.max(leading).alias("high"),
    ]
    if isinstance(window, AttributeWindow):
        measure = F.col(events.plain(window.attribute))
        if events.schema.kind(window.attribute) is ValueKind.FLOAT:
            measure = F.when(~F.isnan(measure), measure)
        aggregates.append(F.max(measure).alias("measure"))
    named = [key.alias(f"key{number}") for number, key in enumerate(keys)]
    return frame.groupBy(*named).agg(*aggregates).toArrow().combine_chunks()


def _survey(
    found: pa.Table, part: Ints, files: Ints, by_file: bool, events: EventColumns, axis: Axis, window: object
) -> PartitionSurvey:
    low, high = axis.keys(found.column("low")), axis.keys(found.column("high"))
    measure = np.full(len(low), NULL)
    if isinstance(window, AttributeWindow):
        measure = measures(window, _rows(found.column("measure"), window, events), events.schema)
    count = found.column("count").to_numpy()
    complete = bool((count == found.column("valid").to_numpy()).all())
    return PartitionSurvey(Pieces(part.astype(np.int64), low, high, count, measure), complete, files, by_file)


def _rows(column: pa.Array | pa.ChunkedArray, window: AttributeWindow, events: EventColumns) -> BatchRows:
    array = one_array(column)
    batch = pa.RecordBatch.from_arrays([array], names=[window.attribute])
    return BatchRows(batch, events.schema, np.arange(len(array)), finest_unit(events.schema))


def bounds_of(window: AttributeWindow, events: EventColumns) -> Bounds:
    """The bounds of a window on an attribute for measures, by the engine's own arithmetic."""
    schema = events.schema
    kind = schema.kind(window.attribute)

    def bound(found: Ints) -> Ints:
        array = pa.array(floats_of(found) if kind is ValueKind.FLOAT else found)
        return bounds(window, _rows(array, window, events), schema)

    return bound


def greatest_share(frame: DataFrame, keys: Sequence[Column]) -> float:
    """The events of the most frequent key, as a share of all that have one; 0 with few events. Runs one job."""
    known = frame.select(*(key.alias(f"key{number}") for number, key in enumerate(keys))).dropna()
    counts = known.groupBy(*known.columns).count()
    (row,) = counts.agg(F.max("count").alias("most"), F.sum("count").alias("all")).collect()
    return 0.0 if (row["all"] or 0) < limits.SPARK_SKEW_EVENTS else row["most"] / row["all"]


def sample(frame: DataFrame, events: EventColumns, axis: Axis, step: int) -> Ints:
    """The keys of every this many rows of each partition (a power of two), ascending, in one job."""
    leading = events.leading()
    rows = frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())
    rows = rows.filter((F.col(IDENTIFIER) % step == 0) & events.valid())
    return np.sort(axis.keys(rows.select(leading.alias("key")).toArrow().column("key")))
