"""The events as tasks get them: the columns needed, with plain names, each task's share in order."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cerflow.spark.axis import Axis
from cerflow.spark.frames import IDENTIFIER, POSITION, Events
from cerflow.spark.placement import Clustered, Cut, Placement, Way
from cerflow.spark.plan import Plan
from cerflow.spark.positions import number_rows, number_sorted
from cerflow.spark.schemas import spark_schema
from cerflow.spark.slice_frames import (
    SLICE,
    between_partitions,
    first_between,
    first_in_cut,
    in_slices,
    own_counts,
    together,
)
from cerflow.spark.slice_tasks import OwnSlices, PartitionsInOrder
from cerflow.spark.tasks import Recognition

__all__ = ["recognized", "selected"]


def selected(df: DataFrame, plan: Plan, events: Events, *, skip: bool) -> DataFrame:
    """The columns that the query needs, with plain names, and the events that can be used if others are skipped."""
    names = [events.plain(name) for name in plan.needed]
    extra = [] if plan.sequence is None else [events.plain(plan.sequence)]
    frame = events.renamed(df).select(*dict.fromkeys(names + extra))
    if skip:
        frame = frame.filter(events.usable())
    if plan.keys and not plan.positions:
        # They belong to no substream, and nothing counts them.
        frame = frame.filter(events.has_keys(plan))
    return frame


def recognized(frame: DataFrame, plan: Plan, events: Events, placement: Placement) -> DataFrame:
    """The matches in selected events that are placed so."""
    match placement.how:
        case Cut() as how:
            return _in_slices(frame, plan, events, how)
        case Clustered() as how:
            return _in_partitions(frame, plan, events, how)
    numbered = plan.positions and placement.way is Way.BY_KEY
    rows = _ordered(frame, plan, events, by_key=placement.way is Way.BY_KEY, numbered=numbered)
    return _mapped(rows, plan, _recognition(plan, numbered=numbered))


def _ordered(frame: DataFrame, plan: Plan, events: Events, *, by_key: bool, numbered: bool) -> DataFrame:
    """All events in one task, or those of a key."""
    names = [events.plain(name) for name in plan.needed]
    # Before any shuffle: this is the order of the input.
    frame = frame.withColumn(IDENTIFIER, F.monotonically_increasing_id())
    order = events.order(plan)
    if numbered:
        leading = plan.schema.time or plan.sequence
        if leading is None:
            frame = number_rows(frame)
        else:
            frame = number_sorted(frame, events.plain(leading), order)
        order = [F.col(POSITION).asc()]
        names.append(POSITION)
        # These events count, but have no substream.
        frame = frame.filter(events.has_keys(plan))
    frame = frame.repartition(*events.keys(plan)) if by_key else frame.repartition(1)
    return frame.sortWithinPartitions(*order).select(*names)


def _in_slices(frame: DataFrame, plan: Plan, events: Events, how: Cut) -> DataFrame:
    """Every slice in a task, with the events before it that it needs."""
    rows = together(in_slices(frame, events, Axis(plan.schema), how), plan, events, len(how.slices))
    first = first_in_cut(how) if plan.positions else None
    task = OwnSlices(_recognition(plan, numbered=plan.positions), first, own_counts(how))
    return _mapped(rows.select(*_names(plan, events), SLICE), plan, task)


def _in_partitions(frame: DataFrame, plan: Plan, events: Events, how: Clustered) -> DataFrame:
    """Every partition where it is, and the slices between them in tasks of their own."""
    recognition = _recognition(plan, numbered=plan.positions)
    names = _names(plan, events)
    tie_breakers = [plan.sequence] if how.in_order and plan.sequence is not None else []
    sequence = [F.col(events.plain(name)).alias("sequence") for name in tie_breakers]
    rows = frame
    if not how.in_order:
        rows = rows.withColumn(IDENTIFIER, F.monotonically_increasing_id()).sortWithinPartitions(*events.order(plan))
    task = PartitionsInOrder(
        recognition=recognition,
        partitions=how.partitions,
        edges=tuple(key for s in how.boundaries for key in (s.start, s.stop)),
        sequence=bool(sequence),
        in_order=not how.in_order or plan.schema.time is None,
        numbered=plan.positions,
        piece=how.piece,
    )
    found = _mapped(rows.select(*names, *sequence, F.spark_partition_id().alias("part")), plan, task)
    if not how.boundaries:
        return found
    between = between_partitions(frame, events, Axis(plan.schema), how)
    first = first_between(between, how) if plan.positions else None
    rows = together(between, plan, events, len(how.boundaries)).select(*names, SLICE)
    return found.union(_mapped(rows, plan, OwnSlices(recognition, first, None)))


def _names(plan: Plan, events: Events) -> list[str]:
    """The columns that tasks recognise in."""
    return [events.plain(name) for name in plan.needed]


def _mapped(rows: DataFrame, plan: Plan, task: Recognition | OwnSlices | PartitionsInOrder) -> DataFrame:
    return rows.mapInArrow(task, spark_schema(plan.result))


def _recognition(plan: Plan, *, numbered: bool) -> Recognition:
    schema = plan.schema
    columns = pa.schema([schema.columns.field(name) for name in plan.needed])
    position = None
    if numbered:
        position = POSITION
        while position in schema.attributes:
            position += "_"
        columns = columns.append(pa.field(position, pa.int64()))
    return Recognition(
        query=plan.text,
        language=plan.language,
        schema=columns.serialize().to_pybytes(),
        type=schema.type,
        time=schema.time,
        stream=schema.stream,
        position=position,
        positions=plan.positions,
        predicates=plan.predicates,
    )
