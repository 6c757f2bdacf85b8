"""Windows on complex events (spec §2)."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.base.complex_events import ComplexEvent, support
from cerflow.base.errors import QueryError
from cerflow.base.events import Event, Stream
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window


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
