"""A query traced event by event: what its automaton does with each event of a short stream, and why.

Partial matches in the same state with equal registers share a configuration, as in the engine. All partial matches of
a configuration continue together; they differ only in when they began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, islice
from typing import Any

from cerflow.automata.model.clock import PAUSE, TICK, may_read_events, reads_tick
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.runs import Memory, RunReader
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Event
from cerflow.base.graphs import gathered
from cerflow.engine.recognize.planning import compile_select, detects_only, fitted
from cerflow.language.event_kinds import kinds_in
from cerflow.language.formula import DurationWindow, Window
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Projection, ProjectionKind, Select
from cerflow.logic.conditions.guards import Measure
from cerflow.look.studying import samples
from cerflow.look.studying import steps as s
from cerflow.look.studying.wording import shown_content, shown_guard, time_of

#: The first and the last event of partial matches, by their places in the substream; nothing if there is none yet.
_Ends = tuple[int, ...]


@dataclass
class _Shared:
    """The partial matches of a configuration, by where they begin and end."""

    number: int
    parts: dict[_Ends, s.PartialMatches] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts.values())


_Place = tuple[int, Memory]


class SubstreamRuns:
    """The configurations of one substream; ``kinds`` are the event kinds of the query."""

    def __init__(self, transducer: Transducer, part: samples.Substream, kinds: Collection[str] = ()) -> None:
        self._transducer = transducer
        self._part = part
        self._kinds = kinds
        self.reader = RunReader(transducer, part.events)
        self._timed = {
            write.register
            for t in transducer.transitions
            for write in t.writes
            for node in chain.from_iterable(map(walk, write.row))
            if isinstance(node, Measure) and isinstance(node.window, DurationWindow)
        }
        self._live = transducer.live()
        self._needed = windows_needed(transducer)
        self._numbers: dict[Transition, int] = {t: k for k, t in enumerate(transducer.transitions)}
        self._unused = count(1)
        self._begin()

    def _begin(self) -> None:
        self._current: dict[_Place, _Shared] = {
            (state, self.reader.empty): _Shared(next(self._unused), {(): s.NOTHING})
            for state in sorted(self._transducer.initial)
        }

    def living(self) -> tuple[s.LivingConfiguration, ...]:
        """The configurations that may continue."""
        shown = [self._shown(place, kept) for place, kept in self._current.items() if self.reader.leaving[place[0]]]
        return tuple(sorted(shown, key=lambda configuration: configuration.number))

    def forget(self, words: str) -> list[s.Death]:
        """Begin again."""
        died = [
            s.Death(self._shown(place, shared), shared.count, "consumption", words, True)
            for place, shared in self._current.items()
            if set(shared.parts) != {()} and self.reader.leaving[place[0]]
        ]
        self._begin()
        return died

    def begun(self, step: s.TracedStep, positions: Collection[int]) -> tuple[tuple[str | None, int], ...] | None:
        """Events, among those at some positions, whose partial matches have gone on with a deadline; with a label each.

        The deadline began at the last such event of a partial match. None if no configuration has gone on.
        """
        taken = [(f.target, self._transducer.transitions[f.transition]) for f in step.fired]
        reached = {target for target, t in taken if reads_tick(t) and t.source != t.target}
        if not reached:
            return None
        going_on = [pairs for c in step.living if c.number in reached for pairs in c.some]
        found = [{p for _, p in pairs}.intersection(positions) for pairs in going_on]
        labels = gathered((position, label) for label, position in chain.from_iterable(going_on))
        named: list[tuple[str | None, int]] = []
        for position in sorted({max(own) for own in found if own} or positions):
            names = {*labels.get(position, ())}
            # A label of AS says more than a type or a kind.
            given = names - {self._part.events[self._part.places[position]].type, *self._kinds}
            named.append((min(given or names, default=None), position))
        return tuple(named)

    def read(self, event: Event, place: int) -> s.TracedStep:
        """Take all configurations past an event, a tick or a pause."""
        died, registers = list(self._expired(place)), self._transducer.registers
        following: dict[_Place, dict[_Ends, list[s.PartialMatches]]] = {}
        moves: list[tuple[int, Transition, _Place]] = []
        refused: list[s.Refusal] = []
        # A transition may be one for ticks, or one for events.
        asked = reads_tick if event.type == TICK.type else may_read_events
        for (state, memory), shared in self._current.items():
            moved, readable = len(moves), self._readable(memory)
            refusals: list[s.Refusal] = []
            for t in self.reader.leaving[state]:
                if self.reader.fires(t, place, memory):
                    after, live = self.reader.written(t, place, memory), self._live[t.target]
                    # Without registers that are never read again, so that runs that can continue alike are one.
                    target = (t.target, tuple(kept if r in live else None for r, kept in enumerate(after)))
                    moves.append((shared.number, t, target))
                    _add(following.setdefault(target, {}), shared, t, event, place)
                elif event.type != PAUSE.type and asked(t):
                    guard = self.reader.refusing(t, place, memory)
                    because = tuple(shown_guard(part, registers, event, readable) for part in guard)
                    refusals.append(s.Refusal(shared.number, self._numbers[t], because))
            refused += refusals
            if refusals and moved == len(moves):
                described = (
                    f"to q{self._transducer.transitions[r.transition].target}: {' and '.join(r.because)}"
                    for r in refusals
                )
                words = "no transition may fire; " + "; ".join(described)
                died.append(s.Death(self._shown((state, memory), shared), shared.count, "guard", words, True))
        if len(following) > limits.TRACED_CONFIGURATIONS:
            raise UnsupportedQueryError(
                f"more than {limits.TRACED_CONFIGURATIONS} configurations live at event {event.position}",
                hint="A window (WITHIN) bounds them; or trace fewer events.",
            )
        former = self._current
        self._current = {}
        for target, parts in following.items():
            number = former[target].number if target in former else next(self._unused)
            joined = {ends: found[0] if len(found) == 1 else s.PartialMatches(found) for ends, found in parts.items()}
            self._current[target] = _Shared(number, joined)
        fired = tuple(
            s.Firing(source, self._numbers[t], self._current[target].number, samples.shown_labels(t, event))
            for source, t, target in moves
        )
        found = [
            part
            for (state, _), shared in self._current.items()
            for ends, part in shared.parts.items()
            if self.reader.accepts(state, ends)
        ]
        matches = tuple(dict.fromkeys(chain.from_iterable(islice(part, limits.TRACED_MATCHES) for part in found)))
        return s.TracedStep(
            key=self._part.key,
            fired=fired,
            refused=tuple(refused),
            died=tuple(died),
            living=self.living(),
            detected=sum(part.count for part in found),
            matches=tuple(map(_visible, matches[: limits.TRACED_MATCHES])),
        )

    def _expired(self, place: int) -> Iterator[s.Death]:
        """Partial matches that no event from here on can complete inside a window."""
        window = self._transducer.window
        for (state, memory), shared in list(self._current.items()):
            shown = self._shown((state, memory), shared)
            over = [r for r in sorted(self._needed[state]) if self._window_over(r, memory, place)]
            if over:
                del self._current[state, memory]
                kept = self._transducer.registers[over[0]].window
                assert kept is not None
                yield s.Death(shown, shared.count, "window", f"the window of {show(kept)} is over", True)
                continue
            old = [ends for ends in shared.parts if self.reader.outlived(ends, place)]
            gone = sum(shared.parts.pop(ends).count for ends in old)
            if old and window is not None:
                first = min(self.reader.events[ends[0]].position for ends in old)
                words = f"the window of {show(window)} since event {first} is over"
                yield s.Death(shown, gone, "window", words, not shared.parts)
            if not shared.parts:
                del self._current[state, memory]

    def _window_over(self, register: int, memory: Memory, place: int) -> bool:
        window, content = self._transducer.registers[register].window, memory[register]
        if window is None or not isinstance(content, tuple):
            return False
        (start,) = content
        return self.reader.over(window, start, place)  # type: ignore[arg-type]  # a measure

    def _readable(self, memory: Memory) -> Memory:
        """The registers, with times as conditions see them."""
        return tuple(
            tuple(time_of(v, self.reader.events) if isinstance(v, int | float) else v for v in content)
            if register in self._timed and isinstance(content, tuple)
            else content
            for register, content in enumerate(memory)
        )

    def _shown(self, place: _Place, shared: _Shared) -> s.LivingConfiguration:
        state, memory = place
        some = islice(chain.from_iterable(shared.parts.values()), limits.TRACED_MATCHES)
        held = tuple(
            (f"r{number}: {register.meaning}", shown_content(content))
            for number, (content, register) in enumerate(zip(self._readable(memory), self._transducer.registers))
            if content is not None
        )
        some_visible = tuple(map(_visible, dict.fromkeys(some)))
        return s.LivingConfiguration(shared.number, self._part.key, state, held, shared.count, some_visible)


def _add(parts: dict[_Ends, list[s.PartialMatches]], shared: _Shared, t: Transition, event: Event, place: int) -> None:
    """Add partial matches as they are after a transition to those of its target."""
    marked = gathered(((*ends[:1], place) if t.labels else ends, part) for ends, part in shared.parts.items())
    labels = frozenset(event.type if label == TYPE_LABEL else label for label in t.labels)
    for ends, before in marked.items():
        parts.setdefault(ends, []).extend([s.PartialMatches(before, labels, event.position)] if labels else before)


def _visible(pairs: s.Pairs) -> s.Pairs:
    return frozenset(pair for pair in pairs if pair[0] != HIDDEN_LABEL)


class Trace:
    """The steps of a query over a sample: ``trace[n]`` is what event n did. Steps are computed when they are asked for.

    Raises `UnsupportedQueryError` for queries that the engine cannot evaluate, and when more than
    `limits.TRACED_CONFIGURATIONS` configurations live at once.
    """

    def __init__(self, select: Select, sample: samples.StudiedEvents) -> None:
        self.select = select
        self.sample = sample
        # As the engine would use it, with all events marked also where none is reported.
        shown = replace(select, projection=Projection(ProjectionKind.ALL)) if detects_only(select) else select
        self.transducer = compile_select(fitted(shown, sample.schema))
        self._moments = samples.moments(self.transducer, sample, samples.substreams_by_key(select, sample.events))
        kinds = kinds_in(select)
        self._runs = {key: SubstreamRuns(self.transducer, part, kinds) for key, part in self._moments.parts.items()}
        self._steps: list[s.TracedEvent] = []

    def __len__(self) -> int:
        return len(self.sample.events)

    def __iter__(self) -> Iterator[s.TracedEvent]:
        return (self[n] for n in range(len(self)))

    def __getitem__(self, position: int) -> s.TracedEvent:
        position = range(len(self))[position]
        while len(self._steps) <= position:
            self._steps.append(self._step(self.sample.events[len(self._steps)]))
        return self._steps[position]

    @cached_property
    def behind(self) -> tuple[s.PassedDeadline, ...]:
        """The deadlines that the clock shows to have passed, after all events."""
        _ = self[-1] if len(self) else None
        return tuple(chain.from_iterable(self._passed(moment, None) for moment in self._moments.read[-1]))

    def steps(self) -> Iterator[s.PassedDeadline | s.TracedEvent]:
        """All steps in their order: deadlines that pass, and events."""
        yield from chain.from_iterable(event.steps for event in self)
        yield from self.behind

    def left(self, window: Window, begun: int, step: s.TracedEvent) -> tuple[float, float] | None:
        """How much of a window that began at a position is left at a step, and its size; None if it is over."""
        reader, places = self._runs[step.key].reader, self._moments.parts[step.key].places
        start, reached = (reader.measure(window, places[position]) for position in (begun, step.event.position))
        size = reader.size(window)
        if start is None or reached is None or not start + size - reached > 0:
            return None
        return float(start + size - reached), float(size)

    def _step(self, event: Event) -> s.TracedEvent:
        *by_clock, moment = self._moments.read[len(self._steps)]
        steps = [step for shown in by_clock for step in self._passed(shown, None)] + self._passed(moment, event)
        if steps and isinstance(steps[-1], s.TracedEvent):
            return replace(steps[-1], before=tuple(steps[:-1]))
        key = samples.key_of_event(self.select, event)
        unread = f"its stream {event.stream} is not named after FROM"
        if None in key:
            missing = " or ".join(self.select.partition[key.index(None)])
            unread = f"it has no {missing}, so it belongs to no substream"
        return s.TracedEvent(event=event, key=key, unread=unread, before=tuple(steps))

    def _passed(self, moment: samples.Moment, event: Event | None) -> list[Any]:
        """The steps of a moment: deadlines that do something, and last the event, unless it is not read."""
        steps: list[s.PassedDeadline | s.TracedEvent] = []
        detecting: dict[s.Key, str] = {}
        for key, place, opening in moment:
            runs, thing = self._runs[key], self._moments.parts[key].events[place]
            step = runs.read(thing, place)
            if step.detected:
                detecting[key] = "a deadline" if event is None else f"event {event.position}"
            if thing.type == TICK.type:
                begun = runs.begun(step, opening)
                if begun is not None:
                    attribute = self._moments.attribute if thing.attributes else None
                    at = thing.attribute(attribute) if attribute else time_of(thing.time, self.sample.events)
                    steps.append(
                        s.PassedDeadline(**vars(step), at=at, begun=begun, shown_by=event, attribute=attribute)
                    )
            elif thing.type != PAUSE.type:
                assert event is not None
                steps.append(s.TracedEvent(**vars(step), event=event))
            elif step.detected:
                # Something waited for it, so a deadline of this substream has just passed.
                fired, died = (*steps[-1].fired, *step.fired), (*steps[-1].died, *step.died)
                after: dict[str, Any] = {name: getattr(step, name) for name in ("living", "detected", "matches")}
                steps[-1] = replace(steps[-1], fired=fired, died=died, **after)
        if detecting and self.select.consume is not Consumption.NONE:
            self._consume(detecting, steps)
        return steps

    def _consume(self, detecting: Mapping[s.Key, str], steps: list[s.PassedDeadline | s.TracedEvent]) -> None:
        """Let the matches of a moment consume what has begun, and change its steps."""
        everywhere = self.select.consume is Consumption.ANY
        words = f"{next(iter(detecting.values()))} detected a match, which consumes all partial matches"
        died = {key: runs.forget(words) for key, runs in self._runs.items() if everywhere or key in detecting}
        last = max(k for k, step in enumerate(steps) if step.detected)
        steps[last] = replace(steps[last], died=(*steps[last].died, *chain.from_iterable(died.values())))
        for k, key in {step.key: (k, step.key) for k, step in enumerate(steps) if step.key in died}.values():
            steps[k] = replace(steps[k], living=self._runs[key].living())
