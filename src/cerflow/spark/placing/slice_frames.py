"""Slices of a stream as Spark expressions: which events go where, and where slices stand in the stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cerflow import limits
from cerflow.slices.slice import GREATEST, LEAST, Slice
from cerflow.spark.frames.axis import Axis
from cerflow.spark.frames.events import IDENTIFIER, EventColumns, number_of_cuts
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.placing.placement import Clustered, Cut
from cerflow.spark.placing.survey import estimate

__all__ = [
    "SLICE",
    "between_partitions",
    "first_between",
    "first_in_cut",
    "found_before",
    "in_slices",
    "own_counts",
    "slices_in_tasks",
]

#: Twice the number of the slice, one more if the event is its own.
SLICE = "slice"
_NUMBER = "number"


def in_slices(frame: DataFrame, events: EventColumns, axis: Axis, how: Cut) -> DataFrame:
    """The events with identifiers, each once for every slice of a whole stream that reads it, with `SLICE`."""
    rows = frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())
    own = number_of_cuts(events.leading(), axis, [s.start for s in how.slices[1:]])
    begun = [s.begin for s in how.slices if s.begin != LEAST]
    last = number_of_cuts(events.leading(), axis, begun) + F.lit(len(how.slices) - len(begun) - 1)
    rows = rows.withColumn("own", own)
    rows = rows.withColumn(_NUMBER, F.explode(F.sequence(F.col("own"), last)))
    return rows.withColumn(SLICE, _code(F.col(_NUMBER) == F.col("own"))).drop("own", _NUMBER)


def between_partitions(frame: DataFrame, events: EventColumns, axis: Axis, how: Clustered) -> DataFrame:
    """The same for the slices between the partitions of a DataFrame; events that none of them reads are left out."""
    slices = how.boundaries
    rows = _likely(frame, events, axis, slices)
    rows = rows.withColumn(IDENTIFIER, F.monotonically_increasing_id()).withColumn("part", F.spark_partition_id())
    value = axis.compared(events.leading())

    def reached(keys: Sequence[int], number: Column) -> Column:
        literals = F.lit(axis.literals(keys)).cast(f"array<{axis.data_type}>")
        return value >= F.get(literals, number)

    def reads(number: Column) -> Column:
        begun = F.coalesce(reached([s.begin for s in slices], number), F.lit(True))
        ended = F.coalesce(reached([s.stop for s in slices], number), F.lit(False))
        return begun & ~ended

    first, last = (F.lit(numbers).cast("array<int>") for numbers in _candidates(how))
    part = F.col("part")
    near = F.filter(F.sequence(F.get(first, part), F.get(last, part)), reads)
    rows = rows.withColumn(_NUMBER, F.explode(near))
    own = F.coalesce(reached([s.start for s in slices], F.col(_NUMBER)), F.lit(True))
    return rows.withColumn(SLICE, _code(own)).drop(_NUMBER)


def _code(own: Column) -> Column:
    return (F.col(_NUMBER) * 2 + own.cast("int")).cast("int")


def _candidates(how: Clustered) -> tuple[list[int | None], list[int | None]]:
    """For each partition the first and the last slice that may read some of its events, null for none."""
    begins = np.array([s.begin for s in how.boundaries], np.int64)
    stops = np.array([s.stop for s in how.boundaries], np.int64)
    parts = max(how.partitions) + 1
    first: list[int | None] = [None] * parts
    last: list[int | None] = [None] * parts
    for number, partition in how.partitions.items():
        low, high = int(partition.pieces.low.min()), int(partition.pieces.high.max())
        begun = int(np.searchsorted(begins, high, side="right")) - 1
        ended = int(np.searchsorted(stops, low, side="right"))
        if ended <= begun:
            first[number], last[number] = ended, begun
    return first, last


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
    """The same for slices between partitions, whose events are counted in a job.

    Every event of a partition that lies in a slice, or after it, comes after all of the partitions before.
    """
    found = rows.groupBy(F.shiftright(F.col(SLICE), 1).alias(_NUMBER), F.col("part")).count().collect()
    first = []
    for number, some in enumerate(how.boundaries):
        begun = {q: p.pieces.total for q, p in how.partitions.items() if int(p.pieces.low.min()) < some.begin}
        read = sum(row["count"] for row in found if row[_NUMBER] == number and row["part"] in begun)
        first.append(sum(begun.values()) - read)
    return tuple(first)
