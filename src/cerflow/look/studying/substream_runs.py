"""The configurations of a query's automaton in one substream, event by event.

Partial matches in the same state with equal registers share a configuration, as in the engine. All partial matches of
a configuration continue together; they differ only in when they began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain, count, islice

from cerflow.automata.model.clock import may_read_events, reads_tick
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.runs import Memory, RunReader
from cerflow.automata.model.transducer import HIDDEN_LABEL, TYPE_LABEL, Transducer, Transition
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Event
from cerflow.base.graphs import gathered
from cerflow.language.formula import DurationWindow, Window
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.logic.conditions.guards import Measure
from cerflow.look.studying.deadlines import is_pause, is_tick, shown_labels
from cerflow.look.studying.samples import Substream
from cerflow.look.studying.steps import (
    NOTHING,
    Death,
    Firing,
    LivingConfiguration,
    Pairs,
    PartialMatches,
    Refusal,
    TracedStep,
)
from cerflow.look.studying.wording import shown_guard, shown_memory, with_times

#: The first and the last event of partial matches, by their places in the substream; nothing if there is none yet.
_Ends = tuple[int, ...]


@dataclass
class _Shared:
    """The partial matches of a configuration, by where they begin and end."""

    number: int
    parts: dict[_Ends, PartialMatches] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts.values())


_Place = tuple[int, Memory]


class SubstreamRuns:
    """The configurations of one substream; ``kinds`` are the event kinds of the query."""

    def __init__(self, transducer: Transducer, part: Substream, kinds: Collection[str] = ()) -> None:
        self._transducer = transducer
        self._part = part
        self._kinds = kinds
        self._key = part.key
        self._reader = RunReader(transducer, part.events)
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
        self._current: dict[_Place, _Shared] = {}
        for state in sorted(self._transducer.initial):
            self._current[state, self._reader.empty] = _Shared(next(self._unused), {(): NOTHING})

    def living(self) -> tuple[LivingConfiguration, ...]:
        """The configurations that may continue."""
        shown = [self._shown(place, kept) for place, kept in self._current.items() if self._reader.leaving[place[0]]]
        return tuple(sorted(shown, key=lambda configuration: configuration.number))

    def left(self, window: Window, begun: int, now: int) -> tuple[float, float] | None:
        """How much of a window is left at one position that began at another, and its size; None if it is over."""
        start, reached = (self._reader.measure(window, self._part.places[position]) for position in (begun, now))
        size = self._reader.size(window)
        if start is None or reached is None or not start + size - reached > 0:
            return None
        return float(start + size - reached), float(size)

    def forget(self, words: str) -> list[Death]:
        """Begin again."""
        died = [
            Death(self._shown(place, shared), shared.count, "consumption", words, True)
            for place, shared in self._current.items()
            if set(shared.parts) != {()} and self._reader.leaving[place[0]]
        ]
        self._begin()
        return died

    def moved(self, step: TracedStep) -> set[int]:
        """The configurations that have gone on with a deadline that has passed."""
        taken = [(f.target, self._transducer.transitions[f.transition]) for f in step.fired]
        return {target for target, t in taken if reads_tick(t) and t.source != t.target}

    def begun(self, step: TracedStep, positions: Collection[int]) -> tuple[tuple[str | None, int], ...]:
        """Events, among those at some positions, whose partial matches have gone on with a deadline; with a label each.

        The deadline began at the last such event of a partial match.
        """
        reached = self.moved(step)
        going_on = [pairs for c in step.living if c.number in reached for pairs in c.some]
        found = [{p for _, p in pairs}.intersection(positions) for pairs in going_on]
        labels: dict[int, set[str]] = {p: set() for p in sorted({max(own) for own in found if own} or positions)}
        for label, position in chain.from_iterable(going_on):
            if position in labels:
                labels[position].add(label)
        named: list[tuple[str | None, int]] = []
        for position, names in labels.items():
            # A label of AS says more than a type or a kind.
            given = names - {self._part.events[self._part.places[position]].type, *self._kinds}
            named.append((min(given or names, default=None), position))
        return tuple(named)

    def read(self, event: Event, place: int) -> TracedStep:
        """Take all configurations past an event, a tick or a pause."""
        died, registers = list(self._expired(place)), self._transducer.registers
        following: dict[_Place, dict[_Ends, list[PartialMatches]]] = {}
        moves: list[tuple[int, Transition, _Place]] = []
        refused: list[Refusal] = []
        for (state, memory), shared in self._current.items():
            moved, readable = len(moves), self._readable(memory)
            refusals: list[Refusal] = []
            for t in self._reader.leaving[state]:
                if self._reader.fires(t, place, memory):
                    target = (t.target, self._kept(t.target, self._reader.written(t, place, memory)))
                    moves.append((shared.number, t, target))
                    _add(following.setdefault(target, {}), shared, t, event, place)
                elif _is_for(t, event):
                    guard = self._reader.refusing(t, place, memory)
                    because = tuple(shown_guard(part, registers, event, readable) for part in guard)
                    refusals.append(Refusal(shared.number, self._numbers[t], because))
            refused += refusals
            if refusals and moved == len(moves):
                described = (
                    f"to q{self._transducer.transitions[r.transition].target}: {' and '.join(r.because)}"
                    for r in refusals
                )
                words = "no transition may fire; " + "; ".join(described)
                died.append(Death(self._shown((state, memory), shared), shared.count, "guard", words, True))
        if len(following) > limits.TRACED_CONFIGURATIONS:
            raise UnsupportedQueryError(
                f"more than {limits.TRACED_CONFIGURATIONS} configurations live at event {event.position}",
                hint="A window (WITHIN) bounds them; or trace fewer events.",
            )
        former = self._current
        self._current = {}
        for target, parts in following.items():
            number = former[target].number if target in former else next(self._unused)
            joined = {ends: found[0] if len(found) == 1 else PartialMatches(found) for ends, found in parts.items()}
            self._current[target] = _Shared(number, joined)
        fired = tuple(
            Firing(source, self._numbers[t], self._current[target].number, shown_labels(t, event))
            for source, t, target in moves
        )
        found = list(self._detected())
        matches = tuple(dict.fromkeys(chain.from_iterable(islice(part, limits.TRACED_MATCHES) for part in found)))
        return TracedStep(
            key=self._key,
            fired=fired,
            refused=tuple(refused),
            died=tuple(died),
            living=self.living(),
            detected=sum(part.count for part in found),
            matches=tuple(map(_visible, matches[: limits.TRACED_MATCHES])),
        )

    def _kept(self, state: int, memory: Memory) -> Memory:
        """The registers without those that are never read again, so that runs that can continue alike are one."""
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
                continue
            old = [ends for ends in shared.parts if self._reader.outlived(ends, place)]
            gone = sum(shared.parts.pop(ends).count for ends in old)
            if old and window is not None:
                first = min(self._reader.events[ends[0]].position for ends in old)
                words = f"the window of {show(window)} since event {first} is over"
                yield Death(shown, gone, "window", words, not shared.parts)
            if not shared.parts:
                del self._current[state, memory]

    def _window_over(self, register: int, memory: Memory, place: int) -> bool:
        window, content = self._transducer.registers[register].window, memory[register]
        if window is None or not isinstance(content, tuple):
            return False
        (start,) = content
        return self._reader.over(window, start, place)  # type: ignore[arg-type]  # a measure

    def _detected(self) -> Iterator[PartialMatches]:
        for (state, _), shared in self._current.items():
            yield from (part for ends, part in shared.parts.items() if self._reader.accepts(state, ends))

    def _readable(self, memory: Memory) -> Memory:
        return with_times(memory, self._timed, self._reader.events)

    def _shown(self, place: _Place, shared: _Shared) -> LivingConfiguration:
        state, memory = place
        some = islice(chain.from_iterable(shared.parts.values()), limits.TRACED_MATCHES)
        return LivingConfiguration(
            shared.number,
            self._key,
            state,
            shown_memory(self._readable(memory), self._transducer.registers),
            shared.count,
            tuple(map(_visible, dict.fromkeys(some))),
        )


def _add(parts: dict[_Ends, list[PartialMatches]], shared: _Shared, t: Transition, event: Event, place: int) -> None:
    """Add partial matches as they are after a transition to those of its target."""
    marked = gathered(((*ends[:1], place) if t.labels else ends, part) for ends, part in shared.parts.items())
    labels = frozenset(event.type if label == TYPE_LABEL else label for label in t.labels)
    for ends, before in marked.items():
        parts.setdefault(ends, []).extend([PartialMatches(before, labels, event.position)] if labels else before)


def _is_for(t: Transition, event: Event) -> bool:
    """Whether a transition is one for ticks where a tick is read, and one for events where an event is read."""
    return may_read_events(t) if not is_tick(event) and not is_pause(event) else is_tick(event) and reads_tick(t)


def _visible(pairs: Pairs) -> Pairs:
    return frozenset(pair for pair in pairs if pair[0] != HIDDEN_LABEL)
