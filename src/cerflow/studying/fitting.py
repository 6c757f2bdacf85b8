"""Whether some events are a match of a query: its runs that mark exactly these events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from cerflow import limits
from cerflow.automata.model.runs import Memory
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.engine.recognize.planning import fitted, transducer_of
from cerflow.engine.stopping import look
from cerflow.language.formula import Strategy
from cerflow.language.select import Consumption, CountItem, LabelItem, Projection, ProjectionKind, Select
from cerflow.query import Query
from cerflow.studying.deadlines import TimedReader, moments
from cerflow.studying.partial_matches import Pairs
from cerflow.studying.samples import StudiedEvents, Substream, substreams_by_key
from cerflow.studying.wording import time_of
from cerflow.values.events import Event, Value, as_value

__all__ = ["Fit", "Wanted", "detection", "fit", "reported"]

#: The events that are to be a match, by position in the whole stream, with labels that each must have.
Wanted = Mapping[int, frozenset[str]]


@dataclass(frozen=True)
class Fit:
    """The events as a match: the complex event, with the labels that the query gives, and where it is detected.

    ``detected_at`` is None where the clock shows a deadline to have passed, at the ``detected_time``.
    """

    complex_event: Pairs
    detected_at: int | None
    detected_time: Value = None


def fit(select: Select, sample: StudiedEvents, wanted: Wanted) -> Fit | None:
    """The wanted events as a match of a query before its strategy, consumption and limit choose; None if they are none.

    Raises `QueryError` or `UnsupportedQueryError` for queries that cannot be evaluated.
    """
    parts = substreams_by_key(select, sample.events)
    part = next((s for s in parts.values() if wanted.keys() <= s.places.keys()), None)
    if part is None:
        return None
    strict = select.strategy is Strategy.STRICT
    plain = replace(
        _showing_events(select),
        strategy=Strategy.STRICT if strict else Strategy.ALL,
        by=(),
        consume=Consumption.NONE,
        limit=None,
    )
    transducer = transducer_of(fitted(plain, sample.schema))
    part = moments(transducer, sample, parts).parts[part.key]
    listed = frozenset(item.label for item in select.projection.items if isinstance(item, LabelItem))
    return _MarkedRuns(transducer, part, wanted, listed).first()


def reported(select: Select, sample: StudiedEvents, found: Fit) -> list[Pairs]:
    """The complex events that a query reports when a match is detected; at most `limits.LISTED_RIVALS` are listed."""
    recognizer = Query(_showing_events(select)).recognizer(sample.table.schema, **sample.roles)
    by_events = len(sample.table) - sample.clocked
    if found.detected_at is None or found.detected_at - sample.first >= by_events:
        recognizer.push(sample.table.slice(0, by_events))
        rivals: Iterator[dict[str, Any]] = (
            m
            for m in recognizer.advance_over(sample.table.slice(by_events), sample.until)
            if m["detected_at"] == found.detected_at
            and (found.detected_at is not None or as_value(m["detected_time"]) == found.detected_time)
        )
    else:
        place = found.detected_at - sample.first
        recognizer.push(sample.table.slice(0, place))
        rivals = iter(recognizer.push(sample.table.slice(place, 1)))
    return [
        frozenset((label, e["position"] + sample.first) for e in match["events"] for label in e["labels"])
        for match in islice(rivals, limits.LISTED_RIVALS)
    ]


def detection(select: Select, sample: StudiedEvents, wanted: Wanted) -> Fit | None:
    """The wanted events as a match that a query reports; None if it does not. Raises as `fit`."""
    found = fit(select, sample, wanted)
    chooses = select.strategy not in (Strategy.ALL, Strategy.STRICT) or select.limit is not None
    if found is None or not (chooses or select.consume is not Consumption.NONE):
        return found
    for pairs in reported(select, sample, found):
        if {p for _, p in pairs} == set(wanted) and all((a, p) in pairs for p in wanted for a in wanted[p]):
            return found
    return None


def _showing_events(select: Select) -> Select:
    items = select.projection.items
    if select.projection.kind is ProjectionKind.NONE or any(isinstance(item, CountItem) for item in items):
        return replace(select, projection=Projection(ProjectionKind.ALL))
    return select


class _MarkedRuns:
    """The runs of a transducer that mark the wanted events, and no others."""

    def __init__(self, transducer: Transducer, part: Substream, wanted: Wanted, listed: frozenset[str]) -> None:
        self._transducer = transducer
        self._reader = TimedReader(transducer, part.events)
        self._events = part.events
        self._wanted = {part.places[position]: labels for position, labels in wanted.items()}
        self._listed = listed

    def first(self) -> Fit | None:
        transducer, reader = self._transducer, self._reader
        first, last = min(self._wanted), max(self._wanted)
        # Runs that only wait before the first wanted event need not be followed until then.
        waits = all(q in transducer.skipping for q in transducer.initial) and all(
            t.stays or self._may_show(t) for t in transducer.transitions if t.source in transducer.initial
        )
        ends = all(self._may_show(t) for t in transducer.transitions if t.target in transducer.final)
        current: dict[tuple[int, Memory, tuple[int, ...]], Pairs] = {
            (state, reader.empty, ()): frozenset() for state in transducer.initial
        }
        for place in range(first if waits else 0, last + 1 if ends else len(self._events)):
            following: dict[tuple[int, Memory, tuple[int, ...]], Pairs] = {}
            for (state, memory, extent), pairs in current.items():
                look()
                for t in reader.leaving[state]:
                    event = self._events[place]
                    if not self._marks(t, place, event) or not reader.fires(t, place, memory):
                        continue
                    # Only the ends matter to the window, and what is in between to nothing.
                    wider = (*extent[:1], place) if t.labels else extent
                    marked = pairs | {(label, event.position) for label in _labels(t, event)}
                    following.setdefault((t.target, reader.written(t, place, memory), wider), marked)
                    if place >= last and t.target in transducer.final and self._in_window(wider):
                        if event.position >= 0:
                            return Fit(marked, event.position)
                        return Fit(marked, None, time_of(event.time, self._events))
            current = following
        return None

    def _in_window(self, extent: tuple[int, ...]) -> bool:
        window = self._transducer.window
        return window is None or not extent or self._reader.within(window, extent[0], extent[-1])

    def _may_show(self, t: Transition) -> bool:
        return bool(t.labels - {HIDDEN_LABEL}) and not self._listed

    def _marks(self, t: Transition, place: int, event: Event) -> bool:
        """Whether a transition treats an event as it is wanted."""
        shown = _labels(t, event)
        if self._listed:
            shown &= self._listed
        wanted = self._wanted.get(place)
        return not shown if wanted is None else bool(shown) and wanted <= shown


def _labels(t: Transition, event: Event) -> frozenset[str]:
    return frozenset(event.type if label == TYPE_LABEL else label for label in t.labels if label != HIDDEN_LABEL)
