"""Windows, deadlines and selection strategies on complex events (spec §2 and §10).

A deadline lies after an event; it is known to have passed at another event, or by the clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from cerflow.base.errors import QueryError
from cerflow.base.events import ComplexEvent, Event, Stream, last_at_most, next_at_most, support
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Strategy, Window

#: A time in the unit of the stream.
Time = int | float | Fraction


class Moment(NamedTuple):
    """When something is known: at an event of the whole input, or before it but shown by it; moments are ordered.

    ``position`` is that of the event. Where the clock alone showed it, it is a float between those of the events around
    it, infinite after all. ``time`` is the deadline that passed, infinite at the event itself.
    """

    position: int | float
    time: Time

    @property
    def by_clock(self) -> bool:
        """Whether no event shows it."""
        return isinstance(self.position, float)


class Deadline(NamedTuple):
    """``last`` is the index of the last event before a deadline, ``moment`` when it is known to have passed."""

    last: int
    moment: Moment


def at_event(event: Event) -> Moment:
    """The moment of an event itself."""
    return Moment(event.position, math.inf)


class Clock:
    """The events of the whole input, and a time before which no other event will come (None: nothing is known).

    The last ``clocked`` events came while the clock ran: it shows each deadline that they would show before them.
    """

    def __init__(self, events: Sequence[Event], until: Time | None = None, clocked: int = 0) -> None:
        self._clocked = len(events) - clocked
        self._times = [event.time for event in events]
        self._positions = [event.position for event in events]
        self._until = until

    def passed(self, time: Time) -> Moment | None:
        """When a time is known to have passed, None if it is not."""
        first = bisect_left(self._times, time)
        if first < len(self._times):
            here = self._positions[first]
            return Moment(here if first < self._clocked else here - 0.5, time)
        return Moment(math.inf, time) if self._until is not None and time <= self._until else None


def deadline_of(window: Window, j: int, events: Sequence[Event], clock: Clock) -> Deadline | None:
    """The deadline of event j, None if it is not known to have passed, or if j has none.

    An event without the attribute of ``n [attribute]`` has no deadline, and shows none to have passed. Raises
    `QueryError` for a duration on events without times.
    """
    match window:
        case CountWindow():
            last = j + window.events
            return Deadline(last, at_event(events[last])) if last < len(events) else None
        case DurationWindow():
            if not isinstance(events, Stream) or events.microseconds_per_tick is None:
                raise QueryError("a deadline in time needs events with times", span=window.span)
            time = events[j].time + events.ticks(window.microseconds)
            moment = clock.passed(time)
            last = max((k for k in range(j, len(events)) if events[k].time < time), default=j)
            return None if moment is None else Deadline(last, moment)
        case AttributeWindow():
            begin = events[j].attribute(window.attribute)
            if not isinstance(begin, int | float):
                return None
            for k in range(j + 1, len(events)):
                value = events[k].attribute(window.attribute)
                if isinstance(value, int | float) and value - begin >= window.size:
                    return Deadline(k - 1, at_event(events[k]))
            return None
    raise TypeError(f"{type(window).__name__} is not a window")


def within(complex_event: ComplexEvent, window: Window, events: Sequence[Event]) -> bool:
    """Whether a complex event lies inside a window; an empty one always does.

    Raises `QueryError` for a duration window on events without times.
    """
    positions = support(complex_event)
    if not positions:
        return True
    first, last = min(positions), max(positions)
    match window:
        case CountWindow():
            return last - first < window.events
        case DurationWindow():
            if not isinstance(events, Stream) or events.microseconds_per_tick is None:
                raise QueryError("a window of time needs events with times", span=window.span)
            return events[last].time - events[first].time < events.ticks(window.microseconds)
        case AttributeWindow():
            start, end = events[first].attribute(window.attribute), events[last].attribute(window.attribute)
            if not (isinstance(start, int | float) and isinstance(end, int | float)):
                return False
            return end - start < window.size
    raise TypeError(f"{type(window).__name__} is not a window")


def kept_by(strategy: Strategy, matches: Iterable[ComplexEvent], by: Collection[str] = ()) -> frozenset[ComplexEvent]:
    """The complex events that a selection strategy keeps (spec §2, P1 §4 with errata E1 and E2).

    NEXT, LAST and MAX compare supports. With labels ``by`` they compare the positions that carry one of these labels,
    so complex events that agree on those positions stay or go together.
    """
    kept = frozenset(matches)
    if not kept:
        return kept
    supports = {c: frozenset(p for label, p in c if label in by) if by else support(c) for c in kept}
    match strategy:
        case Strategy.ALL:
            return kept
        case Strategy.ANY:
            return frozenset((min(kept, key=sorted),))
        case Strategy.STRICT:
            return frozenset(c for c in kept if not (s := supports[c]) or len(s) == max(s) - min(s) + 1)
        case Strategy.NEXT:
            return frozenset(c for c in kept if all(next_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.LAST:
            return frozenset(c for c in kept if all(last_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.MAX:
            return frozenset(c for c in kept if not any(supports[c] < s for s in supports.values()))
