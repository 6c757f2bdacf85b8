"""A query traced event by event: what its automaton does with each event of a short stream, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from cerflow.automata.model.transducer import Transducer
from cerflow.base.events import Event
from cerflow.engine.recognize.planning import compile_select, detects_only, fitted
from cerflow.language.event_kinds import kinds_in
from cerflow.language.formula import Window
from cerflow.language.select import Consumption, Projection, ProjectionKind, Select
from cerflow.look.studying.deadlines import is_pause, is_tick, moments
from cerflow.look.studying.samples import StudiedEvents, key_of_event, substreams_by_key
from cerflow.look.studying.steps import Key, PassedDeadline, TracedEvent, TracedStep
from cerflow.look.studying.substream_runs import SubstreamRuns
from cerflow.look.studying.wording import time_of


class Trace:
    """The steps of a query over a sample: ``trace[n]`` is what event n did. Steps are computed when they are asked for.

    Raises `UnsupportedQueryError` for queries that the engine cannot evaluate, and when more than
    `limits.TRACED_CONFIGURATIONS` configurations live at once.
    """

    def __init__(self, select: Select, sample: StudiedEvents) -> None:
        self.select = select
        self.sample = sample
        self.transducer = automaton_to_trace(select, sample)
        self._moments = moments(self.transducer, sample, substreams_by_key(select, sample.events))
        kinds = kinds_in(select)
        self._runs = {key: SubstreamRuns(self.transducer, part, kinds) for key, part in self._moments.parts.items()}
        self._steps: list[TracedEvent] = []
        self._behind: tuple[PassedDeadline, ...] | None = None

    def __len__(self) -> int:
        return len(self.sample.events)

    def __iter__(self) -> Iterator[TracedEvent]:
        return (self[n] for n in range(len(self)))

    def __getitem__(self, position: int) -> TracedEvent:
        position = range(len(self))[position]
        while len(self._steps) <= position:
            self._steps.append(self._step(self.sample.events[len(self._steps)]))
        return self._steps[position]

    @property
    def behind(self) -> tuple[PassedDeadline, ...]:
        """The deadlines that the clock shows to have passed, after all events."""
        if self._behind is None:
            _ = self[-1] if len(self) else None
            self._behind = self._by_clock(len(self))
        return self._behind

    def steps(self) -> Iterator[PassedDeadline | TracedEvent]:
        """All steps in their order: deadlines that pass, and events."""
        for step in self:
            yield from step.before
            yield step
        yield from self.behind

    def left(self, window: Window, begun: int, step: TracedEvent) -> tuple[float, float] | None:
        """See `SubstreamRuns.left`, for the substream of a step."""
        return self._runs[step.key].left(window, begun, step.event.position)

    def _step(self, event: Event) -> TracedEvent:
        n = len(self._steps)
        by_clock = self._by_clock(n)
        deadlines, step = self._passed(self._moments.read[n], event)
        if step is None:
            key = key_of_event(self.select, event)
            unread = f"its stream {event.stream} is not named after FROM"
            if None in key:
                missing = " or ".join(self.select.partition[key.index(None)])
                unread = f"it has no {missing}, so it belongs to no substream"
            step = TracedEvent(event=event, key=key, unread=unread)
        return replace(step, before=(*by_clock, *deadlines))

    def _by_clock(self, n: int) -> tuple[PassedDeadline, ...]:
        """The deadlines that the clock shows before event n."""
        shown = self._moments.by_clock.get(n, ())
        return tuple(chain.from_iterable(self._passed(moment, None)[0] for moment in shown))

    def _passed(
        self, moment: Sequence[tuple[Key, int]], event: Event | None
    ) -> tuple[list[PassedDeadline], TracedEvent | None]:
        """The steps of a moment: deadlines that do something, and the event, unless it is not read."""
        found: list[PassedDeadline] = []
        own = None
        detecting: dict[Key, str] = {}
        for key, place in moment:
            runs, thing = self._runs[key], self._moments.parts[key].events[place]
            step = runs.read(thing, place)
            if step.detected:
                detecting[key] = "a deadline" if event is None else f"event {event.position}"
            if is_tick(thing):
                if runs.moved(step):
                    found.append(self._deadline(runs, step, key, place, event))
            elif is_pause(thing):
                if step.detected:
                    # Something waited for it, so a deadline of this substream has just passed.
                    found[-1] = _together(found[-1], step)
            else:
                assert event is not None
                own = TracedEvent(**vars(step), event=event)
        if detecting and self.select.consume is not Consumption.NONE:
            found, own = self._consumed(detecting, found, own)
        return found, own

    def _deadline(
        self, runs: SubstreamRuns, step: TracedStep, key: Key, place: int, event: Event | None
    ) -> PassedDeadline:
        tick = self._moments.parts[key].events[place]
        begun = runs.begun(step, self._moments.begun[key, place])
        attribute = self._moments.attribute if tick.attributes else None
        at = time_of(tick.time, self.sample.events) if attribute is None else tick.attribute(attribute)
        return PassedDeadline(**vars(step), at=at, begun=begun, shown_by=event, attribute=attribute)

    def _consumed(
        self, detecting: Mapping[Key, str], found: list[PassedDeadline], own: TracedEvent | None
    ) -> tuple[list[PassedDeadline], TracedEvent | None]:
        """The steps of a moment in which matches consume what has begun."""
        everywhere = self.select.consume is Consumption.ANY
        died = {
            key: tuple(runs.forget(f"{(*detecting.values(),)[0]} detected a match, which consumes all partial matches"))
            for key, runs in self._runs.items()
            if everywhere or key in detecting
        }
        steps: list[PassedDeadline | TracedEvent] = [*found, *([own] if own is not None else [])]
        last = max(k for k, step in enumerate(steps) if step.detected)
        gone = tuple(chain.from_iterable(died.values()))
        steps[last] = replace(steps[last], died=(*steps[last].died, *gone))
        for k, step in enumerate(steps):
            if step.key in died and all(later.key != step.key for later in steps[k + 1 :]):
                steps[k] = replace(step, living=self._runs[step.key].living())
        return (
            [step for step in steps if isinstance(step, PassedDeadline)],
            next((step for step in steps if isinstance(step, TracedEvent)), None),
        )


def _together(deadline: PassedDeadline, pause: TracedStep) -> PassedDeadline:
    """A deadline with what the moment after it did."""
    return replace(
        deadline,
        fired=(*deadline.fired, *pause.fired),
        died=(*deadline.died, *pause.died),
        living=pause.living,
        detected=pause.detected,
        matches=pause.matches,
    )


def automaton_to_trace(select: Select, sample: StudiedEvents) -> Transducer:
    """The transducer of a query as the engine would use it, with all events marked also where none is reported."""
    if detects_only(select):
        select = replace(select, projection=Projection(ProjectionKind.ALL))
    return compile_select(fitted(select, sample.schema))
