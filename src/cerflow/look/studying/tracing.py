"""A query traced event by event: what its automaton does with each event of a short stream, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

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
        # As the engine would use it, with all events marked also where none is reported.
        shown = replace(select, projection=Projection(ProjectionKind.ALL)) if detects_only(select) else select
        self.transducer = compile_select(fitted(shown, sample.schema))
        self._moments = moments(self.transducer, sample, substreams_by_key(select, sample.events))
        kinds = kinds_in(select)
        self._runs = {key: SubstreamRuns(self.transducer, part, kinds) for key, part in self._moments.parts.items()}
        self._steps: list[TracedEvent] = []

    def __len__(self) -> int:
        return len(self.sample.events)

    def __iter__(self) -> Iterator[TracedEvent]:
        return (self[n] for n in range(len(self)))

    def __getitem__(self, position: int) -> TracedEvent:
        position = range(len(self))[position]
        while len(self._steps) <= position:
            self._steps.append(self._step(self.sample.events[len(self._steps)]))
        return self._steps[position]

    @cached_property
    def behind(self) -> tuple[PassedDeadline, ...]:
        """The deadlines that the clock shows to have passed, after all events."""
        _ = self[-1] if len(self) else None
        return self._by_clock(len(self))

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
        *deadlines, last = self._passed(self._moments.read[n], event) or [None]
        if isinstance(last, TracedEvent):
            return replace(last, before=(*by_clock, *deadlines))
        key = key_of_event(self.select, event)
        unread = f"its stream {event.stream} is not named after FROM"
        if None in key:
            missing = " or ".join(self.select.partition[key.index(None)])
            unread = f"it has no {missing}, so it belongs to no substream"
        before = (*by_clock, *deadlines, *([] if last is None else [last]))
        return TracedEvent(event=event, key=key, unread=unread, before=before)

    def _by_clock(self, n: int) -> tuple[PassedDeadline, ...]:
        """The deadlines that the clock shows before event n."""
        shown = self._moments.by_clock.get(n, ())
        return tuple(chain.from_iterable(self._passed(moment, None) for moment in shown))

    def _passed(self, moment: Sequence[tuple[Key, int]], event: Event | None) -> list[Any]:
        """The steps of a moment: deadlines that do something, and last the event, unless it is not read."""
        steps: list[PassedDeadline | TracedEvent] = []
        detecting: dict[Key, str] = {}
        for key, place in moment:
            runs, thing = self._runs[key], self._moments.parts[key].events[place]
            step = runs.read(thing, place)
            if step.detected:
                detecting[key] = "a deadline" if event is None else f"event {event.position}"
            if is_tick(thing):
                if runs.moved(step):
                    steps.append(self._deadline(runs, step, key, place, event))
            elif not is_pause(thing):
                assert event is not None
                steps.append(TracedEvent(**vars(step), event=event))
            elif step.detected:
                # Something waited for it, so a deadline of this substream has just passed.
                steps[-1] = _together(steps[-1], step)
        if detecting and self.select.consume is not Consumption.NONE:
            self._consume(detecting, steps)
        return steps

    def _deadline(
        self, runs: SubstreamRuns, step: TracedStep, key: Key, place: int, event: Event | None
    ) -> PassedDeadline:
        tick = self._moments.parts[key].events[place]
        begun = runs.begun(step, self._moments.begun[key, place])
        attribute = self._moments.attribute if tick.attributes else None
        at = time_of(tick.time, self.sample.events) if attribute is None else tick.attribute(attribute)
        return PassedDeadline(**vars(step), at=at, begun=begun, shown_by=event, attribute=attribute)

    def _consume(self, detecting: Mapping[Key, str], steps: list[PassedDeadline | TracedEvent]) -> None:
        """Let the matches of a moment consume what has begun, and change its steps."""
        everywhere = self.select.consume is Consumption.ANY
        words = f"{next(iter(detecting.values()))} detected a match, which consumes all partial matches"
        died = {key: runs.forget(words) for key, runs in self._runs.items() if everywhere or key in detecting}
        last = max(k for k, step in enumerate(steps) if step.detected)
        steps[last] = replace(steps[last], died=(*steps[last].died, *chain.from_iterable(died.values())))
        for k, key in {step.key: (k, step.key) for k, step in enumerate(steps) if step.key in died}.values():
            steps[k] = replace(steps[k], living=self._runs[key].living())


def _together(deadline: PassedDeadline | TracedEvent, pause: TracedStep) -> PassedDeadline | TracedEvent:
    """A deadline with what the moment after it did."""
    return replace(
        deadline,
        fired=(*deadline.fired, *pause.fired),
        died=(*deadline.died, *pause.died),
        living=pause.living,
        detected=pause.detected,
        matches=pause.matches,
    )
