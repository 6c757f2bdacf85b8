"""The meaning of automata, by their runs (P1 §6, P2 §5.1, 003 Definitions 6 to 8, 004 Definitions 23 to 26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerflow.base.complex_events import ComplexEvent
from cerflow.base.events import Event
from cerflow.base.graphs import reached
from cerflow.language.automaton import AutomatonFormula, AutomatonStep, Satisfied, State, StreamTest, TypeTest
from cerflow.language.condition import Condition, Constant
from cerflow.language.node import Node, transform
from cerflow.theory.semantics.complex_events import Moment, at_event
from cerflow.theory.semantics.conditions import satisfies_with_registers

#: The positions of the events in the registers that are not empty, by name.
_Contents = frozenset[tuple[str, int]]
#: A state, the registers, the events labelled so far, and whether the last event read was labelled.
_Run = tuple[State, _Contents, ComplexEvent, bool]


def automaton_matches(
    automaton: AutomatonFormula, events: Sequence[Event], i: int, j: int
) -> frozenset[tuple[ComplexEvent, Moment]]:
    """The complex events of the runs that read S[i…j], or a suffix of it, and end in a final state."""
    leaving = automaton.leaving()
    begun: set[_Run] = {(state, frozenset(), frozenset(), False) for state in automaton.starts}
    runs = _with_epsilon(leaving, set(begun))
    for position in range(i, j + 1):
        if automaton.anywhere:
            runs |= _with_epsilon(leaving, set(begun))
        after: set[_Run] = set()
        for state, contents, labelled, _ in runs:
            held = {register: events[place] for register, place in contents}
            for step in leaving.get(state, ()):
                condition = step.applied
                if condition is None or not _holds(condition, events[position], held):
                    continue
                kept = frozenset(pair for pair in contents if pair[0] not in step.writes)
                written = kept | {(register, position) for register in step.writes}
                given = labelled | {(label, position) for label in step.output}
                after.add((step.target, written, given, bool(step.output)))
        runs = _with_epsilon(leaving, after)
    now = at_event(events[j])
    return frozenset(
        (labelled, now)
        for state, _, labelled, marked in runs
        if state in automaton.finals and (marked or not automaton.ends_marked)
    )


def _with_epsilon(leaving: Mapping[State, Sequence[AutomatonStep]], runs: set[_Run]) -> set[_Run]:
    """Also the runs that take ε-transitions from there."""
    return set(reached(runs, lambda r: [(s.target, *r[1:]) for s in leaving.get(r[0], ()) if s.condition is None]))


def _holds(condition: Condition, event: Event, held: Mapping[str, Event]) -> bool:
    def visit(current: Node) -> Node:
        match current:
            case TypeTest(name, stream):
                return Constant(event.type == name and (stream is None or event.stream in (None, stream)))
            case StreamTest(stream):
                return Constant(event.stream in (None, stream))
            case Satisfied(inner):
                return Constant(satisfies_with_registers(inner, event, held))
        return current

    simplified = transform(condition, visit)
    return satisfies_with_registers(simplified, event, held)
