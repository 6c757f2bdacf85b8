"""Windows and selection strategies on complex events (spec §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cerflow.base.complex_events import ComplexEvent, last_at_most, next_at_most, support
from cerflow.base.errors import QueryError
from cerflow.base.events import Event, Stream
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Strategy, Window


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
