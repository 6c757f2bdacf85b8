"""The meaning of whole queries (spec §4): ``SELECT … FROM … WHERE … PARTITION BY … WITHIN … CONSUME BY … LIMIT …``.

An event whose key is null belongs to no substream. Among alternatives of a key, the first that is not null counts.
Matches of definitions (spec §10, composition) are events between those of the input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from cerflow.base.errors import QueryError
from cerflow.base.events import ComplexEvent, Event, Stream, Value, support
from cerflow.base.graphs import gathered
from cerflow.base.units import TimeUnit
from cerflow.language import select as s
from cerflow.language.condition import MATCH_NUMBER, Function, Literal, calls
from cerflow.language.formula import UNNAMED, NotFollowedBy
from cerflow.language.node import Node, transform, walk
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.theory.semantics.complex_events import Clock, Moment, Time, at_event, deadline_of, kept_by, within
from cerflow.theory.semantics.conditions import labels_outside_aggregates, value_of
from cerflow.theory.semantics.first_order import first_order_denotation
from cerflow.theory.semantics.formulas import Denotation
from cerflow.theory.semantics.times import with_numeric_time

Key = tuple[Value, ...]


@dataclass(frozen=True)
class Match:
    """A match, detected when event ``detected_at`` arrives, or by the clock when a ``deadline`` passes.

    ``complex_event`` is the reported part, after projection, with positions in the whole stream. ``columns`` are the
    computed columns, ``key`` the values of the partition keys.
    """

    detected_at: int | None
    complex_event: ComplexEvent = frozenset()
    columns: tuple[tuple[str, Value], ...] = ()
    key: Key = ()
    deadline: Time | None = None

    @property
    def positions(self) -> frozenset[int]:
        """The support of the complex event."""
        return support(self.complex_event)


def evaluate(
    query: s.Select,
    events: Sequence[Event],
    *,
    forget: int | None = None,
    until: Time | None = None,
    clocked: int = 0,
    first_order: bool = False,
) -> list[Match]:
    """All matches of a query over a stream, in the order of detection.

    ``forget`` is a number of microseconds. A substream starts again if its next event comes later than that after the
    previous one: it is cut into sessions, and the query runs on each separately. This needs events with times.
    ``until``, in the unit of their times, says that no event before it is still to come. For ``clocked`` see `Clock`.
    With ``first_order`` the formula is read as first-order CEL; all events of its matches have the label `UNNAMED`.

    Raises `QueryError` for unbound labels, windows of time on events without times, and computed columns that read one
    event of a label with several.
    """
    clock = Clock(events, until, clocked)
    read = _inputs(query, events)
    with with_numeric_time(read.microseconds_per_tick):
        sessions = [_Session(query, part, key, clock, first_order) for key, part in _sessions(query, read, forget)]
        found = list[Match]()
        for moment in _moments(query, events, sessions, clock):
            detecting = [(session, matches) for session in sessions if (matches := session.detected(moment))]
            for session, matches in detecting:
                found += session.report(moment, matches, len(found))
            if query.consume is not s.Consumption.NONE and detecting:
                by_key = query.consume is s.Consumption.PARTITION
                for session in [session for session, _ in detecting] if by_key else sessions:
                    session.forget(moment)
        return found


def _moments(query: s.Select, events: Sequence[Event], sessions: Sequence[_Session], clock: Clock) -> list[Moment]:
    """The moments when matches may be detected: at events, and when the clock shows that deadlines have passed."""
    passed = {
        deadline.moment
        for node in walk(query.formula)
        if isinstance(node, NotFollowedBy)
        for session in sessions
        for j in range(len(session.events))
        if (deadline := deadline_of(node.window, j, session.events, clock)) and deadline.moment.by_clock
    }
    return sorted([*passed, *map(at_event, events)])


class _Session:
    """The query on one substream, or on a session of it."""

    def __init__(self, query: s.Select, events: Stream, key: Key, clock: Clock, first_order: bool) -> None:
        self.events = events
        self._query = query
        self._key = key
        self._sets = first_order
        # A first-order filter may read a variable that is bound twice: it never matches, and is not an error.
        self._denotation = None if first_order else Denotation(query.formula, events, clock)
        self._begin = 0
        self._places: dict[int | float, int] = {event.position: j for j, event in enumerate(events)}
        self._known: dict[Moment, set[ComplexEvent]] | None = None

    def forget(self, moment: Moment) -> None:
        """Begin again after a moment."""
        self._begin = sum(event.position <= moment.position for event in self.events)
        self._known = None

    def detected(self, moment: Moment) -> list[ComplexEvent]:
        """The complex events that are detected at a moment, in order."""
        query = self._query
        matches: Collection[ComplexEvent]
        if not self._sets:
            matches = self._by_moment().get(moment, ())
        elif (last := self._places.get(moment.position)) is not None:
            begin = self._begin
            found = first_order_denotation(query.formula, self.events[begin:], last - begin)
            matches = [frozenset((UNNAMED, begin + p) for p in m) for m in found]
        else:
            return []
        if query.window is not None:
            matches = [c for c in matches if within(c, query.window, self.events)]
        chosen = kept_by(query.strategy, matches, [str(reference.label) for reference in query.by])
        return sorted(chosen, key=sorted)[: query.limit]

    def _by_moment(self) -> dict[Moment, set[ComplexEvent]]:
        """The complex events by moments of detection; what an event shows is detected at this event."""
        if self._known is None:
            assert self._denotation is not None
            self._known = {}
            for j in range(self._begin, len(self.events)):
                for c, m in self._denotation.known(self._begin, j):
                    moment = m if m.by_clock else Moment(m.position, math.inf)
                    self._known.setdefault(moment, set()).add(c)
        return self._known

    def report(self, moment: Moment, matches: Sequence[ComplexEvent], before: int) -> list[Match]:
        """The matches of a moment as reported, ``before`` which others were reported.

        Matches that projection makes equal become one.
        """
        by_clock = moment.by_clock
        made = partial(
            Match,
            detected_at=None if by_clock else int(moment.position),
            deadline=moment.time if by_clock else None,
            key=self._key,
        )
        projection, events = self._query.projection, self.events
        if projection.kind is s.ProjectionKind.ALL and not projection.items:
            return [made(complex_event=_globally(c, events)) for c in matches]
        if projection.kind is s.ProjectionKind.NONE:
            return [made()]
        for item in projection.items:
            if isinstance(item, s.CountItem):
                return [made(columns=((item.name, len(matches)),))]
        listed = frozenset(item.label for item in projection.items if isinstance(item, s.LabelItem))
        computed = [item for item in projection.items if isinstance(item, s.ExpressionItem)]
        read = frozenset().union(*(condition_labels(item.expression) for item in computed))
        reports: dict[ComplexEvent, Match] = {}
        for c in matches:
            identity = frozenset(pair for pair in c if pair[0] in listed | read) if listed else c
            shown = frozenset(pair for pair in c if pair[0] in listed) if listed else c
            number = list(reports).index(identity) if identity in reports else len(reports)
            columns = tuple((item.name, _column(item, c, events, before + number + 1)) for item in computed)
            reports[identity] = made(complex_event=_globally(shown, events), columns=columns)
        return list(reports.values())


def _inputs(query: s.Select, events: Sequence[Event]) -> Stream:
    """The events of the input streams; names do not count without FROM, or if all events come from one stream."""
    tick = events.microseconds_per_tick if isinstance(events, Stream) else None
    if not query.streams or all(event.stream is None for event in events):
        return Stream((dataclasses.replace(event, stream=None) for event in events), tick)
    return Stream((event for event in events if event.stream in query.streams), tick)


def _sessions(query: s.Select, events: Stream, forget: int | None) -> Iterator[tuple[Key, Stream]]:
    """The substreams, with their keys, each cut where an event comes too late after the previous one."""

    def key(event: Event) -> Key:
        values = (map(event.attribute, alternatives) for alternatives in query.partition)
        return tuple(next((v for v in found if v is not None), None) for found in values)

    for own, members in gathered((key(event), event) for event in events if None not in key(event)).items():
        substream, starts = Stream(members, events.microseconds_per_tick), [0]
        if forget is not None:
            longest = substream.ticks(forget)
            starts += [j for j in range(1, len(substream)) if substream[j].time - substream[j - 1].time > longest]
        yield from ((own, substream[begin:end]) for begin, end in pairwise([*starts, len(substream)]))


def _globally(c: ComplexEvent, events: Sequence[Event]) -> ComplexEvent:
    return frozenset((label, events[p].position) for label, p in c)


def _column(item: s.ExpressionItem, c: ComplexEvent, events: Sequence[Event], number: int) -> Value:
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
    numbered: Node = item.expression
    if calls(item.expression, MATCH_NUMBER):
        asked = Function(MATCH_NUMBER, ())
        numbered = transform(numbered, lambda node: Literal(number) if node == asked else node)
    return value_of(numbered, single, events_of)


# -- definitions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An event of the input or of a definition.

    ``path`` says where it stands: its number in the input, and for each definition on the way from there to it the
    number of the definition and that of the match. So paths in the order of tuples are the order of events. After all
    input stand the times that the clock shows, instead of an event of the input: the paths of what is detected there
    begin with the number of events of the input, and that time.
    """

    path: tuple[Any, ...]
    stream: str | None
    row: Mapping[str, Any]


