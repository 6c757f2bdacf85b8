"""An automaton in a formula as a fragment: registers hold values instead of events, and there are no ε-transitions.

The engine reads an empty register as null, where an atom of the papers is false. So a state also records which
registers have been written, and an atom on an empty register becomes FALSE.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.automata.compile.sremo.terminals import waiting_anywhere, with_empty_registers
from cerflow.automata.model.fragment import Fragment, RegisterFile, explored
from cerflow.automata.model.transducer import Transition, Write
from cerflow.base.graphs import gathered
from cerflow.language.automaton import AutomatonFormula, State, closed
from cerflow.language.condition import Attribute, Condition, Expression, Function, LabelReference, PredicateCall
from cerflow.language.node import Node, transform, with_children
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import Stored, bare, is_local

#: States joined by ε-transitions, the registers written so far, and whether a run may end there.
_Here = tuple[frozenset[State], frozenset[str], bool]
#: The values that conditions read from the event in each register, as expressions on that event, with their numbers.
_Fields = dict[str, dict[Expression, int]]


def compile_automaton(automaton: AutomatonFormula, registers: RegisterFile) -> Fragment:
    """The fragment with the same runs; raises `UnsupportedQueryError` if it has too many states."""
    conditions = {step: condition for step in automaton.steps if (condition := step.applied) is not None}
    fields: _Fields = {register: {} for register in automaton.registers}
    for condition in conditions.values():
        _stored(condition, dict.fromkeys(fields, -1), fields)
    kept = [register for register in automaton.registers if fields[register]]
    number = {r: registers.value(len(fields[r]), r) for r in kept}
    leaving = automaton.leaving()

    def following(here: _Here) -> Iterator[tuple[_Here, Transition]]:
        together, written, _ = here
        steps = (step for state in together for step in leaving.get(state, ()) if step in conditions)
        effects = gathered(((conditions[t], t.output, t.writes.intersection(kept)), t.target) for t in steps)
        for (condition, output, stored), targets in effects.items():
            known = with_empty_registers(condition, written)
            parts = [_stored(part, number, fields) for part in conjuncts(known)]
            if not contradicts([part for part in parts if is_local(part)]):
                writes = (Write(number[r], tuple(fields[r]), fresh=True) for r in sorted(stored, key=kept.index))
                t = Transition(0, 0, labels=output, writes=tuple(writes)).guarded(parts)
                after = closed(targets, leaving)
                ends = not automaton.finals.isdisjoint(after) and (bool(output) or not automaton.ends_marked)
                yield (after, written | stored, ends), t

    # A run reads an event at least, so it does not end where it begins.
    start: _Here = (closed(automaton.starts, leaving), frozenset(), False)
    whole = explored([start], following, lambda here: here[2])
    return _begun_anywhere(whole) if automaton.anywhere else whole


def _begun_anywhere(fragment: Fragment) -> Fragment:
    """The fragment whose runs begin at any event; the same if they do so already."""
    waiting = waiting_anywhere(fragment)
    loops = {t.source for t in waiting.transitions if t.skips}
    if waiting.initial <= loops - waiting.final:
        return waiting
    begin = fragment.add_state()
    fragment.transitions += [Transition(begin, begin), *(t.moved(begin, t.target) for t in fragment.beginnings())]
    fragment.initial = {begin}
    return fragment


def _stored(part: Condition, number: dict[str, int], fields: _Fields) -> Condition:
    """The condition on fields of registers instead of events in them; ``fields`` learns of new ones."""

    def field(register: str, read: Expression) -> Stored:
        known = fields[register]
        return Stored(number[register], known.setdefault(bare(read), len(known)))

    def visit(current: Node) -> Node:
        match current:
            case Attribute(str(register)) | Function("position" | "time", (LabelReference(str(register)),)):
                return field(register, current)
            case PredicateCall(_, arguments):
                # Predicates take an event as a whole; elsewhere a label alone is not a value.
                events = (a.label if isinstance(a, LabelReference) else None for a in arguments)
                return with_children(current, [a if e is None else field(e, a) for a, e in zip(arguments, events)])
        return current

    return transform(part, visit)
