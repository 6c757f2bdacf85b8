"""Whether some events are a match of a query: its runs that mark exactly these events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cerflow.api.query import Query
from cerflow.automata.model.runs import Memory, RunReader
from cerflow.automata.model.transducer import HIDDEN_LABEL, Transducer, Transition
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Event, Value, as_value
from cerflow.engine.recognize.planning import fitted, transducer_of
from cerflow.engine.stopping import look
from cerflow.language.formula import Strategy
from cerflow.language.select import Consumption, CountItem, LabelItem, Projection, ProjectionKind, Select
from cerflow.look.studying.samples import StudiedEvents, Substream, moments, shown_labels, substream_at
from cerflow.look.studying.steps import Pairs
from cerflow.look.studying.wording import time_of

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
    strategy = Strategy.STRICT if select.strategy is Strategy.STRICT else Strategy.ALL
    plain = replace(_showing_events(select), strategy=strategy, by=(), consume=Consumption.NONE, limit=None)
    transducer = transducer_of(fitted(plain, sample.schema))
    listed = frozenset(item.label for item in select.projection.items if isinstance(item, LabelItem))
    runs = _MarkedRuns(transducer, wanted, listed)
    first, last = (min(wanted) if runs.wait else sample.first), max(wanted)
    for stretch in [sample.stretch(first, last + 1)] if runs.end_with_events else sample.stretches(first, last):
        part = substream_at(select, stretch, wanted)
        if part is None:
            return None
        found, going_on = runs.first(moments(transducer, stretch, {part.key: part}).parts[part.key])
        if found is not None or not going_on:
            return found
    return None


def reported(select: Select, sample: StudiedEvents, found: Fit) -> Iterator[Pairs]:
    """The complex events that a query reports when a match is detected."""
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
    for match in rivals:
        yield frozenset((label, e["position"] + sample.first) for e in match["events"] for label in e["labels"])


def detection(select: Select, sample: StudiedEvents, wanted: Wanted) -> Fit | None:
    """The wanted events as a match that a query reports; None if it does not.

    Raises as `fit`, and `UnsupportedQueryError` if it is not among the first `limits.LISTED_RIVALS` of its event.
    """
    found = fit(select, sample, wanted)
    chooses = select.strategy not in (Strategy.ALL, Strategy.STRICT) or select.limit is not None
    if found is None or not (chooses or select.consume is not Consumption.NONE):
        return found
    for number, pairs in enumerate(reported(select, sample, found)):
        look()
        if number == limits.LISTED_RIVALS:
            raise UnsupportedQueryError(
                f"more than {limits.LISTED_RIVALS:,} matches are detected together with these events",
                hint="A window (WITHIN) or PARTITION BY reduces their number.",
            )
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

    def __init__(self, transducer: Transducer, wanted: Wanted, listed: frozenset[str]) -> None:
        self._transducer = transducer
        self._wanted = wanted
        self._listed = listed
        leaving = [t for t in transducer.transitions if t.source in transducer.initial]
        entering = [t for t in transducer.transitions if t.target in transducer.final]
        #: Whether runs do nothing before the first wanted event.
        self.wait = all(q in transducer.skipping for q in transducer.initial) and all(
            t.stays or self._may_show(t) for t in leaving
        )
        #: Whether a run ends with an event that its match shows.
        self.end_with_events = all(map(self._may_show, entering))

    def first(self, part: Substream) -> tuple[Fit | None, bool]:
        """The first match that a run gives, and if there is none, whether one may come after these events."""
        transducer, reader = self._transducer, RunReader(self._transducer, part.events)
        wanted = {part.places[position]: labels for position, labels in self._wanted.items()}
        first, last = min(wanted), max(wanted)
        current: dict[tuple[int, Memory, tuple[int, ...]], Pairs] = {
            (state, reader.empty, ()): frozenset() for state in transducer.initial
        }
        for place in range(first if self.wait else 0, last + 1 if self.end_with_events else len(part.events)):
            look()
            event = part.events[place]
            following: dict[tuple[int, Memory, tuple[int, ...]], Pairs] = {}
            for (state, memory, extent), pairs in current.items():
                if reader.outlived(extent, place):
                    continue
                for t in reader.leaving[state]:
                    if not self._marks(t, wanted.get(place), event) or not reader.fires(t, place, memory):
                        continue
                    # Only the ends matter to the window, and what is in between to nothing.
                    wider = (*extent[:1], place) if t.labels else extent
                    marked = pairs | {(label, event.position) for label in shown_labels(t, event)}
                    following.setdefault((t.target, reader.written(t, place, memory), wider), marked)
                    if place >= last and reader.accepts(t.target, wider):
                        if event.position >= 0:
                            return Fit(marked, event.position), False
                        return Fit(marked, None, time_of(event.time, part.events)), False
            current = following
        return None, bool(current) and not self.end_with_events

    def _may_show(self, t: Transition) -> bool:
        return bool(t.labels - {HIDDEN_LABEL}) and not self._listed

    def _marks(self, t: Transition, wanted: frozenset[str] | None, event: Event) -> bool:
        """Whether a transition treats an event as it is wanted; None: it is not wanted."""
        shown = shown_labels(t, event)
        if self._listed:
            shown &= self._listed
        return not shown if wanted is None else bool(shown) and wanted <= shown
