"""Events prepared for inspection one by one: in order, and divided into the substreams of a query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import pyarrow as pa

from cerflow.api.query import Query
from cerflow.api.reference import stream_of
from cerflow.api.stream_inputs import EventRoles, columns_wanted, schema_of
from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.base.event_tables import to_table
from cerflow.base.events import Event, Stream, Value, as_value, raw_time
from cerflow.base.graphs import gathered
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import valid_in_order
from cerflow.engine.recognize.columns_needed import holding
from cerflow.engine.stopping import look
from cerflow.language.select import Select
from cerflow.logic.analysis.columns import attributes_in

#: Rows that become events between two looks whether the work is to stop; rows of a first stretch.
_ROWS = 1_000


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
        events: list[Event] = []
        unit = None
        for begin in range(0, len(self.table), _ROWS):
            if begin:
                look()
            found = stream_of(self.table.slice(begin, _ROWS), self.schema)
            unit = found.microseconds_per_tick
            shift = self.first + begin
            events += (replace(event, position=event.position + shift) for event in found) if shift else found
        return Stream(events, unit)

    @property
    def end(self) -> int:
        """The position after the last event."""
        return self.first + len(self.table)

    def stretch(self, first: int, end: int) -> StudiedEvents:
        """The events at the positions ``[first, end)``. The clock shows nothing before the last event has come."""
        if (first, end) not in self._stretches:
            left = self.end - end
            self._stretches[first, end] = StudiedEvents(
                self.table.slice(first - self.first, end - first),
                self.schema,
                first,
                self.until if not left else None,
                min(max(0, self.clocked - left), end - first),
            )
        return self._stretches[first, end]

    def stretches(self, first: int, least: int) -> Iterator[StudiedEvents]:
        """Ever longer stretches from a position on, with the position ``least``; the last one ends with the events."""
        size = least + 1 - first + _ROWS
        while first + size < self.end:
            yield self.stretch(first, first + size)
            size *= 4
        yield self.stretch(first, self.end)

    @cached_property
    def _stretches(self) -> dict[tuple[int, int], StudiedEvents]:
        return {}

    @cached_property
    def clock(self) -> int | float | Fraction | None:
        """``until`` as a raw time. Raises as `Query.match` for a value that is not a time of these events."""
        return None if self.until is None else raw_time(as_value(clock_time(self.until, self.schema)[0].as_py()))

    def at(self, position: int) -> Event:
        """The event at a position."""
        return self.stretch(position, position + 1).events[0]

    @property
    def roles(self) -> Mapping[str, Any]:
        """The columns with a role, as `Query.match` takes them."""
        s = self.schema
        found = {"type": s.type, "time": s.time, "time_unit": s.time_unit, "stream": s.stream}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Substream:
    """The events of one key of PARTITION BY, perhaps with ticks and pauses between them
    (`cerflow.look.studying.deadlines`).

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
    table = to_table(events, needed=columns_wanted([query.tree], sequence, roles))
    schema = schema_of(table.schema, **roles).reading(attributes_in(query.tree))
    checker = RecordChecker(holding(schema, [query.tree]), "fail", in_order=False)
    return StudiedEvents(valid_in_order(table, checker, sequence)[0], schema, first, until)


def substreams_by_key(select: Select, events: Stream) -> dict[tuple[Value, ...], Substream]:
    """The substreams that a query reads, by key; events of other inputs and events without key are in none."""
    unit = events.microseconds_per_tick
    return {key: Substream(key, Stream(own, unit)) for key, own in gathered(_keyed(select, events)).items()}


def substream_at(select: Select, sample: StudiedEvents, positions: Collection[int]) -> Substream | None:
    """The substream that a query reads with the events at some positions; None if they are not in one together."""
    own = key_of_event(select, sample.at(min(positions)))
    members = Stream((e for key, e in _keyed(select, sample.events) if key == own), sample.events.microseconds_per_tick)
    part = Substream(own, members)
    return part if part.places.keys() >= set(positions) else None


def _keyed(select: Select, events: Stream) -> Iterator[tuple[tuple[Value, ...], Event]]:
    several = bool(select.streams) and any(event.stream is not None for event in events)
    for event in events:
        key = key_of_event(select, event)
        if None in key or (several and event.stream not in select.streams):
            continue
        # Names of streams do not count where all events come from one.
        yield key, (event if several or event.stream is None else replace(event, stream=None))


def key_of_event(select: Select, event: Event) -> tuple[Value, ...]:
    """The key of an event; null stands for a part that it has not."""
    return tuple(
        next((value for value in map(event.attribute, names) if value is not None), None) for names in select.partition
    )
