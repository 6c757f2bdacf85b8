"""Events made ready to be looked at one by one: in order, and divided into the substreams of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import pyarrow as pa

from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import usable_in_order
from cerflow.engine.recognize.columns_needed import holding
from cerflow.language.select import Select
from cerflow.query import Query
from cerflow.reference import stream_of
from cerflow.schema import Schema
from cerflow.stream_inputs import EventRoles, schema_of
from cerflow.values.event_tables import to_table
from cerflow.values.events import Event, Stream, Value, as_value, raw_time

__all__ = ["StudiedEvents", "Substream", "key_of_event", "read_sample", "substreams_by_key"]


@dataclass(frozen=True)
class StudiedEvents:
    """Events in the order in which a query reads them, as a table and one by one; ``first`` is the first position.

    No event before ``until``, a value of the time column, is still to come. The last ``clocked`` events are matches of
    definitions that the clock shows; it shows deadlines before such an event does.
    """

    table: pa.Table
    schema: Schema
    first: int = 0
    until: Any = None
    clocked: int = 0

    @cached_property
    def events(self) -> Stream:
        """The events one by one."""
        found = stream_of(self.table, self.schema)
        moved = (replace(event, position=event.position + self.first) for event in found) if self.first else found
        return Stream(moved, found.microseconds_per_tick)

    @cached_property
    def clock(self) -> int | float | None:
        """``until`` as a raw time. Raises as `Query.match` for a value that is no time of these events."""
        return None if self.until is None else raw_time(as_value(clock_time(self.until, self.schema)[0].as_py()))

    def at(self, position: int) -> Event:
        """The event at a position."""
        return self.events[position - self.first]

    @property
    def roles(self) -> Mapping[str, Any]:
        """The columns with a role, as `Query.match` takes them."""
        s = self.schema
        found = {"type": s.type, "time": s.time, "time_unit": s.time_unit, "stream": s.stream}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Substream:
    """The events of one key of PARTITION BY, perhaps with ticks and pauses between them (`cerflow.studying.deadlines`).

    ``places`` gives the index here of a position in the whole stream.
    """

    key: tuple[Value, ...]
    events: Stream

    @cached_property
    def places(self) -> dict[int, int]:
        """The index of each event, by its position in the whole stream."""
        none = (TICK.type, PAUSE.type)
        return {event.position: place for place, event in enumerate(self.events) if event.type not in none}


def read_sample(
    query: Query,
    events: Any,
    *,
    sequence: str | None = None,
    first: int = 0,
    until: Any = None,
    **roles: Unpack[EventRoles],
) -> StudiedEvents:
    """Events as `Query.match` takes them, a stretch of a stream from position ``first`` on.

    Raises what `Query.match` raises for events that cannot be used.
    """
    table = to_table(events)
    schema = schema_of(table.schema, **roles)
    checker = RecordChecker(holding(schema, [query.tree]), "fail", in_order=False)
    return StudiedEvents(usable_in_order(table, checker, sequence)[0], schema, first, until)


def substreams_by_key(select: Select, events: Stream) -> dict[tuple[Value, ...], Substream]:
    """The substreams that a query reads, by key; events of other inputs and events without key are in none."""
    members: dict[tuple[Value, ...], list[Event]] = {}
    several = bool(select.streams) and any(event.stream is not None for event in events)
    for event in events:
        key = key_of_event(select, event)
        if None in key or (several and event.stream not in select.streams):
            continue
        # Names of streams do not count where all events come from one.
        members.setdefault(key, []).append(event if several else replace(event, stream=None))
    unit = events.microseconds_per_tick
    return {key: Substream(key, Stream(found, unit)) for key, found in members.items()}


def key_of_event(select: Select, event: Event) -> tuple[Value, ...]:
    """The key of an event; null stands for a part that it has not."""
    return tuple(
        next((value for value in map(event.attribute, names) if value is not None), None) for names in select.partition
    )
