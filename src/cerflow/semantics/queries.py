"""The meaning of whole queries (spec §4): ``SELECT … FROM … WHERE … PARTITION BY … WITHIN … CONSUME BY … LIMIT …``.

An event whose key is null belongs to no substream. Among alternatives of a key, the first that is not null counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cerflow.analysis.scopes import condition_labels
from cerflow.errors import QueryError
from cerflow.language.node import walk
from cerflow.language.select import (
    Consumption,
    CountItem,
    ExpressionItem,
    LabelItem,
    Projection,
    ProjectionKind,
    Select,
)
from cerflow.semantics.formulas import ComplexEvent, Denotation, select, support, within
from cerflow.semantics.times import with_numeric_time
from cerflow.semantics.values import labels_outside_aggregates, value_of
from cerflow.values.events import Event, Stream, Value

__all__ = ["Match", "evaluate"]

Key = tuple[Value, ...]


@dataclass(frozen=True)
class Match:
    """A match, detected when event ``detected_at`` arrives.

    ``complex_event`` is the reported part, after projection, with positions in the whole stream. ``columns`` are the
    computed columns, ``key`` the values of the partition keys.
    """

    detected_at: int
    complex_event: ComplexEvent
    columns: tuple[tuple[str, Value], ...] = ()
    key: Key = ()

    @property
    def positions(self) -> frozenset[int]:
        """The support of the complex event."""
        return support(self.complex_event)


def evaluate(query: Select, events: Sequence[Event], *, forget: int | None = None) -> list[Match]:
    """All matches of a query over a stream, in the order of detection.

    ``forget`` is a number of microseconds. A substream begins anew if its next event comes later than that after the
    previous one: it is cut into sessions, and the query runs on each separately. This needs events with times.

    Raises `QueryError` for unbound labels, windows of time on events without times, and computed columns that read one
    event of a label with several.
    """
    events = _inputs(query, events)
    with with_numeric_time(events.microseconds_per_tick if isinstance(events, Stream) else None):
        return _evaluated(query, events, forget)


def _evaluated(query: Select, events: Sequence[Event], forget: int | None) -> list[Match]:
    substreams = _sessions(_substreams(query, events), forget)
    denotations = {key: Denotation(query.formula, substream) for key, substream in substreams.items()}
    begin = dict.fromkeys(substreams, 0)
    places = {event.position: (key, j) for key, sub in substreams.items() for j, event in enumerate(sub)}
    found: list[Match] = []
    for event in events:
        if event.position not in places:
            continue
        session, j = places[event.position]
        key, _ = session
        substream = substreams[session]
        matches = denotations[session](begin[session], j)
        if query.window is not None:
            matches = frozenset(c for c in matches if within(c, query.window, substream))
        matches = select(query.strategy, matches, [str(reference.label) for reference in query.by])
        if matches and query.consume is Consumption.PARTITION:
            begin[session] = j + 1
        if matches and query.consume is Consumption.ANY:
            begin = {k: sum(e.position <= event.position for e in sub) for k, sub in substreams.items()}
        ordered = sorted(matches, key=sorted)[: query.limit]
        found.extend(_report(query.projection, ordered, event.position, substream, key))
    return found


def _inputs(query: Select, events: Sequence[Event]) -> Sequence[Event]:
    """The events of the input streams; names do not count without FROM, or if all events come from one stream."""
    tick = events.microseconds_per_tick if isinstance(events, Stream) else None
    if not query.streams or all(event.stream is None for event in events):
        return Stream((dataclasses.replace(event, stream=None) for event in events), tick)
    return Stream((event for event in events if event.stream in query.streams), tick)


def _substreams(query: Select, events: Sequence[Event]) -> dict[Key, Stream]:
    tick = events.microseconds_per_tick if isinstance(events, Stream) else None
    members: dict[Key, list[Event]] = {}
    for event in events:
        key = tuple(
            next((v for v in map(event.attribute, alternatives) if v is not None), None)
            for alternatives in query.partition
        )
        if None not in key:
            members.setdefault(key, []).append(event)
    return {key: Stream(substream, tick) for key, substream in members.items()}


def _sessions(substreams: Mapping[Key, Stream], forget: int | None) -> dict[tuple[Key, int], Stream]:
    """The substreams by key, each cut where an event comes too late after the previous one."""
    found: dict[tuple[Key, int], Stream] = {}
    for key, substream in substreams.items():
        starts = [0]
        if forget is not None:
            longest = substream.ticks(forget)
            starts += [j for j in range(1, len(substream)) if substream[j].time - substream[j - 1].time > longest]
        for number, (begin, end) in enumerate(pairwise([*starts, len(substream)])):
            found[key, number] = substream[begin:end]
    return found


def _report(
    projection: Projection, matches: Sequence[ComplexEvent], detected_at: int, events: Sequence[Event], key: Key
) -> list[Match]:
    """The matches of one detecting event as reported; matches that projection makes equal become one."""
    if not matches:
        return []
    if projection.kind is ProjectionKind.ALL and not projection.items:
        return [Match(detected_at, _globally(c, events), (), key) for c in matches]
    if projection.kind is ProjectionKind.NONE:
        return [Match(detected_at, frozenset(), (), key)]
    for item in projection.items:
        if isinstance(item, CountItem):
            return [Match(detected_at, frozenset(), ((item.name, len(matches)),), key)]
    listed = frozenset(item.label for item in projection.items if isinstance(item, LabelItem))
    computed = [item for item in projection.items if isinstance(item, ExpressionItem)]
    read = frozenset().union(*(condition_labels(item.expression) for item in computed))
    reports: dict[ComplexEvent, Match] = {}
    for c in matches:
        identity = frozenset(pair for pair in c if pair[0] in listed | read) if listed else c
        shown = frozenset(pair for pair in c if pair[0] in listed) if listed else c
        columns = tuple((item.name, _column(item, c, events)) for item in computed)
        reports[identity] = Match(detected_at, _globally(shown, events), columns, key)
    return list(reports.values())


def _globally(c: ComplexEvent, events: Sequence[Event]) -> ComplexEvent:
    return frozenset((label, events[p].position) for label, p in c)


def _column(item: ExpressionItem, c: ComplexEvent, events: Sequence[Event]) -> Value:
    def events_of(label: str) -> list[Event]:
        return [events[p] for p in sorted(p for a, p in c if a == label)]

    single: dict[str | None, Event | None] = {}
    for label in labels_outside_aggregates(item.expression):
        several = events_of(label)
        if len(several) > 1:
            place = next((n for n in walk(item.expression) if getattr(n, "label", None) == label), item)
            raise QueryError(
                f"column '{item.name}' reads one event of '{label}', which has several",
                span=place.span,
                hint=f"Use an aggregate, such as first({label}.…) or max({label}.…).",
            )
        single[label] = several[0] if several else None
    return value_of(item.expression, single, events_of)
