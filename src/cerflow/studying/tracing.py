"""A query traced event by event: what its automaton does with each event of a short stream, and why.

Partial matches in the same state with equal registers share a configuration, as in the engine. All partial matches of
a configuration go on together; they differ only in when they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal

from cerflow import limits
from cerflow.automata.model.clock import has_ticks
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.runs import Memory, RunReader
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.engine.recognize.planning import compile_select, detects_only, fitted
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Condition
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Projection, ProjectionKind, Select
from cerflow.studying.partial_matches import NOTHING, Pairs, PartialMatches
from cerflow.studying.samples import StudiedEvents, key_of_event, substreams_by_key
from cerflow.studying.wording import shown_guard, shown_memory
from cerflow.values.events import Event, Value

__all__ = ["Death", "Firing", "LivingConfiguration", "Refusal", "Trace", "TracedEvent", "automaton_to_trace"]

Key = tuple[Value, ...]
#: The first and the last event of partial matches, by their places in the substream; None if there is no event yet.
_Ends = tuple[int, int] | None
Reason = Literal["guard", "window", "consumption"]


@dataclass(frozen=True)
class LivingConfiguration:
    """A configuration: the partial matches in one state with the same register values, in one substream.

    ``number`` stays the same from event to event. ``registers`` are pairs of name and content, as text. ``count`` is
    the number of partial matches, and ``some`` the first few as pairs of label and position; a configuration that
    waits for its first event has the empty one.
    """

    number: int
    key: Key
    state: int
    registers: tuple[tuple[str, str], ...]
    count: int
    some: tuple[Pairs, ...]

    @property
    def waiting(self) -> bool:
        """Whether it has no event yet."""
        return self.count == 1 and self.some == (frozenset(),)


@dataclass(frozen=True)
class Firing:
    """A transition that was taken, by its number in the transducer, from one configuration to another."""

    source: int
    transition: int
    target: int
    labels: frozenset[str]


@dataclass(frozen=True)
class Refusal:
    """A transition that was not taken, and the parts of its guard that are not true, as text with the values read."""

    source: int
    transition: int
    because: tuple[str, ...]


@dataclass(frozen=True)
class Death:
    """Partial matches that were given up: how many of a configuration, why, and in words.

    ``whole`` says that the configuration is gone, and not only those of its partial matches that are too old.
    """

    configuration: LivingConfiguration
    count: int
    reason: Reason
    words: str
    whole: bool


@dataclass(frozen=True)
class TracedEvent:
    """What an event did.

    ``unread`` says why the query does not read the event, else it is None. ``living`` are the configurations of the
    event's substream after it. ``detected`` is the number of complex events that the automaton detects, ``matches`` the
    first of them; the strategy of the query, LIMIT and ANY then choose among them.
    """

    event: Event
    key: Key
    unread: str | None = None
    fired: tuple[Firing, ...] = ()
    refused: tuple[Refusal, ...] = ()
    died: tuple[Death, ...] = ()
    living: tuple[LivingConfiguration, ...] = ()
    detected: int = 0
    matches: tuple[Pairs, ...] = ()


class Trace:
    """The steps of a query over a sample: ``trace[n]`` is what event n did. Steps are computed when they are asked for.

    Raises `UnsupportedQueryError` for queries that the engine cannot evaluate, for deadlines in time, and when more
    than `limits.TRACED_CONFIGURATIONS` configurations live at once.
    """

    def __init__(self, select: Select, sample: StudiedEvents) -> None:
        self.select = select
        self.sample = sample
        self.transducer = automaton_to_trace(select, sample)
        self._substreams = substreams_by_key(select, sample.events)
        self._runs = {key: _SubstreamRuns(self.transducer, part.events, key) for key, part in self._substreams.items()}
        self._numbers: dict[object, int] = {}
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

    def _step(self, event: Event) -> TracedEvent:
        key = key_of_event(self.select, event)
        if None in key:
            missing = " or ".join(self.select.partition[key.index(None)])
            return TracedEvent(event, key, unread=f"it has no {missing}, so it belongs to no substream")
        part = self._substreams.get(key)
        if part is None or event.position not in part.places:
            return TracedEvent(event, key, unread=f"its stream {event.stream} is not named behind FROM")
        runs = self._runs[key]
        step = runs.read(event, part.places[event.position])
        if step.detected and self.select.consume is not Consumption.NONE:
            concerned = self._runs.values() if self.select.consume is Consumption.ANY else [runs]
            words = f"event {event.position} detected a match, which consumes all that has begun"
            forgotten = tuple(chain.from_iterable(one.forget(words) for one in concerned))
            step = replace(step, died=(*step.died, *forgotten), living=runs.living())
        return step


def automaton_to_trace(select: Select, sample: StudiedEvents) -> Transducer:
    """The transducer of a query as the engine would use it, with all events marked also where none is reported."""
    if detects_only(select):
        select = replace(select, projection=Projection(ProjectionKind.ALL))
    transducer = compile_select(fitted(select, sample.schema))
    if has_ticks(transducer):
        raise UnsupportedQueryError(
            "patterns that wait for deadlines in time are not shown step by step",
            span=select.formula.span,
            hint="NOT FOLLOWED BY … FOR n EVENTS is.",
        )
    return transducer


@dataclass
class _Shared:
    """The partial matches of a configuration, by where they begin and end."""

    number: int
    parts: dict[_Ends, PartialMatches] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts.values())


_Place = tuple[int, Memory]


class _SubstreamRuns:
    """The configurations of one substream."""

    def __init__(self, transducer: Transducer, events: Sequence[Event], key: Key) -> None:
        self._transducer = transducer
        self._key = key
        self._reader = RunReader(transducer, events)
        self._live = transducer.live()
        self._needed = windows_needed(transducer)
        self._numbers: dict[Transition, int] = {t: k for k, t in enumerate(transducer.transitions)}
        # A run may end without another event: then the window is asked when it ends.
        self._prunes = transducer.window is not None and all(
            t.labels for t in transducer.transitions if t.target in transducer.final
        )
        self._made = 0
        self._begin()

    def _begin(self) -> None:
        self._current: dict[_Place, _Shared] = {}
        for state in sorted(self._transducer.initial):
            self._current[state, self._reader.empty] = _Shared(self._number(), {None: NOTHING})

    def _number(self) -> int:
        self._made += 1
        return self._made

    def living(self) -> tuple[LivingConfiguration, ...]:
        """The configurations that may go on."""
        shown = [self._shown(place, kept) for place, kept in self._current.items() if self._reader.leaving[place[0]]]
        return tuple(sorted(shown, key=lambda configuration: configuration.number))

    def forget(self, words: str) -> list[Death]:
        """Begin anew."""
        died = [
            Death(self._shown(place, shared), shared.count, "consumption", words, True)
            for place, shared in self._current.items()
            if set(shared.parts) != {None} and self._reader.leaving[place[0]]
        ]
        self._begin()
        return died

    def read(self, event: Event, place: int) -> TracedEvent:
        """Take all configurations past an event."""
        died = list(self._expired(place))
        following: dict[_Place, dict[_Ends, list[PartialMatches]]] = {}
        moves: list[tuple[int, Transition, _Place]] = []
        refused: list[Refusal] = []
        for (state, memory), shared in self._current.items():
            moved = False
            refusals = []
            leaving = self._reader.leaving[state]
            for t in leaving:
                if not self._reader.fires(t, place, memory):
                    guard = self._reader.refusing(t, place, memory)
                    because = tuple(self._words(part, event, memory) for part in guard)
                    refusals.append(Refusal(shared.number, self._numbers[t], because))
                    continue
                moved = True
                target = (t.target, self._kept(t.target, self._reader.written(t, place, memory)))
                moves.append((shared.number, t, target))
                _add(following.setdefault(target, {}), shared, t, event, place)
            refused += refusals
            if not moved and refusals:
                ways = (f"to q{t.target}: {' and '.join(r.because)}" for r, t in zip(refusals, leaving))
                words = "no transition may fire; " + "; ".join(ways)
                died.append(Death(self._shown((state, memory), shared), shared.count, "guard", words, True))
        if len(following) > limits.TRACED_CONFIGURATIONS:
            raise UnsupportedQueryError(
                f"more than {limits.TRACED_CONFIGURATIONS} configurations live at event {event.position}",
                hint="A window (WITHIN) bounds them; or trace fewer events.",
            )
        former = self._current
        self._current = {}
        for target, parts in following.items():
            number = former[target].number if target in former else self._number()
            joined = {ends: found[0] if len(found) == 1 else PartialMatches(found) for ends, found in parts.items()}
            self._current[target] = _Shared(number, joined)
        fired = tuple(
            Firing(source, self._numbers[t], self._current[target].number, _labels(t, event))
            for source, t, target in moves
        )
        found = list(self._detected())
        matches = tuple(dict.fromkeys(chain.from_iterable(islice(part, limits.TRACED_MATCHES) for part in found)))
        return TracedEvent(
            event,
            self._key,
            None,
            fired,
            tuple(refused),
            tuple(died),
            self.living(),
            sum(part.count for part in found),
            tuple(map(_visible, matches[: limits.TRACED_MATCHES])),
        )

    def _kept(self, state: int, memory: Memory) -> Memory:
        """The registers without those that are never read again, so that runs that can go on alike are one."""
        return tuple(content if r in self._live[state] else None for r, content in enumerate(memory))

    def _expired(self, place: int) -> Iterator[Death]:
        """Partial matches that no event from here on can complete inside a window."""
        window = self._transducer.window
        for (state, memory), shared in list(self._current.items()):
            shown = self._shown((state, memory), shared)
            over = [r for r in sorted(self._needed[state]) if self._window_over(r, memory, place)]
            if over:
                del self._current[state, memory]
                kept = self._transducer.registers[over[0]].window
                assert kept is not None
                yield Death(shown, shared.count, "window", f"the window of {show(kept)} is over", True)
            elif self._prunes and window is not None:
                old = [
                    ends
                    for ends in shared.parts
                    if ends is not None and self._reader.over(window, self._reader.measure(window, ends[0]), place)
                ]
                count = sum(shared.parts.pop(ends).count for ends in old)
                if old:
                    first = min(self._reader.events[ends[0]].position for ends in old if ends is not None)
                    words = f"the window of {show(window)} since event {first} is over"
                    yield Death(shown, count, "window", words, not shared.parts)
                if not shared.parts:
                    del self._current[state, memory]

    def _window_over(self, register: int, memory: Memory, place: int) -> bool:
        window, content = self._transducer.registers[register].window, memory[register]
        if window is None or not isinstance(content, tuple):
            return False
        (start,) = content
        return self._reader.over(window, start, place)  # type: ignore[arg-type]  # a measure

    def _detected(self) -> Iterator[PartialMatches]:
        window = self._transducer.window
        for (state, _), shared in self._current.items():
            if state in self._transducer.final:
                for ends, part in shared.parts.items():
                    if ends is None or window is None or self._reader.within(window, *ends):
                        yield part

    def _words(self, part: Condition, event: Event, memory: Memory) -> str:
        return shown_guard(part, self._transducer.registers, event, memory)

    def _shown(self, place: _Place, shared: _Shared) -> LivingConfiguration:
        state, memory = place
        some = islice(chain.from_iterable(shared.parts.values()), limits.TRACED_MATCHES)
        return LivingConfiguration(
            shared.number,
            self._key,
            state,
            shown_memory(memory, self._transducer.registers, self._reader.events),
            shared.count,
            tuple(map(_visible, dict.fromkeys(some))),
        )


def _add(parts: dict[_Ends, list[PartialMatches]], shared: _Shared, t: Transition, event: Event, place: int) -> None:
    """Add partial matches as they are after a transition to those of its target."""
    if not t.labels:
        for ends, part in shared.parts.items():
            parts.setdefault(ends, []).append(part)
        return
    marked: dict[_Ends, list[PartialMatches]] = {}
    for ends, part in shared.parts.items():
        marked.setdefault((place if ends is None else ends[0], place), []).append(part)
    labels = frozenset(event.type if label == TYPE_LABEL else label for label in t.labels)
    for ends, before in marked.items():
        parts.setdefault(ends, []).append(PartialMatches(before, labels, event.position))


def _labels(t: Transition, event: Event) -> frozenset[str]:
    return frozenset(event.type if label == TYPE_LABEL else label for label in t.labels if label != HIDDEN_LABEL)


def _visible(pairs: Pairs) -> Pairs:
    return frozenset(pair for pair in pairs if pair[0] != HIDDEN_LABEL)
