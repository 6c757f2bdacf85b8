"""Which task gets which events, and in which order."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cerflow.spark.frames import IDENTIFIER, POSITION, Events
from cerflow.spark.plan import Plan
from cerflow.spark.positions import number_rows, number_sorted
from cerflow.spark.pushdown import relevant

__all__ = ["ordered"]


def ordered(df: DataFrame, plan: Plan, *, skip: bool) -> DataFrame:
    """The events as tasks get them: the columns needed, with plain names, each task's share in order."""
    events = Events(plan.schema)
    names = [events.plain(name) for name in plan.needed]
    extra = [] if plan.sequence is None else [events.plain(plan.sequence)]
    frame = events.renamed(df)
    if skip:
        frame = frame.filter(events.usable())
    if plan.without_null_keys and not plan.numbered:
        frame = frame.filter(events.has_keys(plan))
    if not plan.numbered:
        frame = relevant(frame, plan, df.schema, events, skip=skip)
    frame = frame.select(*dict.fromkeys(names + extra))
    # Before any shuffle: this is the order of the input.
    frame = frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())
    order = events.order(plan)
    if plan.numbered:
        leading = plan.schema.time or plan.sequence
        if leading is None:
            frame = number_rows(frame)
        else:
            frame = number_sorted(frame, events.plain(leading), order)
        order = [F.col(POSITION).asc()]
        names.append(POSITION)
        # These events count, but have no substream.
        frame = relevant(frame.filter(events.has_keys(plan)), plan, df.schema, events, skip=skip)
    frame = frame.repartition(*events.keys(plan)) if plan.by_key else frame.repartition(1)
    return frame.sortWithinPartitions(*order).select(*names)
