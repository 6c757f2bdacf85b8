"""Positions of events in the whole stream, and the events that show deadlines, where many tasks hold the stream.

Everything is exact. For positions the input is read once (without a time) or twice (with one) to learn how many events
there are before each part of the stream; then the parts are numbered in parallel. That holds only if reading the input
again gives the same rows, so the counts are checked.

For deadlines without a window keys are apart from each other, though events of other keys show that deadlines have
passed. A clock shows the tasks each deadline, up to the latest time of the input. The event that shows it is then
looked for in the times of all events, for the matches alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from cerflow.base import limits
from cerflow.spark.frames.axis import ROW_BITS
from cerflow.spark.frames.events import IDENTIFIER, POSITION, EventColumns, array_column, with_number_of_cuts
from cerflow.spark.frames.schemas import in_backticks

_PART = "part"
_TIME, _MATCH, _SHOWN, _LATER = "time", "match", "shown", "later"
#: The column of results with the time of the event that shows a deadline.
_DETECTED = "detected_time"
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


def end_of_events(frame: DataFrame, events: EventColumns, until: pa.Array | None) -> pa.Array | None:
    """A time, in an array, before which no more events come; None if a DataFrame with plain names has none. Runs a job.

    It is that of the last event, or a later one that is known: ``until``.
    """
    latest = frame.filter(events.valid()).agg(F.max(events.leading()).alias(_TIME)).toArrow().column(_TIME)
    known = latest.combine_chunks().drop_null().cast(events.schema.columns.field(str(events.schema.time)).type)
    times = known if until is None else pa.concat_arrays([known, until])
    return times.take(pc.sort_indices(times)[-1:]) if len(known) else None


def with_times_of_events(matches: DataFrame, frame: DataFrame, events: EventColumns) -> DataFrame:
    """The matches with the time of the first event at or after each detection; those behind all events stay.

    One job sorts the times of all events, and with them the matches. Cuts divide both among the tasks.
    """
    times = frame.filter(events.valid()).select(events.leading().alias(_TIME))
    cuts, data_type = cuts_of(times, _TIME), times.schema[_TIME].dataType
    found = matches.select(F.col(_DETECTED).cast(data_type).alias(_TIME), F.struct("*").alias(_MATCH))

    def in_parts(rows: DataFrame) -> DataFrame:
        return with_number_of_cuts(rows, _PART, F.col(_TIME), cuts, data_type)

    firsts = in_parts(times).groupBy(_PART).agg(F.min(_TIME).alias(_LATER))
    behind = Window.orderBy(_PART).rowsBetween(1, Window.unboundedFollowing)
    parts = firsts.select(_PART, F.min(_LATER).over(behind).alias(_LATER))
    both = in_parts(found.unionByName(times, allowMissingColumns=True))
    onward = Window.partitionBy(_PART).orderBy(_TIME).rangeBetween(Window.currentRow, Window.unboundedFollowing)
    shown = F.min(F.when(F.col(_MATCH).isNull(), F.col(_TIME))).over(onward)
    rows = both.withColumn(_SHOWN, shown).filter(F.col(_MATCH).isNotNull()).join(F.broadcast(parts), _PART, "left")
    time = F.coalesce(_SHOWN, _LATER, _TIME).cast(matches.schema[_DETECTED].dataType).alias(_DETECTED)
    others = {name: F.col(f"{_MATCH}.{in_backticks(name)}") for name in matches.columns}
    return rows.select(*(others | {_DETECTED: time}).values())
