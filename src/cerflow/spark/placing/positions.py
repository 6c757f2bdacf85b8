"""Positions in the whole stream, for events that many tasks hold.

Everything is exact. The input is read once (without a time) or twice (with one) to learn how many events there are
before each part of the stream; then the parts are numbered in parallel. That holds only if reading the input again
gives the same rows, so the counts are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from cerflow.base import limits
from cerflow.spark.frames.axis import ROW_BITS
from cerflow.spark.frames.events import IDENTIFIER, POSITION, array_column, with_number_of_cuts

_PART = "part"
_CHANGED = (
    "the events changed between two readings, so they cannot be numbered; "
    "store or cache the DataFrame before it is matched"
)


def number_rows(frame: DataFrame) -> DataFrame:
    """The frame with the position of each row in its own order: that of partitions, and of the rows in each.

    Counts the rows of each partition in a job of its own.
    """
    part = F.shiftright(F.col(IDENTIFIER), ROW_BITS).cast(T.IntegerType())
    within = F.col(IDENTIFIER).bitwiseAND(F.lit((1 << ROW_BITS) - 1))
    counts, offsets = _counted(frame.select(part.alias(_PART)))
    place = F.when(within < F.get(counts, part), F.get(offsets, part) + within)
    return frame.withColumn(POSITION, place.otherwise(F.raise_error(F.lit(_CHANGED)).cast(T.LongType())))


def number_sorted(frame: DataFrame, leading: str, order: Sequence[Column]) -> DataFrame:
    """The frame with the position of each row in the given order, whose first column is ``leading``.

    Runs two jobs: one for quantiles of ``leading``, which cut the stream into parts of about the same size, and one
    that counts the parts. The result shuffles and sorts all rows; a part is numbered by one task.
    """
    cut = with_number_of_cuts(frame, _PART, F.col(leading), cuts_of(frame, leading), frame.schema[leading].dataType)
    counts, offsets = _counted(cut.select(_PART))
    whole = Window.partitionBy(_PART)
    so_far = whole.orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    one = F.lit(1)
    place = F.when(
        F.count(one).over(whole) == F.get(counts, F.col(_PART)),
        F.get(offsets, F.col(_PART)) + F.count(one).over(so_far) - 1,
    )
    numbered = cut.withColumn(POSITION, place.otherwise(F.raise_error(F.lit(_CHANGED)).cast(T.LongType())))
    return numbered.drop(_PART)


def _counted(parts: DataFrame) -> tuple[Column, Column]:
    """The rows of each part, and of all parts before it, as arrays indexed by the part."""
    found: Mapping[int, int] = {row[_PART]: row["count"] for row in parts.groupBy(_PART).count().collect()}
    counts = [found.get(part, 0) for part in range(max(found, default=0) + 1)]
    offsets = list(accumulate(counts[:-1], initial=0))
    return array_column(counts, T.LongType()), array_column(offsets, T.LongType())


def cuts_of(frame: DataFrame, leading: str) -> list[str]:
    """Values of the column ``leading`` at which to cut, ascending, as text; none for types without quantiles."""
    data_type = frame.schema[leading].dataType
    if not isinstance(data_type, T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType):
        return []
    parts = min(
        limits.SPARK_NUMBERED_PARTS,
        int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or limits.SPARK_NUMBERED_PARTS),
    )
    if parts < 2:
        return []
    fractions = [k / parts for k in range(1, parts)]
    quantiles = F.percentile_approx(leading, fractions, F.lit(20 * parts)).cast(T.ArrayType(T.StringType()))
    (row,) = frame.agg(quantiles.alias("cuts")).collect()
    return list(dict.fromkeys(row["cuts"] or []))
