"""Events prepared for inspection one by one: in order, in the substreams of a query, with the deadlines between them.

See `cerflow.automata.model.clock`: a tick says that a deadline in time has passed, a pause stands for an event of
another substream, or for the clock. Both are written as events whose types no event has.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Unpack

import pyarrow as pa

from cerflow.api.query import Query
from cerflow.api.reference import stream_of
from cerflow.api.stream_inputs import EventRoles, columns_wanted, schema_of
from cerflow.automata.model.clock import PAUSE, TICK, opened_by, windows_before_ticks
from cerflow.automata.model.runs import RunReader
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.base.event_tables import to_table
from cerflow.base.events import Event, Stream, as_value, raw_time
from cerflow.base.graphs import gathered
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import valid_in_order
from cerflow.engine.recognize.columns_needed import holding
from cerflow.engine.stopping import look
from cerflow.language.formula import AttributeWindow, DurationWindow
from cerflow.language.select import Select
from cerflow.logic.analysis.columns import attributes_in
from cerflow.look.studying.steps import Key
from cerflow.look.studying.wording import Time, time_of

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
    _stretches: dict[tuple[int, int], StudiedEvents] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
            clocked = min(max(0, self.clocked - left), end - first)
            table, until = self.table.slice(first - self.first, end - first), self.until if not left else None
            self._stretches[first, end] = StudiedEvents(table, self.schema, first, until, clocked)
        return self._stretches[first, end]

    def stretches(self, first: int, least: int) -> Iterator[StudiedEvents]:
        """Ever longer stretches from a position on, with the position ``least``; the last one ends with the events."""
        size = least + 1 - first + _ROWS
        while first + size < self.end:
            yield self.stretch(first, first + size)
            size *= 4
        yield self.stretch(first, self.end)

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
    (`cerflow.look.studying.samples`).

    ``places`` gives the index here of a position in the whole stream.
    """

    key: Key
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
    return StudiedEvents(valid_in_order(table, checker, sequence).whole, schema, first, until)


def substreams_by_key(select: Select, events: Stream) -> dict[Key, Substream]:
    """The substreams that a query reads, by key; events of other inputs and events without key are in none."""
    # Names of streams do not count where all events come from one.
    several = bool(select.streams) and any(event.stream is not None for event in events)
    read = events if several else (event if event.stream is None else replace(event, stream=None) for event in events)
    found = gathered((key_of_event(select, e), e) for e in read if not several or e.stream in select.streams)
    unit = events.microseconds_per_tick
    return {key: Substream(key, Stream(own, unit)) for key, own in found.items() if None not in key}


def substream_at(select: Select, sample: StudiedEvents, positions: Collection[int]) -> Substream | None:
    """The substream that a query reads with the events at some positions; None if they are not in one together."""
    part = substreams_by_key(select, sample.events).get(key_of_event(select, sample.at(min(positions))))
    return part if part is not None and part.places.keys() >= set(positions) else None


def key_of_event(select: Select, event: Event) -> Key:
    """The key of an event; null stands for a part that it has not."""
    return tuple(
        next((value for value in map(event.attribute, names) if value is not None), None) for names in select.partition
    )


#: The position of ticks, and of pauses that stand for the clock.
_NOWHERE = -1


def shown_labels(t: Transition, event: Event) -> frozenset[str]:
    """The labels that a transition gives an event, as matches report them."""
    return frozenset(event.type if label == TYPE_LABEL else label for label in t.labels if label != HIDDEN_LABEL)


#: What is read at one time: the key of a substream, the index of what it reads, and the events that opened a deadline.
Moment = Sequence[tuple[Key, int, Sequence[int]]]


@dataclass(frozen=True)
class StudiedMoments:
    """The substreams with ticks and pauses, and when these and the events are read.

    ``read[n]`` are the moments before event n that the clock shows, and last the one when the event comes; those after
    the last event have no such one. A substream may read several things in a moment. Where deadlines lie at values of
    an ``attribute``, a tick stands before each event.
    """

    parts: Mapping[Key, Substream]
    read: Sequence[Sequence[Moment]]
    attribute: str | None = None


