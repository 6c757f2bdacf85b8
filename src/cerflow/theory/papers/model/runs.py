"""Runs by definition (003 Definitions 6 to 8, 004 Definitions 23 to 26), for all automata.

Positions count from 0, as in 003 and the engine (004 counts from 1). There are two notions of acceptance, and both are
needed (erratum 11.2). A string is in Lang, and its marks are in Match, if a run over the whole of it ends in a final
state, as in Definition 18 for expressions. A match is *reported* at n if in addition the run marks event n, as in
Definition 24 for streams. Complex event automata report in the same way (P1 §6), but not those with sets of labels (P2
§5.1): their runs may end with an event without labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from cerflow.automata.model.runs import PartialRun, partial_runs
from cerflow.base.events import ComplexEvent, Event, StreamGiven, as_stream
from cerflow.language.automaton import State, show_state, sorted_states
from cerflow.theory.papers.model.automaton import Automaton, TransitionLike
from cerflow.theory.papers.model.conditions import holds, in_units_of

__all__ = ["Configuration", "Run", "accepting_runs", "accepts", "matches", "reached_states", "reported_matches", "runs"]

#: For each register the index of its event, None while it is empty (♯).
Contents = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """``[j, q, v]``: the index of the next event, the state, and the contents of the registers (indices of events)."""

    index: int
    state: State
    contents: Contents
    #: The events in the registers that are not empty.
    registers: Mapping[str, Event] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        held = ", ".join("♯" if index is None else str(index) for index in self.contents)
        return f"[{self.index}, {show_state(self.state)}, {held or '♯'}]"


@dataclass(frozen=True, slots=True)
class Run:
    """A run: n+1 configurations, the n transitions between them, including ε-transitions, and its marks."""

    configurations: tuple[Configuration, ...]
    transitions: tuple[TransitionLike, ...]
    complex_event: ComplexEvent

    @property
    def end(self) -> int:
        """The number of events read."""
        return self.configurations[-1].index

    def __str__(self) -> str:
        """The trace as the papers write it: configurations, and on each arrow the output."""
        pieces = [str(self.configurations[0])]
        for t, configuration in zip(self.transitions, self.configurations[1:]):
            arrow = "ε" if t.condition is None else "•" if t.output else "⊗"
            pieces.append(f"–{arrow}→ {configuration}")
        return " ".join(pieces)


def accepts(automaton: Automaton, events: StreamGiven) -> bool:
    """Whether the whole string is in Lang: some run over it ends in a final state."""
    return not automaton.finals.isdisjoint(reached_states(automaton, events)[-1])


def matches(automaton: Automaton, events: StreamGiven) -> frozenset[ComplexEvent]:
    """``Match(T, S)`` for the whole string: the marks of the runs that end in a final state, the empty set included."""
    *_, last = _Reader(automaton, events).runs()
    return frozenset(marks for state, _, marks, _ in last if state in automaton.finals)


def reported_matches(automaton: Automaton, events: StreamGiven) -> frozenset[tuple[int, ComplexEvent]]:
    """All (n, M) such that a run ends at n in a final state, marks event n, and M in all.

    Runs of a `RegisterMatchAutomaton` and a `SymbolicRegisterTransducer` begin at any event (004 Definition 32), those
    of the automata without registers with the first one; see `matches`. A run of a `UnaryComplexEventAutomaton` need
    not mark event n, nor any other.
    """
    model = automaton.model
    return frozenset(
        (n, marks)
        for n, partials in enumerate(_Reader(automaton, events).runs(anywhere=model.anywhere), start=-1)
        for state, _, marks, marked in partials
        if n >= 0 and (marked or not model.ends_marked) and state in automaton.finals
    )


def reached_states(automaton: Automaton, events: StreamGiven) -> list[frozenset[State]]:
    """The states in which runs are that began at the first event: before it, and after each event."""
    return [frozenset(state for state, *_ in found) for found in _Reader(automaton, events).runs(marks=False)]


def runs(automaton: Automaton, events: StreamGiven) -> Iterator[Run]:
    """All runs over the first 0, 1, 2, … events, accepting or not; there may be exponentially many.

    A run comes before the runs that continue it. It has read ``run.end`` events, and the last of its configurations
    has the state and the events in the registers. It takes no ε-transition back into a state in which it has already
    been since it read its last event.
    """
    reader = _Reader(automaton, events)
    starts = reversed(sorted_states(automaton.starts))
    stack = [Run((reader.configuration(0, state, reader.empty),), (), frozenset()) for state in starts]
    while stack:
        run = stack.pop()
        yield run
        here = run.configurations[-1]
        been = {c.state for c in run.configurations if c.index == here.index}
        for t, contents in reversed(list(reader.steps(here.state, here.contents, here.index))):
            if t.condition is not None or t.target not in been:
                after = reader.configuration(here.index + (t.condition is not None), t.target, contents)
                marks = run.complex_event | {(label, here.index) for label in t.output}
                stack.append(Run((*run.configurations, after), (*run.transitions, t), marks))


def accepting_runs(automaton: Automaton, events: StreamGiven) -> Iterator[Run]:
    """The `runs` over the whole string that end in a final state."""
    whole = as_stream(events)
    for run in runs(automaton, whole):
        if run.end == len(whole) and run.configurations[-1].state in automaton.finals:
            yield run


class _Reader:
    """One automaton over one string; a condition is evaluated once for each event and the registers that it reads."""

    def __init__(self, automaton: Automaton, events: StreamGiven) -> None:
        self.automaton = automaton
        self.events = as_stream(events)
        self.empty: Contents = (None,) * len(automaton.registers)
        conditions = {t.condition for t in automaton.transitions if t.condition is not None}
        fitted = {condition: in_units_of(self.events, condition) for condition in conditions}
        self._holds = cache(lambda c, at, held: holds(fitted[c], self.events[at], {r: self.events[k] for r, k in held}))

    def runs(self, *, marks: bool = True, anywhere: bool = False) -> Iterator[set[PartialRun[State, Contents]]]:
        """The runs before the first event, and after each; without ``marks`` their complex events are empty."""

        def steps(state: State, contents: Contents, position: int) -> Iterator[tuple[State, Contents, ComplexEvent]]:
            for t, after in self.steps(state, contents, position):
                if t.condition is not None:
                    given = frozenset((label, position) for label in t.output) if marks else frozenset()
                    for reached in self.automaton.enclosed((t.target,)):
                        yield reached, after, given

        begin = [(state, self.empty) for state in self.automaton.enclosed(self.automaton.starts)]
        return partial_runs(begin, steps, len(self.events), anywhere=anywhere)

    def steps(self, state: State, contents: Contents, position: int) -> Iterator[tuple[TransitionLike, Contents]]:
        """The transitions that a run may take next, ε-transitions included, and the registers after each."""
        held = dict(zip(self.automaton.registers, contents))
        for t in self.automaton.leaving(state):
            read = tuple((r, held[r]) for r in t.reads if held[r] is not None)
            if t.condition is None or (position < len(self.events) and self._holds(t.condition, position, read)):
                yield t, tuple({**held, **dict.fromkeys(t.writes, position)}.values())

    def configuration(self, index: int, state: State, contents: Contents) -> Configuration:
        """A configuration, with the events that its registers hold."""
        named = zip(self.automaton.registers, contents)
        return Configuration(index, state, contents, {r: self.events[k] for r, k in named if k is not None})
