"""The events as tasks get them: only the columns needed, with plain names, and in order within a task."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from cerflow import limits
from cerflow.conditions.connectives import TRUE
from cerflow.pushdown.relevance import types_named
from cerflow.slices.slice import GREATEST
from cerflow.spark.frames.axis import Axis
from cerflow.spark.frames.events import IDENTIFIER, POSITION, EventColumns
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.pushdown import pushdown, relevant
from cerflow.spark.frames.schemas import spark_schema
from cerflow.spark.frames.stamps import LARGEST_TIME, Stamps
from cerflow.spark.frames.tasks import Recognition
from cerflow.spark.placing.by_clock import ByClock, with_times_of_events
from cerflow.spark.placing.files_by_tasks import FilesByTasks
from cerflow.spark.placing.placement import Clustered, Cut, Placement, PlacementKind
from cerflow.spark.placing.positions import number_rows, number_sorted
from cerflow.spark.placing.slice_frames import (
    SLICE,
    between_stretches,
    first_between,
    first_in_cut,
    found_before,
    in_known_partitions,
    in_slices,
    own_counts,
    slices_in_tasks,
)
from cerflow.spark.placing.slice_tasks import OwnSlices, PartitionsInOrder


@dataclass(frozen=True)
class Selected:
    """The events of a query in a ``frame`` with plain names; ``types`` and ``skip`` are what `selected` was given."""

    frame: DataFrame
    events: EventColumns
    types: StructType
    skip: bool

    def relevant(self, frame: DataFrame, plan: JobPlan) -> DataFrame:
        """The relevant events of a frame."""
        return relevant(frame, plan, self.types, self.events, skip=self.skip)


def selected(df: DataFrame, plan: JobPlan, *, skip: bool) -> Selected:
    """The columns that the query needs, and the events that can be used if others are skipped."""
    events = EventColumns(plan.schema)
    frame = events.renamed(df)
    if skip:
        frame = frame.filter(events.valid())
    if plan.keys and not plan.positions and (plan.by_key or plan.relevance.condition != TRUE):
        # Events without keys belong to no substream, and no position counts them. In one task they may show the time.
        frame = frame.filter(events.has_keys(plan))
    found = Selected(frame, events, df.schema, skip)
    if not plan.positions:
        found = replace(found, frame=found.relevant(frame, plan))
    # Without a type an event cannot be used, even if types are not sent.
    names = [events.plain(name) for name in (*plan.needed, plan.schema.type)]
    extra = [] if plan.sequence is None else [events.plain(plan.sequence)]
    return replace(found, frame=found.frame.select(*dict.fromkeys(names + extra)))


def recognized(given: Selected, plan: JobPlan, placement: Placement) -> DataFrame:
    """The matches in selected events, recognised as a placement says."""
    match placement.how:
        case Cut() as how:
            return _in_slices(given.frame, plan, given.events, how)
        case Clustered() as how:
            return _in_partitions(given, plan, how)
        case FilesByTasks() as how:
            number = len(how.slices)
            numbers = given.frame.sparkSession.range(0, number, 1, numPartitions=number)
            return numbers.mapInArrow(how, spark_schema(plan.result))
        case ByClock(until):
            rows = _ordered(given, plan, by_key=True, numbered=False)
            task = replace(_recognition(plan, numbered=False), until=until, by_clock=True)
            return with_times_of_events(_mapped(rows, plan, task), given.frame, given.events)
    numbered = plan.positions and placement.kind is PlacementKind.BY_KEY
    rows = _ordered(given, plan, by_key=placement.kind is PlacementKind.BY_KEY, numbered=numbered)
    return _mapped(rows, plan, _recognition(plan, numbered=numbered))


def _ordered(given: Selected, plan: JobPlan, *, by_key: bool, numbered: bool) -> DataFrame:
    """All events in one task, or those of a key."""
    frame, events = given.frame, given.events
    names = [events.plain(name) for name in plan.needed]
    # Number rows before any shuffle, in the order of the input.
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
        frame = given.relevant(frame.filter(events.has_keys(plan)), plan)
    frame = frame.repartition(*events.keys(plan)) if by_key else frame.repartition(1)
    return frame.sortWithinPartitions(*order).select(*names)


def _in_slices(frame: DataFrame, plan: JobPlan, events: EventColumns, how: Cut) -> DataFrame:
    """Every slice in a task, with the events before it that it needs."""
    rows = slices_in_tasks(in_slices(frame, events, Axis(plan.schema), how), plan, events, len(how.slices))
    first = first_in_cut(how) if plan.positions else None
    task = OwnSlices(
        _recognition(plan, numbered=plan.positions),
        first,
        own_counts(how),
        found_before(how.slices),
        len(how.slices) - 1,
    )
    return _mapped(rows.select(*_names(plan, events), SLICE), plan, task)


def _in_partitions(given: Selected, plan: JobPlan, how: Clustered) -> DataFrame:
    """Every stretch where it is, and the slices between them in tasks of their own."""
    frame, events = given.frame, given.events
    recognition = _recognition(plan, numbered=plan.positions)
    # The slice that ends the stream, None if a stretch does.
    ends = len(how.boundaries) - 1 if how.boundaries and how.boundaries[-1].stop == GREATEST else None
    names = _names(plan, events)
    tie_breakers = [plan.sequence] if how.in_order and plan.sequence is not None else []
    sequence = [F.col(events.plain(name)).alias("sequence") for name in tie_breakers]
    rows = frame
    if not how.in_order:
        rows = rows.withColumn(IDENTIFIER, F.monotonically_increasing_id()).sortWithinPartitions(*events.order(plan))
    stamps = None if how.counted else _stamps(given, plan, how)
    task = PartitionsInOrder(
        recognition=recognition,
        stretches=how.stretches,
        edges=tuple(key for s in how.boundaries for key in (s.start, s.stop)),
        sequence=bool(sequence),
        in_order=not how.in_order or plan.schema.time is None,
        numbered=plan.positions,
        ends=ends is None,
        counted=how.counted,
        stamps=stamps,
    )
    rows = rows if how.counted else in_known_partitions(rows, how)
    part = [F.spark_partition_id().alias("part")] if how.counted else []
    columns = [*names] if stamps is None else stamps.columns(names, events.conditions(given.types))
    found = _mapped(rows.select(*columns, *sequence, *part), plan, task)
    if not how.boundaries:
        return found
    between = between_stretches(frame, events, Axis(plan.schema), how, files=plan.positions)
    first = first_between(between, how) if plan.positions else None
    rows = slices_in_tasks(between, plan, events, len(how.boundaries)).select(*names, SLICE)
    return found.union(_mapped(rows, plan, OwnSlices(recognition, first, None, found_before(how.boundaries), ends)))


def _stamps(given: Selected, plan: JobPlan, how: Clustered) -> Stamps | None:
    """How type and time are sent as one, if the range of times is known, and what types there are."""
    schema = plan.schema
    pushed = pushdown(plan.relevance, given.types, given.events).condition
    types = types_named(pushed, schema)
    if types is None or len(types) > limits.SPARK_STAMPED_TYPES or not {schema.type, schema.time} <= set(plan.needed):
        return None
    data_type = schema.columns.field(schema.time).type
    local = pa.types.is_timestamp(data_type) and data_type.tz is None
    least = min(int(some.pieces.low.min()) for some in how.stretches)
    greatest = max(int(some.pieces.high.max()) for some in how.stretches)
    if local or pa.types.is_date(data_type) or not -LARGEST_TIME < least <= greatest < LARGEST_TIME:
        return None
    return Stamps(types, plan.needed.index(schema.type), plan.needed.index(schema.time), data_type)


def _names(plan: JobPlan, events: EventColumns) -> list[str]:
    """The columns that tasks recognise in."""
    return [events.plain(name) for name in plan.needed]


def _mapped(rows: DataFrame, plan: JobPlan, task: Recognition | OwnSlices | PartitionsInOrder) -> DataFrame:
    return rows.mapInArrow(task, spark_schema(plan.result))


def _recognition(plan: JobPlan, *, numbered: bool) -> Recognition:
    schema = plan.schema
    columns = pa.schema([schema.columns.field(name) for name in plan.needed])
    position = None
    if numbered:
        position = POSITION
        while schema.has(position):
            position += "_"
        columns = columns.append(pa.field(position, pa.int64()))
    return Recognition(
        query=plan.text,
        language=plan.language,
        schema=columns.serialize().to_pybytes(),
        type=schema.type,
        time=schema.time,
        time_unit=schema.time_unit,
        forget=schema.forget,
        stream=schema.stream,
        position=position,
        positions=plan.positions,
        predicates=plan.predicates,
        precomputed=plan.precomputed,
        counts=plan.counts,
        flat=plan.flat,
        max_matches=plan.max_matches,
        until=plan.until,
    )