def read_by(query: s.Select, inputs: Sequence[str], entries: Sequence[Entry]) -> list[Entry]:
    """The entries that a query reads, in their order; without FROM those of the input.

    ``inputs`` are the streams of FROM that are not definitions. Events of an input without streams are of the only one.
    """
    if not query.streams:
        return _of_input(entries)
    named = [Entry(entry.path, inputs[0], entry.row) if entry.stream is None and inputs else entry for entry in entries]
    return sorted((entry for entry in named if entry.stream in query.streams), key=lambda entry: entry.path)


def _of_input(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if len(entry.path) == 1]


def clocked(read: Sequence[Entry], count: int) -> int:
    """How many of these entries go back to times that the clock showed; ``count`` is the number of input events."""
    return sum(entry.path[0] == count for entry in read)


def defined(
    number: int,
    name: str,
    query: s.Select,
    inputs: Sequence[str],
    entries: Sequence[Entry],
    columns: Sequence[str],
    *,
    type: str,
    time: str | None,
    time_unit: TimeUnit | None,
    forget: int | None,
    until: Time | None,
    as_time: Callable[[Time], Any],
) -> list[Entry]:
    """The entries together with the matches of definition ``number``; ``columns`` are those of its result.

    ``until`` is as for `evaluate`; ``as_time`` gives the time of an event that is detected at a deadline.
    """
    count = len(_of_input(entries))
    read = read_by(query, inputs, entries)
    streams = "\0stream"
    told_apart = bool(query.streams) and any(entry.stream is not None for entry in read)
    rows = [{**entry.row, streams: entry.stream} if told_apart else entry.row for entry in read]
    stream = Stream.from_dicts(rows, type=type, time=time, time_unit=time_unit, stream=streams if told_apart else None)
    found: dict[tuple[Any, ...], list[Match]] = {}
    for match in evaluate(query, stream, forget=forget, until=until, clocked=clocked(read, count)):
        if match.detected_at is not None:
            shown = read[match.detected_at].path
        else:
            assert match.deadline is not None
            shown = (count, as_time(match.deadline))
        found.setdefault(shown, []).append(match)

    def moment(position: int | None) -> Any:
        return position if time is None or position is None else read[position].row[time]

    added = []
    for shown, matches in found.items():
        matches.sort(key=lambda match: min(match.positions, default=-1))
        for k, match in enumerate(matches):
            own = {"start_time": min(match.positions, default=None), "end_time": max(match.positions, default=None)}
            keys = [column for column in columns if column not in own and column not in dict(match.columns)]
            row = {type: name, **{n: moment(at) for n, at in own.items()}, **dict(zip(keys, match.key))}
            at = match.detected_at
            row |= {} if time is None else {time: shown[1] if at is None else moment(at)}
            added.append(Entry((*shown, number, k), name, {**row, **dict(match.columns)}))
    return [*entries, *added]