def moments(transducer: Transducer, sample: StudiedEvents, parts: Mapping[Key, Substream]) -> StudiedMoments:
    """The events and deadlines of each substream, with their times."""
    events, by_events = sample.events, len(sample.events) - sample.clocked
    late_at, attribute, ended_at = _deadlines(transducer, sample, parts)
    woven: dict[Key, list[Event]] = {key: [] for key in parts}
    read: list[list[Moment]] = []
    own = {event.position: (key, event) for key, part in parts.items() for event in part.events}

    def added(key: Key, thing: Event, begun: Sequence[int] = ()) -> tuple[Key, int, Sequence[int]]:
        woven[key].append(thing)
        return key, len(woven[key]) - 1, begun

    def nothing(type: str, time: Time, position: int) -> Event:
        moment = time_of(time, events)
        return Event(position, type, time, {}, None, moment if isinstance(moment, datetime.datetime) else None)

    def passed(late: _Late, time: Time, position: int, mine: Key | None = None) -> list[tuple[Key, int, Sequence[int]]]:
        """A tick for each deadline, and a pause after those of each key, unless an event of its own follows."""
        now = []
        for key, positions in late.items():
            for deadline in sorted(positions):
                now.append(added(key, nothing(TICK.type, deadline, _NOWHERE), positions[deadline]))
            if key != mine:
                now.append(added(key, nothing(PAUSE.type, time, position)))
        return now

    for n, event in enumerate((*events, None)):
        look()
        read.append([])
        late: _Late = late_at.get(n, {})
        if n >= by_events:
            for time in sorted({time for positions in late.values() for time in positions}):
                due = {key: {time: found[time]} for key, found in late.items() if time in found}
                read[n].append(passed(due, time, _NOWHERE))
            late = {}
        if event is None:
            break
        mine, read_as = own.get(event.position, (None, event))
        now = passed(late, event.time, event.position, mine)
        if mine is not None:
            if attribute is not None:
                tick = replace(read_as, type=TICK.type, position=_NOWHERE)
                now.append(added(mine, tick, ended_at.get(event.position, ())))
            now.append(added(mine, read_as))
        read[n].append(now)
    unit = events.microseconds_per_tick
    whole = {key: Substream(key, Stream(things, unit)) for key, things in woven.items()}
    return StudiedMoments(whole, read, attribute)


#: Deadlines in time, by key, with the positions of the events that opened them.
_Late = Mapping[Key, Mapping[Time, list[int]]]


def _deadlines(
    transducer: Transducer, sample: StudiedEvents, parts: Mapping[Key, Substream]
) -> tuple[dict[int, dict[Key, dict[Time, list[int]]]], str | None, dict[int, list[int]]]:
    """The deadlines that events may open, in time by the index of the first event that they lie before.

    If they lie at values of an attribute, its name follows, and by the position of an event the positions of those
    whose deadlines it is the first to reach.
    """
    windows = tuple(windows_before_ticks(transducer))
    attribute = next((w.attribute for w in windows if isinstance(w, AttributeWindow)), None)
    by_place: dict[int, dict[Key, dict[Time, list[int]]]] = {}
    at_values: dict[int, list[int]] = {}
    events, until = sample.events, sample.clock
    times = [event.time for event in events]
    opening = [(t, numbers) for t in transducer.transitions if (numbers := opened_by(t, windows))]
    for part in parts.values():
        reader = RunReader(transducer, part.events)
        waiting: dict[int, list[tuple[int | float, int]]] = {}
        for place, event in enumerate(part.events):
            look()
            opened = set().union(*(numbers for t, numbers in opening if reader.passes(t, place)))
            for k, window in enumerate(windows):
                if isinstance(window, AttributeWindow):
                    value, open_ = reader.measure(window, place), waiting.setdefault(k, [])
                    while value is not None and open_ and not value - open_[0][0] < window.size:
                        at_values.setdefault(event.position, []).append(heappop(open_)[1])
                    if value is not None and k in opened:
                        heappush(open_, (value, event.position))
                elif isinstance(window, DurationWindow) and k in opened:
                    size = events.ticks(window.microseconds)
                    time = event.time + size
                    shown = bisect_left(times, time)
                    if shown == len(times) and (until is None or time > until):
                        continue
                    while not time - event.time >= size:  # a sum of floats may be too small
                        time = math.nextafter(time, math.inf)
                    passed = by_place.setdefault(shown, {}).setdefault(part.key, {})
                    passed.setdefault(time, []).append(event.position)
    return by_place, attribute, at_values
