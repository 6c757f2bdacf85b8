"""The events as tasks get them: only the columns needed, with plain names, and in order within a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.logic.conditions.connectives import TRUE
from cerflow.spark.frames.events import IDENTIFIER, POSITION, EventColumns, relevant
from cerflow.spark.frames.narrowing import narrowed
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import spark_schema
from cerflow.spark.frames.tasks import Recognition
from cerflow.spark.placing.by_clock import ByClock, with_times_of_events
from cerflow.spark.placing.placement import Cut, Placement, PlacementKind
from cerflow.spark.placing.positions import number_rows, number_sorted
from cerflow.spark.placing.slice_frames import SLICE, at_home, shuffled
from cerflow.spark.placing.slice_tasks import OwnSlices
from cerflow.spark.source.planned import Planned


@dataclass(frozen=True)
class Selected:
    """The events of a query in a ``frame`` with plain names, and the plan for the columns that are sent.

    ``types`` and ``skip`` are what `selected` was given.
    """

    frame: DataFrame
    events: EventColumns
    plan: JobPlan
    types: StructType
    skip: bool


def selected(query: Query | Program, df: DataFrame, plan: JobPlan, *, skip: bool) -> Selected:
    """The columns that the query needs, and the events that can be used if others are skipped."""
    events = EventColumns(plan.schema)
    frame = events.renamed(df)
    if skip:
        frame = frame.filter(events.valid())
    if plan.keys and not plan.positions and (plan.by_key or plan.relevance.condition != TRUE):
        # Events without keys belong to no substream, and no position counts them. In one task they may show the time.
        frame = frame.filter(events.has_keys(plan))
    if not plan.positions:
        frame = relevant(frame, plan, df.schema, events, skip=skip)
    plan, bits = narrowed(query, plan, df.schema)
    if bits is not None:
        events = EventColumns(plan.schema)
        frame = frame.withColumn(events.plain(PRECOMPUTED), bits)
    # Without a type an event cannot be used, even if types are not sent.
    names = [events.plain(name) for name in (*plan.needed, plan.schema.type)]
    extra = [] if plan.sequence is None else [events.plain(plan.sequence)]
    return Selected(frame.select(*dict.fromkeys(names + extra)), events, plan, df.schema, skip)


def recognized(given: Selected, placement: Placement) -> DataFrame:
    """The matches in selected events, recognised as a placement says."""
    plan = given.plan
    match placement.how:
        case Cut() as how:
            return _in_slices(given, how)
        case Planned() as planned:
            return planned.frame(given.frame.sparkSession)
        case ByClock(until):
            rows = _ordered(given, by_key=True, numbered=False)
            task = replace(plan.recognition(), until=until, by_clock=True)
            return with_times_of_events(_mapped(rows, plan, task), given.frame, given.events)
    by_key = placement.kind is PlacementKind.BY_KEY
    numbered = plan.positions and by_key
    rows = _ordered(given, by_key=by_key, numbered=numbered)
    return _mapped(rows, plan, plan.recognition(numbered=numbered))


def _ordered(given: Selected, *, by_key: bool, numbered: bool) -> DataFrame:
    """All events in one task, or those of a key."""
    frame, events, plan = given.frame, given.events, given.plan
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
        frame = relevant(frame.filter(events.has_keys(plan)), plan, given.types, events, skip=given.skip)
    frame = frame.repartition(*events.keys(plan)) if by_key else frame.repartition(1)
    return frame.sortWithinPartitions(*order).select(*names)


def _in_slices(given: Selected, how: Cut) -> DataFrame:
    """Every slice in a task with the events before it that it needs; those with a home where they are."""
    plan = given.plan
    recognition = plan.recognition(numbered=plan.positions)
    names = [given.events.plain(name) for name in plan.needed]
    found = []
    if how.at_home:
        rows = at_home(given.frame, plan, given.events, how.slices)
        found.append((rows, how.at_home))
    if how.shuffled:
        found.append((shuffled(given.frame, plan, given.events, how.shuffled), how.shuffled))
    frames = (
        _mapped(rows.select(*names, SLICE), plan, OwnSlices.of(recognition, slices, how.counted))
        for rows, slices in found
    )
    return reduce(DataFrame.union, frames)


def _mapped(rows: DataFrame, plan: JobPlan, task: Recognition | OwnSlices) -> DataFrame:
    return rows.mapInArrow(task, spark_schema(plan.result))
