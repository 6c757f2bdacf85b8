"""Slices of a stream as Spark expressions: which events go where, and where slices are in the stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType

from cerflow import limits
from cerflow.errors import InputError
from cerflow.slices.slice import GREATEST, LEAST, Slice
from cerflow.spark.frames.axis import Axis
from cerflow.spark.frames.events import IDENTIFIER, EventColumns, number_of_cuts
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.placing.placement import Clustered, Cut
from cerflow.spark.placing.slice_tasks import CHANGED
from cerflow.spark.placing.survey import estimate, file_of_row

#: Twice the number of the slice, one more if the event is its own.
SLICE = "slice"
_NUMBER = "number"
_FILE = "file"


def in_slices(frame: DataFrame, events: EventColumns, axis: Axis, how: Cut) -> DataFrame:
    """The events with identifiers, each once for every slice of a whole stream that reads it, with `SLICE`."""
    rows = frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())
    own = number_of_cuts(events.leading(), axis, [s.start for s in how.slices[1:]])
    begun = [s.begin for s in how.slices if s.begin != LEAST]
    last = number_of_cuts(events.leading(), axis, begun) + F.lit(len(how.slices) - len(begun) - 1)
    rows = rows.withColumn("own", own)
    rows = rows.withColumn(_NUMBER, F.explode(F.sequence(F.col("own"), last)))
    return rows.withColumn(SLICE, _code(F.col(_NUMBER) == F.col("own"))).drop("own", _NUMBER)


def between_stretches(frame: DataFrame, events: EventColumns, axis: Axis, how: Clustered, *, files: bool) -> DataFrame:
    """The same for the slices between the stretches of a DataFrame; events that none of them reads are left out.

    With ``files`` rows say where they come from.
    """
    slices = how.boundaries
    rows = _likely(frame, events, axis, slices)
    rows = rows.withColumn(IDENTIFIER, F.monotonically_increasing_id()).withColumn("part", F.spark_partition_id())
    if files:
        rows = rows.withColumn(_FILE, file_of_row(how.by_file))
    value = events.leading()
    begun = [s.begin for s in slices if s.begin != LEAST]
    # Those that may read an event are the ones that have begun and not ended.
    rows = _with_number_of_cuts(rows, "ended", value, axis, [s.stop for s in slices if s.stop != GREATEST])
    rows = _with_number_of_cuts(rows, "begun", value, axis, begun)
    last = F.col("begun") + F.lit(len(slices) - len(begun) - 1)
    rows = rows.filter(F.col("ended") <= last)
    rows = rows.withColumn(_NUMBER, F.explode(F.sequence("ended", last))).drop("ended", "begun")
    own = axis.compared(value) >= F.get(_array(axis, [s.start for s in slices]), F.col(_NUMBER))
    return rows.withColumn(SLICE, _code(own)).drop(_NUMBER)


def in_known_partitions(rows: DataFrame, how: Clustered) -> DataFrame:
    """The same rows; the job fails if there are more partitions than those that the statistics of files told."""
    known = F.spark_partition_id() < max(stretch.part for stretch in how.stretches) + 1
    return rows.filter(
        F.when(known, True).otherwise(
            F.raise_error(f"{InputError.__module__}.InputError: {CHANGED}").cast(BooleanType())
        )
    )


def _array(axis: Axis, keys: Sequence[int]) -> Column:
    """Values with these keys as an array, made of one text: thousands of literals would take long to plan."""
    values = keys if axis.data_type == LongType() else axis.literals(keys)
    return F.split(F.lit(" ".join(map(str, values))), " ").cast(ArrayType(axis.data_type))


def _with_number_of_cuts(rows: DataFrame, name: str, value: Column, axis: Axis, cuts: Sequence[int]) -> DataFrame:
    """Rows with the number of cuts (ascending) that are not greater than a value; there may be thousands of them."""
    rows = rows.withColumn(name, F.lit(0))
    if not cuts:
        return rows
    array, value = _array(axis, cuts), axis.compared(value)
    step = 1 << (len(cuts).bit_length() - 1)
    while step:
        found = F.col(name)
        # Beyond the array there is null.
        rows = rows.withColumn(name, F.when(F.get(array, found + (step - 1)) <= value, found + step).otherwise(found))
        step //= 2
    return rows


def _code(own: Column) -> Column:
    return (F.col(_NUMBER) * 2 + own.cast(IntegerType())).cast(IntegerType())


def _likely(frame: DataFrame, events: EventColumns, axis: Axis, slices: Sequence[Slice[int]]) -> DataFrame:
    """The events that any slice reads, if that can be asked of the source without changing its partitions."""
    if axis.time is None or len(slices) > limits.SPARK_RANGES:
        return frame
    time = events.leading()
    ranges = []
    for some in slices:
        begun = F.lit(True) if some.begin == LEAST else axis.at_least(time, some.begin)
        ranges.append(begun if some.stop == GREATEST else begun & ~axis.at_least(time, some.stop))
    likely = frame.filter(reduce(Column.__or__, ranges))
    return likely if estimate(likely).pruned == estimate(frame).pruned else frame


def slices_in_tasks(rows: DataFrame, plan: JobPlan, events: EventColumns, slices: int) -> DataFrame:
    """Rows with `SLICE`, those of a slice in one task and in order."""
    shuffled = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or slices)
    tasks = max(1, min(slices, shuffled))
    number = F.shiftright(F.col(SLICE), 1)
    # Before PySpark 4.1 slices may share a task while others have none.
    rows = rows.repartitionById(tasks, number) if hasattr(rows, "repartitionById") else rows.repartition(tasks, number)
    return rows.sortWithinPartitions(F.col(SLICE).asc(), *events.order(plan))


def first_in_cut(how: Cut) -> tuple[int, ...]:
    """The position of the first event that each slice reads, by the pieces that were counted."""
    pieces = how.pieces
    assert pieces is not None
    begins = np.array([s.begin for s in how.slices])[:, None]
    assert not ((pieces.low < begins) & (pieces.high >= begins)).any(), "slices begin where pieces do"
    return tuple(((pieces.high < begins) * pieces.count).sum(axis=1).tolist())


def found_before(slices: Sequence[Slice[int]]) -> tuple[int | None, ...] | None:
    """The keys of the events before slices on which these rely; None if none does."""
    found = tuple(some.found for some in slices)
    return None if all(key is None for key in found) else found


def own_counts(how: Cut) -> tuple[int, ...] | None:
    """How many events are each slice's own, if that was counted."""
    pieces = how.pieces
    if pieces is None:
        return None
    starts, stops = (np.array([getattr(s, name) for s in how.slices])[:, None] for name in ("start", "stop"))
    return tuple((((pieces.low >= starts) & (pieces.low < stops)) * pieces.count).sum(axis=1).tolist())


def first_between(rows: DataFrame, how: Clustered) -> tuple[int, ...]:
    """The same for slices between stretches, whose events are counted in a job.

    Every event of a stretch that lies in a slice, or after it, comes after all of the stretches before.
    """
    found = rows.groupBy(F.shiftright(F.col(SLICE), 1).alias(_NUMBER), F.col("part"), F.col(_FILE)).count().collect()
    low = np.array([int(stretch.pieces.low.min()) for stretch in how.stretches])
    begins = [some.begin for some in how.boundaries]
    first = [sum(s.pieces.total for s in how.stretches[: np.searchsorted(low, begin)]) for begin in begins]
    for row in found:
        place = how.files.get((row["part"], row[_FILE]))
        if place is None:
            raise InputError(CHANGED)
        if low[place] < begins[row[_NUMBER]]:
            first[row[_NUMBER]] -= row["count"]
    return tuple(first)
